"""Runs what may hang or grow in a process of its own, with bounds on time and memory.

What a student's code answers is only looked at there: an answer that is made to be slow
to look at, or to grow when it is looked at, harms nobody but itself.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

FORK = multiprocessing.get_context("fork")
PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """The process was ended, or ended itself, before it said anything.

    Args:
        reason: why.
    """


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process with its parent, however that one ends.

    Args:
        parent: the parent's number, as it saw itself.
        number: the signal that ends it.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent or parent == 1:  # it was gone before
        os._exit(1)


class Child:
    """A copy of this process, in which an action runs; it ends with this one.

    Args:
        action: returns what JSON can hold.
        seconds: the limit of its wall time.
    """

    def __init__(self, action: Callable[[], dict], seconds: float) -> None:
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.pipe, sending = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_run, args=(sending, action, os.getpid()))
        self.process.start()
        sending.close()

    def result(self) -> dict:
        """What the action returned; waits for it, and ends the process.

        Raises:
            Ended: it took too long, or crashed.
        """
        try:
            if not self.pipe.poll(max(0, self.deadline - time.monotonic())):
                raise Ended(f"it was still running after {self.seconds:.3g} s")
            return json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            self.process.join()
            if self.process.exitcode == -signal.SIGXCPU:
                raise Ended("it took too much processor time") from None
            raise Ended("it crashed, or took too much memory") from None
        finally:
            self.end()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(
    action: Callable[[], dict], seconds: float, processor_seconds: float, extra: int
) -> dict:
    """Run an action in a process of its own, bounded, and bring home what it returns.

    Args:
        action: returns what JSON can hold.
        seconds: the limit of its wall time.
        processor_seconds: the limit of its own processor time.
        extra: how many bytes of memory it may take beyond those of this process.

    Raises:
        Ended: it broke a limit, or crashed.
    """

    def bounded() -> dict:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _bound(resource.RLIMIT_AS, pages * resource.getpagesize() + extra)
        _bound(resource.RLIMIT_CPU, max(1, int(processor_seconds)))
        _bound(resource.RLIMIT_CORE, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # what it prints could be what a student wrote
            os.dup2(nowhere, descriptor)
        return action()

    return Child(bounded, seconds).result()


def _run(sending, action, parent) -> None:
    """The action, in its process."""
    die_with(parent)
    try:
        sending.send_bytes(json.dumps(action()).encode())
    except BaseException:
        os._exit(1)


def _bound(kind: int, value: int) -> None:
    """Bound this process alone: a worker that it starts sets its own limits."""
    most = resource.getrlimit(kind)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, most))
