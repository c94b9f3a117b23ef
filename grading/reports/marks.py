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
from tools.model.errors import UserError

FILE = "manual.csv"
NEEDED = ("student", "question", "points", "comment")
SHOWN = 16_000  # characters of an answer: a spreadsheet's cell takes 32,767
NUMBER = re.compile(r"[0-9]+[.,]?[0-9]*|[.,][0-9]+")
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


Marks = dict[tuple[str, str], Mark]  # by student and question


def answer_id(student: str, question: str, answer: str) -> str:
    """What tells an answer from all others; spaces and line ends do not count.

    It starts with a letter that no number has, so no spreadsheet rewrites it.
    """
    words = " ".join(answer.split())
    digest = hashlib.sha256(f"{student}\n{question}\n{words}".encode())
    return f"x{digest.hexdigest()[:12]}"


def read(path: Path, assignment: Assignment) -> Marks:
    """The marks in a table; none if there is no table.

    Raises:
        UserError: the table, or a number of points in it, is broken.
    """
    if not path.exists() and not path.is_symlink():
        return {}
    most = {question.name: question.points for question in assignment.questions}
    marks: Marks = {}
    for line, fields in table.read(path, NEEDED):
        place = f"{path}, line {line}"
        key = (fields["student"], fields["question"].strip())
        if key in marks:
            raise UserError(
                f"{place}: a second row for {' '.join(key)}. Fix: remove one of them."
            )
        points = fields["points"].strip()
        marks[key] = Mark(
            parse_points(place, points, most.get(key[1], math.inf)),
            fields["comment"],
            fields.get("answer_id", "").strip(),
            fields.get("before", ""),
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


def ids(answers: Answers) -> dict[str, tuple[str, str]]:
    """Whose answer to which question an answer_id stands for."""
    return {
        answer_id(student, question, answer): (student, question)
        for student, answered in answers.items()
        for question, answer in answered.items()
    }


def current(marks: Marks, answers: Answers) -> tuple[Marks, list[str]]:
    """The marks for the answers as they are now.

    Args:
        marks: that the table holds. A row is found by its answer_id first: a
            spreadsheet makes 7 of a student called 007.
        answers: of all students, to the questions that a person grades.

    Returns:
        The marks, and a line for each that does not count any more.
    """
    keys = ids(answers)
    own = {key: identity for identity, key in keys.items()}
    now: Marks = {}
    lines = []
    for typed, mark in marks.items():
        key = keys.get(mark.answer_id, typed)
        told = text.one_line(f"{FILE}: {', '.join(key)}: ")
        if mark.given and key not in own:
            lines.append(f"{told}{mark.given}, and no such answer is there")
        elif mark.given and mark.answer_id not in ("", own[key]):
            lines.append(f"{told}the answer has changed since {mark.given}")
            mark = Mark(before="; ".join(filter(None, (mark.before, mark.given))))
        now[key] = mark
    return now, lines


def dumps(assignment: Assignment, answers: Answers, marks: Marks) -> str:
    """The table: a row for each student and question, then what is nobody's."""
    most = {one.name: one.points for one in assignment.questions if one.manual}
    header = ("student", "question", "max_points", "points", "comment", "before")
    rows: list[list[object]] = [[*header, "answer", "answer_id"]]
    keys = [(student, question) for student in answers for question in most]
    for student, question in dict.fromkeys([*keys, *marks]):
        mark = marks.get((student, question), Mark())
        answer = answers.get(student, {}).get(question)
        if answer is not None:
            identity = answer_id(student, question, answer)
        elif mark.given or mark.before:
            identity = mark.answer_id
        else:
            continue
        points = "" if mark.points is None else mark.points
        rows.append([student, question, most.get(question, ""), points, mark.comment])
        rows[-1] += [mark.before, (answer or "")[:SHOWN], identity]
    return table.dumps(rows)
