"""The sandbox that a student's code runs in: bubblewrap, as an unprivileged user.

Inside there is a read-only system with Python, an empty /tmp in memory, no network, no
process and no file of anybody else. Where there can be no sandbox, nothing runs. Where
systemd runs, it starts each sandbox in a control group of its own, in which the kernel
bounds its memory and its processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from grading import syscalls
from tools.model.errors import UserError

OWN = Path(__file__).resolve().parent / "inside"
INSIDE = "/grading"
# What runs there: files of that folder, and their names inside.
FILES = {name: name for name in ("supervisor.py", "worker.py", "protocol.py")}
FILES["stub_otter.py"] = "otter.py"
# As root, each grader has its workers run as a user of its own, of these, who is nobody
# else: what the kernel counts for a user is not shared with other graders.
FIRST_USER, USERS = 70_000, 29_000
NOBODY = 65_534
ANSWERS = 60  # seconds in which the supervisor must have answered
SAYS = 0.5  # seconds in which it says why it has ended the worker
RESERVE = 64 * 2**20  # bytes for bubblewrap and the supervisor, in the same group
TRIED = 64 * 2**20  # bytes: the bound with which it is tried whether groups bound
BUS = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")  # what systemd-run needs to know
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
ETC += ("ssl/certs", "ssl/openssl.cnf")  # not ssl/private
TOLD = ("cmdline", "key-users", "keys", "locks")  # files of /proc that tell too much
IN_MEMORY = ("/tmp", "/dev/shm")  # the folders that can be written
NOT_SHOWN = ("pip.conf", ".netrc")  # files of a Python that may hold a password


class NoSandbox(UserError):
    """There can be no sandbox here, so no student's code is run."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    cell_seconds: float = 120  # wall time of a cell
    call_seconds: float = 30  # wall time of a call that a test makes
    total_seconds: float = 600  # wall time of all cells and tests, restarts included
    check_seconds: float = 30  # processor time of a test, the student's code apart
    check_bytes: int = 2 * 2**30  # memory that a test may take to look at an answer
    memory_bytes: int = 4 * 2**30  # memory of all processes and files together
    address_bytes: int = 64 * 2**30  # address space of a process; TensorFlow maps a lot
    disk_bytes: int = 512 * 2**20  # files in /tmp, and what is printed, in memory
    processes: int = 400  # threads included
    sockets: int = 500
    restarts: int = 6  # new workers after one was lost

    def of_process(self) -> dict[str, int]:
        """The limits that each process in the sandbox has, by their resource names."""
        return {
            "NPROC": self.processes,
            "AS": self.address_bytes,
            "CPU": int(self.total_seconds * max(2, len(os.sched_getaffinity(0)))),
            "FSIZE": self.disk_bytes,
            "NOFILE": 512,
            "CORE": 1,  # at 0, a core would still go to a program that collects them
            "MSGQUEUE": 0,
            "NICE": 0,
            "RTPRIO": 0,
        }


def environment() -> dict[str, str]:
    """The environment variables inside; nothing of the grader's own gets in."""
    return {
        "HOME": "/tmp/home",
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "TMPDIR": "/tmp",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": "/tmp/home/matplotlib",
        "PIP_NO_INDEX": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "CUDA_VISIBLE_DEVICES": "-1",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CHECKS_LEFT_OUT": "1",  # the student's own: see snippets/check.py
    }


@functools.cache
def font_list() -> Path | None:
    """Matplotlib's list of fonts: without it each worker searches for seconds."""
    import matplotlib
    from matplotlib import font_manager

    name = f"fontlist-v{font_manager.FontManager.__version__}.json"
    path = Path(matplotlib.get_cachedir(), name)
    return path if path.is_file() else None


def find() -> str:
    """The path of bubblewrap.

    Raises:
        NoSandbox: this is no Linux, or bubblewrap is not installed.
    """
    if sys.platform != "linux":
        raise NoSandbox(
            f"students' code runs only in a Linux sandbox, and this is {sys.platform}. "
            "Fix: grade on Linux, for example in a virtual machine."
        )
    path = shutil.which("bwrap")
    if path is None:
        raise NoSandbox(
            "bubblewrap is not installed, so no student's code is run. Fix: install "
            "bubblewrap 0.8 or later (Debian, Ubuntu: apt-get install bubblewrap)."
        )
    return path


@functools.cache
def scope() -> tuple[str, ...]:
    """The start of a command that systemd runs in a control group of its own.

    Returns:
        Nothing where systemd gives none, or none that bounds memory.
    """
    program = shutil.which("systemd-run")
    if program is None:
        return ()
    command = (program, *([] if os.geteuid() == 0 else ["--user"]), "--scope")
    command += ("--quiet", "--collect")
    command += (f"--property=MemoryMax={TRIED}", "--", "sh", "-c")
    shown = "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max"
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    try:
        tried = subprocess.run([*command, shown], timeout=20, **how)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command[:-4] if tried.stdout.strip() == str(TRIED) else ()


def bounded(limits: Limits) -> list[str]:
    """The start of a command whose memory and processes the kernel bounds."""
    if not scope():
        return []
    properties = {
        "MemoryMax": limits.memory_bytes + RESERVE,
        "MemorySwapMax": 0,
        "TasksMax": limits.processes + 20,
    }
    return [*scope(), *(f"--property={n}={v}" for n, v in properties.items()), "--"]


class Sandbox:
    """A program in the sandbox, held still while nothing is asked of it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None
        self.reason = ""  # why the supervisor ended it

    def start(self, program: list[str], descriptors: list[int], output: int) -> None:
        """Start it; it gets the numbers of the descriptors as they are."""
        bwrap = find()
        self.control, inside = socket.socketpair()
        with contextlib.ExitStack() as stack:
            stack.callback(inside.close)
            passed = [*descriptors, inside.fileno()]

            def data(content: bytes) -> str:
                """A descriptor from which the content can be read."""
                number = os.memfd_create("data")
                stack.callback(os.close, number)
                os.write(number, content)
                os.lseek(number, 0, os.SEEK_SET)
                passed.append(number)
                return str(number)

            options = [*_apart(), *_files(self.limits, data)]
            for content in syscalls.filters():
                options += ["--add-seccomp-fd", data(content)]
            arguments = data(b"".join(os.fsencode(o) + b"\0" for o in options))
            watched = {
                "memory": self.limits.memory_bytes,
                "sockets": self.limits.sockets,
                "folders": IN_MEMORY,
                "process": self.limits.of_process(),
            }
            supervisor = [sys.executable, "-I", "-S", "-B", f"{INSIDE}/supervisor.py"]
            supervisor += [str(inside.fileno()), json.dumps(watched)]
            kept = BUS if scope() else ()
            self.process = subprocess.Popen(
                [
                    *bounded(self.limits),
                    *(bwrap, "--args", arguments, "--"),
                    *(*supervisor, *_become_another(), *program),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=passed,
                cwd="/",
                env={name: os.environ[name] for name in kept if name in os.environ},
            )

    def go(self) -> None:
        """Let it go on."""
        with contextlib.suppress(OSError):  # its end shows in the worker's pipe
            self.control.sendall(b"g")

    def stop(self) -> None:
        """Hold it still: everything in it, at once."""
        with contextlib.suppress(OSError):
            self.control.sendall(b"s")
            self._hear(ANSWERS)

    def why(self) -> str:
        """Which limit it broke, if it was ended for that, or an empty text."""
        with contextlib.suppress(OSError):
            self._hear(SAYS)
        return self.reason

    def _hear(self, seconds: float) -> None:
        """Wait for what the supervisor says: that all stand still, or a reason."""
        self.control.settimeout(seconds)
        heard = self.control.recv(200)
        if heard.startswith(b"!"):
            self.reason = heard[1:].partition(b"\n")[0].decode()

    def end(self) -> None:
        """End it and everything in it."""
        if self.process:
            own = self.process.pid
            with contextlib.suppress(OSError):  # one that is not set up yet would stay
                children = Path(f"/proc/{own}/task/{own}/children").read_text()
                for child in children.split():
                    os.kill(int(child), signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        if self.control:
            self.control.close()


def user() -> int:
    """The number of the user inside; as root, nobody else's outside either."""
    return FIRST_USER + os.getpid() % USERS if os.geteuid() == 0 else NOBODY


def _apart() -> list[str]:
    """Options of bubblewrap: namespaces of its own, and who it is."""
    options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    options += ["--unshare-cgroup-try", "--hostname", "student"]
    options += ["--die-with-parent", "--new-session", "--as-pid-1"]
    if os.geteuid() != 0:
        return [*options, "--unshare-user", "--uid", str(user()), "--gid", str(user())]
    options += ["--cap-drop", "ALL"]
    for name in ("KILL", "SETGID", "SETPCAP", "SETUID", "SYS_PTRACE"):
        options += ["--cap-add", f"CAP_{name}"]  # for the supervisor alone
    return options


def _become_another() -> list[str]:
    """The start of a command that root runs as another user, without privileges."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoSandbox(
            "as root, the sandbox needs setpriv to become another user. "
            "Fix: install util-linux, or run this as an ordinary user."
        )
    drop = [setpriv, f"--reuid={user()}", f"--regid={user()}", "--clear-groups"]
    return [*drop, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]


def _files(limits: Limits, data: Callable[[bytes], str]) -> list[str]:
    """The files inside, and the environment.

    Args:
        limits: gives the size of the folders that lie in memory.
        data: makes a descriptor that holds a content. The grader's own files are handed
            over so, because a mount would tell where they lie.
    """
    options: list[str] = []
    for folder in ("/etc", "/etc/ssl", INSIDE):  # else they would be for root alone
        options += ["--perms", "0755", "--dir", folder]
    for folder in SYSTEM:
        if Path(folder).is_symlink():
            options += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).is_dir():
            options += ["--ro-bind", folder, folder]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for name in TOLD:
        if Path("/proc", name).exists():
            options += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    # Memory that is mapped from /dev/zero stays when nobody maps it any more; /dev/full
    # reads the same, and can't be mapped.
    options += ["--dev-bind", "/dev/full", "/dev/zero"]
    size = str(limits.disk_bytes)
    for folder in IN_MEMORY:
        options += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    options += _python(data)
    for folder in ("/tmp/home", "/tmp/home/matplotlib", "/tmp/work"):
        options += ["--perms", "0777", "--dir", folder]
    own = {
        f"{INSIDE}/{name}": (OWN / file).read_bytes() for file, name in FILES.items()
    }
    own["/etc/hosts"] = b"127.0.0.1 localhost student\n"
    own["/etc/passwd"] = f"student:x:{user()}:{user()}::/tmp/home:/bin/sh\n".encode()
    own["/etc/group"] = f"student:x:{user()}:\n".encode()
    if fonts := font_list():
        own[f"/tmp/home/matplotlib/{fonts.name}"] = fonts.read_bytes()
    for inside, content in own.items():
        options += ["--perms", "0444", "--ro-bind-data", data(content), inside]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp/work"]
    options += ["--clearenv"]
    for name, value in environment().items():
        options += ["--setenv", name, value]
    return options


def _python(data: Callable[[bytes], str]) -> list[str]:
    """Python and its packages, which may lie in a folder that others can't enter.

    They come after /tmp is mounted, because they may lie there as well.
    """
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix} - {"/usr"}
    parents = {parent for prefix in prefixes for parent in Path(prefix).parents}
    options: list[str] = []
    for folder in sorted(map(str, parents)):
        if folder not in ("/", "/tmp"):
            options += ["--perms", "0755", "--dir", folder]
    for prefix in sorted(prefixes):
        options += ["--ro-bind", prefix, prefix]
        for path in (Path(prefix, name) for name in NOT_SHOWN):
            if path.exists():
                options += ["--perms", "0444", "--ro-bind-data", data(b""), str(path)]
    return options
