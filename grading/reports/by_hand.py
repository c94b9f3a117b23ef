"""The pages on which a person reads answers: a list, and a page for each student."""

from __future__ import annotations

from pathlib import Path

from grading import batch, figures, text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.course.counting import Marks
from grading.reports import pages
from grading.reports.manual import Mark

PAGE = "by-hand.html"


def write(
    out: Path, all_graded: list[Graded], assignment: Assignment, marks: Marks
) -> list[str]:
    """Write the pages; one that can't be written keeps no other back.

    Args:
        out: the folder of results.
        all_graded: the submissions.
        assignment: what they answer; without questions by hand there are no pages.
        marks: that count.

    Returns:
        Lines for the terminal: what could not be written.
    """
    if not any(one.manual for one in assignment.questions):
        return []
    lines = []
    around = [None, *all_graded, None]
    for before, one, after in zip(around, all_graded, around[2:], strict=False):
        path = batch.folder(out, one.submission) / PAGE

        def page(neighbours=(before, after), one=one) -> str:
            return student(one, assignment, marks, *neighbours)

        lines.append(pages.attempt(path, page))
    lines.append(
        pages.attempt(out / PAGE, lambda: listed(all_graded, assignment, marks))
    )
    return [text.one_line(line) for line in lines if line]


def student(
    graded: Graded,
    assignment: Assignment,
    marks: Marks,
    before: Graded | None = None,
    after: Graded | None = None,
) -> str:
    """A student's page: the answers, each with the pictures of its section.

    Args:
        graded: the submission.
        assignment: what it answers.
        marks: that count.
        before, after: the neighbours, to read one question of all students in turn.
    """
    shown = figures.read(graded.submission, assignment)
    return pages.TEMPLATES.get_template(PAGE).render(
        title=assignment.title,
        student=graded.submission.student,
        file=text.file_name(graded.submission.path.name),
        before=_link(before),
        after=_link(after),
        questions=[
            {
                "name": one.name,
                "title": one.title,
                "most": one.points,
                "mark": marks.get((graded.submission.student, one.name), Mark(None)),
                "answer": graded.answers.get(one.name, ""),
                "figures": shown[one.name],
            }
            for one in assignment.questions
            if one.manual
        ],
    )


def listed(all_graded: list[Graded], assignment: Assignment, marks: Marks) -> str:
    """The list of all answers, and which have a mark."""
    asked = [one for one in assignment.questions if one.manual]
    return pages.TEMPLATES.get_template("by-hand-list.html").render(
        title=assignment.title,
        questions=asked,
        rows=[
            {
                "student": one.submission.student,
                "page": f"{batch.STUDENTS}/{one.submission.folder}/{PAGE}",
                "cells": [
                    (
                        question.name,
                        marks.get((one.submission.student, question.name), Mark(None)),
                        bool(one.answers.get(question.name)),
                    )
                    for question in asked
                ],
            }
            for one in all_graded
        ],
    )


def _link(graded: Graded | None) -> str:
    """Where a neighbour's page lies, from another student's."""
    return "" if graded is None else f"../{graded.submission.folder}/{PAGE}"
