"""The process that measures: it has one engine, and ends with it.

It reads a request from standard input, as JSON, and writes one line of JSON to standard
output for each case that it starts and for each that it ends.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any, TextIO

OUT_OF_MEMORY = (
    "resource_exhausted",
    "resourceexhausted",
    "out of memory",
    "outofmemory",
    "oom when",
    "can't allocate",
    "not enough memory",
    "unable to allocate",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error of any framework says that memory ran out."""
    text = f"{type(error).__name__}: {error}".lower()
    return isinstance(error, MemoryError) or any(part in text for part in OUT_OF_MEMORY)


def in_a_line(error: BaseException) -> str:
    """An error as one short line, without the paths of this machine."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    words = [word for word in first.split() if "/" not in word]
    return f"{type(error).__name__}: {' '.join(words)}"[:200]


def probe(engine: str) -> dict:
    """What an engine is and sees: versions, kind of device, the device's properties."""
    from benchmarks.engines.frameworks import framework

    found = framework(engine)
    versions = {engine.removeprefix("keras-"): found.version}
    if engine.startswith("keras-"):
        import keras

        versions["keras"] = keras.__version__
    import numpy

    versions["numpy"] = numpy.__version__
    return {"versions": versions, "kind": found.kind, "device": found.describe()}


def measure(engine: str, case: dict, options: dict, fresh: bool) -> dict:
    """Measure one case; the peak of the memory only in a fresh process.

    What an earlier case has freed is still counted as the process's, and JAX's peak
    can't be reset.
    """
    gc.collect()
    from benchmarks.engines.frameworks import framework
    from benchmarks.experiments import EXPERIMENTS
    from benchmarks.stopwatch import sample

    device = framework(engine)
    _warm_up(device)
    device.reset_peak()
    work = EXPERIMENTS[case["experiment"]].prepare(engine, device, case["params"])
    samples = sample(work.run, fewest=work.fewest, **options)
    return {
        "status": "ok",
        "first_s": samples.first_s,
        "calls": samples.calls,
        "samples_s": samples.samples_s,
        "flop": work.flop,
        "bytes": work.bytes,
        "peak_memory_bytes": device.peak_bytes() if fresh else None,
    }


def _warm_up(device) -> None:
    """Let the driver and the libraries start, which no case is to pay for."""
    import numpy as np

    from snippets.waiting import wait_for

    x = device.tensor(np.ones((64, 64), "float32"), "float32")
    wait_for(x @ x)


def serve(request: dict, out: TextIO) -> None:
    """Answer a request: "engine", and "probe" or "cases" and "options"."""

    def say(**message: Any) -> None:
        print(json.dumps(message), file=out, flush=True)

    engine = request["engine"]
    if request.get("probe"):
        try:
            say(**probe(engine))
        except Exception as error:
            say(missing=in_a_line(error))
        return
    for number, case in enumerate(request["cases"]):
        say(start=number)
        try:
            result = measure(engine, case, request["options"], fresh=number == 0)
            say(end=number, result=result)
        except LookupError as error:
            say(end=number, result={"status": "left out", "why": str(error.args[0])})
        except Exception as error:
            status = "out of memory" if is_out_of_memory(error) else "failed"
            say(end=number, result={"status": status, "why": in_a_line(error)})
            return  # what is left of the memory is anybody's guess: end here


if __name__ == "__main__":
    # What the libraries print goes to standard error: the messages stay alone.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(json.load(sys.stdin), messages)
