"""The scores of an assignment, as grades.csv holds them, by person."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from grading.course import roster
from grading.course.roster import Person
from grading.reports import table
from tools.model import files
from tools.model.errors import UserError

FILE = "grades.csv"
NEEDED = ("student", *roster.COLUMNS, "score", "max_score", "complete", "counts")


@dataclasses.dataclass(frozen=True)
class Scores:
    """What each person of a course has in an assignment."""

    name: str  # the assignment's
    most: float
    points: dict[Person, str]  # as grades.csv writes them
    lines: list[str]  # for the terminal: what is left out, or open


def read(folder: Path, people: list[Person]) -> Scores:
    """The scores in a folder of results.

    Args:
        folder: as `grade` wrote it, with a roster.
        people: all that are in the course.

    Raises:
        UserError: there is no such table, or it was written without a roster.
    """
    path = folder / FILE
    if not path.is_file():
        raise UserError(f"{path}: no such file. Fix: name a folder of results.")
    found = table.read(path)
    missing = [name for name in NEEDED if name not in found.names]
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(missing)}. "
            "Fix: grade once more, with --roster."
        )
    points: dict[Person, str] = {}
    lines, still_open, most = [], 0, 0.0
    for row in found.rows:
        fields = {name: table.typed(one) for name, one in row.fields.items()}
        if fields["counts"] != "yes":
            continue
        person = _person(fields, people)
        try:
            float(fields["score"])
            most = float(fields["max_score"])
        except ValueError:
            raise UserError(
                f"{path}, line {row.line}: {fields['score']!r} or "
                f"{fields['max_score']!r} is no number. Fix: grade once more."
            ) from None
        if person is None or person in points:
            why = "is nobody of the roster" if person is None else "stands there twice"
            lines.append(f"{path}, line {row.line}, {fields['student']}: {why}")
            continue
        points[person] = fields["score"]
        still_open += fields["complete"] != "yes"
    if not most:
        raise UserError(f"{path}: holds no scores. Fix: grade once more.")
    lines += [
        f"{path}: {one} of the roster is not in it. Fix: grade once more"
        for one in people
        if one not in points
    ]
    if still_open:
        lines.append(f"{path}: {still_open} scores lack answers to grade by hand")
    return Scores(folder.resolve().name, most, points, lines)


def _person(fields: dict[str, str], people: list[Person]) -> Person | None:
    """Whose a row is, by the first of number, mail and name that is there."""
    for column in ("number", "mail", "name"):
        value = fields[column].strip().casefold()
        if value:
            same = [one for one in people if getattr(one, column).casefold() == value]
            if len(same) == 1:
                return same[0]
    return None


def add_roster(parser: argparse.ArgumentParser) -> None:
    """The option that names the people."""
    parser.add_argument(
        "--roster",
        type=files.home,
        required=True,
        help="a table with the columns number, name and mail",
    )
