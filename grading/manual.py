"""The points that a person gives: a table to fill in, read again on the next run.

What was given is never lost or changed in silence. A mark that does not count is named,
and then the table stays as it is: the one that would take its place lies beside it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from pathlib import Path

from grading import table, text
from grading.masters import Assignment
from tools import files
from tools.errors import UserError

# The number of the answer stands last: Excel leaves out empty fields at a line's end.
COLUMNS = ["student", "question", "max_points", "points", "comment"]
COLUMNS += ["answer", "answer_id"]
NEEDED = ("student", "question", "points", "comment")
SHOWN = 16_000  # characters of an answer: a cell takes 32,767, and some count twice
QUOTED = "q"  # ends the number if the comment was made harmless in this table
BESIDE = re.compile(r"-new(-\d+)?")  # what a table beside another is called
Key = tuple[str, str]  # student and question
Answers = dict[str, dict[str, str]]  # by student, then by question


@dataclasses.dataclass(frozen=True)
class Mark:
    """What a person gave for an answer."""

    points: float | None  # None as long as nobody has graded it
    comment: str = ""

    def __str__(self) -> str:
        return "a comment" if self.points is None else f"{self.points:g} points"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table in which a person gave something."""

    line: int
    key: Key
    mark: Mark
    answer_id: str  # of the answer that was marked; empty if the table has none


@dataclasses.dataclass(frozen=True)
class Table:
    """What a person gave, and the filled columns that are none of this table's."""

    rows: list[Row]
    strange: list[str]


def answer_id(answer: str) -> str:
    """What tells an answer from another; no spreadsheet takes it for a number."""
    return "x" + hashlib.sha256(answer.encode()).hexdigest()[:10]


def read(path: Path, assignment: Assignment) -> Table:
    """What a person filled in.

    Args:
        path: the table; no file is no marks.
        assignment: gives the questions and their points.

    Raises:
        UserError: the table is broken; the message names the line.
    """
    if not path.exists() and not path.is_symlink():
        return Table([], [])
    found = table.read(path)
    missing = [name for name in NEEDED if name not in found.names]
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(sorted(missing))}. "
            "Fix: keep the first line as it was written."
        )
    most = _most(assignment)
    rows = [_row(path, row, most) for row in found.rows]
    strange = [
        name
        for name in found.names
        if name not in COLUMNS and any(row.fields[name].strip() for row in found.rows)
    ]
    return Table([row for row in rows if row.mark != Mark(None)], strange)


def _most(assignment: Assignment) -> dict[str, float]:
    """The questions that a person grades, with their points."""
    return {one.name: one.points for one in assignment.questions if one.manual}


def _row(path: Path, row: table.Row, most: dict[str, float]) -> Row:
    """A row as a person means it.

    Raises:
        UserError: its points are no number, or it has swallowed the next row.
    """
    fields = row.fields
    student = table.typed(fields["student"]).strip()
    question = fields["question"].strip()
    place = _place(path, row.line, (student, question))
    for name, field in fields.items():
        if name != "answer" and _holds_a_row(field, fields, most):
            raise UserError(
                f"{place}: the column {name} holds what looks like the next row. "
                "Fix: close the double quote before it."
            )
    answer, comment = fields.get("answer_id", "").strip(), fields["comment"]
    if answer.endswith(QUOTED):  # otherwise its apostrophes are the person's own
        comment = table.typed(comment)
    points = _points(fields["points"].strip(), most.get(question, math.inf), place)
    mark = Mark(points, comment if comment.strip() else "")
    return Row(row.line, (student, question), mark, answer.removesuffix(QUOTED))


def _points(given: str, most: float, place: str) -> float | None:
    """The points that a person gave; None if there are none yet.

    Raises:
        UserError: they are no number, or not from 0 to the most.
    """
    if not given:
        return None
    try:
        points = float(given.replace(",", "."))
    except ValueError:
        points = -1.0
    if not 0 <= points <= most or math.isinf(points):
        raise UserError(
            f"{place}: {given!r} is no number from 0 to {most:g}. "
            "Fix: correct the column points."
        )
    return points


def _holds_a_row(field: str, fields: dict[str, str], most: dict[str, float]) -> bool:
    """Whether a line of a field, but the first, looks like a row: a quote is open.

    Args:
        field: the text.
        fields: of the row, in order.
        most: the questions that a person grades.
    """
    names = list(fields)
    for line in field.splitlines()[1:]:
        parts = max((line.split(one) for one in table.DELIMITERS), key=len)
        if len(parts) <= max(names.index("question"), names.index("points")):
            continue
        points = parts[names.index("points")].strip('" ')
        if parts[names.index("question")].strip('" ') in most and (
            not points or points.replace(".", "").replace(",", "").isdecimal()
        ):
            return True
    return False


def _place(path: Path, line: int, key: Key) -> str:
    """Where a row stands, for a message."""
    return f"{path}, line {line}, {text.one_line(', '.join(key))}"


def match(
    path: Path,
    found: Table,
    assignment: Assignment,
    answers: Answers,
    counted: dict[Key, Mark],
) -> tuple[dict[Key, Mark], list[str]]:
    """Which marks count, and of each other one why it does not.

    Args:
        path: the table, for the messages.
        found: what it holds.
        assignment: names the questions.
        answers: as they are now.
        counted: the marks that counted on the last run.

    Returns:
        The marks that count, and a line for each that does not.
    """
    lines = [
        f"{path}, line 1: the column {name} is none of this table's, and would be lost"
        for name in found.strange
    ]
    most = _most(assignment)
    given: dict[Key, list[Row]] = {}
    for row in found.rows:
        reason = _why_not(row, most, answers)
        if reason:
            lines.append(f"{_place(path, row.line, row.key)}: {reason}")
        else:
            given.setdefault(row.key, []).append(row)
    marks = {}
    for key, rows in given.items():
        if len({row.mark for row in rows}) == 1:
            marks[key] = rows[0].mark
            continue
        others = " and ".join(f"line {row.line}: {row.mark}" for row in rows)
        lines.append(
            f"{_place(path, rows[0].line, key)}: rows that differ ({others}), so none "
            "counts"
        )
    told = {row.key for row in found.rows if row.mark.points is not None}
    for key, mark in counted.items():
        if key not in told:
            lines.append(
                f"{path}, {key[0]}, {key[1]}: {mark} counted on the last run, and are "
                "no longer in the table"
            )
    return marks, lines


def _why_not(row: Row, most: dict[str, float], answers: Answers) -> str:
    """Why a mark does not count; an empty text if it does."""
    student, question = row.key
    if student not in answers:
        return f"{row.mark}, and there is no such student"
    if question not in most:
        known = ", ".join(most) or "none"
        return f"{row.mark}, and no such question is graded by hand ({known})"
    now = answer_id(answers[student].get(question, ""))
    if row.answer_id and row.answer_id != now:
        return f"the answer has changed since it got {row.mark}"
    return ""


def update(
    path: Path,
    assignment: Assignment,
    answers: Answers,
    marks: dict[Key, Mark],
    counted: dict[Key, Mark],
    keep: bool,
) -> list[str]:
    """Write the table anew: answers as they are now, and the marks that count.

    Args:
        path: the table.
        assignment: gives the questions and their points.
        answers: as they are now.
        marks: those that count.
        counted: those that counted on the last run.
        keep: leave the table as it is, because marks in it do not count, and write the
            new one beside it.

    Returns:
        Lines for the terminal: what was written beside it, and what to do with it.
    """
    lines = []
    for old in sorted(path.parent.glob(f"{path.stem}-new*{path.suffix}")):
        if not BESIDE.fullmatch(old.stem.removeprefix(path.stem)):
            continue
        if _has_more(old, assignment, marks, counted):
            lines.append(
                f"{old}: holds marks that do not count, because only those in "
                f"{path.name} do. Fix: copy them there, then remove this table."
            )
        else:
            old.unlink()
    data = _dumps(assignment, answers, marks)
    if not keep:
        files.write_text(path, data)
        return lines
    beside = _beside(path)
    files.write_text(beside, data)
    lines.append(
        f"{path}: left as it is, because of the lines above; {beside.name} is the "
        "table with the marks that count. Fix: mend what is listed, or put "
        f"{beside.name} in the place of {path.name} and mark there what is missing; "
        "then run the same command again."
    )
    return lines


def _has_more(
    path: Path,
    assignment: Assignment,
    marks: dict[Key, Mark],
    counted: dict[Key, Mark],
) -> bool:
    """Whether a person has written anything into a table beside the other."""
    try:
        found = read(path, assignment)
    except UserError:
        return True
    return bool(found.strange) or any(
        row.mark not in (marks.get(row.key), counted.get(row.key)) for row in found.rows
    )


def _beside(path: Path) -> Path:
    """A free name for a table beside another."""
    for number in itertools.count(1):
        ending = "-new" if number == 1 else f"-new-{number}"
        free = path.with_name(f"{path.stem}{ending}{path.suffix}")
        if not free.exists() and not free.is_symlink():
            return free
    raise AssertionError


def _dumps(assignment: Assignment, answers: Answers, marks: dict[Key, Mark]) -> str:
    """The table: a row for each student and question."""
    rows: list[list[object]] = [list(COLUMNS)]
    for student, answered in answers.items():
        for question, points in _most(assignment).items():
            mark = marks.get((student, question), Mark(None))
            answer = answered.get(question, "")
            shown = answer[:SHOWN]
            if shown != answer:
                shown += "\n(cut here: see the notebook)"
            given = "" if mark.points is None else f"{mark.points:.15g}"
            row = [student, question, f"{points:g}", given, mark.comment, shown]
            quoted = table.harmless(mark.comment) != mark.comment
            rows.append([*row, answer_id(answer) + QUOTED * quoted])
    return table.dumps(rows)
