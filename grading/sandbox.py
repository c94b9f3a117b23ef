"""The sandbox that a student's code runs in: bubblewrap, as an unprivileged user.

Inside there is a read-only system with Python, an empty /tmp in memory, no network, no
process and no file of anybody else. Where there can be no sandbox, nothing runs.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.errors import UserError

GRADING = Path(__file__).resolve().parent
INSIDE = "/grading"
# What a worker consists of: files of this folder, and their names inside.
WORKER = {"worker.py": "worker.py", "protocol.py": "protocol.py"}
WORKER["stub_otter.py"] = "otter.py"
FIRST_USER = 61_000  # as root, each worker runs as a user of its own, from here on
NOBODY = 65_534
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl")
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
    memory_bytes: int = 4 * 2**30  # resident memory of all processes together
    address_bytes: int = 64 * 2**30  # address space of a process; TensorFlow maps a lot
    disk_bytes: int = 512 * 2**20  # files in /tmp, which lie in memory
    output_bytes: int = 64 * 2**20  # what a cell or a call prints
    processes: int = 400  # threads included
    restarts: int = 6  # new workers after one was lost

    def of_process(self) -> dict[str, int]:
        """The limits that each process in the sandbox has, by their resource names."""
        return {
            "NPROC": self.processes,
            "AS": self.address_bytes,
            "CPU": int(self.total_seconds * max(2, len(os.sched_getaffinity(0)))),
            "FSIZE": self.disk_bytes,
            "NOFILE": 1024,
            "CORE": 0,
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


def command(arguments: list[str], limits: Limits, slot: int = 0) -> list[str]:
    """The command line that runs a program in the sandbox.

    As root, a first bubblewrap arranges the files, which an ordinary user may not be
    able to reach, and a second one, as a user of its own, shuts the door. Otherwise
    there is only the second.

    Args:
        arguments: the program, by its path inside, and its arguments.
        limits: gives the size of /tmp.
        slot: which of the workers that run at the same time this is.
    """
    bwrap = find()
    alone = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    alone += ["--unshare-cgroup-try", "--hostname", "student"]
    alone += ["--die-with-parent", "--new-session"]
    users = ["--unshare-user", "--disable-userns"]
    users += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    if os.geteuid() != 0:
        return [bwrap, *users, *alone, *_files(limits), "--", *arguments]
    user = FIRST_USER + slot
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoSandbox(
            "as root, the sandbox needs setpriv to become another user. "
            "Fix: install util-linux, or run this as an ordinary user."
        )
    outer = [bwrap, *alone, *_files(limits), "--cap-drop", "ALL"]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
        outer += ["--cap-add", capability]
    drop = [setpriv, "--reuid", str(user), "--regid", str(user), "--clear-groups"]
    drop += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    inner = [bwrap, *users, "--die-with-parent"]
    inner += ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    return [*outer, "--", *drop, *inner, "--", *arguments]


def _files(limits: Limits) -> list[str]:
    """The files inside, and the environment."""
    options: list[str] = []
    for folder in ("/etc", INSIDE):  # bubblewrap alone would make them for root
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
    for folder in ("/tmp", "/dev/shm"):
        options += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    options += _python()
    for folder in ("/tmp/home", "/tmp/home/matplotlib", "/tmp/work"):
        options += ["--perms", "0777", "--dir", folder]
    fonts = font_list()
    if fonts:
        inside = f"/tmp/home/matplotlib/{fonts.name}"
        options += ["--ro-bind", str(fonts), inside]
    for name, inside in WORKER.items():
        options += ["--ro-bind", str(GRADING / name), f"{INSIDE}/{inside}"]
    for name in OWN_ETC:
        options += ["--ro-bind", str(GRADING / "etc" / name), f"/etc/{name}"]
    options += ["--remount-ro", "/", "--chdir", "/tmp/work", "--clearenv"]
    for name, value in environment().items():
        options += ["--setenv", name, value]
    return options


def _python() -> list[str]:
    """Python and its packages, which may lie in a folder that others can't enter.

    They come after /tmp is mounted, because they may lie there as well.
    """
    prefixes = {prefix for prefix in (sys.prefix, sys.base_prefix) if prefix != "/usr"}
    parents = {parent for prefix in prefixes for parent in Path(prefix).parents}
    options: list[str] = []
    for folder in sorted(map(str, parents)):
        if folder not in ("/", "/tmp"):
            options += ["--perms", "0755", "--dir", folder]
    for prefix in sorted(prefixes):
        options += ["--ro-bind", prefix, prefix]
    return options


PROBE = """
import os, socket
assert os.getuid() != 0, "it runs as root"
try:
    open("/usr/probe", "w")
    raise SystemExit("the system can be written")
except OSError:
    pass
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
    raise SystemExit("the network can be reached")
except OSError as error:
    if isinstance(error, TimeoutError):
        raise SystemExit("the network may be reached")
seen = [name for name in os.listdir("/proc") if name.isdigit()]
assert len(seen) < 10, "other processes can be seen"
print("sandbox")
"""


@functools.cache
def check() -> None:
    """Try the sandbox once, before any student's code runs.

    Raises:
        NoSandbox: it can't be had, or it keeps less than it promises; says why.
    """
    line = command([sys.executable, "-I", "-c", PROBE], Limits())
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise NoSandbox("the sandbox does not start within 60 s.") from None
    if done.returncode == 0 and done.stdout == "sandbox\n":
        return
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    raise NoSandbox(
        f"bubblewrap makes no sandbox here ({said}), so no student's code is run. "
        f"Fix: {_remedy(said)}"
    )


def _remedy(said: str) -> str:
    """What to do about a message of bubblewrap's."""
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.exists() and restricted.read_text().strip() == "1":
        return (
            "this system keeps ordinary users from making sandboxes; allow it with "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or grade as "
            "root."
        )
    if "unknown option" in said.lower():
        return "install bubblewrap 0.8 or later."
    if Path("/.dockerenv").exists() or "ermi" in said or "perat" in said:
        return (
            "this looks like a container, or a system without user namespaces; grade "
            "on the machine itself or in a virtual machine."
        )
    return "see the message in brackets."
