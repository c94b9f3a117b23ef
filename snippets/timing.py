import collections
import statistics
import time

Timing = collections.namedtuple("Timing", "first best low median high samples")


def seconds_per_call(function, calls=1):
    """Seconds per call of function(), the wait for each result included."""
    start = time.perf_counter()
    for _ in range(calls):
        wait_for(function())
    return max(time.perf_counter() - start, 1e-9) / calls


def timing_of(first, samples):
    """A Timing in seconds per call: first call, best, median with quartiles, all."""
    several = samples if len(samples) > 1 else 2 * samples
    return Timing(first, min(samples), *statistics.quantiles(several, n=4), samples)


def measure(function, *args, **settings):
    """Time function(*args): the Timing of a function that takes turns with nobody."""
    return measure_in_turns(lambda: function(*args), **settings)[0]
