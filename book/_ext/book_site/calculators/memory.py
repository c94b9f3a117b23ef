"""What a training step holds, and what makes it fit: chapters 5 and 17."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from book_site.calculators.numbers import decimal, held
from book_site.calculators.result import OPTIMIZERS, REMEMBERED, Result, Row, Values

COUNTERS = 12.0  # bytes: an optimizer's count of steps, and its learning rate


def step_bytes(
    parameters: float, optimizer: str, mixed: bool, kept: float
) -> dict[str, float]:
    """The ledger of one training step, in bytes.

    Args:
        parameters: trainable weights.
        optimizer: a key of REMEMBERED.
        mixed: whether layers compute in 16 bits.
        kept: numbers that are kept for the backward pass.
    """
    return {
        "weights": 4 * parameters,
        "gradients": 4 * parameters,
        "optimizer": REMEMBERED[optimizer] * parameters + COUNTERS,
        "copies": 2 * parameters if mixed else 0.0,
        "activations": (2 if mixed else 4) * kept,
    }


def added(step: dict[str, float]) -> float:
    """The sum of a ledger; in this order, as newer Pythons' `sum` rounds otherwise."""
    return functools.reduce(operator.add, step.values())


def largest_divisor(number: float, most: float) -> float:
    """The largest divisor of a whole number that is not above `most`, or 0."""
    best = 0.0
    small = 1.0
    while small * small <= number:
        if number % small == 0:
            for divisor in (small, number / small):
                if best < divisor <= most:
                    best = divisor
        small += 1
    return best


def segments_kept(layers: float) -> float:
    """Outputs that are alive at most, of so many, with the best equal segments.

    That is the least of s + ceil(layers / s) - 1 over all numbers s of segments.
    """
    return math.ceil(2 * math.sqrt(layers)) - 1


def policy_of(card: dict[str, Any]) -> str:
    """Keras's name for mixed precision on a card."""
    return "mixed_bfloat16" if "bfloat16" in card["rates"] else "mixed_float16"


def memory(values: Values, figures: dict[str, Any]) -> Result:
    """What a training step holds, and the first remedy that makes it fit."""
    card = figures["cards"][values["card"]]
    room = card["memory"] * values["share"] / 100
    mixed = values["policy"] == "mixed"
    parameters, batch = values["parameters"], values["batch"]
    each, optimizer = values["activations"], values["optimizer"]
    step = step_bytes(parameters, optimizer, mixed, batch * each)
    total = added(step)
    fits = total <= room
    count = decimal(parameters, 15)
    width = 2 if mixed else 4
    rows = [
        Row("Weights", held(step["weights"]), f"{count} × 4 bytes"),
        Row("Gradients", held(step["gradients"]), f"{count} × 4 bytes"),
        Row(
            f"State of {OPTIMIZERS[optimizer]}",
            held(step["optimizer"]),
            f"{count} × {decimal(REMEMBERED[optimizer])} bytes, and 12 bytes",
        ),
    ]
    if mixed:
        rows.append(
            Row(
                "16-bit copies of the weights",
                held(step["copies"]),
                f"{count} × 2 bytes",
            )
        )
    rows += [
        Row(
            "Activations",
            held(step["activations"]),
            f"batch {decimal(batch, 15)} × {decimal(each, 15)} × {width} bytes",
        ),
        Row("Together", held(total), "the sum", "good" if fits else "bad"),
        Row(
            f"Room on the {values['card']}",
            held(room),
            f"{decimal(values['share'])} % of {held(card['memory'])}",
        ),
    ]
    groups = [("What the step holds", rows)]
    if fits:
        verdict = (
            f"It fits, by the ledger: {held(total)} of the {held(room)} that programs "
            f"get of the {values['card']}. A compiler's plan can be 1.8 times as "
            f"large: {held(1.8 * total)}."
        )
        return Result(verdict, groups)
    remedies = remedies_of(values, figures, room, total)
    first = next((row for row in remedies if row.mark == "good"), None)
    verdict = (
        f"It does not fit: the step holds {held(total)}, and programs get {held(room)} "
        f"of the {values['card']}. "
    )
    verdict += (
        f"The first remedy that is enough: {first.name[0].lower()}{first.name[1:]} "
        f"({first.value})."
        if first
        else "No remedy on one card is enough: spread the state over several."
    )
    return Result(verdict, [*groups, ("Remedies, the cheapest first", remedies)])


def remedies_of(
    values: Values, figures: dict[str, Any], room: float, total: float
) -> list[Row]:
    """The remedies of chapter 5 in its order, each with what the step then holds.

    Where mixed precision lowers the sum and is not enough, the others come on top.
    """
    parameters, batch = values["parameters"], values["batch"]
    each, optimizer = values["activations"], values["optimizer"]
    mixed, rows, with_it = values["policy"] == "mixed", [], ""
    if not mixed:
        name = policy_of(figures["cards"][values["card"]])
        step = step_bytes(parameters, optimizer, True, batch * each)
        less = added(step)
        how = "activations in 2 bytes, and a 16-bit copy of the weights"
        rows.append(remedy(f"Mixed precision, {name}", less, room, how))
        if room < less < total:
            mixed, with_it = True, " with mixed precision"
    sample = (2 if mixed else 4) * each
    floor = added(step_bytes(parameters, optimizer, mixed, 0.0))
    left = max(room - floor, 0.0)
    most = math.floor(left / sample)
    how = f"{held(floor)} whatever the batch, {held(sample)} for a sample"
    name = f"A batch of {decimal(most, 15)}" if most else "A smaller batch"
    rows.append(remedy(name + with_it, floor + max(most, 1) * sample, room, how))

    gathered = 4 * parameters
    micro = largest_divisor(batch, math.floor(max(left - gathered, 0.0) / sample))
    how = f"activations of one piece, and {held(gathered)} for the sum of "
    how += "gradients"
    pieces = f"{decimal(batch / micro, 15)} pieces" if micro else "pieces"
    name = f"The same batch in {pieces}{with_it}"
    rows.append(remedy(name, floor + gathered + max(micro, 1) * sample, room, how))

    layers = values["layers"]
    kept = segments_kept(layers)
    how = f"{decimal(kept, 15)} of {decimal(layers, 15)} layers' outputs alive"
    all_kept = floor + batch * sample * kept / layers
    rows.append(remedy(f"Rematerialisation{with_it}", all_kept, room, how))

    names = list(REMEMBERED)
    for other in names[names.index(optimizer) + 1 :]:
        bare = added(step_bytes(parameters, other, mixed, 0.0))
        fitting = math.floor(max(room - bare, 0.0) / sample)
        size = batch if most else max(min(fitting, batch), 1)
        how = f"{decimal(REMEMBERED[other])} bytes of state a weight, "
        how += f"a batch of {decimal(size, 15)}"
        name = f"Another optimizer{with_it}: {OPTIMIZERS[other]}"
        rows.append(remedy(name, bare + size * sample, room, how))

    cards = sorted(figures["cards"].items(), key=lambda item: item[1]["memory"])
    for name, card in cards:
        if total <= card["memory"] * values["share"] / 100:
            how = f"{decimal(values['share'])} % of its {held(card['memory'])}"
            rows.append(
                Row(f"A larger card: {name}", f"{held(total)}, fits", how, "good")
            )
            break
    else:
        rows.append(
            Row("A larger card", "does not fit", "none of the cards here", "bad")
        )
    return rows


def remedy(name: str, total: float, room: float, how: str) -> Row:
    """A remedy as a row: what the step holds with it, and whether that fits."""
    fits = total <= room
    value = f"{held(total)}, {'fits' if fits else 'does not fit'}"
    return Row(name, value, how, "good" if fits else "bad")
