"""The totals of a course: a column for each assignment, their sum and its share."""

from __future__ import annotations

import argparse
import sys

from grading import text
from grading.course import roster, scores
from grading.course.roster import Person
from grading.course.scores import Scores
from grading.reports import table
from tools.model import files
from tools.model.errors import UserError

FILE = "totals.csv"


def totals(people: list[Person], found: list[Scores]) -> str:
    """A row for each person: each assignment, their sum, and what all are worth.

    Args:
        people: all that are in the course.
        found: the scores of each assignment; who has none gets nothing there.
    """
    names = [one.name for one in found]
    most = sum(one.most for one in found)
    rows: list[list[object]] = [[*roster.COLUMNS, *names, "sum", "max_sum", "share"]]
    for person in people:
        points = [one.points.get(person, "") for one in found]
        reached = sum(float(one or 0) for one in points)
        row = [person.number, person.name, person.mail, *points]
        total = f"{round(reached, 2):g}"
        rows.append([*row, total, f"{most:g}", f"{reached / most:.4f}"])
    return table.dumps(rows)


def add_totals(commands) -> None:
    """The command `totals`."""
    parser = commands.add_parser(
        "totals",
        help="write the totals of a course",
        description="Write the totals of a course: each assignment, sum and share.",
    )
    parser.add_argument(
        "results", type=files.home, nargs="+", help="such as grades/1-x grades/2-y"
    )
    scores.add_roster(parser)
    parser.add_argument(
        "--out", type=files.home, help=f"where to (default: {FILE} beside the folders)"
    )
    parser.set_defaults(run=write)


def write(options: argparse.Namespace) -> int:
    """Write the totals of a course."""
    people = roster.read(options.roster)
    found = [scores.read(folder, people) for folder in options.results]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{twice}: named twice. Fix: name each folder once.")
    path = options.out or options.results[0].resolve().parent / FILE
    if path.resolve() == options.roster.resolve() or path.name == scores.FILE:
        raise UserError(f"{path}: is read, too. Fix: name another --out.")
    files.write_text(path, totals(people, found))
    print(f"{len(people)} people, {len(found)} assignments: {path}")
    for one in found:
        for line in one.lines:
            print(text.one_line(line), file=sys.stderr)
    return 0
