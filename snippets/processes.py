import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from IPython import get_ipython
from IPython.core.magic import register_cell_magic

# A new process asks a parent for a fork and stands for it, where there is one. Else it
# imports, without packages that Keras and TensorFlow import and can do without.
FIRST_LINES = """
import importlib.machinery, json, os, signal, socket, sys
if wire := os.environ.pop("PROCESS_WIRE", ""):
    wire = socket.socket(fileno=int(wire))
    request = os.getpgrp(), os.getcwd(), dict(os.environ), sys.orig_argv[2:]
    try:
        socket.send_fds(wire, [b"+"], [0, 1, 2])
        wire.sendall(json.dumps(request).encode() + b"\\n")
        taken = wire.recv(1)
    except OSError:
        taken = b""
    if taken:
        status = int(wire.recv(9) or 256)
        if number := status & 127:
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(status >> 8)
    del request, taken
class Unneeded:
    modules, environ = sys.modules, os.environ
    spec = importlib.machinery.ModuleSpec
    importers = "keras", "tensorflow"
    names = {"IPython", "jax", "matplotlib", "pandas", "sklearn"}
    def find_spec(self, name, path=None, target=None):
        needs_jax = self.environ.get("KERAS_BACKEND") in ("jax", "numpy")
        if name in self.names and not (name == "jax" and needs_jax):
            if any(map(self.starts, self.importers)):
                return self.spec(name, self)
    def starts(self, name):
        spec = getattr(self.modules.get(name), "__spec__", None)
        return getattr(spec, "_initializing", False)
    def create_module(self, spec):
        raise ModuleNotFoundError(spec.name)
    exec_module = create_module
sys.meta_path.insert(0, Unneeded())
del importlib, json, signal, socket, wire, Unneeded
"""
# A parent imports Keras and its engine, touches no device, and forks for each wire that
# it is sent. The first fork waits for the second, which becomes the process.
PARENT_LINES = """
import __main__, gc, json, os, select, signal, socket, sys
sys.stderr, before = sys.stdout, {*os.environ.items()}  # C++ code logs to file 2
import keras, numpy
imported, maps = {*os.environ.items()} - before, open("/proc/self/maps").read()
if os.fstat(1).st_size or "libcuda.so" in maps or "libze_loader" in maps:
    os._exit(1)  # it printed, or a GPU's driver is loaded, which survives no fork
gc.freeze()  # so no fork looks for garbage in what was imported, not even at its end
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
control = socket.socket(fileno=0)
while wire := socket.recv_fds(control, 1, 1)[1]:
    if not os.fork():
        break
    os.close(*wire)
else:
    os._exit(0)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
wire = socket.socket(fileno=wire[0])
files = socket.recv_fds(wire, 1, 3)[1]
group, folder, variables, (source, *arguments) = json.loads(wire.makefile().readline())
logged = os.pread(2, 1 << 20, 0)
wire.send(b"+")
if child := os.fork():
    for file in files:
        os.close(file)
    if wire in select.select([wire, os.pidfd_open(child)], [], [])[0]:
        os.kill(child, signal.SIGKILL)  # who stood for it was killed
    wire.send(b"%d" % os.waitpid(child, 0)[1])
    os._exit(0)
os.setpgid(0, group)
for number, file in enumerate(files):
    os.dup2(file, number)
    os.close(file)
wire.close()
control.detach()  # it was file 0
os.chdir(folder)
variables.update(imported)  # Keras sets some
for name in {*os.environ} - {*variables}:
    del os.environ[name]
os.environ.update(variables)
if "jax" in sys.modules:
    change, asked = sys.modules["jax"].config.update, variables.get
    change("jax_platforms", asked("JAX_PLATFORMS"))
    change("jax_num_cpu_devices", int(asked("JAX_NUM_CPU_DEVICES", -1)))
sys.argv[1:], sys.stderr = arguments, sys.__stderr__
if arguments:
    open(arguments[1], "wb").write(logged)
numpy.random.seed()  # or all forks would draw the same
exec(source, vars(__main__))
"""
# The child sends what C++ code logs to a file, and shortens tracebacks to its cell.
PROLOGUE = """
import linecache, os, sys, traceback
path, log = sys.argv[1:3]
sys.argv = [path]
sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
def show(kind, error, trace):
    frames = [f for f in traceback.extract_tb(trace) if f.filename == "cell"]
    print("".join(traceback.format_list(frames)), file=sys.stderr, end="")
    last = traceback.format_exception_only(kind, error)
    print("".join(last).strip(), file=sys.stderr)
sys.excepthook = show
source = open(path, encoding="utf-8").read()
linecache.cache["cell"] = len(source), None, source.splitlines(True), "cell"
del linecache
exec(compile(source, "cell", "exec"))
"""
STANDING = """
import contextlib as _contextlib, io as _io, json as _json, os as _os, sys as _sys
_replies = _os.fdopen(_os.dup(1), "w")
_os.dup2(2, 1)
for _line in _sys.stdin:
    answer, _printed = None, _io.StringIO()
    try:
        with _contextlib.redirect_stdout(_printed):
            exec(_json.loads(_line))
        _reply = _json.dumps({"answer": answer, "printed": _printed.getvalue()})
    except Exception as _error:
        _reply = _json.dumps({"error": f"{type(_error).__name__}: {_error}"})
    print(_reply, file=_replies, flush=True)
"""
# Variables that no import of Keras and an engine reads. Processes that differ in others
# have no common parent, but for two of JAX, which its configuration takes later.
READ_LATE = re.compile(
    "CUDA_VISIBLE_DEVICES|EXPECTED_WORLD|JAX_NUM_CPU_DEVICES|JAX_PLATFORMS|LOCAL_RANK"
    "|MASTER_|RANK|SLURM_|TF_CONFIG|WORLD_SIZE|XLA_FLAGS"
)
# What shows that a source is about the start of a process: a fork has imported already.
ABOUT_START = re.compile(
    r"\bmodules\b|meta_path|environ(\[.*?\] *=(?!=)|\.(pop|set|upd)| *\|=)"
)
warm_parents, parents_guard = {}, threading.Lock()


class ProcessError(RuntimeError):
    """The child process failed: the message is the last line that it wrote."""

    report = ""

    def _render_traceback_(self):
        return self.report.splitlines()


def parent_of(variables):
    """A socket to the parent of processes with these variables; four are kept."""
    early = {k: v for k, v in variables.items() if not READ_LATE.match(k)}
    key = tuple(sorted(early.items()))
    with parents_guard:
        if key not in warm_parents:
            if len(warm_parents) == 4:
                warm_parents.pop(next(iter(warm_parents)))[0].close()  # it ends
            code, file = FIRST_LINES + PARENT_LINES, tempfile.TemporaryFile
            command = [sys.executable, "-c", f"exec({code!r}, {{}})"]
            here, there = socket.socketpair()
            with there, file() as out, file() as log:
                files = {"stdin": there, "stdout": out, "stderr": log}
                parent = subprocess.Popen(command, env=early, process_group=0, **files)
            warm_parents[key] = here, parent
        return warm_parents[key][0]


def start_process(source, code, *arguments, fresh, env, **settings):
    """Start Python on code that will run a source: a Popen, with a group of its own.

    It is a fork if the source uses the engine that KERAS_BACKEND names and is not about
    the start of a process, unless it has to be fresh. env: all its variables.
    """
    env, engine = {"PYTHONUNBUFFERED": "1", **env}, env.get("KERAS_BACKEND")
    forks = sys.platform == "linux" and engine in ("tensorflow", "jax", "torch")
    uses = re.search(rf"\b(keras|{engine})\b", source)
    with contextlib.ExitStack() as wire:
        if forks and uses and not (fresh or ABOUT_START.search(source)):
            here, there = map(wire.enter_context, socket.socketpair())
            with contextlib.suppress(OSError):  # there is no parent any more
                socket.send_fds(parent_of(env), [b"+"], [here.fileno()])
            settings["pass_fds"] = [there.fileno()]
            env = {**env, "PROCESS_WIRE": str(there.fileno())}
        command = [sys.executable, "-c", FIRST_LINES + code, *arguments]
        settings |= {"env": env, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, process_group=0, **settings)


def run_process(source, timeout=60, fresh=False, **environment):
    """Run Python source in a new process.

    On Linux it may be a fork of a process that has imported Keras, and nothing else.

    Args:
        source: Python code.
        timeout: seconds after which the child is killed; as many times that as the
            variable PROCESS_TIME_LIMIT_FACTOR says, where a machine is slow.
        fresh: start an interpreter, as is done if the source looks at modules or sets
            variables.
        **environment: variables to set; None removes a variable.

    Returns:
        subprocess.CompletedProcess with returncode, stdout, stderr, and with log:
        what C++ code wrote to stderr.
    """
    timeout *= float(os.environ.get("PROCESS_TIME_LIMIT_FACTOR", 1))
    variables = {**os.environ, **environment}
    variables = {k: str(v) for k, v in variables.items() if v is not None}
    with tempfile.TemporaryDirectory() as folder:
        cell, log = pathlib.Path(folder, "cell.py"), pathlib.Path(folder, "log")
        cell.write_text(source, encoding="utf-8")
        log.touch()
        pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        settings = {"fresh": fresh, "env": variables, **pipes}
        child = start_process(source, PROLOGUE, str(cell), str(log), **settings)
        try:
            stdout, stderr = child.communicate(timeout=timeout)
            status = child.returncode
        except BaseException as error:  # a time-out, or Ctrl-C
            os.killpg(child.pid, signal.SIGKILL)
            stdout, stderr = child.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            late, status = f"TimeoutError: stopped after {timeout:g} s", 1
            stderr = f"{stderr}\n{late}".lstrip("\n")
        result = subprocess.CompletedProcess("cell", status, stdout, stderr)
        result.log = log.read_text(errors="replace")
    if status < 0 or (status and not stderr.strip()):  # the C++ log may say why
        reason = result.log.strip() or f"exit status {status}"
        result.stderr = f"{stderr}\nthe process died: {reason}".lstrip("\n")
    return result


@register_cell_magic("process")
def process_magic(line, cell):
    """%%process [fresh] [timeout=SECONDS] [NAME=value ...]: run the cell in a process.

    Shows what the cell printed and leaves a CompletedProcess in `process`. An error in
    the cell is raised here as a ProcessError.
    """
    words, options = shlex.split(line), {}
    fresh = words[:1] == ["fresh"]
    for word in words[fresh:]:
        name, equals, value = word.partition("=")
        number = value.replace(".", "", 1).isdecimal()
        if not (name and equals) or (name == "timeout" and not number):
            raise ValueError(f"%%process {word}: write NAME=value or timeout=SECONDS")
        options[name] = value
    timeout = float(options.pop("timeout", 60))
    result = run_process(cell, timeout, fresh, **options)
    get_ipython().user_ns["process"] = result
    print(result.stdout, end="")
    if result.returncode:
        error = ProcessError(result.stderr.strip().splitlines()[-1])
        error.report = result.stderr
        raise error
    print(result.stderr, end="", file=sys.stderr)


class StandingProcess:
    """A Python process that keeps its variables from one source to the next.

    It begins with the source `start`. Its errors begin with `name`.
    """

    def __init__(self, name="", start="", cwd=None, fresh=False, **variables):
        self.name = name
        settings = {"fresh": fresh, "env": {**os.environ, **variables}, "cwd": cwd}
        pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        source = f"keras {start}", start + STANDING
        self.process = start_process(*source, **settings, **pipes)

    def run(self, source):
        """Run the source there.

        Returns:
            What it left in the variable `answer`, and what it printed.

        Raises:
            ProcessError: it raised an error, or the process died.
        """
        try:
            print(json.dumps(source), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:  # it died before
            line = ""
        except BaseException:  # Ctrl-C: its answer would be taken for the next one
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        if line:
            reply = json.loads(line)
        else:
            reply = {"error": f"died, status {self.process.wait()}"}
        if "error" in reply:
            error = ProcessError(f"{self.name}: {reply['error']}".removeprefix(": "))
            error.report = str(error)
            raise error
        return reply["answer"], reply["printed"]
