"""What counts of what was handed in: whose it is, and how many points it has."""

from __future__ import annotations

import dataclasses
import math

from grading.assignment import Assignment
from grading.batch import Graded
from grading.reports.marks import Mark, Marks
from grading.runner import QuestionResult
from grading.submissions import Person, Submission

NOTHING = "nothing was handed in"


@dataclasses.dataclass
class Standing:
    """What counts of a file, or of a person who handed in nothing."""

    graded: Graded | None  # None: nothing was handed in, or it does not count
    submission: Submission | None
    absent: Person | None = None  # who handed in nothing
    points: dict[str, float | None] = dataclasses.field(default_factory=dict)
    core: float = 0.0
    extras: float = 0.0
    score: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it is the one that counts of several files of a person."""
        return not (self.submission and self.submission.instead)

    @property
    def person(self) -> Person | None:
        """Whose it is, by the roster."""
        return self.submission.person if self.submission else self.absent

    @property
    def student(self) -> str:
        """What the tables call them."""
        if self.submission is not None:
            return self.submission.student
        return self.person.number or self.person.mail or self.person.name

    @property
    def problem(self) -> str:
        """What went wrong with the file, or that there is none."""
        if self.graded is not None:
            return self.graded.result.problem
        return NOTHING if self.submission is None else self.submission.instead


def most_extras(assignment: Assignment) -> int:
    """What extras can make up for at most: a fifth of the core's points, rounded up."""
    return math.ceil(assignment.points / 5)


def earned(graded: Graded, question: QuestionResult, marks: Marks) -> float | None:
    """The points of a question; None for one that a person has still to grade.

    Where nothing was written there is nothing to grade: that is worth 0.
    """
    if not question.manual:
        return question.score
    mark = marks.get((graded.submission.student, question.name), Mark())
    if mark.points is None and not graded.answers.get(question.name, "").strip():
        return 0.0
    return mark.points


def standing(
    graded: Graded, assignment: Assignment, marks: Marks, extras: bool = True
) -> Standing:
    """The points of a submission.

    Extras make up for points that were lost in the core's checks, never for those that
    a person gives, and only up to `most_extras`.
    """
    results = graded.result.questions
    points = {one.name: earned(graded, one, marks) for one in results}
    core = [one for one in results if not one.extra]
    in_core = sum(points[one.name] or 0.0 for one in core)
    in_extras = sum(points[one.name] or 0.0 for one in results if one.extra)
    lost = sum(one.points - one.score for one in core if not one.manual)
    most = most_extras(assignment) if extras else 0.0
    score = in_core + min(in_extras, lost, most)
    where = graded.submission
    return Standing(graded, where, None, points, in_core, in_extras, score)


def standings(
    settled: list[Submission],
    all_graded: list[Graded],
    assignment: Assignment,
    marks: Marks,
    people: list[Person] | None = None,
    extras: bool = True,
) -> list[Standing]:
    """What counts of each file, then those of the roster who handed in nothing."""
    graded = {one.submission: one for one in all_graded}
    handed_in = [
        standing(graded[one], assignment, marks, extras)
        if one in graded
        else Standing(None, one)
        for one in settled
    ]
    present = {one.person for one in settled}
    absent = [one for one in people or () if one not in present]
    return handed_in + [Standing(None, None, one) for one in absent]
