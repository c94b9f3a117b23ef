"""Time work until a device has finished it, and keep every sample."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterable


@dataclasses.dataclass(frozen=True)
class Samples:
    """What a stopwatch read.

    Attributes:
        first_s: seconds of the first piece of work, in which compilers do theirs.
        calls: how many pieces of work each sample is the mean of.
        samples_s: seconds per piece of work, one number for each sample.
    """

    first_s: float
    calls: int
    samples_s: list[float]


def quartiles(samples: Iterable[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(samples, n=4, method="inclusive")


def sample(
    work: Callable[[int], None],
    *,
    repeats: int = 5,
    at_least: float = 0.2,
    fewest: int = 1,
    limit: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Samples:
    """Time work(calls) `repeats` times, with calls enough for a long sample.

    Args:
        work: does the work `calls` times and returns when the device has finished it.
        repeats: how many samples to take; at least 3 are taken.
        at_least: seconds that a sample lasts at least, so that the clock's own steps
            and what a loop costs at its start and end do not show.
        fewest: the fewest calls in a sample.
        limit: seconds for all samples; slow work gets fewer of them, never less than 3.
        clock: gives seconds.

    Returns:
        The samples. Neither the first call nor the one that sets the number of calls is
        among them.
    """

    def seconds(calls: int) -> float:
        start = clock()
        work(calls)
        return (clock() - start) / calls

    first = seconds(1)
    per_call = max(seconds(fewest), 1e-9)
    calls = max(fewest, math.ceil(at_least / per_call))
    repeats = max(3, min(repeats, int(limit / (calls * per_call))))
    return Samples(first, calls, [seconds(calls) for _ in range(repeats)])
