"""Measure this machine with Keras: `make measure`, or `python -m tools.plan.measure`.

It needs Keras and one of TensorFlow, JAX and PyTorch, nothing else. Each backend that
is installed is measured in a process of its own, with the stopwatch of chapter 2
(`snippets/timing.py` and `turns.py`), which waits for the device. The result goes to a
file of JSON, after each measurement: with Ctrl-C, what was measured is kept.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.machine import processor
from tools.model import files
from tools.model.errors import UserError, command
from tools.plan.sizes import BATCHES, SIZES, batch_of

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")
STOPWATCH = ("outcome", "waiting", "timing", "turns")  # the snippets that it is made of
BUDGET = 20.0  # seconds for the samples of one case
LAST_ONLY = {"waiting": "only for the last"}  # of so many calls in a row
CALLS = 100
WAYS = {
    "as compile() chooses": {"jit_compile": "auto"},
    "eager": {"jit_compile": False, "run_eagerly": True},
    "compiled": {"jit_compile": True},
}
ACCELERATORS = ("gpu", "xpu", "mps", "tpu")
UNSAID = ("first_s", "samples_s", "synchronised_by", "batch")
DRIVER = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
RAN_OUT = re.compile(r"out of memory|RESOURCE_?EXHAUSTED|OutOfMemory|MemoryError", re.I)


# --- one case after the other, in the process of a backend ---------------------------


def cases(backend: str, large: bool, quick: bool) -> Iterator[dict]:
    """What is measured: single operations, then the models.

    A model runs as `compile()` chooses, and in float32 also eagerly and compiled.
    """
    dtypes = ["float32"] if quick else ["float32", "bfloat16", "float16"]
    for size in [1] if quick else [1, 10_000_000]:
        yield {"what": "add", "size": size, "dtype": "float32"}
    yield {"what": "add", "size": 1, "dtype": "float32", **LAST_ONLY}
    sizes = [256] if quick else [2048, 8192] if large else [512, 2048]
    for dtype, size in itertools.product(dtypes, sizes):
        yield {"what": "matmul", "size": size, "dtype": dtype}
    copied = 100_000 if quick else 16_000_000
    yield {"what": "copy to the device", "size": copied, "dtype": "float32"}
    for model, dtype, way in itertools.product(SIZES, dtypes, WAYS):
        if dtype != "float32" and way != "as compile() chooses":
            continue
        if backend == "torch" and way == "compiled":
            continue  # minutes of compiling for one number
        size = "large" if large else "small"
        policy = dtype if dtype == "float32" else f"mixed_{dtype}"
        case = {"model": model, "size": size, "policy": policy, "way": way}
        for what in ("training step", "predict"):
            yield {"what": what, **case, "batch": BATCHES[model][size]}


def work(case: dict) -> Callable[[], Any]:
    """What a case calls, with its arrays on the device or its model built."""
    import keras
    import numpy as np

    from tools.plan import models

    if "model" in case:
        size = SIZES[case["model"]][case["size"]]
        inputs, labels = batch_of(size, case["batch"])
        model = models.prepare(size, case["policy"], **WAYS[case["way"]])
        if case["what"] == "predict":
            return lambda: model.predict_on_batch(inputs)
        return lambda: model.train_on_batch(inputs, labels)
    size, dtype = case["size"], case["dtype"]
    if case["what"] == "copy to the device":
        host = np.ones(size, dtype)
        return lambda: keras.ops.convert_to_tensor(host) + 0
    shape = (size, size) if case["what"] == "matmul" else (size,)
    a, b = (keras.random.normal(shape, dtype=dtype) for _ in range(2))
    operation = getattr(keras.ops, case["what"])
    if "waiting" in case:
        return lambda: [operation(a, b) for _ in range(CALLS)][-1]
    return lambda: operation(a, b)


def stopwatch() -> Callable[..., Any]:
    """The book's own `measure`, made of its snippets."""
    names: dict[str, Any] = {}
    for name in STOPWATCH:
        exec((ROOT / "snippets" / f"{name}.py").read_text(encoding="utf-8"), names)
    return names["measure"]


def outcome(case: dict, measure: Callable[..., Any]) -> dict:
    """The times of a case, or why it has none."""
    try:
        timing = measure(work(case), repeats=9, at_least=0.05, budget=BUDGET)
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        status = "out of memory" if RAN_OUT.search(why) else "failed"
        return {"status": status, "why": why}
    calls = CALLS if "waiting" in case else 1
    return {
        "status": "measured",
        "first_s": timing.first / calls,
        "samples_s": [sample / calls for sample in timing.samples],
        "synchronised_by": "snippets/waiting.py waits for each result",
    }


def device_of(backend: str) -> dict:
    """The device that a backend computes on: its kind and name."""
    if backend == "jax":
        import jax

        first = jax.devices()[0]
        kind, name = first.platform, first.device_kind
    elif backend == "torch":
        import torch
        from keras.src.backend.torch.core import get_device

        kind = get_device().partition(":")[0].replace("cuda", "gpu")
        name = torch.cuda.get_device_name() if kind == "gpu" else kind
    else:
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        kind = name = "gpu" if devices else "cpu"
        if devices:
            details = tf.config.experimental.get_device_details(devices[0])
            name = details.get("device_name", kind)
    return {"kind": kind if kind in ACCELERATORS else "cpu", "name": name}


def measure_backend(backend: str, quick: bool) -> Iterator[dict]:
    """Measure all cases on the backend of this process; first tells the device."""
    device = device_of(backend)
    yield {"device": device}
    large = device["kind"] != "cpu" and not quick
    measure = stopwatch()
    for case in cases(backend, large, quick):
        yield {**case, "backend": backend, **outcome(case, measure)}


# --- the whole machine ---------------------------------------------------------------


def output(*words: str) -> str:
    """What a program prints; nothing if it is not there or fails."""
    if shutil.which(words[0]) is None:
        return ""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def provenance(called: str, packages: dict[str, str], commit: str = "") -> dict:
    """What a record needs to be worth something later.

    Args:
        called: the command that makes the record.
        packages: the versions of those that it is about.
        commit: what is checked out, where there is no git to ask. Of a clone in which
            files differ from it, "+changes" is kept as well.

    Raises:
        UserError: there is no repository and no commit is given.
    """
    if not commit:
        commit = output("git", "rev-parse", "HEAD")
        if output("git", "status", "--porcelain", "snippets", "tools"):
            commit += "+changes"
    if not commit:
        raise UserError(
            "no commit is known here, and a record without one is worthless later. "
            "Fix: run in a clone with git, or give --commit SHA"
        )
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "command": called,
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "packages": packages,
    }


def run(backend: str, options: list[str]) -> Iterator[dict]:
    """Measure a backend in a process of its own."""
    words = [sys.executable, "-m", "tools.plan.measure", "--child", *options]
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    pipes = {"stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            words, cwd=ROOT, env=environment, stderr=log, **pipes
        ) as child,
    ):
        yield from map(json.loads, child.stdout)
        if status := child.wait():
            log.seek(0)
            why = (log.read().strip().splitlines() or [f"status {status}"])[-1]
            failed = {"what": "training step", "backend": backend, "status": "failed"}
            yield failed | {"why": f"the process ended: {why}"[:300]}


def describe(result: dict) -> str:
    """A result in a line."""
    words = [str(x) for name, x in result.items() if name not in UNSAID]
    if times := sorted(result.get("samples_s", [])):
        words[-1] = f"{1e3 * times[len(times) // 2]:.3g} ms"
    return " ".join(words)


def measure_all(backends: list[str], record: dict, options: argparse.Namespace) -> None:
    """Measure all backends; each device that they compute on has a file of its own."""
    records: dict[Path, dict] = {}
    for backend in backends:
        device = record["device"]
        for result in run(backend, ["--quick"] * options.quick):
            if "device" in result:
                if result["device"]["kind"] != "cpu":
                    device = result["device"]
                continue
            slug = re.sub(r"[^a-z0-9]+", "-", device["name"].lower()).strip("-")
            path = options.out / f"{slug}.json"
            known = records.setdefault(path, {**record, "device": device})
            known["results"] = [*known.get("results", []), result]
            files.write_text(path, json.dumps(known, indent=1) + "\n")
            print(describe(result), flush=True)
    for path, known in records.items():
        print(f"{len(known['results'])} measurements are in {path}")


def answer(backend: str, quick: bool) -> None:
    """Print the results of a backend alone: what libraries print is not among them."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for result in measure_backend(backend, quick):
        print(json.dumps(result), file=replies, flush=True)


@command
def main(arguments: list[str] | None = None) -> None:
    """Measure this machine and write a file that the page shows.

    Raises:
        UserError: a package or the commit is missing.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--commit", default="", help="where there is no git")
    results = ROOT / "tools" / "plan" / "results"
    parser.add_argument("--out", type=Path, default=results, help="the folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return answer(os.environ["KERAS_BACKEND"], options.quick)
    names = filter(importlib.util.find_spec, ("keras", *BACKENDS, "numpy"))
    packages = {name: importlib.metadata.version(name) for name in names}
    backends = [name for name in BACKENDS if name in packages]
    if "keras" not in packages or not backends:
        raise UserError("Keras or its backend is missing. Fix: pip install keras jax")
    options.out.mkdir(parents=True, exist_ok=True)
    called = " ".join(["python -m tools.plan.measure", *(["--quick"] * options.quick)])
    known, cpu = provenance(called, packages, options.commit), processor()
    driver = output("nvidia-smi", *DRIVER) or None
    record = {
        "schema": 2,
        "label": "measured",
        "device": {"kind": "cpu", "name": f"{cpu['name']}, {cpu['cores']} cores"},
        "provenance": {**known, "processor": cpu, "driver": driver},
    }
    measure_all(backends, record, options)


if __name__ == "__main__":
    raise SystemExit(main())
