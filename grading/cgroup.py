"""Control groups of version 2: bounds that the kernel itself keeps, where a user may.

systemd gives any user a group of their own to divide (`systemd-run --user --scope`,
with `Delegate=yes`); so `make grade` starts itself again inside one. There each worker
gets a group in which the memory of all kinds, the processes and the processor time of
all its processes together are bounded. Where there is none, the warden's looks must do.

Source: the kernel's documentation, "Control Group v2", and systemd's "Control Group
APIs and Delegation".
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from grading.sandbox import Limits

TOP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")  # which group this process is in
NEEDED = ("memory", "pids")
WANTED = (*NEEDED, "cpu")
STARTED = "GRADING_SCOPE"  # set in the process that systemd-run has started
RESERVE = 64 * 2**20  # bytes for bubblewrap and the warden, which are in the group, too
PERIOD = 100_000  # microseconds in which the share of the processors is reckoned


class Unavailable(Exception):
    """No group can be had here; says why."""


class Groups:
    """The group that this process may divide.

    Args:
        top: its folder.

    Raises:
        Unavailable: it can't be divided.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self.made = 0
        try:
            own = top / "grader"  # a group that is divided holds no process itself
            own.mkdir(exist_ok=True)
            for number in (top / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (own / "cgroup.procs").write_text(number)
            offered = (top / "cgroup.controllers").read_text().split()
            self.controllers = [name for name in WANTED if name in offered]
            if missing := set(NEEDED) - set(self.controllers):
                raise Unavailable(f"it has no {' and no '.join(sorted(missing))}")
            change = " ".join(f"+{name}" for name in self.controllers)
            (top / "cgroup.subtree_control").write_text(change)
        except OSError as error:
            raise Unavailable(f"it can't be divided: {error.strerror}") from None

    def make(self, limits: Limits) -> Group:
        """A group for a worker."""
        self.made += 1
        group = Group(self.top / f"worker-{os.getpid()}-{self.made}")
        group.path.mkdir()
        group.set("memory.max", limits.memory_bytes + RESERVE)
        group.set("memory.swap.max", 0)
        group.set("memory.oom.group", 1)
        group.set("pids.max", limits.processes + 20)
        if "cpu" in self.controllers:
            cores = len(os.sched_getaffinity(0))
            group.set("cpu.max", f"{cores * PERIOD} {PERIOD}")
        return group

    def sweep(self, process: int) -> None:
        """Remove the groups that a process has made, which was ended."""
        for path in self.top.glob(f"worker-{process}-*"):
            Group(path).remove()


class Group:
    """The group of a worker.

    Args:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def set(self, name: str, value: object) -> None:
        """Set a bound; one that this kernel does not have is left out."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).write_text(str(value))

    def join(self) -> None:
        """Put the calling process, and all that it will start, into the group."""
        (self.path / "cgroup.procs").write_text("0")

    def ran_out(self) -> bool:
        """Whether the kernel has ended it because it took too much memory."""
        told = (self.path / "memory.events").read_text().split()
        return int(told[told.index("oom_kill") + 1]) > 0

    def remove(self) -> None:
        """End what is left in it, and remove it."""
        self.set("cgroup.kill", 1)
        for _ in range(100):
            try:
                return self.path.rmdir()
            except OSError:  # the last of its processes is still on its way out
                time.sleep(0.02)


def own() -> Path:
    """The folder of the group that this process is in.

    Raises:
        Unavailable: the system has no groups of version 2 alone.
    """
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        lines = []
    if len(lines) != 1 or not lines[0].startswith("0::/"):
        raise Unavailable("the system is set up without version 2")
    return TOP / lines[0].removeprefix("0::/")


def is_marked(path: Path) -> bool:
    """Whether systemd has marked a group as handed over; it does so as root only."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(path, name) == b"1":
                return True
    return False


def acquire(arguments: list[str]) -> Groups:
    """The group to divide; if need be this program is started again inside of one.

    Args:
        arguments: how this program was started, after `python`.

    Raises:
        Unavailable: none can be had; says why.
    """
    started = os.environ.pop(STARTED, "")
    path = own()
    if started or is_marked(path):
        return Groups(path)
    program = shutil.which("systemd-run")
    if program is None:
        raise Unavailable("there is no systemd-run to ask")
    scope = [program, *([] if os.geteuid() == 0 else ["--user"]), "--scope", "--quiet"]
    scope += ["--collect", "--property=Delegate=yes", "--"]
    try:
        done = subprocess.run(
            [*scope, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("systemd-run does not answer") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"systemd-run gives none: {said}")
    os.environ[STARTED] = "yes"
    os.execv(program, [*scope, sys.executable, *arguments])
