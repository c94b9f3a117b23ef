"""What a teacher decides, each with its reason: a table that is read on each run."""

from __future__ import annotations

import dataclasses
import datetime
import math
from pathlib import Path

from grading import text
from grading.reports import table
from grading.reports.manual import NUMBER
from tools.model.errors import UserError

FILE = "decisions.csv"
COLUMNS = ("student", "kind", "value", "reason")
COUNTS, HANDED_IN, EXTRA_DAYS, SCORE = "counts", "handed in", "extra days", "score"


@dataclasses.dataclass(frozen=True)
class Decision:
    """A line of the table."""

    line: int
    student: str  # as grades.csv has it, or a number or a mail of the roster
    kind: str  # `score q3` for a question
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value} ({self.reason})"


def read(path: Path, needed: bool) -> list[Decision]:
    """What a teacher has decided.

    Args:
        path: the table.
        needed: it was named, so it must be there.

    Raises:
        UserError: the table is broken.
    """
    if not path.exists() and not path.is_symlink():
        if needed:
            raise UserError(f"{path}: no such file. Fix: see --decisions.")
        return []
    found = table.read(path)
    missing = [name for name in COLUMNS if name not in found.names]
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(missing)}. "
            f"Fix: the first line is {','.join(COLUMNS)}."
        )
    return [_decision(row) for row in found.rows]


def _decision(row: table.Row) -> Decision:
    """A line, with the spaces taken out that nobody sees."""
    values = [
        text.one_line(" ".join(table.typed(row.fields[name]).split()))
        for name in COLUMNS
    ]
    values[1] = values[1].casefold()
    return Decision(row.line, *values)


def points(given: str, most: float) -> float:
    """The points that a decision gives.

    Raises:
        ValueError: they are no number, or not from 0 to the most.
    """
    found = float(given.replace(",", ".")) if NUMBER.fullmatch(given) else math.inf
    if found > most:
        raise ValueError(f"{given!r} is no number from 0 to {most:g}")
    return found


def days(given: str) -> int:
    """The number of days that a decision forgives.

    Raises:
        ValueError: it is no whole number.
    """
    if not (given.isascii() and given.isdigit() and len(given) < 5):
        raise ValueError(f"{given!r} is no whole number of days")
    return int(given)


def moment(given: str) -> datetime.datetime:
    """A moment as ISO 8601 writes it; local time, if it names no zone.

    Raises:
        ValueError: it is none.
    """
    try:
        return datetime.datetime.fromisoformat(given).astimezone()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{given!r} is no time such as 2026-12-01T23:59") from None
