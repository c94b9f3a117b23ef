"""The compiler's plan: what each card's own compiler makes of the models' steps.

No card is needed: XLA compiles for it here (chapter 17). It can't know times, so none
is stored but a bound: no step is faster than the roofline lets it be.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from tools.model.errors import UserError
from tools.plan.sizes import BATCHES, SIZES, training_step

FOLDER = Path(__file__).with_name("results")
PLAN = "compiled-plan.json"  # the one file there that is of no device
# Whose rate bounds the products of a policy, the fastest first.
RATES = {
    "float32": ("tf32", "float32"),
    "mixed_float16": ("float16",),
    "mixed_bfloat16": ("bfloat16",),
}
CASE = ("model", "size", "precision", "batch", "card")


# --- what is asked -------------------------------------------------------------------


def suitable(card: dict) -> str:
    """The 16-bit policy of a card: bfloat16 where it computes in it, from 8.0 on."""
    return "mixed_bfloat16" if card["capability"] >= [8, 0] else "mixed_float16"


def precisions(card: dict) -> list[str]:
    """The policies that are asked of a card: a T4 shows what bfloat16 would be, too."""
    return list(dict.fromkeys(["float32", suitable(card), "mixed_bfloat16"]))


def cases(cards: dict[str, dict]) -> Iterator[dict]:
    """What is asked of the compilers: models, sizes, policies, cards.

    The large models come in each policy, the small ones in the suitable one. The cases
    of one model and policy follow each other, so that it is built once.
    """
    for size in ("large", "small"):
        for model, precision in itertools.product(BATCHES, RATES):
            for name, card in cards.items():
                asked = [suitable(card)] if size == "small" else precisions(card)
                if precision in asked:
                    yield {
                        "model": model,
                        "size": size,
                        "precision": precision,
                        "batch": BATCHES[model][size],
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
    flop = training_step(SIZES[case["model"]][case["size"]], case["batch"])
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


def parse(path: Path, schema: str, again: str) -> dict:
    """Read a file of results, which `again` makes, and hold it against its schema.

    Raises:
        UserError: it can't be read or breaks the schema; names the file and the place.
    """
    import jsonschema  # a machine that only measures may lack it

    fix = f"Fix: make it again with `{again}`, and edit nothing in it"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: can't be read: {error}. {fix}") from None
    rules = json.loads(Path(__file__).with_name(schema).read_text(encoding="utf-8"))
    for error in jsonschema.Draft202012Validator(rules).iter_errors(content):
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise UserError(f"{path.name}: at {place}: {error.message[:200]}. {fix}")
    return content


def load_plan(folder: Path = FOLDER) -> dict:
    """Read the compiler's plan and check that its sums and bounds follow.

    Raises:
        UserError: it can't be read, is invalid or has no provenance.
    """
    again = "make measure ARGS=--compiler"
    plan = parse(folder / PLAN, "schema-compiled.json", again)
    for number, found in enumerate(plan["plans"]):
        if found["status"] != "planned":
            continue
        case = {name: found[name] for name in CASE}
        *pieces, total = found["memory"].values()
        if sum(pieces) != total or complete(case, found, plan["cards"]) != found:
            raise UserError(
                f"{PLAN}: at plans/{number}: sums or bounds do not follow from the "
                f"rest. Fix: ask again with `{again}`, and edit nothing in the file"
            )
    return plan


def load_devices(folder: Path = FOLDER) -> list[dict]:
    """What was measured on each device, CPUs first, then by name.

    Raises:
        UserError: a file can't be read, is invalid or has no provenance.
    """
    paths = sorted(path for path in folder.glob("*.json") if path.name != PLAN)
    found = [parse(path, "schema-measured.json", "make measure") for path in paths]
    return sorted(
        found, key=lambda x: (x["device"]["kind"] != "cpu", x["device"]["name"])
    )
