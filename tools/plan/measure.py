"""Measure this machine with Keras: `make measure`, or `python -m tools.plan.measure`.

It needs Keras and one of TensorFlow, JAX and PyTorch, nothing else. Each backend that
is installed, or the one that KERAS_BACKEND names, is measured in a process of its own,
with the stopwatch of chapter 2, which waits for the device. The file is written when
all results are there.
"""

import argparse
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from tools.machine import processor, versions
from tools.model.errors import UserError, command
from tools.plan import engines, record
from tools.plan.sizes import BATCHES, SIZES, USUAL, batch_of

BACKENDS = ("tensorflow", "jax", "torch")
PACKAGES = ("keras", *BACKENDS, "tensorflow-cpu", "numpy")
STOPWATCH = ("waiting", "timing", "turns")  # the snippets that it is made of
BUDGET = 20.0  # seconds for the samples of one case
LAST_ONLY = {"waiting": "only for the last"}  # of so many calls in a row
CALLS = 100
WAYS = {
    USUAL: {"jit_compile": "auto"},
    "eager": {"jit_compile": False, "run_eagerly": True},
    "compiled": {"jit_compile": True},
}
UNSAID = ("first_s", "samples_s", "synchronised_by", "batch")
DRIVER = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
DIED = "its process ended, as when memory runs out"
RAN_OUT = re.compile(r"out of memory|RESOURCE_?EXHAUSTED|OutOfMemory|MemoryError", re.I)


# --- one case after the other, in the process of a backend ---------------------------


def cases(backend: str, kind: str, tf32: bool, quick: bool) -> Iterator[dict]:
    """What is measured: single operations, then the models.

    A model runs as `compile()` chooses, and in float32 also eagerly and compiled.
    "float32" is exact; "tf32" is a case of its own, where the device has it.
    """
    dtypes = ["float32", "tf32"] if tf32 else ["float32"]
    dtypes += [] if quick else ["bfloat16", "float16"]
    large = kind != "cpu" and not quick
    for size in [1] if quick else [1, 10_000_000]:
        yield {"what": "add", "size": size, "dtype": "float32"}
    yield {"what": "add", "size": 1, "dtype": "float32", **LAST_ONLY}
    sizes = [256] if quick else [2048, 8192] if large else [512, 2048]
    for dtype, size in itertools.product(dtypes, sizes):
        yield {"what": "matmul", "size": size, "dtype": dtype}
    if kind != "cpu":  # what a CPU computes with is there already
        copied = 100_000 if quick else 16_000_000
        yield {"what": "copy to the device", "size": copied, "dtype": "float32"}
    for model, dtype, way in itertools.product(SIZES, dtypes, WAYS):
        if dtype != "float32" and way != USUAL:
            continue
        if way == "compiled" and backend != "tensorflow":
            continue  # JAX compiles anyway; PyTorch takes minutes for one number
        size = "large" if large else "small"
        policy = dtype if dtype in ("float32", "tf32") else f"mixed_{dtype}"
        case = {"model": model, "size": size, "policy": policy, "way": way}
        for what in ("training step", "predict"):
            yield {"what": what, **case, "batch": BATCHES[model][size]}


def work(case: dict) -> Callable[[], Any]:
    """What a case calls, with its arrays on the device or its model built."""
    import keras
    import numpy as np

    from tools.plan import models

    dtype = case["policy" if "model" in case else "dtype"]
    engines.use_precision(case["backend"], dtype)
    dtype = dtype.replace("tf32", "float32")  # numbers of TF32 are stored so
    if "model" in case:
        size = SIZES[case["model"]][case["size"]]
        inputs, labels = batch_of(size, case["batch"])
        model = models.prepare(size, dtype, **WAYS[case["way"]])
        if case["what"] == "predict":
            return lambda: model.predict_on_batch(inputs)
        return lambda: model.train_on_batch(inputs, labels)
    size = case["size"]
    if case["what"] == "copy to the device":
        host = np.ones(size, dtype)
        return lambda: keras.ops.convert_to_tensor(host)
    shape = (size, size) if case["what"] == "matmul" else (size,)
    a, b = (keras.random.normal(shape, dtype=dtype) for _ in range(2))
    operation = getattr(keras.ops, case["what"])
    if "waiting" in case:
        return lambda: [operation(a, b) for _ in range(CALLS)][-1]
    return lambda: operation(a, b)


def stopwatch() -> dict[str, Callable[..., Any]]:
    """The functions of the book's own stopwatch, which is made of its snippets."""
    names: dict[str, Any] = {}
    for name in STOPWATCH:
        exec(
            (record.ROOT / "snippets" / f"{name}.py").read_text(encoding="utf-8"), names
        )
    return names


def outcome(case: dict) -> dict:
    """The times of a case, or why it has none. The first call may compile."""
    names = stopwatch()
    try:
        call = work(case)
        first = names["seconds_per_call"](call)
        timing = names["measure"](call, repeats=9, at_least=0.05, budget=BUDGET)
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        status = "out of memory" if RAN_OUT.search(why) else "failed"
        return {"status": status, "why": why}
    calls = CALLS if "waiting" in case else 1
    return {
        "status": "measured",
        "first_s": first / calls,
        "samples_s": [sample / calls for sample in timing.samples],
        "synchronised_by": "snippets/waiting.py waits for each result",
    }


# --- the whole machine ---------------------------------------------------------------


def outcomes(backend: str, waiting: list[dict]) -> Iterator[dict]:
    """Each case with its outcome, from one process, and from a new one after a failure.

    If a process dies, that is the outcome of its case: a case that is too large for
    the machine's memory may be killed.
    """
    while waiting:
        with engines.processes({"KERAS_BACKEND": backend}) as pool:
            result: dict = {}
            while waiting and "why" not in result:
                case = {**waiting.pop(0), "backend": backend}
                try:
                    result = pool.submit(outcome, case).result()
                except BrokenProcessPool:
                    result = {"status": "failed", "why": DIED}
                yield {**case, **result}


def describe(result: dict) -> str:
    """A result in a line."""
    words = [str(x) for name, x in result.items() if name not in UNSAID]
    if times := sorted(result.get("samples_s", [])):
        words[-1] = f"{1e3 * times[len(times) // 2]:.3g} ms"
    return " ".join(words)


def measure_all(head: dict, backends: list[str], quick: bool, out: Path) -> None:
    """Measure all backends; each device that they compute on has a file of its own."""
    out.mkdir(parents=True, exist_ok=True)  # what hinders it is said now
    records: dict[Path, dict] = {}
    for backend in backends:
        try:
            with engines.processes({"KERAS_BACKEND": backend}) as pool:
                device, tf32 = pool.submit(engines.device_of, backend).result()
        except Exception as error:
            print(f"{backend} does not start: {error!r}", file=sys.stderr)
            continue
        slug = re.sub("[^a-z0-9]+", "-", device["name"].lower()).strip("-")
        new = {**head, "device": device, "results": []}
        results = records.setdefault(out / f"{slug}.json", new)["results"]
        waiting = list(cases(backend, device["kind"], tf32, quick))
        for result in outcomes(backend, waiting):
            results.append(result)
            print(describe(result), flush=True)
    if not records:
        raise UserError("nothing was measured. Fix: what is printed above")
    for path, known in records.items():
        record.write(path, known)
        print(f"{len(known['results'])} measurements are in {path}")


@command
def main(arguments: list[str] | None = None) -> None:
    """Measure this machine and write a file that the page shows."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--commit", default="", help="where there is no git")
    parser.add_argument("--out", type=Path, default=record.FOLDER, help="the folder")
    options = parser.parse_args(arguments)
    wanted = os.environ.get("KERAS_BACKEND", "")
    packages = versions(PACKAGES)
    backends = [x for x in BACKENDS if x in packages and wanted in ("", x)]
    if "keras" not in packages or not backends:
        raise UserError(
            "Keras or its backend is missing. Fix: pip install keras jax, and let "
            f"KERAS_BACKEND, if it is set, be one of {', '.join(BACKENDS)}"
        )
    called = f"KERAS_BACKEND={wanted} " if wanted else ""
    called += "python -m tools.plan.measure" + " --quick" * options.quick
    origin = record.provenance(called, packages, options.commit)
    origin["processor"] = processor()
    origin["driver"] = record.output(*DRIVER).partition("\n")[0] or None
    head = {"schema": 3, "label": "measured", "provenance": origin}
    measure_all(head, backends, options.quick, options.out)


if __name__ == "__main__":
    raise SystemExit(main())
