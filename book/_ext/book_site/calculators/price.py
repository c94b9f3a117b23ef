"""What a training costs, and how often to save: chapters 14 and 18."""

from __future__ import annotations

import math
from typing import Any

from book_site.calculators.numbers import decimal, duration, moved, work
from book_site.calculators.result import RATES, Result, Row, Values


def price(values: Values, figures: dict[str, Any]) -> Result:
    """Hours and price of a training, and how often to save."""
    card, link = figures["cards"][values["card"]], figures["links"][values["link"]]
    rate = card["rates"].get(RATES[values["numbers"]])
    if rate is None:
        return Result(problem=("numbers", f"The {values['card']} has no TF32."))
    count, reached = values["cards"], values["reached"] / 100
    compute = values["operations"] / count / (rate * reached)
    message = values["sent"] / link
    step = max(compute, message)
    steps = values["samples"] / values["batch"]
    seconds = step * steps
    cost = seconds / 3600 * count * values["price"]
    between = values["days"] * 86400 / values["machines"]
    interval = math.sqrt(2 * values["checkpoint"] * between)
    lost = values["checkpoint"] / interval + interval / (2 * between)
    n = decimal(count, 15)
    rows = [
        Row(
            "Arithmetic of a step",
            duration(compute),
            f"{work(values['operations'])} ÷ {n} ÷ "
            f"({decimal(values['reached'])} % of {decimal(rate / 1e12, 6)} TFLOP/s)",
        ),
        Row(
            "Messages of a step",
            duration(message),
            f"{moved(values['sent'])} ÷ {decimal(link / 1e9, 6)} GB/s",
        ),
        Row(
            "Time of the training",
            duration(seconds),
            f"{decimal(steps)} steps × {duration(step)}, the longer of the two",
        ),
        Row(
            "Price",
            decimal(cost),
            f"{decimal(seconds / 3600)} h × {n} cards × {decimal(values['price'], 6)}",
        ),
    ]
    saves = [
        Row(
            "Save every",
            duration(interval),
            f"√(2 × {duration(values['checkpoint'])} × {decimal(values['days'])} days "
            f"÷ {decimal(values['machines'], 15)} machines)",
        ),
        Row(
            "Lost to checkpoints and crashes",
            f"{decimal(100 * lost)} %" if lost < 1 else "all of the time",
            f"{duration(values['checkpoint'])} ÷ {duration(interval)}, and "
            f"{duration(interval)} ÷ 2 ÷ {duration(between)} between two crashes",
        ),
    ]
    binds = "arithmetic takes" if compute >= message else "messages take"
    verdict = (
        f"{duration(seconds)} on {n} cards, for {decimal(cost)}; of a step the {binds} "
        "longer. "
    )
    if lost < 1:
        longer, dearer = seconds / (1 - lost), cost / (1 - lost)
        verdict += (
            f"Save every {duration(interval)}: with checkpoints and crashes it is "
            f"{duration(longer)} and {decimal(dearer)}."
        )
        how = f"÷ (1 − {decimal(lost)})"
        saves.append(
            Row("Time with both", duration(longer), f"{duration(seconds)} {how}")
        )
        saves.append(Row("Price with both", decimal(dearer), f"{decimal(cost)} {how}"))
    else:
        verdict += "A machine fails before a checkpoint pays: it would never end."
    return Result(verdict, [("The training", rows), ("Checkpoints", saves)])
