"""When each person handed in, as a platform's table says; its zip does not say it.

Moodle and Canvas write into the zip of all submissions when it was made, for each file.
https://github.com/instructure/canvas-lms/issues/2219
and files/classes/local/archive_writer/zip_writer.php in https://github.com/moodle/moodle
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from pathlib import Path

from grading.course import decisions
from grading.course.roster import Person
from grading.reports import table
from tools.model.errors import UserError

# What says who it is and when: our own name of a column, and that of the table which
# Moodle calls the grading worksheet.
WHO = {
    "number": ("number", "id number"),
    "mail": ("mail", "email address"),
    "name": ("name", "full name"),
}
WHEN = ("handed in", "last modified (submission)")
NONE = ("", "-")  # who handed in nothing
# As Moodle writes times for English, and for American English.
MOODLE = ("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p")


@dataclasses.dataclass(frozen=True)
class Times:
    """When people handed in."""

    path: Path
    by_person: dict[Person, datetime.datetime]
    lines: list[str]  # for the terminal: whom the table does not tell


def read(path: Path, people: list[Person] | None) -> Times:
    """When each person handed in.

    Args:
        path: a table with the column `handed in` and one or more of number, name and
            mail; or a grading worksheet of Moodle, in English.
        people: all that are in the course.

    Raises:
        UserError: the table is broken, or there is no roster.
    """
    if people is None:
        raise UserError("--times needs a --roster. Fix: name it, or leave both out.")
    if not path.exists():
        raise UserError(f"{path}: no such file. Fix: see --times.")
    found = table.read(path)
    names = {name.casefold(): name for name in found.names}
    who = {
        kind: names[one] for kind, known in WHO.items() for one in known if one in names
    }
    when = next((names[one] for one in WHEN if one in names), None)
    if not who or when is None:
        raise UserError(
            f"{path}, line 1: no column {', '.join(WHO)}, or none that says when. Fix: "
            f"call them so, and the time `{WHEN[0]}`; or take Moodle's grading "
            "worksheet, downloaded in English."
        )
    times: dict[Person, datetime.datetime] = {}
    lines = []
    for row in found.rows:
        given = table.typed(row.fields[when]).strip()
        if given in NONE:
            continue
        place = f"{path}, line {row.line}"
        try:
            moment = _moment(given)
        except ValueError as error:
            raise UserError(f"{place}: {error}. Fix: write it like that.") from None
        fields = {one: table.typed(row.fields[name]) for one, name in who.items()}
        person = _person(fields, people)
        if person is None:
            lines.append(f"{place}: is nobody of the roster, or not one alone")
        elif person in times:
            raise UserError(f"{place}: {person} stands there twice. Fix: remove one.")
        else:
            times[person] = moment
    return Times(path, times, lines)


def _moment(given: str) -> datetime.datetime:
    """A moment as ISO 8601 or Moodle writes it, in local time.

    Raises:
        ValueError: it is none.
    """
    for form in MOODLE:
        with contextlib.suppress(ValueError):
            return datetime.datetime.strptime(given, form).astimezone()
    return decisions.moment(given)


def _person(fields: dict[str, str], people: list[Person]) -> Person | None:
    """Whom a row means: by the first of number, mail and name that tells one."""
    for kind, value in fields.items():
        value = " ".join(value.split()).casefold()
        same = [one for one in people if getattr(one, kind).casefold() == value]
        if value and len(same) == 1:
            return same[0]
    return None
