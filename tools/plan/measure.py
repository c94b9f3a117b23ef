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
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__" and str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.machine import processor  # noqa: E402
from tools.model.errors import UserError, command  # noqa: E402
from tools.plan.sizes import BATCHES, SIZES, batch_of  # noqa: E402

BACKENDS = ("tensorflow", "jax", "torch")
PACKAGES = ("keras", *BACKENDS, "numpy")
STOPWATCH = ("outcome", "waiting", "timing", "turns")  # the snippets that it is made of
SYNCHRONISED = "snippets/waiting.py waits for each result"
BUDGET = 20.0  # seconds for the samples of one case
ACCELERATORS = ("gpu", "xpu", "mps", "tpu")
RAN_OUT = re.compile(r"out of memory|RESOURCE_EXHAUSTED|OutOfMemory|MemoryError", re.I)


# --- one case after the other, in the process of a backend ---------------------------


def stopwatch() -> Callable[..., Any]:
    """The book's own `measure`, made of its snippets."""
    names: dict[str, Any] = {}
    for name in STOPWATCH:
        exec((ROOT / "snippets" / f"{name}.py").read_text(encoding="utf-8"), names)
    return names["measure"]


def products(sizes: list[int], dtypes: list[str]) -> Iterator[tuple[dict, Callable]]:
    """Products of two square matrices, and what their numbers are."""
    import keras

    for dtype in dtypes:
        for size in sizes:
            a, b = (keras.random.normal((size, size), dtype=dtype) for _ in range(2))
            case = {"what": "matmul", "size": size, "dtype": dtype}
            yield case, lambda a=a, b=b: keras.ops.matmul(a, b)


def additions(sizes: list[int]) -> Iterator[tuple[dict, Callable]]:
    """Sums of two vectors of float32: of one number, a call costs what there is."""
    import keras

    for size in sizes:
        a, b = (keras.random.normal((size,)) for _ in range(2))
        case = {"what": "add", "size": size, "dtype": "float32"}
        yield case, lambda a=a, b=b: keras.ops.add(a, b)


def many_additions(calls: int = 100) -> Iterator[tuple[dict, Callable]]:
    """A hundred sums of two numbers, of which only the last is waited for."""
    import keras

    a, b = (keras.random.normal((1,)) for _ in range(2))
    work = keras.ops.add
    case = {"what": "add", "size": 1, "dtype": "float32", "unwaited_calls": calls}
    yield case, lambda: [work(a, b) for _ in range(calls)][-1]


def copies(size: int) -> Iterator[tuple[dict, Callable]]:
    """Vectors of float32 from the host's memory to the device."""
    import keras
    import numpy as np

    host = np.ones(size, "float32")
    case = {"what": "copy to the device", "size": size, "dtype": "float32"}
    yield case, lambda: keras.ops.convert_to_tensor(host) + 0


def steps(size: str, policies: list[str]) -> Iterator[tuple[dict, Callable]]:
    """Training steps and predictions of the models.

    Each is run as `compile()` chooses, and in float32 also eagerly and compiled.
    """
    import keras

    from tools.plan import models

    ways: list[tuple[str, dict]] = [
        ("as compile() chooses", {"jit_compile": "auto"}),
        ("eager", {"jit_compile": False, "run_eagerly": True}),
        ("compiled", {"jit_compile": True}),
    ]
    torch = keras.backend.backend() == "torch"
    for name, sizes in SIZES.items():
        inputs, labels = batch_of(sizes[size], BATCHES[name][size])
        for policy in policies:
            for way, how in ways if policy == "float32" else ways[:1]:
                if torch and way == "compiled":
                    continue  # minutes of compiling for one number
                model = models.prepare(sizes[size], policy, **how)
                case = {"model": name, "size": size, "policy": policy, "way": way}
                case["batch"] = len(inputs)
                yield (
                    {"what": "training step", **case},
                    lambda m=model, x=inputs, y=labels: m.train_on_batch(x, y),
                )
                yield (
                    {"what": "predict", **case},
                    lambda m=model, x=inputs: m.predict_on_batch(x),
                )


def device_of(backend: str) -> dict:
    """The device that a backend computes on: its kind, name and memory, if it tells."""

    if backend == "jax":
        import jax

        first = jax.devices()[0]
        kind, name = first.platform, first.device_kind
    elif backend == "torch":
        import torch
        from keras.src.backend.torch.core import get_device

        kind = get_device().partition(":")[0]
        kind = {"cuda": "gpu"}.get(kind, kind)
        name = torch.cuda.get_device_name() if kind == "gpu" else kind
    else:
        import tensorflow as tf

        found = tf.config.list_physical_devices("GPU")
        kind = "gpu" if found else "cpu"
        details = tf.config.experimental.get_device_details(found[0]) if found else {}
        name = details.get("device_name", kind)
    kind = kind if kind in ACCELERATORS else "cpu"
    return {"kind": kind, "name": name}


def measure_backend(backend: str, quick: bool) -> Iterator[dict]:
    """Measure all cases on the backend of this process; first tells the device."""
    device = device_of(backend)
    yield {"device": device}
    large = device["kind"] != "cpu" and not quick
    dtypes = ["float32"] if quick else ["float32", "bfloat16", "float16"]
    policies = [x if x == "float32" else f"mixed_{x}" for x in dtypes]
    cases = [
        additions([1] if quick else [1, 10_000_000]),
        many_additions(),
        products([256] if quick else [2048, 8192] if large else [512, 2048], dtypes),
        copies(100_000 if quick else 16_000_000),
        steps("large" if large else "small", policies),
    ]
    measure = stopwatch()
    for case, function in (pair for group in cases for pair in group):
        try:
            timing = measure(function, repeats=9, at_least=0.05, budget=BUDGET)
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            status = "out of memory" if RAN_OUT.search(why) else "failed"
            yield {**case, "backend": backend, "status": status, "why": why}
            continue
        calls = case.pop("unwaited_calls", None)
        seconds = [sample / (calls or 1) for sample in timing.samples]
        case |= {"waiting": "only for the last"} if calls else {}
        yield {
            **case,
            "backend": backend,
            "status": "measured",
            "first_s": timing.first / (calls or 1),
            "samples_s": seconds,
            "synchronised_by": SYNCHRONISED,
        }


# --- the whole machine ---------------------------------------------------------------


def output(*words: str) -> str:
    """What a program prints; nothing if it is not there or fails."""
    if shutil.which(words[0]) is None:
        return ""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit(given: str = "") -> str:
    """The commit that is checked out, with "+changes" if files differ from it.

    Raises:
        UserError: there is no repository and `given` is empty.
    """
    known = given or output("git", "rev-parse", "HEAD")
    if not known:
        raise UserError(
            "no commit is known here, and a record without one is worthless later. "
            "Fix: run in a clone with git, or give --commit SHA"
        )
    changes = (
        "" if given else output("git", "status", "--porcelain", "snippets", "tools")
    )
    return known + ("+changes" if changes else "")


def system() -> dict:
    """The operating system and Python."""
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return {"system": kernel, "python": platform.python_version()}


def packages() -> dict[str, str]:
    """The versions of Keras and the backends, of those that are here."""
    known = {name: importlib.util.find_spec(name) for name in PACKAGES}
    return {
        name: importlib.metadata.version(name) for name, spec in known.items() if spec
    }


def run(backend: str, quick: bool) -> Iterator[dict]:
    """Measure a backend in a process of its own."""
    words = [sys.executable, "-m", "tools.plan.measure", "--child"]
    words += ["--quick"] if quick else []
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as child,
    ):
        try:
            yield from map(json.loads, child.stdout)
        except GeneratorExit:
            child.kill()
            raise
        if status := child.wait():
            log.seek(0)
            why = (log.read().strip().splitlines() or [f"status {status}"])[-1]
            failed = {"what": "training step", "backend": backend, "status": "failed"}
            yield failed | {"why": f"the process ended: {why}"[:300]}


def describe(found: dict) -> str:
    """A measurement in a line."""
    words = [
        str(found.get(x, "")) for x in ("backend", "what", "model", "policy", "way")
    ]
    words += [str(found.get(x, "")) for x in ("size", "dtype")]
    if found["status"] != "measured":
        return " ".join([*filter(None, words), found["status"], found["why"]])
    median = sorted(found["samples_s"])[len(found["samples_s"]) // 2]
    return " ".join([*filter(None, words), f"{1e3 * median:.3g} ms"])


@command
def main(arguments: list[str] | None = None) -> int:
    """Measure this machine and write a file that the page shows."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--commit", default="", help="where there is no git")
    results = ROOT / "tools" / "plan" / "results"
    parser.add_argument("--out", type=Path, default=results, help="the folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what the libraries print goes to standard error
        for found in measure_backend(os.environ["KERAS_BACKEND"], options.quick):
            print(json.dumps(found), file=replies, flush=True)
        return 0
    here = packages()
    if "keras" not in here or not set(BACKENDS) & here.keys():
        raise UserError("Keras or its backend is missing. Fix: pip install keras jax")
    cpu, backends = processor(), [x for x in BACKENDS if x in here]
    if not options.out.is_dir() or not os.access(options.out, os.W_OK):
        raise UserError(f"{options.out} is no folder to write to. Fix: name another")
    words = " ".join(["python -m tools.plan.measure", *(["--quick"] * options.quick)])
    record = {
        "schema": 2,
        "label": "measured",
        "device": {"kind": "cpu", "name": f"{cpu['name']}, {cpu['cores']} cores"},
        "provenance": {
            "date": datetime.date.today().isoformat(),
            "commit": commit(options.commit),
            "command": words,
            **system(),
            "packages": here,
            "processor": cpu,
            "driver": output(
                "nvidia-smi",
                "--query-gpu=name,driver_version,memory.total",
                "--format=csv,noheader",
            )
            or None,
        },
        "results": [],
    }
    for backend in backends:
        began = time.monotonic()
        for found in run(backend, options.quick):
            if "device" in found:
                if found["device"]["kind"] != "cpu":
                    record["device"] = found["device"]
                continue
            record["results"].append(found)
            name = re.sub(r"[^a-z0-9]+", "-", record["device"]["name"].lower()).strip(
                "-"
            )
            path = options.out / f"{name}.json"
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            print(describe(found), flush=True)
        print(f"{backend}: {time.monotonic() - began:.0f} s", flush=True)
    if not record["results"]:
        raise UserError("nothing could be measured. Fix: see what was printed above")
    print(f"{len(record['results'])} measurements are in {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
