"""The compiler's plan: what each card's own compiler makes of the models' steps.

No card is needed: XLA compiles for it here (chapter 17). It can't know times, so none
is stored but a bound: no step is faster than the roofline lets it be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from benchmarks import flops, results
from benchmarks.plan import Machine
from benchmarks.sizes import BATCHES, SIZES
from tools.model.errors import UserError

PATH = results.FOLDER / results.NO_DEVICE
SCHEMA = Path(__file__).with_name("compiled-schema.json")
LABEL = "the compiler's plan"
AGAIN = "make measure ARGS=--compiler"
# Whose rate bounds the products of a policy, the fastest first.
RATES = {
    "float32": ("tf32", "float32"),
    "mixed_float16": ("float16",),
    "mixed_bfloat16": ("bfloat16",),
}
CASE = ("model", "size", "precision", "batch", "card")


# --- what is asked -------------------------------------------------------------------


def suitable(card: dict) -> str:
    """The 16-bit policy that the suite takes on a card."""
    return Machine("gpu", tuple(card["capability"])).mixed


def precisions(card: dict) -> list[str]:
    """The policies that are asked of a card: a T4 shows what bfloat16 would be, too."""
    return list(dict.fromkeys(["float32", suitable(card), "mixed_bfloat16"]))


def cases(cards: dict[str, dict], quick: bool = False) -> Iterator[dict]:
    """What is asked of the compilers: the suite's models, sizes, batches, policies.

    Each has the middle batch of the measurements; the large models come in each policy,
    the small ones in the suitable one. The cases of one model and policy follow each
    other, so that it is built once.

    Args:
        cards: what is known of each card, by name.
        quick: the small models only.
    """
    for size in ("small",) if quick else ("large", "small"):
        for model, precision in itertools.product(BATCHES, RATES):
            for name, card in cards.items():
                asked = [suitable(card)] if size == "small" else precisions(card)
                if precision in asked:
                    yield {
                        "model": model,
                        "size": size,
                        "precision": precision,
                        "batch": BATCHES[model][size][1],
                        "card": name,
                    }


def key(case: dict) -> tuple:
    """What tells a case from the others."""
    return tuple(case[name] for name in CASE)


# --- the bound -----------------------------------------------------------------------


def bound(
    card: dict, precision: str, flop: int, traffic: int
) -> tuple[float | None, str]:
    """The least seconds that a step takes on a card, and what binds it.

    The roofline of Williams, Waterman and Patterson (doi:10.1145/1498765.1498785) with
    the makers' rates: the larger of the products' operations over the rate of the
    fastest units for the policy, and the bytes that must cross the memory bus over its
    bandwidth.

    Returns:
        The seconds and "arithmetic" or "memory"; None if no rate of the card is known
        for the policy's numbers.
    """
    rates = [card["rates"][x] for x in RATES[precision] if x in card["rates"]]
    if not rates:
        return None, "unknown"
    sides = {"arithmetic": flop / rates[0], "memory": traffic / card["bandwidth"]}
    binds = max(sides, key=sides.get)
    return float(f"{sides[binds]:.5g}"), binds


def complete(case: dict, answer: dict, cards: dict[str, dict]) -> dict:
    """A case with the compiler's answer, and what follows from it."""
    if answer["status"] != "planned":
        return {**case, **answer}
    card = cards[case["card"]]
    flop = flops.training_step(SIZES[case["model"]][case["size"]], case["batch"])
    least, binds = bound(card, case["precision"], flop, answer["traffic"])
    return {
        **case,
        **answer,
        "fits": answer["memory"]["total"] <= card["memory"],
        "flop": flop,
        "least_s": least,
        "binds": binds,
    }


# --- files ---------------------------------------------------------------------------


def check(plan: dict, name: str = PATH.name) -> None:
    """Check a plan against the schema, its sums and its bounds.

    Raises:
        UserError: something is missing or wrong; names the file and the place in it.
    """
    for place, problem in results.violations(SCHEMA, plan) or _wrong_sums(plan):
        raise UserError(
            f"{name}: at {place}: {problem}. Fix: ask again with `{AGAIN}`, and edit "
            "nothing in the file"
        )


def _wrong_sums(plan: dict) -> Iterator[tuple[str, str]]:
    """What the schema can't see: cases twice, sums and bounds that do not follow."""
    seen = set()
    for number, found in enumerate(plan["plans"]):
        place = f"plans/{number}"
        if key(found) in seen:
            yield place, f"{key(found)} stands there twice"
        seen.add(key(found))
        if found["card"] not in plan["cards"]:
            yield place, f"no card {found['card']!r} among cards"
        elif found["status"] == "planned":
            *parts, total = found["memory"].values()
            if sum(parts) != total:
                yield place, "the parts of the memory are not its total"
            case = {name: found[name] for name in CASE}
            if complete(case, found, plan["cards"]) != found:
                yield place, "fits, flop or the bound do not follow from the rest"


def load(path: Path = PATH) -> dict:
    """Read a plan and check it.

    Raises:
        UserError: it can't be read, is invalid or has no provenance.
    """
    plan = results.parse(path, f"ask again with `{AGAIN}`")
    check(plan, path.name)
    return plan
