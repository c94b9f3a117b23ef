"""The points that a person gives: a table to fill in, read again on the next run.

What was given is never lost or changed in silence. A mark that does not count is named,
and then the table stays as it is: the one that would take its place lies beside it.
"""

from __future__ import annotations

import dataclasses
import decimal
import hashlib
import itertools
import math
import re
from pathlib import Path

from grading import text
from grading.assignment import Assignment
from grading.reports import table
from tools.model import files
from tools.model.errors import UserError

# The number of the answer stands last: Excel leaves out empty fields at a line's end.
COLUMNS = ["student", "question", "max_points", "points", "comment"]
COLUMNS += ["answer", "answer_id"]
NEEDED = ("student", "question", "points", "comment")
SHOWN = 16_000  # characters of an answer: a cell takes 32,767, and some count twice
SHOWN_OF_COMMENT = 60  # characters of a comment that was deleted, in a message
CUT = "\n(cut here: see the notebook)"
NUMBER = re.compile(r"[0-9]+[.,]?[0-9]*|[.,][0-9]+")
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
        if self.points is None:
            return "a comment" if self.comment else "nothing"
        return f"{self.points:g} points"


@dataclasses.dataclass(frozen=True)
class Last:
    """What is known of the last run."""

    marks: dict[Key, Mark]  # that counted
    answer_ids: Answers  # of those that the table shows since


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table."""

    line: int
    key: Key
    mark: Mark
    answer_id: str  # of the answer that was marked; empty if the table has none
    answer: str  # as the table shows it; empty if it does not


@dataclasses.dataclass(frozen=True)
class Table:
    """What a person gave, and the filled columns that are none of this table's."""

    rows: list[Row]  # also those in which nobody gave anything
    strange: list[str]
    data: bytes | None  # the file's, as they were read; None if there was no file


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
        return Table([], [], None)
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
    return Table(rows, strange, found.data)


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
    known, comment = fields.get("answer_id", "").strip(), fields["comment"]
    if known.endswith(QUOTED):  # otherwise its apostrophes are the person's own
        comment = table.typed(comment)
    points = _points(fields["points"].strip(), most.get(question, math.inf), place)
    mark = Mark(points, comment if comment.strip() else "")
    answer = fields.get("answer", "")
    return Row(row.line, (student, question), mark, known.removesuffix(QUOTED), answer)


def _points(given: str, most: float, place: str) -> float | None:
    """The points that a person gave; None if there are none yet.

    Raises:
        UserError: they are no number, or not from 0 to the most.
    """
    if not given:
        return None
    points = float(given.replace(",", ".")) if NUMBER.fullmatch(given) else -1.0
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
    lines = field.splitlines()[1:]
    for line, delimiter in itertools.product(lines, table.DELIMITERS):
        parts = line.split(delimiter)
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
    last: Last,
) -> tuple[dict[Key, Mark], list[str]]:
    """Which marks count, and of each other one why it does not.

    Args:
        path: the table, for the messages.
        found: what it holds.
        assignment: names the questions.
        answers: as they are now.
        last: what is known of the last run.

    Returns:
        The marks that count, and a line for each that does not.
    """
    lines = [
        f"{path}, line 1: the column {name} is none of this table's, and would be lost"
        for name in found.strange
    ]
    most = _most(assignment)
    rows: dict[Key, list[Row]] = {}
    for row in found.rows:
        row = _with_zeros(row, answers)
        rows.setdefault(row.key, []).append(row)
    marks = {}
    for key, same in rows.items():
        if all(row.mark == Mark(None) for row in same):
            continue
        reason = _why_not(same, most, answers, last)
        if reason:
            given = next(row for row in same if row.mark != Mark(None))
            lines.append(f"{_place(path, given.line, key)}: {reason}")
        else:
            marks[key] = same[0].mark
    for key, mark in last.marks.items():
        if all(row.mark.points is None for row in rows.get(key, [])):
            lines.append(
                f"{path}, {key[0]}, {key[1]}: {mark}{_quoted(mark.comment)} counted on "
                "the last run, and are no longer in the table"
            )
    return marks, lines


def _with_zeros(row: Row, answers: Answers) -> Row:
    """A row whose student's number has the zeros back that a spreadsheet took away.

    Only if one student alone can be meant, and has the answer that was marked.
    """
    student, question = row.key
    if student in answers or not _is_number(student):
        return row
    same = [
        one
        for one in answers
        if _is_number(one) and one.lstrip("0") == student.lstrip("0")
    ]
    if len(same) != 1 or row.answer_id != _id_now(same[0], question, answers):
        return row
    return dataclasses.replace(row, key=(same[0], question))


def _is_number(name: str) -> bool:
    """Whether a spreadsheet takes a name for a number, and its first zeros away."""
    return name.isascii() and name.isdigit()


def _id_now(student: str, question: str, answers: Answers) -> str:
    """What tells the answer that a student has given now."""
    return answer_id(answers[student].get(question, ""))


def _quoted(comment: str) -> str:
    """A comment that would be lost, for a message; shortened if it is long."""
    if not comment:
        return ""
    cut = "..." if len(comment) > SHOWN_OF_COMMENT else ""
    return f' ("{comment[:SHOWN_OF_COMMENT]}{cut}")'


def _why_not(
    rows: list[Row], most: dict[str, float], answers: Answers, last: Last
) -> str:
    """Why a mark does not count; an empty text if it does.

    Args:
        rows: all of this student and question.
        most: the questions that a person grades.
        answers: as they are now.
        last: what is known of the last run.
    """
    row = rows[0]
    student, question = row.key
    if len(rows) > 1:
        all_given = " and ".join(f"line {row.line}: {row.mark}" for row in rows)
        return f"{len(rows)} rows for one answer ({all_given}), so none counts"
    if student not in answers:
        return f"{row.mark}, and there is no such student"
    if question not in most:
        known = ", ".join(most) or "none"
        return f"{row.mark}, and no such question is graded by hand ({known})"
    if _has_changed(row, answers, last):
        return f"the answer has changed since it got {row.mark}"
    return ""


def _has_changed(row: Row, answers: Answers, last: Last) -> bool:
    """Whether a mark was given to another answer, as far as can be known."""
    student, question = row.key
    now = _id_now(student, question, answers)
    if row.answer_id:
        return row.answer_id != now
    if row.answer.strip():
        shown = table.harmless(_shown(answers[student].get(question, "")))
        return row.answer.split() != shown.split()
    return last.answer_ids.get(student, {}).get(question, now) != now


def update(
    path: Path,
    assignment: Assignment,
    answers: Answers,
    marks: dict[Key, Mark],
    last: Last,
    data: bytes | None,
    keep: bool,
) -> tuple[list[str], bool]:
    """Write the table anew: answers as they are now, and the marks that count.

    Args:
        path: the table.
        assignment: gives the questions and their points.
        answers: as they are now.
        marks: those that count.
        last: what is known of the last run.
        data: the bytes from which the marks were read; None if there was no table.
        keep: leave the table as it is, because marks in it do not count, and write the
            new one beside it.

    Returns:
        Lines for the terminal: what was written beside it, and what to do with it; and
        whether the table was replaced.
    """
    lines = []
    for old in sorted(path.parent.glob(f"{path.stem}-new*{path.suffix}")):
        if not BESIDE.fullmatch(old.stem.removeprefix(path.stem)):
            continue
        if _has_more(old, assignment, answers, marks, last):
            lines.append(
                f"{old}: holds marks that do not count, because only those in "
                f"{path.name} do. Fix: copy them there, then remove this table."
            )
        else:
            old.unlink()
    new = _dumps(assignment, answers, marks)
    if not keep and _bytes(path) == data:
        files.write_text(path, new)
        return lines, True
    beside = _beside(path)
    files.write_text(beside, new)
    if keep:
        lines.append(
            f"{path}: left as it is, because of the lines above; {beside.name} is the "
            "table with the marks that count. Fix: mend what is listed, or put "
            f"{beside.name} in the place of {path.name} and mark there what is "
            "missing; then run the same command again."
        )
    else:
        lines.append(
            f"{path}: was changed while this ran, so it is left as it is, and what is "
            f"new in it does not count yet; {beside.name} is the table with the marks "
            "that count. Fix: run the same command again."
        )
    return lines, False


def _bytes(path: Path) -> bytes | None:
    """A table's bytes as they are now; None if there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _has_more(
    path: Path,
    assignment: Assignment,
    answers: Answers,
    marks: dict[Key, Mark],
    last: Last,
) -> bool:
    """Whether a person has written anything into a table beside the other."""
    try:
        found = read(path, assignment)
    except UserError:
        return True
    rows = [_with_zeros(row, answers) for row in found.rows if row.mark != Mark(None)]
    return bool(found.strange) or any(
        row.mark not in (marks.get(row.key), last.marks.get(row.key)) for row in rows
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
            given = "" if mark.points is None else _digits(mark.points)
            row = [student, question, f"{points:g}", given, mark.comment]
            row.append(_shown(answer))
            quoted = table.harmless(mark.comment) != mark.comment
            rows.append([*row, answer_id(answer) + QUOTED * quoted])
    return table.dumps(rows)


def _shown(answer: str) -> str:
    """As much of an answer as fits into a cell."""
    return answer if len(answer) <= SHOWN else answer[:SHOWN] + CUT


def _digits(points: float) -> str:
    """Points as they are read again: 0.00001, not 1e-05."""
    return format(decimal.Decimal(f"{points:.15g}"), "f")
