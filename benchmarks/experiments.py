"""What is measured: each function does one experiment's cases in a worker process.

An experiment takes an engine, its framework and the parameters of a case, and returns
the work to time and what is counted of it. Nothing runs before the worker asks for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks import flops
from benchmarks.engines.frameworks import Framework
from benchmarks.sizes import SIZES
from snippets.waiting import wait_for

BYTES = {"float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True)
class Work:
    """One case, ready to be timed.

    Attributes:
        run: does the work as often as it is told and waits for the device.
        flop: floating-point operations of one piece of work, or None.
        bytes: bytes that one piece of work must move at least, or None.
        fewest: the fewest pieces of work in a sample.
    """

    run: Callable[[int], object]
    flop: int | None = None
    bytes: int | None = None
    fewest: int = 1


@dataclasses.dataclass(frozen=True)
class Experiment:
    """An experiment.

    Attributes:
        title: what it is, in a few words.
        clock: what exactly was timed, in a sentence for the reader of the results.
        prepare: makes the Work of a case from engine, framework and parameters.
    """

    title: str
    clock: str
    prepare: Callable[[str, Framework, dict], Work]


def waited(function: Callable[[], object]) -> Callable[[int], object]:
    """Work that waits for each result before it asks for the next."""

    def run(calls):
        for _ in range(calls):
            wait_for(function())

    return run


def unwaited(function: Callable[[], object]) -> Callable[[int], object]:
    """Work that asks for all results and waits for the last."""

    def run(calls):
        for _ in range(calls):
            result = function()
        wait_for(result)

    return run


def random(*shape: int) -> np.ndarray:
    """Random float32 numbers: zeros would run faster on some devices."""
    return np.random.default_rng(0).standard_normal(shape, dtype="float32")


def matmul(engine: str, framework: Framework, params: dict) -> Work:
    """The product of two square matrices."""
    import keras

    size, dtype = params["size"], params["dtype"]
    framework.use_precision(dtype)
    on_cpu = params.get("place") == "cpu"
    with keras.device("cpu:0") if on_cpu else contextlib.nullcontext():
        kind = "float32" if dtype == "tf32" else dtype
        a, b = (keras.ops.cast(random(size, size), kind) for _ in range(2))
    product = waited(lambda: keras.ops.matmul(a, b))

    def run(calls):
        with keras.device("cpu:0") if on_cpu else contextlib.nullcontext():
            product(calls)

    count = flops.matmul(size, size, size)
    return Work(run, count, 3 * BYTES[dtype] * size * size)


def matmul_round_trip(engine: str, framework: Framework, params: dict) -> Work:
    """The product of two matrices of the host's memory, brought back there."""
    import keras

    size = params["size"]
    framework.use_precision("float32")
    a = random(size, size)
    there = framework.copy_in(a, pinned=False)

    def product():
        result = keras.ops.matmul(there(), there())
        return wait_for(framework.copy_out(result, pinned=False)())

    return Work(
        lambda calls: [product() for _ in range(calls)],
        flops.matmul(size, size, size),
        3 * 4 * size * size,
    )


def addition(engine: str, framework: Framework, params: dict) -> Work:
    """The sum of two vectors: two reads and one write for each number."""
    import keras

    count = params["size"]
    x, y = (framework.tensor(random(count), "float32") for _ in range(2))
    return Work(waited(lambda: keras.ops.add(x, y)), count, 12 * count)


CHAIN = 12  # the operations of the chain below


def chain(engine: str, framework: Framework, params: dict) -> Work:
    """Twelve elementwise operations, one after the other."""
    import keras

    def steps(x):
        for _ in range(CHAIN // 3):
            x = keras.ops.maximum(x * 1.01 + 0.01, -1.0)
        return x

    count = params["size"]
    x = framework.tensor(random(count), "float32")
    steps = framework.transform(steps, params["mode"])
    # Fused, each number is read once and written once.
    return Work(waited(lambda: steps(x)), CHAIN * count, 8 * count)


def copy(engine: str, framework: Framework, params: dict) -> Work:
    """A copy between the host's memory and the device's."""
    array, pinned = random(params["bytes"] // 4), params["pinned"]
    if params["to"] == "device":
        function = framework.copy_in(array, pinned)
    else:
        tensor = wait_for(framework.tensor(array, "float32"))
        function = framework.copy_out(tensor, pinned)
    return Work(waited(function), bytes=params["bytes"])


def dispatch(engine: str, framework: Framework, params: dict) -> Work:
    """The sum of two numbers, which costs a device nothing."""
    import keras

    x = framework.tensor(random(1), "float32")
    run = waited if params["wait"] else unwaited
    return Work(run(lambda: keras.ops.add(x, x)), fewest=100)


def _model_run(engine: str, framework: Framework, params: dict, part: str) -> Callable:
    """The "training" or the "inference" of an engine's model, to be run some times."""
    size = SIZES[params["model"]][params["size"]]
    batch, precision, mode = params["batch"], params["precision"], params["mode"]
    framework.use_precision(precision)
    if engine.startswith("keras"):
        from benchmarks.engines import keras_models

        model = keras_models.prepare(size, precision, mode)
        if part == "training":
            return keras_models.training(model, size, batch)
        return keras_models.inference(model, size, batch, framework, mode)
    if engine == "torch":
        from benchmarks.engines import torch_models

        model = torch_models.prepare(size, framework)
        options = model, size, batch, framework, precision, mode
        return getattr(torch_models, part)(*options)
    from benchmarks.engines import jax_models

    return getattr(jax_models, part)(size, batch, precision)


def train(engine: str, framework: Framework, params: dict) -> Work:
    """Training steps of a model."""
    run = _model_run(engine, framework, params, "training")
    size = SIZES[params["model"]][params["size"]]
    return Work(run, flops.training_step(size, params["batch"]), fewest=2)


def infer(engine: str, framework: Framework, params: dict) -> Work:
    """Forward passes of a model."""
    run = _model_run(engine, framework, params, "inference")
    size = SIZES[params["model"]][params["size"]]
    return Work(run, flops.forward(size, params["batch"]), fewest=2)


EXPERIMENTS = {
    "matmul": Experiment(
        "Product of two square matrices",
        "One product of matrices that are in the device's memory, by keras.ops.matmul, "
        "until its result is there.",
        matmul,
    ),
    "round-trip": Experiment(
        "Product of two square matrices of the host's memory",
        "Two copies to the device, one product, one copy back, until it is there.",
        matmul_round_trip,
    ),
    "addition": Experiment(
        "Sum of two vectors",
        "One keras.ops.add of vectors that are in the device's memory, until its "
        "result is there; the memory for it is allocated each time.",
        addition,
    ),
    "chain": Experiment(
        "Twelve elementwise operations",
        "All twelve on a vector in the device's memory, until the result is there.",
        chain,
    ),
    "copy": Experiment(
        "Copy between host and device",
        "One copy, until it has arrived.",
        copy,
    ),
    "dispatch": Experiment(
        "Sum of two numbers",
        "One keras.ops.add: with waiting for each result, or with waiting for the last "
        "of many only.",
        dispatch,
    ),
    "train": Experiment(
        "Training step",
        "One step: the batch is taken from the host's memory, then forward and "
        "backward pass and Adam. In Keras it is a step of fit on a data set that "
        "repeats one batch, the epoch's start and end shared among its steps.",
        train,
    ),
    "infer": Experiment(
        "Forward pass",
        "One call of the model: the batch is taken from the host's memory, the logits "
        "stay on the device.",
        infer,
    ),
}
