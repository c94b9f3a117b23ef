"""Run a program so that an interruption leaves none of its processes behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

GRACE = 20  # seconds in which a program may end by itself: pytest still reports then
LAST = 5  # seconds for those that are killed to be gone
SET_CHILD_SUBREAPER = 36  # of prctl(2)
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(number: int, frame: object) -> None:
    """Take a signal for a Ctrl-C."""
    raise KeyboardInterrupt


def kill_marked(variable: str, mark: str) -> None:
    """Kill all processes whose variable begins with a mark, whoever started them."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            if process.environ().get(variable, "").startswith(mark):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, timeout=LAST)


def watch() -> None:
    """Let SIGTERM and a closed terminal count as Ctrl-C, and adopt orphans on Linux.

    A notebook's kernel is in a session of its own, and what it starts outlives it. Who
    adopts orphans finds them among its own children.
    """
    for number in ENDINGS:
        signal.signal(number, interrupt)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(words: Sequence[str], folder: Path) -> int:
    """Run a program to its end, its output where ours goes.

    It is in a process group of its own: a Ctrl-C reaches it once, through us.

    Returns:
        Its exit status, or minus the number of the signal that ended it.

    Raises:
        OSError: it can't be started.
        KeyboardInterrupt: after all processes of it are gone.
    """
    try:
        program = subprocess.Popen(words, cwd=folder, process_group=0)
        return _wait(program)
    except KeyboardInterrupt:
        stop_all()
        raise


def _wait(program: subprocess.Popen[bytes]) -> int:
    """Wait for a program; orphans that end meanwhile are buried at once, too."""
    while True:
        number, status = os.waitpid(-1, 0)
        if number == program.pid:
            program.returncode = os.waitstatus_to_exitcode(status)
            return program.returncode


def stop_all() -> None:
    """End every process that this one started, and theirs. A second Ctrl-C hurries."""
    me = psutil.Process()
    print("\nstopping; Ctrl-C again stops at once", file=sys.stderr, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        programs = me.children()
        for program in programs:
            with contextlib.suppress(OSError):
                os.killpg(program.pid, signal.SIGINT)  # pytest's workers, too
        psutil.wait_procs(programs, timeout=GRACE)
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    latest = time.monotonic() + LAST
    while (left := me.children(recursive=True)) and time.monotonic() < latest:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=0.2)
