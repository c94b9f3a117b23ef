"""Files of results of devices that do not exist, for tests: every time is computed."""

from __future__ import annotations

import json

from benchmarks import asking, compiled, flops, plan, run, sizes
from benchmarks.engines import NAMES

OPTIONS = run.Options(
    1, False, (), tuple(NAMES), False, {"repeats": 3, "at_least": 0.1}
)


def seconds(case: dict, rate: float, overhead: float) -> tuple[float, int | None]:
    """Time and operations of a case, on a device of a rate and a cost per call."""
    params = case["params"]
    if case["experiment"] in ("matmul", "round-trip"):
        slow = 50 if params.get("place") == "cpu" else 1
        extra = 0 if slow == 50 else overhead
        extra += 1e-9 * params["size"] ** 2 if case["experiment"] == "round-trip" else 0
        count = flops.matmul(*[params["size"]] * 3)
        return slow * count / rate + extra, count
    if "model" in params:
        shape = sizes.SIZES[params["model"]][params["size"]]
        function = (
            flops.training_step if case["experiment"] == "train" else flops.forward
        )
        count = function(shape, params["batch"])
        factor = {"eager": 4, "graph": 2, "compiled": 1}[params["mode"]]
        factor *= 0.5 if params["precision"].startswith("mixed") else 1
        return factor * (2 * count / rate + overhead), count
    if case["experiment"] in ("addition", "chain"):
        return overhead + 12 * params["size"] / (rate / 10), params["size"]
    return overhead + params.get("bytes", 0) / 1e10, None


def results_of(
    name: str, target: plan.Machine, rate: float, overhead: float = 1e-5
) -> dict:
    """All results of a device.

    Args:
        name: of the device.
        target: decides on the plan.
        rate: FLOP per second.
        overhead: seconds that a call costs.
    """
    units, left_out = plan.plan(target, list(NAMES))
    records = []
    for unit in units:
        for case in unit.cases:
            time, count = seconds(case, rate, overhead)
            moved = case["params"].get("bytes") or 12 * case["params"].get("size", 1)
            result = {
                "status": "ok",
                "samples_s": [0.99 * time, time, 1.01 * time],
                "first_s": 10 * time,
                "calls": 1,
                "flop": count,
                "bytes": None if "model" in case["params"] else moved,
                "peak_memory_bytes": 2**30,
            }
            records.append({"engine": unit.engine, "round": 0, **case, **result})
    found = {"x": {"versions": {"keras": "3.15.1"}, "device": {"name": name}}}
    head = run.header(OPTIONS, found, target, "0" * 40, "python -m benchmarks")
    head["device"] |= {"name": name, "id": run.machine.slug(name)}
    if target.on_accelerator:
        head["device"] |= {"driver": "1.2.3", "memory_bytes": 2**34}
    return {
        **head,
        "left_out": [{"experiment": x.experiment, "why": x.why} for x in left_out],
        "results": [run.merge([record]) for record in records],
    }


CARDS = {
    "Old card": {
        "capability": [7, 5],
        "memory": 2**34,
        "bandwidth": 3e11,
        "rates": {"float32": 8e12, "float16": 6.5e13},
        "sources": "a data sheet",
    },
    "New card": {
        "capability": [9, 0],
        "memory": 2**36,
        "bandwidth": 3e12,
        "rates": {"float32": 6e13, "tf32": 5e14, "float16": 1e15, "bfloat16": 1e15},
        "sources": "another data sheet",
    },
}


def answer(case: dict, total: int = 2**30) -> dict:
    """What a compiler might say of a case: `total` bytes, of which most is state."""
    new = case["card"] == "New card"
    return {
        "status": "planned",
        "memory": {
            "state": total - 3072,
            "inputs": 2048,
            "temporaries": 1000,
            "results": 24,
            "total": total,
        },
        "traffic": 2 * total,
        "launches": {"fusion": 7} if new else {"__cublas$lt$matmul": 3, "fusion": 4},
        "operations": 99,
        "instructions": ["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] * new,
    }


def plan_of(cards: dict[str, dict] = CARDS) -> dict:
    """The compiler's plan of all cases, for cards that do not exist."""
    versions = {"jax": "0.10.2", "keras": "3.15.1"}
    versions |= {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}
    head = asking.header(cards, versions, "0" * 40, "python -m benchmarks", False)
    plans = [
        compiled.complete(case, answer(case), cards) for case in compiled.cases(cards)
    ]
    return json.loads(json.dumps({**head, "plans": plans}))
