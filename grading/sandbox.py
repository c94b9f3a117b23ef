"""The sandbox that a student's code runs in: bubblewrap, as an unprivileged user.

Inside there is a read-only system with Python, an empty /tmp in memory, no network, no
process and no file of anybody else. Where there can be no sandbox, nothing runs.
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

from tools.model.errors import UserError

OWN = Path(__file__).resolve().parent / "inside"
INSIDE = "/grading"
# What a worker consists of: files of that folder, and their names inside.
WORKER = {name: name for name in ("worker.py", "protocol.py", "confine.py")}
WORKER["stub_otter.py"] = "otter.py"
WARDEN = "warden.py"
# As root, each grader has its workers run as a user of its own, of these, who is nobody
# else: what the kernel counts for a user is not shared with other graders.
FIRST_USER, USERS = 70_000, 29_000
NOBODY = 65_534
ANSWERS = 60  # seconds in which the warden must have answered
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
ETC += ("ssl/certs", "ssl/openssl.cnf")  # not ssl/private
TOLD = ("cmdline", "key-users", "keys", "locks")  # files of /proc that tell too much
IN_MEMORY = ("/tmp", "/dev/shm")  # the folders that can be written
NOT_SHOWN = ("pip.conf", ".netrc")  # files of a Python that may hold a password
OWN_ETC = ("passwd", "group", "hosts")  # from grading/etc
HOW_TO_GET_ONE = (
    "Fix: install bubblewrap 0.8 or later (Debian, Ubuntu: apt-get install bubblewrap)."
)


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
    disk_bytes: int = 512 * 2**20  # files in /tmp, which lie in memory
    output_bytes: int = 64 * 2**20  # what a cell or a call prints
    processes: int = 400  # threads included
    sockets: int = 500
    files: int = 8192  # open at the same time, by the processes that have many
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
            "bubblewrap is not installed, so no student's code is run. "
            f"{HOW_TO_GET_ONE}"
        )
    return path


class Sandbox:
    """A program in the sandbox, held still while nothing is asked of it.

    Args:
        limits: what it may use.
        join: called in the new process before anything else, to put it into a cgroup.
    """

    def __init__(self, limits: Limits, join: Callable[[], None] | None = None) -> None:
        self.limits = limits
        self.join = join
        self.process: subprocess.Popen | None = None
        self.warden: socket.socket | None = None
        self.reason = ""  # why the warden ended it

    def start(self, program: list[str], descriptors: list[int], output: int) -> None:
        """Start it.

        Args:
            program: its path inside, and its arguments.
            descriptors: the numbers that it gets as they are.
            output: where it prints.
        """
        bwrap = find()
        self.warden, inside = socket.socketpair()
        self.warden.settimeout(ANSWERS)
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
            arguments = data(b"".join(os.fsencode(one) + b"\0" for one in options))
            watched = {
                "memory": self.limits.memory_bytes,
                "sockets": self.limits.sockets,
                "files": self.limits.files,
                "folders": IN_MEMORY,
                "process": self.limits.of_process(),
            }
            warden = [sys.executable, "-I", "-S", "-B", f"{INSIDE}/{WARDEN}"]
            warden += [str(inside.fileno()), json.dumps(watched)]
            inner = [*_drop(), bwrap, *_inner(), "--", *program]
            self.process = subprocess.Popen(
                [bwrap, "--args", arguments, "--", *warden, *inner],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=passed,
                preexec_fn=self.join,
                cwd="/",
                env={},
            )

    def go(self) -> None:
        """Let it go on."""
        self._tell(b"g")

    def stop(self) -> None:
        """Hold it still: everything in it, at once."""
        self._tell(b"s", wait=True)

    def settle(self) -> None:
        """Wait until nothing happens in it."""
        self._tell(b"q", wait=True)

    def _tell(self, letter: bytes, wait: bool = False) -> None:
        """Send a letter to the warden; that it is gone shows in the worker's pipes."""
        with contextlib.suppress(OSError):
            self.warden.sendall(letter)
            while wait and (said := self.warden.recv(200)) and said != b".":
                self._hear(said)

    def _hear(self, said: bytes) -> None:
        if said.startswith(b"!"):
            self.reason = said[1:].partition(b"\n")[0].decode()

    def why(self) -> str:
        """Which limit it broke, if the warden ended it for that; or an empty text."""
        with contextlib.suppress(OSError):
            self.warden.setblocking(False)
            self._hear(self.warden.recv(200))
        return self.reason

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
        if self.warden:
            self.warden.close()


def _apart() -> list[str]:
    """Options of the outer bubblewrap: namespaces of its own, and who it is."""
    options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    options += ["--unshare-cgroup-try", "--hostname", "student"]
    options += ["--die-with-parent", "--new-session"]
    if os.geteuid() != 0:
        user = ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        return [*options, *user]
    options += ["--cap-drop", "ALL"]
    for name in ("KILL", "SETGID", "SETPCAP", "SETUID", "SYS_PTRACE"):
        options += ["--cap-add", f"CAP_{name}"]  # for the warden, and to become another
    return options


def another_user() -> int:
    """The number of the user that this grader's workers run as, if it is root."""
    return FIRST_USER + os.getpid() % USERS


def _drop() -> list[str]:
    """What makes root another user."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoSandbox(
            "as root, the sandbox needs setpriv to become another user. "
            "Fix: install util-linux, or run this as an ordinary user."
        )
    user = str(another_user())
    drop = [setpriv, "--reuid", user, "--regid", user, "--clear-groups"]
    return [*drop, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]


def _inner() -> list[str]:
    """Options of the inner bubblewrap: nothing in them is the teacher's.

    As root there is no second namespace of processes: the kernel would not let it mount
    a /proc, and another user's warden can neither be read nor be told anything.
    """
    options = ["--unshare-user", "--disable-userns", "--die-with-parent"]
    options += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    if os.geteuid() != 0:
        options += ["--unshare-pid"]
    options += ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    # Memory that is mapped from /dev/zero stays when nobody maps it any more; /dev/full
    # reads the same, and can't be mapped.
    options += ["--dev-bind", "/dev/full", "/dev/zero"]
    for name in TOLD:
        if Path("/proc", name).exists():
            options += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    return options


def _files(limits: Limits, data: Callable[[bytes], str]) -> list[str]:
    """The files inside, and the environment.

    Args:
        limits: gives the size of the folders that lie in memory.
        data: makes a descriptor that holds a content. The grader's own files are handed
            over so, because a mount would tell where they lie.
    """
    options: list[str] = []
    for folder in (
        "/etc",
        "/etc/ssl",
        INSIDE,
    ):  # bubblewrap alone would make them for root
        options += ["--perms", "0755", "--dir", folder]
    for folder in SYSTEM:
        if Path(folder).is_symlink():
            options += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).is_dir():
            options += ["--ro-bind", folder, folder]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    size = str(limits.disk_bytes)
    for folder in IN_MEMORY:
        options += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    options += _python(data)
    for folder in ("/tmp/home", "/tmp/home/matplotlib", "/tmp/work"):
        options += ["--perms", "0777", "--dir", folder]
    own = {f"{INSIDE}/{inside}": OWN / name for name, inside in WORKER.items()}
    own[f"{INSIDE}/{WARDEN}"] = OWN / WARDEN
    own |= {f"/etc/{name}": OWN / "etc" / name for name in OWN_ETC}
    if fonts := font_list():
        own[f"/tmp/home/matplotlib/{fonts.name}"] = fonts
    for inside, path in own.items():
        number = data(path.read_bytes())
        options += ["--perms", "0444", "--ro-bind-data", number, inside]
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
