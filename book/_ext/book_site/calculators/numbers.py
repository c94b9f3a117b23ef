"""Read what a person types as a number, and write numbers for people.

`book/_static/calculators.js` does the same in the browser; a test compares them.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

NUMBER = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?P<whole>[0-9]{1,3}(?:(?P<gap>[ ,_'])[0-9]{3})(?:(?P=gap)[0-9]{3})*|[0-9]*)"
    r"(?P<fraction>\.[0-9]*)?(?:e(?P<exponent>[+-]?[0-9]{1,5}))? *(?P<suffix>[a-z%]*)",
    re.IGNORECASE,
)
POWERS = {"": 0, "k": 3, "thousand": 3, "m": 6, "million": 6, "g": 9, "b": 9}
POWERS |= {"billion": 9, "t": 12, "trillion": 12}
# By what is counted: the power of ten of each suffix, and those that are powers of two.
SUFFIXES = {
    "number": POWERS,
    "percent": {"": 0, "%": 0},
    "bytes": {"": 0, "byte": 0, "bytes": 0, "kb": 3, "mb": 6, "gb": 9, "tb": 12},
}
BINARY = {"kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}
EXAMPLES = {
    "number": "7000000000, 7,000,000,000, 7e9 or 7B",
    "percent": "40 or 0.5",
    "bytes": "28200000000, 28.2e9 or 28.2 GB",
}


def read(
    text: str, kind: str, low: float, high: float, whole: bool = False
) -> tuple[float, str]:
    """Read a number, such as `7e9`, `350M`, `1,000,000` or, of bytes, `16 GiB`.

    Args:
        text: what was typed.
        kind: what is counted: "number", "percent" or "bytes".
        low: the least value that is taken.
        high: the largest.
        whole: whether only whole numbers are taken.

    Returns:
        The value, and what is wrong with it in words: nothing if it may be used.
    """
    plain = re.sub("[\u00a0\u2009\u202f]", " ", text).replace("’", "'").strip()
    if not plain:
        return 0.0, "Write a number here."
    found = NUMBER.fullmatch(plain)
    digits = re.sub("[^0-9]", "", found["whole"]) if found else ""
    fraction = (found["fraction"] or "").lstrip(".") if found else ""
    suffix = found["suffix"].lower() if found else ""
    binary = kind == "bytes" and suffix in BINARY
    if not (digits or fraction) or not (binary or suffix in SUFFIXES[kind]):
        return 0.0, f"This is no number. Write it like {EXAMPLES[kind]}."
    power = int(found["exponent"] or 0) + (0 if binary else SUFFIXES[kind][suffix])
    value = float(f"{found['sign']}{digits}.{fraction or 0}e{power}")
    value *= BINARY[suffix] if binary else 1.0
    if value < low:
        return value, f"Too small: at least {decimal(low, 15)}."
    if value > high:
        return value, f"Too large: at most {decimal(high, 15)}."
    if whole and value % 1:
        return value, "Write a whole number."
    return value, ""


def decimal(value: float, digits: int = 3) -> str:
    """A number, not below 0, with so many significant digits: 1,230, 0.0457, 1.2e39."""
    if not value:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(Decimal(value))
    power = rounded.adjusted()
    if -7 < power < 16:
        return without_zeros(format(rounded, ",f"))
    return f"{without_zeros(format(rounded.scaleb(-power), 'f'))}e{power}"


def whole_up(value: float) -> int:
    """The least whole number that is not below a value, but for rounding errors."""
    return math.ceil(value * (1 - 1e-12))


def without_zeros(text: str) -> str:
    """A number without the zeros that end its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_units(value: float, units: list[tuple[float, float, str]]) -> str:
    """A value in the last of the units, from small to large, that it reaches.

    Args:
        value: in the unit whose scale is 1.
        units: for each the value from which it is used, its scale and its name.
    """
    _, scale, name = units[0]
    for start, size, unit in units:
        if value >= start:
            scale, name = size, unit
    return f"{decimal(value / scale)} {name}"


GIB = [(1.0, 1.0, "bytes")]
GIB += [(2.0**10, 2.0**10, "KiB"), (2.0**20, 2.0**20, "MiB")]
GIB += [(2.0**30, 2.0**30, "GiB"), (2.0**40, 2.0**40, "TiB")]
GB = [(1.0, 1.0, "bytes"), (1e3, 1e3, "kB"), (1e6, 1e6, "MB"), (1e9, 1e9, "GB")]
GB += [(1e12, 1e12, "TB")]
FLOP = [(1.0, 1.0, "FLOP"), (1e6, 1e6, "MFLOP"), (1e9, 1e9, "GFLOP")]
FLOP += [(1e12, 1e12, "TFLOP"), (1e15, 1e15, "PFLOP")]
TIME = [(1e-9, 1e-9, "ns"), (1e-6, 1e-6, "µs"), (1e-3, 1e-3, "ms"), (1.0, 1.0, "s")]
TIME += [(120.0, 60.0, "min"), (7200.0, 3600.0, "h"), (172800.0, 86400.0, "days")]
TIME += [(63115200.0, 31557600.0, "years")]


def held(count: float) -> str:
    """Bytes of memory, in powers of two."""
    return in_units(count, GIB)


def moved(count: float) -> str:
    """Bytes that move, in powers of ten."""
    return in_units(count, GB)


def work(operations: float) -> str:
    """Floating-point operations."""
    return in_units(operations, FLOP)


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    return in_units(seconds, TIME) if seconds else "0 s"
