"""Files of results of devices that do not exist, for tests: every time is computed."""

from __future__ import annotations

from benchmarks import flops, plan, run, sizes
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
