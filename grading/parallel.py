"""Grades submissions side by side, each in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import connection

from grading import runner, text
from grading.apart import Child, Ended
from grading.assignment import Assignment
from grading.runner import Cell, Result
from grading.sandbox import Limits

GRACE = 30  # seconds that a grader may take beyond its submission's limit
ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}  # what tells a program to end


def grade(
    notebooks: list[list[Cell]],
    assignment: Assignment,
    limits: Limits,
    seed: str,
    jobs: int,
) -> Iterator[tuple[int, Result]]:
    """Grade so many at a time, and yield the index and the result of each when done."""
    cores = sorted(os.sched_getaffinity(0))
    jobs = max(1, min(jobs, len(notebooks), len(cores)))
    waiting = list(range(len(notebooks)))[::-1]
    free = [set(cores[first::jobs]) for first in range(jobs)]
    running: dict[connection.Connection, tuple[int, set[int], Child]] = {}
    try:
        while waiting or running:
            while waiting and free:
                index, own = waiting.pop(), free.pop()
                work = (notebooks[index], assignment, limits, seed, own)
                with _no_interrupt():
                    action = functools.partial(_grade, *work)
                    child = Child(action, limits.total_seconds + GRACE)
                    running[child.pipe] = index, own, child
            first = min(child.deadline for _, _, child in running.values())
            ready = connection.wait(list(running), max(0, first - time.monotonic()))
            late = [p for p, job in running.items() if job[2].deadline == first]
            for pipe in ready or late:
                index, own, child = running.pop(pipe)
                free.append(own)
                try:
                    fields = text.everywhere(child.result())  # fit for any page
                    yield index, Result.from_json(fields)
                except Ended as ended:
                    yield index, _failed(assignment, str(ended))
    finally:
        for _, _, child in running.values():
            child.end()


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let a Ctrl-C wait: one that comes while a process forks would get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _grade(cells, assignment, limits, seed, cores) -> dict:
    """Grade one submission; runs in a process of its own."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
    os.sched_setaffinity(0, cores)
    try:
        result = runner.Grading(assignment, cells, limits).grade(seed)
    except Exception as error:
        result = _failed(assignment, f"{type(error).__name__}: {error}")
    return dataclasses.asdict(result)


def _failed(assignment: Assignment, reason: str) -> Result:
    """The result of a submission on which the grader itself failed."""
    result = runner.empty_result(assignment, f"the grader failed on it ({reason})")
    result.failed = True
    return result
