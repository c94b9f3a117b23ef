"""Grades submissions side by side, each in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import connection

from grading import apart, runner
from grading.apart import SPAWN
from grading.assignment import Assignment
from grading.runner import Result

GRACE = 30  # seconds that a grader may take beyond its submission's limit
ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}  # what tells a program to end


@dataclasses.dataclass
class _Job:
    """A grader at work on a submission."""

    index: int
    slot: int
    process: multiprocessing.Process
    pipe: connection.Connection
    deadline: float


def grade(work: list[tuple], jobs: int) -> Iterator[tuple[int, Result]]:
    """Grade, and yield the index and the result of each as it is done.

    Args:
        work: cells, assignment, limits and seed of each submission.
        jobs: how many to grade at the same time; the cores are shared out.
    """
    cores = sorted(os.sched_getaffinity(0))
    jobs = max(1, min(jobs, len(work), len(cores)))
    waiting = list(range(len(work)))[::-1]
    running: dict[connection.Connection, _Job] = {}
    slots = list(range(jobs))
    try:
        while waiting or running:
            while waiting and slots:
                index, slot = waiting.pop(), slots.pop()
                with _no_interrupt():
                    own = set(cores[slot::jobs])
                    job = _start(index, slot, work[index], own)
                    running[job.pipe] = job
            first = min(job.deadline for job in running.values())
            ready = connection.wait(
                list(running), max(0.0, first - time.monotonic()) + 0.1
            )
            late = [
                pipe for pipe, job in running.items() if job.deadline < time.monotonic()
            ]
            for pipe in {*ready, *late}:
                job = running.pop(pipe)
                slots.append(job.slot)
                yield job.index, _finish(job, work[job.index][1])
    finally:
        for job in running.values():
            job.process.kill()
            job.process.join()


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let a Ctrl-C wait: one that comes while a process forks would get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(index: int, slot: int, work: tuple, cores: set[int]) -> _Job:
    """Start a grader of one submission."""
    receiving, sending = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_grade, args=(sending, work, cores, os.getpid()))
    process.start()
    sending.close()
    deadline = time.monotonic() + work[2].total_seconds + GRACE
    return _Job(index, slot, process, receiving, deadline)


def _grade(sending, work, cores, parent) -> None:
    """Grade one submission; runs in a process of its own, which ends with the first."""
    apart.die_with(parent)
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
    os.sched_setaffinity(0, cores)
    cells, assignment, limits, seed = work
    try:
        result = runner.Grading(assignment, cells, limits).grade(seed)
    except Exception as error:
        result = _failed(assignment, f"{type(error).__name__}: {error}")
    sending.send_bytes(json.dumps(dataclasses.asdict(result)).encode())


def _finish(job: _Job, assignment: Assignment) -> Result:
    """The result of a grader, or why there is none."""
    try:
        if not job.pipe.poll():
            raise EOFError
        return Result.from_json(json.loads(job.pipe.recv_bytes()))
    except (EOFError, OSError):
        return _failed(assignment, "it took too long, or too much memory")
    finally:
        job.process.kill()
        job.process.join()
        job.pipe.close()


def _failed(assignment: Assignment, reason: str) -> Result:
    """The result of a submission on which the grader itself failed."""
    result = runner.empty_result(assignment, f"the grader failed on it ({reason})")
    result.failed = True
    return result
