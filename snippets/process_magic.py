import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

from IPython import get_ipython
from IPython.core.magic import register_cell_magic

# Keras and TensorFlow import, for seconds, what they can do without. In a process these
# packages are not there while one of the two is being imported.
LEAN = """
import importlib.machinery, os, sys
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
del importlib, Unneeded
"""
# The child sends what C++ code logs to a file, and shortens tracebacks to its cell.
PROLOGUE = """
import linecache, os, sys, traceback
path, log = sys.argv[1:3]
sys.argv = [path]
sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
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


class ProcessError(RuntimeError):
    """The child process failed: the message is the last line that it wrote."""

    report = ""

    def _render_traceback_(self):
        return self.report.splitlines()


def run_process(source, timeout=60, **environment):
    """Run Python source in a fresh interpreter.

    Args:
        source: Python code.
        timeout: seconds after which the child is killed; as many times that as the
            variable PROCESS_TIME_LIMIT_FACTOR says, where a machine is slow.
        **environment: variables to set; None removes a variable.

    Returns:
        subprocess.CompletedProcess with returncode, stdout, stderr, and with log:
        what C++ code wrote to stderr.
    """
    timeout *= float(os.environ.get("PROCESS_TIME_LIMIT_FACTOR", 1))
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
    variables = {k: str(v) for k, v in variables.items() if v is not None}
    with tempfile.TemporaryDirectory() as folder:
        cell, log = pathlib.Path(folder, "cell.py"), pathlib.Path(folder, "log")
        cell.write_text(source, encoding="utf-8")
        log.touch()
        child = subprocess.Popen(
            [sys.executable, "-c", LEAN + PROLOGUE, str(cell), str(log)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
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
    """%%process [timeout=SECONDS] [NAME=value ...]: run the cell in a new process.

    Shows what the cell printed and leaves a CompletedProcess in `process`. An error in
    the cell is raised here as a ProcessError.
    """
    options = {}
    for word in shlex.split(line):
        name, equals, value = word.partition("=")
        number = value.replace(".", "", 1).isdecimal()
        if not (name and equals) or (name == "timeout" and not number):
            raise ValueError(f"%%process {word}: write NAME=value or timeout=SECONDS")
        options[name] = value
    timeout = float(options.pop("timeout", 60))
    result = run_process(cell, timeout, **options)
    get_ipython().user_ns["process"] = result
    print(result.stdout, end="")
    if result.returncode:
        error = ProcessError(result.stderr.strip().splitlines()[-1])
        error.report = result.stderr
        raise error
    print(result.stderr, end="", file=sys.stderr)
