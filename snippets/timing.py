import collections
import statistics
import time

Timing = collections.namedtuple("Timing", "first best low median high")


def measure(function, *args, repeats=9, at_least=0.01):
    """Time function(*args) in `repeats` samples of `at_least` seconds or one call each.

    Returns a Timing in seconds per call: first, best, median and its quartiles.
    """

    def sample(calls):
        start = time.perf_counter()
        for _ in range(calls):
            wait_for(function(*args))
        return (time.perf_counter() - start) / calls

    first = sample(1)
    calls = int(at_least / sample(1)) + 1
    samples = sorted(sample(calls) for _ in range(repeats))
    return Timing(first, samples[0], *statistics.quantiles(samples, n=4))
