"""The points that a person gives, in a table that is read again on each run.

The page to mark on writes it, and so may a spreadsheet. A mark counts for the answer
that it was given to. If that answer has changed since, the mark is kept in the column
`before`, and the new answer waits for another one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from pathlib import Path

from grading import text
from grading.assignment import Assignment
from grading.reports import table
from tools.model import files
from tools.model.errors import UserError

FILE = "manual.csv"
COLUMNS = ("student", "question", "max_points", "points", "comment", "before", "answer")
COLUMNS += ("answer_id",)
NEEDED = ("student", "question", "points", "comment")
SHOWN = 16_000  # characters of an answer: a spreadsheet's cell takes 32,767
NUMBER = re.compile(r"[0-9]+[.,]?[0-9]*|[.,][0-9]+")
Key = tuple[str, str]  # student and question
Answers = dict[str, dict[str, str]]  # by student, then by question


@dataclasses.dataclass(frozen=True)
class Mark:
    """What a person gave for an answer."""

    points: float | None = None  # None as long as nobody has graded it
    comment: str = ""
    answer_id: str = ""  # which answer it was given to
    before: str = ""  # earlier marks, for other answers

    @property
    def given(self) -> str:
        """What was given, in words; an empty text if nothing was."""
        points = "" if self.points is None else f"{self.points:g} points"
        return ": ".join(filter(None, (points, " ".join(self.comment.split()))))


Marks = dict[Key, Mark]


def answer_id(answer: str) -> str:
    """What tells an answer from another one; spaces and line ends do not count."""
    return hashlib.sha256(" ".join(answer.split()).encode()).hexdigest()[:12]


def read(path: Path, assignment: Assignment) -> Marks:
    """The marks in a table; none if there is no table.

    Raises:
        UserError: the table, or a number of points in it, is broken.
    """
    if not path.exists() and not path.is_symlink():
        return {}
    most = {one.name: one.points for one in assignment.questions}
    marks: Marks = {}
    for row in table.read(path, NEEDED):
        place = f"{path}, line {row.line}"
        key = (row.fields["student"], row.fields["question"].strip())
        if key in marks:
            raise UserError(
                f"{place}: a second row for {' '.join(key)}. Fix: remove one of them."
            )
        marks[key] = Mark(
            parse_points(
                place, row.fields["points"].strip(), most.get(key[1], math.inf)
            ),
            row.fields["comment"],
            row.fields.get("answer_id", "").strip(),
            row.fields.get("before", ""),
        )
    return marks


def parse_points(place: str, given: str, most: float) -> float | None:
    """The points that were typed, with a point or a comma; None for an empty field.

    Raises:
        UserError: that is no number of points which the question can have.
    """
    if not given:
        return None
    points = float(given.replace(",", ".")) if NUMBER.fullmatch(given) else math.nan
    if not 0 <= points <= most:
        raise UserError(
            f"{place}: points: {given!r}. Fix: a number from 0 to {most:g}, or nothing."
        )
    return points


def current(marks: Marks, answers: Answers) -> tuple[Marks, list[str]]:
    """The marks for the answers as they are now.

    Args:
        marks: that the table holds.
        answers: of all students, to the questions that a person grades.

    Returns:
        The marks, and a line for each that does not count any more.
    """
    now: Marks = {}
    lines = []
    for key, mark in marks.items():
        student, question = key
        answer = answers.get(student, {}).get(question)
        if not mark.given or answer is None:
            if mark.given:
                who = text.one_line(f"{student}, {question}")
                lines.append(
                    f"{FILE}: {who}: {mark.given}, and no such answer is there"
                )
            now[key] = mark
        elif mark.answer_id not in ("", answer_id(answer)):
            before = "; ".join(filter(None, (mark.before, mark.given)))
            now[key] = Mark(before=before)
            who = text.one_line(f"{student}, {question}")
            lines.append(f"{FILE}: {who}: the answer has changed since {mark.given}")
        else:
            now[key] = mark
    return now, lines


def write(path: Path, assignment: Assignment, answers: Answers, marks: Marks) -> None:
    """Write the table: a row for each student and question, then what is nobody's.

    Raises:
        OSError: it can't be written; it is as it was.
    """
    most = {one.name: one.points for one in assignment.questions if one.manual}
    keys = [(student, question) for student in answers for question in most]
    rows: list[list[object]] = [list(COLUMNS)]
    for key in [*keys, *(key for key in marks if key not in set(keys))]:
        mark = marks.get(key, Mark())
        if key not in keys and not mark.given and not mark.before:
            continue
        student, question = key
        answer = answers.get(student, {}).get(question)
        identity = mark.answer_id if answer is None else answer_id(answer)
        points = "" if mark.points is None else mark.points
        shown = (answer or "")[:SHOWN]
        rows.append([student, question, most.get(question, ""), points, mark.comment])
        rows[-1] += [mark.before, shown, identity]
    files.write_text(path, table.dumps(rows))
