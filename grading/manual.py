"""The points that a person gives: a table to fill in, read again on the next run."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

from grading.masters import Assignment
from tools import files
from tools.errors import UserError

COLUMNS = ("student", "question", "max_points", "points", "comment", "answer")
STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


@dataclasses.dataclass(frozen=True)
class Mark:
    """What a person gave for an answer."""

    points: float | None  # None as long as nobody has graded it
    comment: str = ""


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(STARTS_FORMULA) else text


def table(rows: list[list[object]]) -> str:
    """Rows as comma-separated values; texts of students can't become formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([harmless(x) if isinstance(x, str) else x for x in row])
    return text.getvalue()


def read(path: Path, assignment: Assignment) -> dict[tuple[str, str], Mark]:
    """The marks in a filled-in table, by student and question.

    Args:
        path: the table; no file is no marks.
        assignment: gives the questions and their points.

    Raises:
        UserError: the table is broken; the message names the line.
    """
    if not path.exists():
        return {}
    most = {one.name: one.points for one in assignment.questions if one.manual}
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(
            f"{path}: not in UTF-8. Fix: save it as CSV UTF-8 in the spreadsheet."
        ) from None
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    missing = {"student", "question", "points", "comment"} - set(rows.fieldnames or [])
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(sorted(missing))}. "
            "Fix: keep the first line as it was written."
        )
    marks: dict[tuple[str, str], Mark] = {}
    for row in rows:
        question, given = row["question"] or "", (row["points"] or "").strip()
        place = f"{path}, line {rows.line_num}, {row['student']}, {question}"
        if question not in most:
            raise UserError(
                f"{place}: no question that is graded by hand. "
                f"Fix: {', '.join(most)} are."
            )
        points = None
        if given:
            try:
                points = float(given.replace(",", "."))
            except ValueError:
                points = -1.0
            if not 0 <= points <= most[question]:
                raise UserError(
                    f"{place}: {given!r} is no number from 0 to {most[question]:g}. "
                    "Fix: correct the column points."
                )
        student = row["student"] or ""
        if student[1:].startswith(STARTS_FORMULA):
            student = student.removeprefix("'")
        marks[student, question] = Mark(points, row["comment"] or "")
    return marks


def write(
    path: Path,
    assignment: Assignment,
    answers: dict[str, dict[str, str]],
    marks: dict[tuple[str, str], Mark],
) -> None:
    """Write the table anew: answers as they are now, marks as they were given.

    Args:
        path: the table.
        assignment: gives the questions and their points.
        answers: by student, then by question.
        marks: what was given; a mark of a student who is gone is kept.
    """
    points = {one.name: one.points for one in assignment.questions if one.manual}
    rows: list[list[object]] = [list(COLUMNS)]
    wanted = [(student, name) for student in answers for name in points]
    wanted += [key for key in marks if key not in set(wanted)]
    for student, name in wanted:
        mark = marks.get((student, name), Mark(None))
        answer = answers.get(student, {}).get(name, "")
        given = "" if mark.points is None else f"{mark.points:g}"
        rows.append(
            [student, name, f"{points[name]:g}", given, mark.comment, answer[:30_000]]
        )
    files.write_text(path, "\ufeff" + table(rows))
