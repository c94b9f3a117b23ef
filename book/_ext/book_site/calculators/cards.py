"""What one of several cards holds and sends: chapters 13, 14 and 18."""

from __future__ import annotations

import math
from typing import Any

from book_site.calculators.numbers import decimal, duration, held, moved
from book_site.calculators.result import REMEMBERED, Result, Row, Values

# Bytes: the count of steps, the learning rate, the sum and the count of the loss.
STATE_BEYOND = 16.0


def state_bytes(parameters: float, optimizer: str, cards: float = 1.0) -> float:
    """Bytes of weights and optimizer's state on a card, cut in so many parts."""
    return (4 + REMEMBERED[optimizer]) * parameters / cards + STATE_BEYOND


def ring_bytes(cards: float, result: float) -> float:
    """Bytes that each card of a ring sends to all-reduce a result of so many bytes."""
    return 2 * (cards - 1) / cards * result


def cards(values: Values, figures: dict[str, Any]) -> Result:
    """What a card holds of the state and sends in a step, cut in three ways."""
    count, parameters = values["cards"], values["parameters"]
    card, link = figures["cards"][values["card"]], figures["links"][values["link"]]
    mixed = values["policy"] == "mixed"
    width = 2.0 if mixed else 4.0
    each = 4 + REMEMBERED[values["optimizer"]]
    state = state_bytes(parameters, values["optimizer"])
    part = state_bytes(parameters, values["optimizer"], count)
    sends = ring_bytes(count, width * parameters + 4)
    features = values["batch"] * values["features"] * width
    features_sent = values["reduces"] * ring_bytes(count, features)
    n, many = decimal(count, 15), decimal(parameters, 15)
    twice = f"2 × {decimal(count - 1, 15)}/{n}"
    whole = f"{many} × {decimal(each)} bytes, and 16 bytes"
    eighth = f"{many} × {decimal(each)} bytes ÷ {n}, and 16 bytes"

    def rows(holds: float, how: str, sends: float, sent: str) -> list[Row]:
        fits = holds <= card["memory"]
        size = f"{held(holds)} ({moved(holds)})"
        room = f"; the {values['card']} has {held(card['memory'])}"
        return [
            Row(
                "A card holds of the state",
                size if fits else f"{size}, does not fit",
                how + room,
                "good" if fits else "bad",
            ),
            Row("A card sends in a step", moved(sends), sent),
            Row(
                "The link needs at least",
                duration(sends / link),
                f"{moved(sends)} ÷ {decimal(link / 1e9, 6)} GB/s",
            ),
        ]

    one = f"{decimal(width)} bytes"
    reduced = f"{twice} × {many} gradients × {one}"
    scattered = f"{n} cards gather and scatter: {twice} × {many} × {one}"
    summed = f"{decimal(values['reduces'], 15)} all-reduces × {twice} × "
    summed += (
        f"{decimal(values['batch'], 15)} × {decimal(values['features'], 15)} × {one}"
    )
    gathered = Row(
        "And gathers, for a while",
        f"{held(width * parameters)} ({moved(width * parameters)})",
        f"all weights when the forward pass ends: {many} × {one}",
    )
    sharded = rows(part, eighth, sends, scattered)
    groups = [
        ("Data parallel", rows(state, whole, sends, reduced)),
        ("FSDP", [sharded[0], gathered, *sharded[1:]]),
        ("Tensor parallel", rows(part, eighth, features_sent, summed)),
    ]
    least = duration(sends / link)
    if state <= card["memory"]:
        verdict = (
            f"The state fits as {n} copies of {held(state)}. Data parallelism sends "
            f"{moved(sends)} a step, at least {least} on this link."
        )
    elif part <= card["memory"]:
        verdict = (
            f"The state, {held(state)}, fits on no {values['card']}; cut in {n} it is "
            f"{held(part)} a card. FSDP sends {moved(sends)} a step, at "
            f"least {least} on this link; tensor parallelism {moved(features_sent)}, "
            f"{duration(features_sent / link)}."
        )
    else:
        needed = math.ceil(each * parameters / (card["memory"] - STATE_BEYOND))
        verdict = (
            f"Even cut in {n} the state does not fit: {held(part)} a card. The state "
            f"alone needs {decimal(needed, 15)} cards of this kind."
        )
    return Result(verdict, groups)
