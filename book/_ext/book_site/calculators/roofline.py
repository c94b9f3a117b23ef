"""Which limit binds, and from which batch on: chapters 1 and 17."""

from __future__ import annotations

import math
from typing import Any

from book_site.calculators.numbers import decimal, duration, moved, whole_up, work
from book_site.calculators.result import RATES, Result, Row, Values

ENOUGH = 1e15  # no batch is larger


def roofline(values: Values, figures: dict[str, Any]) -> Result:
    """Which limit binds, and from which batch on another one does."""
    card = figures["cards"][values["card"]]
    rate = card["rates"].get(RATES[values["numbers"]])
    if rate is None:
        return Result(problem=("numbers", f"The {values['card']} has no TF32."))
    each, fixed = values["bytes_sample"], values["bytes_fixed"]
    if not each + fixed:
        return Result(problem=("bytes_fixed", "Some bytes must move: both are 0."))
    each_flop, batch, speed = values["operations"], values["batch"], card["bandwidth"]
    start = values["kernels"] * values["pace"] * 1e-6
    flop, data = batch * each_flop, fixed + batch * each
    times = {"arithmetic": flop / rate, "memory": data / speed, "launches": start}
    binds = max(times, key=times.get)
    least = times[binds]
    words = {
        "arithmetic": "arithmetic binds (compute-bound)",
        "memory": "the memory's bandwidth binds (memory-bound)",
        "launches": "the start of the kernels binds (latency-bound)",
    }
    intensity, ridge = flop / data, rate / speed
    rows = [
        Row(
            "Arithmetic",
            duration(times["arithmetic"]),
            f"{work(flop)} ÷ {decimal(rate / 1e12, 6)} TFLOP/s",
        ),
        Row(
            "Memory",
            duration(times["memory"]),
            f"{moved(data)} ÷ {decimal(speed / 1e9, 6)} GB/s",
        ),
        Row(
            "Launches",
            duration(start),
            f"{decimal(values['kernels'], 15)} × {decimal(values['pace'])} µs",
        ),
        Row("Least time", duration(least), "the longest of the three"),
        Row(
            "Arithmetic intensity",
            f"{decimal(intensity)} FLOP per byte",
            f"{work(flop)} ÷ {moved(data)}",
        ),
        Row(
            "Ridge of the card",
            f"{decimal(ridge)} FLOP per byte",
            f"{decimal(rate / 1e12, 6)} TFLOP/s ÷ {decimal(speed / 1e9, 6)} GB/s",
        ),
    ]
    verdict = (
        f"With a batch of {decimal(batch, 15)} {words[binds]}: at least "
        f"{duration(least)} on the {values['card']}. "
    )
    gain = each_flop / rate - each / speed
    turn = whole_up(fixed / speed / gain) if gain > 0 else math.inf
    turn = max(turn, 1)
    if turn <= ENOUGH:
        reach = f"a batch of {decimal(turn, 15)}"
        verdict += f"The arithmetic takes longer than the memory from {reach} on."
    else:
        reach = "no batch"
        verdict += "No batch makes the arithmetic take longer than the memory."
    how = f"{duration(fixed / speed)} for what moves once ÷ "
    how += f"({duration(each_flop / rate)} − {duration(each / speed)}) for each sample"
    even = [Row("The batch that reaches the ridge", reach, how)]
    even += own_machine(
        values, start + fixed / speed, max(each_flop / rate, each / speed)
    )
    own = (values["own_first"] + values["own_each"] * batch) * 1e-6
    even.append(
        Row(
            "What the card can gain over your machine",
            f"{decimal(own / least)} times, at most",
            f"{duration(own)} there ÷ the least time here",
        )
    )
    return Result(verdict, [("The limits", rows), ("Break-even", even)])


def own_machine(values: Values, latency: float, cost: float) -> list[Row]:
    """From which batch on the card is the faster one: chapter 1's break-even size.

    Args:
        values: the fields' values.
        latency: seconds that the card needs before the first sample.
        cost: seconds that it needs for each.
    """
    first, each = values["own_first"] * 1e-6, values["own_each"] * 1e-6
    later, saved = latency - first, each - cost
    how = f"({duration(latency)} − {duration(first)} before the first sample) ÷ "
    how += f"({duration(each)} − {duration(cost)} for each)"
    size = whole_up(later / saved) if saved else math.inf
    if later <= 0 <= saved:
        said = "from the first sample on"
    elif later > 0 and saved > 0 and size <= ENOUGH:
        said = f"from a batch of {decimal(size, 15)} on"
    elif later < 0 and saved < 0 and 1 < size <= ENOUGH:
        said = f"below a batch of {decimal(size, 15)} only"
    else:
        said = "at no batch"
    return [Row("The card is faster than your machine", said, how)]
