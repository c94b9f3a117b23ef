"""Read, check and compare files of results."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

from benchmarks.plan import key
from benchmarks.stopwatch import quartiles
from tools.model.errors import UserError

FOLDER = Path(__file__).with_name("results")
SCHEMA = Path(__file__).with_name("schema.json")
NO_DEVICE = "compiled-plan.json"  # lies in the same folder: see benchmarks.compiled


def all_samples(result: dict) -> list[float]:
    """The samples of all rounds of a result, in seconds."""
    return list(itertools.chain.from_iterable(result["samples_s"]))


def violations(schema: Path, found: dict) -> list[tuple[str, str]]:
    """Where the content of a file breaks its schema, and how, in order."""
    import jsonschema  # nbformat brings it; a machine that only measures may lack it

    rules = json.loads(schema.read_text(encoding="utf-8"))
    errors = jsonschema.Draft202012Validator(rules).iter_errors(found)
    return [
        ("/".join(map(str, e.absolute_path)) or "the top", e.message[:200])
        for e in sorted(errors, key=lambda e: list(e.absolute_path))
    ]


def parse(path: Path, again: str) -> dict:
    """Read a file of JSON.

    Raises:
        UserError: it can't be read; `again` says how to make it anew.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: can't be read: {error}. Fix: {again}") from None


def check(results: dict, name: str) -> None:
    """Check results against the schema, and their sums.

    Args:
        results: what stands in the file.
        name: of the file, for the message.

    Raises:
        UserError: something is missing or wrong; names the file and the place in it.
    """
    for place, problem in violations(SCHEMA, results):
        raise UserError(
            f"{name}: at {place}: {problem}. Fix: measure again with `make measure`, "
            "and edit nothing in the file"
        )
    seen = set()
    for number, result in enumerate(results["results"]):
        case = key(result["engine"], result)
        if case in seen:
            raise UserError(f"{name}: at results/{number}: {case} stands there twice")
        seen.add(case)
        if result["status"] == "ok":
            stated = result["low_s"], result["median_s"], result["high_s"]
            if any(
                abs(a - b) > 1e-3 * b
                for a, b in zip(stated, quartiles(all_samples(result)), strict=True)
            ):
                raise UserError(
                    f"{name}: at results/{number}: the median or a quartile is not "
                    "that of the samples. Fix: measure again with `make measure`"
                )


def read(path: Path) -> dict:
    """Read a file of results, whatever its name, and check it.

    Raises:
        UserError: it can't be read, is invalid or has no provenance.
    """
    results = parse(path, "measure again with `make measure`")
    check(results, path.name)
    return results


def load(path: Path) -> dict:
    """Read the file of results of a device and check it.

    Raises:
        UserError: as for `read`, or its name is not that of its device.
    """
    results = read(path)
    if path.stem != results["device"]["id"]:
        raise UserError(
            f"{path.name}: these are the results of {results['device']['name']}. "
            f"Fix: rename the file to {results['device']['id']}.json"
        )
    return results


def load_all(folder: Path = FOLDER) -> list[dict]:
    """All results of a folder: CPUs first, then by name."""
    found = [
        load(path) for path in sorted(folder.glob("*.json")) if path.name != NO_DEVICE
    ]
    return sorted(
        found, key=lambda r: (r["device"]["kind"] != "cpu", r["device"]["id"])
    )


@dataclasses.dataclass(frozen=True)
class Pair:
    """One case in two files.

    Attributes:
        name: of the case.
        ratio: the second median over the first.
        agree: whether the ranges of the samples, lowest to highest, overlap.
    """

    name: str
    ratio: float
    agree: bool


def compare(one: dict, other: dict) -> list[Pair]:
    """Compare what two runs measured of the same cases."""
    found = {key(r["engine"], r): r for r in one["results"] if r["status"] == "ok"}
    pairs = []
    for result in other["results"]:
        name = key(result["engine"], result)
        if result["status"] != "ok" or name not in found:
            continue
        first, second = all_samples(found[name]), all_samples(result)
        overlap = min(first) <= max(second) and min(second) <= max(first)
        pairs.append(Pair(name, result["median_s"] / found[name]["median_s"], overlap))
    return pairs
