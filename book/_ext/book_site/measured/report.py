"""What the results say: rates, shares of the peak, speed-ups, break-even sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from benchmarks.engines import NAMES, usual_mode
from benchmarks.machine import slug
from benchmarks.sizes import BATCHES

MODELS = {
    "mlp": "Multilayer perceptron",
    "conv": "Convolutional net",
    "transformer": "Decoder-only transformer",
}
# Numbers whose products a policy computes.
PRODUCTS = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}


def good(results: dict, experiment: str, engine: str | None = None, **params):
    """The results of an experiment that have a time, those with given parameters."""
    return [
        result
        for result in results["results"]
        if result["status"] == "ok"
        and result["experiment"] == experiment
        and engine in (None, result["engine"])
        and all(result["params"].get(name) == value for name, value in params.items())
    ]


def one(results: dict, experiment: str, engine: str, **params) -> dict | None:
    """The first of such results, or None."""
    return next(iter(good(results, experiment, engine, **params)), None)


def rate(result: dict, what: str) -> float:
    """FLOP or bytes ("flop", "bytes") per second, at the median."""
    return result[what] / result["median_s"]


def best(results: Iterable[dict], what: str) -> dict | None:
    """The result with the highest rate."""
    return max(results, key=lambda result: rate(result, what), default=None)


def on_device(found: Iterable[dict]) -> list[dict]:
    """The results of the device itself, without those of the CPU beside it."""
    return [result for result in found if result["params"].get("place") != "cpu"]


def peak(results: dict, dtype: str) -> dict | None:
    """The product of matrices with the most FLOP per second in a number type."""
    return best(on_device(good(results, "matmul", dtype=dtype)), "flop")


def bandwidth(results: dict) -> dict | None:
    """The elementwise work with the most bytes per second.

    Vectors that fit in a cache are left out: only those of at least 10⁷ numbers count,
    or the longest, if all are shorter.
    """
    found = good(results, "addition")
    longest = max((result["params"]["size"] for result in found), default=0)
    least = min(longest, 10**7)
    found = [result for result in found if result["params"]["size"] >= least]
    return best(found, "bytes")


def share_of_peak(results: dict, result: dict) -> float | None:
    """The model's FLOP per second over the device's measured peak (MFU).

    Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), with a peak that was measured in the
    same run in the same number type.
    """
    precision = result["params"]["precision"]
    highest = peak(results, PRODUCTS.get(precision, precision))
    return rate(result, "flop") / rate(highest, "flop") if highest else None


@dataclasses.dataclass(frozen=True)
class SpeedUp:
    """How many times faster one case is than another.

    Attributes:
        technique: what was changed.
        slow: the result without it.
        fast: the result with it.
        factor: of time per sample, slow over fast.
    """

    technique: str
    slow: dict
    fast: dict
    factor: float

    @property
    def is_clear(self) -> bool:
        """Whether the middle halves of the samples lie apart."""
        scale = _samples(self.fast) / _samples(self.slow)
        return (
            self.slow["low_s"] * scale > self.fast["high_s"]
            or self.slow["high_s"] * scale < self.fast["low_s"]
        )


def _samples(result: dict) -> int:
    """How many samples a piece of work is for."""
    return result["params"].get("batch", 1)


def faster(technique: str, slow: dict | None, fast: dict | None) -> Iterator[SpeedUp]:
    """The speed-up from one result to another, if both are there."""
    if slow and fast:
        per_sample = _samples(fast) / _samples(slow)
        factor = per_sample * slow["median_s"] / fast["median_s"]
        yield SpeedUp(technique, slow, fast, factor)


def speed_ups(results: dict) -> Iterator[SpeedUp]:
    """What each technique changes, in the training steps of each model and engine.

    Each changes one thing: the way to run, the precision, the batch size.
    """
    for model, sizes in BATCHES.items():
        for size in sizes:
            for engine in NAMES:
                yield from _of_a_model(results, engine, model, size)


def _of_a_model(results: dict, engine: str, model: str, size: str) -> Iterator[SpeedUp]:
    """The speed-ups of one model on one engine."""
    usual = usual_mode(engine, results["device"]["kind"] != "cpu")
    few, middle, many = BATCHES[model][size]
    names = {"model": model, "size": size}

    def step(batch=middle, precision="float32", mode=usual):
        params = {"batch": batch, "precision": precision, "mode": mode}
        return one(results, "train", engine, **names, **params)

    eager = step(mode="eager")
    yield from faster("graph in place of eager", eager, step(mode="graph"))
    yield from faster("compiled in place of eager", eager, step(mode="compiled"))
    for name in ("tf32", *PRODUCTS):
        label = f"{name} in place of float32"
        yield from faster(label, step(), step(precision=name))
    for name in ("float32", "tf32", *PRODUCTS):
        label = "large batch in place of small"
        yield from faster(label, step(few, name), step(many, name))


ALONE = {"keras-torch": "torch", "keras-jax": "jax"}


def beside_keras(results: dict) -> Iterator[SpeedUp]:
    """The same model without Keras: time with Keras over time without, per mode."""
    for with_keras in good(results, "train"):
        alone = ALONE.get(with_keras["engine"])
        if alone:
            without = one(results, "train", alone, **with_keras["params"])
            yield from faster("without Keras", with_keras, without)


def break_even(results: dict, engine: str, experiment: str) -> int | None:
    """The least size of matrix from which the accelerator wins over the CPU beside it.

    Args:
        results: of an accelerator.
        engine: a Keras engine.
        experiment: "matmul" with the data on the device, "round-trip" with copies.

    Returns:
        The first measured size from which on it wins at every size, or None.
    """
    found = None
    cpu = good(results, "matmul", engine, place="cpu")
    for result in sorted(cpu, key=lambda r: -r["params"]["size"]):
        size = result["params"]["size"]
        params = {"dtype": "float32"} if experiment == "matmul" else {}
        device = on_device(good(results, experiment, engine, size=size, **params))
        if not device or device[0]["median_s"] >= result["median_s"]:
            break
        found = size
    return found


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or unit == "µs":
            return f"{digits(value * factor)} {unit}"
    raise AssertionError


def digits(value: float) -> str:
    """A number with three significant digits and no exponent."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")  # a narrow space that holds
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def per_second(value: float, unit: str) -> str:
    """A rate such as 1.23 TFLOP/s."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{digits(value / factor)} {prefix}{unit}/s"
    return f"{digits(value)} {unit}/s"


def size_of(value: float) -> str:
    """A number of bytes in MiB or GiB."""
    if value >= 2**30:
        return f"{digits(value / 2**30)} GiB"
    return f"{digits(value / 2**20)} MiB"


def anchor(results: dict, result: dict) -> str:
    """The name of a result's row on the page, such as `m-tesla-t4-train-jax-mlp-…`."""
    words = [str(value) for _, value in sorted(result["params"].items())]
    case = [result["experiment"], result["engine"], *words]
    return f"m-{results['device']['id']}-{slug(' '.join(case))}"


def anchors(all_results: Iterable[dict]) -> dict[str, str]:
    """The rows of the page and the time that stands in each."""
    return {
        anchor(results, result): seconds(result["median_s"])
        for results in all_results
        for result in results["results"]
        if result["status"] == "ok"
    }
