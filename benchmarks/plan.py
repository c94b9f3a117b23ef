"""Which cases to measure on a machine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from benchmarks.engines import MODES, usual_mode
from benchmarks.sizes import BATCHES

KERAS = ("keras-tensorflow", "keras-jax", "keras-torch")


@dataclasses.dataclass(frozen=True)
class Machine:
    """What decides on the plan.

    Attributes:
        kind: "cpu", or the kind of accelerator.
        capability: CUDA's compute capability such as (9, 0), or None.
    """

    kind: str
    capability: tuple[int, int] | None = None

    @property
    def on_accelerator(self) -> bool:
        """Whether there is more than a CPU."""
        return self.kind != "cpu"

    @property
    def has_tf32(self) -> bool:
        """Whether products of float32 matrices can be done in TF32: from Ampere on."""
        return self.capability is not None and self.capability >= (8, 0)

    @property
    def mixed(self) -> str:
        """The 16-bit policy that suits: bfloat16, where the device computes in it."""
        old = self.capability is not None and self.capability < (8, 0)
        return "mixed_float16" if old else "mixed_bfloat16"


@dataclasses.dataclass(frozen=True)
class Unit:
    """Cases that one process measures, one after the other.

    Attributes:
        engine: the engine's name.
        cases: dicts of "experiment" and "params".
        grows: the cases get longer and longer, so that one that takes too long ends it.
    """

    engine: str
    cases: tuple[dict, ...]
    grows: bool = False


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Something that is not measured on this machine, and why."""

    experiment: str
    why: str
    engine: str | None = None


def key(engine: str, case: dict) -> str:
    """The name of a case: the same for the same case, on every machine."""
    params = json.dumps(case["params"], sort_keys=True)
    return f"{case['experiment']} {engine} {params}"


def _unit(engine: str, experiment: str, series: list[dict], grows=True) -> Unit:
    """One process for a series of cases of one experiment."""
    cases = tuple({"experiment": experiment, "params": params} for params in series)
    return Unit(engine, cases, grows)


def primitives(engine: str, machine: Machine, quick: bool) -> Iterator[Unit | LeftOut]:
    """The cases that need no model, of an engine that has Keras."""
    large = machine.on_accelerator
    sizes = [128, 512, 1024, *([] if quick else [2048])]
    sizes += [4096, *([] if quick else [8192, 16384])] if large else []
    dtypes = ["float32", "bfloat16", "float16"]
    if machine.has_tf32:
        dtypes.insert(1, "tf32")
    else:
        yield LeftOut("matmul", "tf32: this device has no such number type")
    for dtype in dtypes:
        series = [{"size": size, "dtype": dtype} for size in sizes]
        yield _unit(engine, "matmul", series)
    if large:
        few = [size for size in sizes if size <= 4096]
        series = [{"size": size, "dtype": "float32", "place": "cpu"} for size in few]
        yield _unit(engine, "matmul", series)
        yield _unit(engine, "round-trip", [{"size": size} for size in few])
    else:
        for name in ("round-trip", "copy"):
            yield LeftOut(name, "a CPU works in the host's memory: nothing is copied")
    lengths = [10**4, 10**6, *([] if quick else [10**5, 10**7, 3 * 10**7])]
    lengths += [10**8, *([] if quick else [10**9])] if large else []
    yield _unit(engine, "addition", [{"size": length} for length in sorted(lengths)])
    for mode in MODES[engine]:
        if quick and engine == "keras-torch" and mode == "compiled":
            continue
        series = [{"size": length, "mode": mode} for length in (10**4, 10**6, 10**7)]
        yield _unit(engine, "chain", series)
    if large:
        series = [
            {"bytes": 4**power, "to": to, "pinned": pinned}
            for to in ("device", "host")
            for pinned in (False, True)
            for power in ((5, 10, 13) if quick else range(5, 15))
        ]
        yield _unit(engine, "copy", series, grows=False)
    series = [{"wait": wait} for wait in (True, False)]
    yield _unit(engine, "dispatch", series, grows=False)


def models(engine: str, machine: Machine, quick: bool) -> Iterator[Unit | LeftOut]:
    """The training steps and forward passes of an engine."""
    usual = usual_mode(engine, machine.on_accelerator)
    precisions = ["float32", *(["tf32"] if machine.has_tf32 else []), machine.mixed]
    sizes = ["small"] if quick or not machine.on_accelerator else ["small", "large"]
    for model in ["mlp"] if quick else BATCHES:
        for size in sizes:
            few, middle, many = BATCHES[model][size]
            modes = [usual] if quick else MODES[engine]
            ways = [(middle, "float32", mode) for mode in modes]
            # torch.compile takes long: it is measured in one precision.
            fast = [usual] if quick or engine.endswith("torch") else ["compiled", usual]
            for precision in precisions[1:]:
                ways += [(middle, precision, mode) for mode in dict.fromkeys(fast)]
            if not quick:
                best = precisions[-1] if machine.on_accelerator else "float32"
                ways += [(batch, best, usual) for batch in (few, many)]
            for batch, precision, mode in ways:
                params = {
                    "model": model,
                    "size": size,
                    "batch": batch,
                    "precision": precision,
                    "mode": mode,
                }
                pair = [{"experiment": e, "params": params} for e in ("train", "infer")]
                if machine.on_accelerator:  # a process each, for the peak of the memory
                    yield from (Unit(engine, (case,)) for case in pair)
                else:
                    yield Unit(engine, tuple(pair))


def plan(
    machine: Machine, engines: list[str], quick: bool = False, only: list[str] = ()
) -> tuple[list[Unit], list[LeftOut]]:
    """What to measure and what not.

    Args:
        machine: the device.
        engines: the engines that are here.
        quick: fewer sizes, one model, the usual mode only.
        only: names of experiments; all if it is empty.

    Returns:
        The units in the order of their measurement, and what is left out.
    """
    units: list[Unit] = []
    left_out: dict[LeftOut, None] = {}
    for engine in engines:
        parts = [models(engine, machine, quick)]
        if engine in KERAS:
            parts.insert(0, primitives(engine, machine, quick))
        for part in (part for parts_ in parts for part in parts_):
            if isinstance(part, LeftOut):
                if not only or part.experiment in only:
                    left_out[part] = None
            else:
                cases = [c for c in part.cases if not only or c["experiment"] in only]
                if cases:
                    units.append(dataclasses.replace(part, cases=tuple(cases)))
    return units, list(left_out)
