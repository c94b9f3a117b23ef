"""The scores of an assignment as learning platforms import them."""

from __future__ import annotations

import argparse
import collections
import csv
import io
import re
import sys
from pathlib import Path

from grading import text
from grading.course import roster, scores
from grading.course.roster import Person
from grading.course.scores import Scores
from grading.reports import table
from tools.model import files
from tools.model.errors import UserError

# Moodle maps the columns of any table: "Email address" to `useremail` or "ID number" to
# `useridnumber`, and the points to a grade item. Letters of a mail count as they are.
# https://docs.moodle.org/en/Grade_import
MOODLE = ("ID number", "Email address", "Full name")
# Canvas wants its own columns back, in this order: Student, ID, perhaps SIS User ID,
# SIS Login ID, Integration ID and Root Account, then Section; then assignments, each
# `Title (its number)`, and a row with the Points Possible. It takes others for new.
# https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807
# and lib/gradebook_importer.rb in https://github.com/instructure/canvas-lms
STUDENT, ID, SECTION = "Student", "ID", "Section"
LOGINS = ("SIS User ID", "SIS Login ID")
POINTS_POSSIBLE = "Points Possible"
NUMBERED = re.compile(r"(?P<title>.*?) \([0-9]+\)$")


def moodle(found: Scores) -> str:
    """A table for Moodle's grade import: a row for each person."""
    rows: list[list[object]] = [[*MOODLE, found.name]]
    for one, points in found.points.items():
        rows.append([one.number, one.mail, one.name, points])
    return table.dumps(rows).removeprefix("\ufeff")


def canvas(found: Scores, path: Path, column: str) -> tuple[str, list[str]]:
    """A table for Canvas' gradebook import: its own rows, with one assignment.

    Args:
        found: the scores.
        path: the gradebook as Canvas exported it.
        column: the assignment's title there.

    Returns:
        The table, and a line for each who is left out.

    Raises:
        UserError: this is no gradebook, or the assignment is not in it.
    """
    book = table.read(path)
    if book.names[:2] != [STUDENT, ID] or SECTION not in book.names:
        raise UserError(
            f"{path}, line 1: not a gradebook of Canvas, which has the columns "
            f"{STUDENT}, {ID}, ..., {SECTION}. Fix: export it once more, and change "
            "nothing."
        )
    kept = book.names[: book.names.index(SECTION) + 1]
    title = _column(path, book.names[len(kept) :], column)
    known = _known(list(found.points))
    rows, lines = [[*kept, title]], []
    done: set[Person] = set()
    for row in book.rows:
        start = [row.fields[name] for name in kept]
        if POINTS_POSSIBLE in start[0]:
            rows.append([*start, row.fields[title]])
            lines += _other_points(path, row.fields[title], found)
        elif start[0].strip():
            person = _person(row.fields, known)
            if person is None or person in done:
                lines.append(
                    f"{path}, line {row.line}, {start[0]}: is nobody of the roster, or "
                    "not one alone, so left out"
                )
                continue
            done.add(person)
            rows.append([*start, found.points[person]])
    lines += [f"{path}: {one} is not in it" for one in found.points if one not in done]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)  # to the letter: Canvas' own
    return out.getvalue(), lines


def _column(path: Path, names: list[str], wanted: str) -> str:
    """The column of an assignment.

    Raises:
        UserError: there is none, or several.
    """
    titles = {
        name: match["title"] for name in names if (match := NUMBERED.fullmatch(name))
    }
    same = [
        name
        for name, title in titles.items()
        if wanted == name or roster.flat(title) == roster.flat(wanted)
    ]
    if len(same) != 1:
        known = "; ".join(titles.values()) or "none"
        raise UserError(
            f"{path}: no assignment {wanted!r}, or several, among: {known}. "
            "Fix: name one with --column."
        )
    return same[0]


def _other_points(path: Path, there: str, found: Scores) -> list[str]:
    """Whether an assignment is worth something else in Canvas."""
    try:
        same = float(there) == found.most
    except ValueError:
        return []
    said = f"{path}: worth {there} points there and {found.most:g} here; nothing scaled"
    return [] if same else [said]


Known = dict[str, set[Person]]


def _known(people: list[Person]) -> tuple[Known, Known]:
    """The people by their logins, and by their names in either order."""
    logins: Known = collections.defaultdict(set)
    names: Known = collections.defaultdict(set)
    for one in people:
        for login in (one.number, one.mail, one.mail.partition("@")[0]):
            logins[login.casefold()].add(one)
        for name in roster.turned(one.name):
            names[name].add(one)
    return logins, names


def _person(fields: dict[str, str], known: tuple[Known, Known]) -> Person | None:
    """Whose a row of the gradebook is: by a login, or else by the name."""
    logins, names = known
    found: set[Person] = set()
    for column in LOGINS:
        login = fields.get(column, "").strip().casefold()
        if login:
            found |= logins.get(login, set())
    found = found or names.get(roster.flat(fields[STUDENT]), set())
    return next(iter(found)) if len(found) == 1 else None


def add_export(commands) -> None:
    """The command `export`."""
    parser = commands.add_parser(
        "export",
        help="write the scores as Moodle or Canvas import them",
        description="Write the scores of an assignment as a platform imports them.",
    )
    parser.add_argument(
        "results", type=files.home, help="such as grades/1-my-assignment"
    )
    parser.add_argument("--to", required=True, choices=("moodle", "canvas"))
    scores.add_roster(parser)
    parser.add_argument(
        "--gradebook", type=files.home, help="as Canvas exported it, for --to canvas"
    )
    parser.add_argument(
        "--column",
        help="the assignment's title in Canvas (default: the name of the results)",
    )
    parser.add_argument(
        "--out",
        type=files.home,
        help="where to (default: moodle.csv or canvas.csv beside grades.csv)",
    )
    parser.set_defaults(run=export)


def export(options: argparse.Namespace) -> int:
    """Write the scores as a platform imports them."""
    if (options.to == "canvas") != (options.gradebook is not None):
        raise UserError(
            "--gradebook: Canvas wants its own columns back, and Moodle has none. "
            "Fix: export the gradebook from Canvas, and name it with --gradebook; "
            "leave it out for Moodle."
        )
    found = scores.read(options.results, roster.read(options.roster))
    lines = list(found.lines)
    if options.to == "moodle":
        written = moodle(found)
    else:
        if not options.gradebook.is_file():
            raise UserError(f"{options.gradebook}: no such file. Fix: see --gradebook.")
        name = options.column or found.name
        written, more = canvas(found, options.gradebook, name)
        lines += more
    path = options.out or options.results / f"{options.to}.csv"
    if path.resolve() in {one.resolve() for one in _inputs(options)}:
        raise UserError(f"{path}: is read, too. Fix: name another --out.")
    files.write_text(path, written)
    print(f"{len(found.points)} scores: {path}")
    for line in lines:
        print(text.one_line(line), file=sys.stderr)
    return 0


def _inputs(options: argparse.Namespace) -> list[Path]:
    """The tables that are read, and must not be written."""
    given = [options.roster, options.results / scores.FILE, options.gradebook]
    return [path for path in given if path is not None]
