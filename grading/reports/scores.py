"""What counts of what was handed in: whose it is, and how many points it has."""

from __future__ import annotations

import dataclasses

from grading import text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.reports import roster
from grading.reports.marks import Mark, Marks
from grading.reports.roster import Person
from grading.runner import QuestionResult
from grading.submissions import Submission

EXTRAS = 1 / 5  # of the core's points, which extras can make up for at most
NOTHING = "nothing was handed in"


@dataclasses.dataclass
class Standing:
    """What counts of a file, or of a person who handed in nothing."""

    graded: Graded | None  # None: nothing was handed in
    person: Person | None = None
    instead: str = ""  # the place of the file that counts in place of this one
    points: dict[str, float | None] = dataclasses.field(default_factory=dict)
    core: float = 0.0
    extras: float = 0.0
    score: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it is the one that counts of several files of a person."""
        return not self.instead

    @property
    def student(self) -> str:
        """What the tables call them."""
        if self.graded is not None:
            return self.graded.submission.student
        return self.person.number or self.person.mail or self.person.name

    @property
    def problem(self) -> str:
        """What went wrong with the file, or that there is none."""
        return NOTHING if self.graded is None else self.graded.result.problem


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
    a person gives, and for at most a fifth of the core.

    Args:
        graded: the submission.
        assignment: what it answers.
        marks: given by hand.
        extras: whether they count.
    """
    results = graded.result.questions
    points = {one.name: earned(graded, one, marks) for one in results}
    core = [one for one in results if not one.extra]
    in_core = sum(points[one.name] or 0.0 for one in core)
    in_extras = sum(points[one.name] or 0.0 for one in results if one.extra)
    lost = sum(one.points - one.score for one in core if not one.manual)
    most = EXTRAS * assignment.points if extras else 0.0
    score = in_core + min(in_extras, lost, most)
    return Standing(graded, None, "", points, in_core, in_extras, score)


def standings(
    all_graded: list[Graded],
    assignment: Assignment,
    marks: Marks,
    people: list[Person] | None = None,
    extras: bool = True,
) -> tuple[list[Standing], list[str]]:
    """What counts of each file, then those of the roster who handed in nothing.

    Of several files of a person the latest one counts, by its time of modification,
    among those that can be read.

    Args:
        all_graded: the submissions.
        assignment: what they answer.
        marks: given by hand.
        people: the roster, if there is one.
        extras: whether they count.

    Returns:
        The standings, and a line for each file that is nobody's or does not count.
    """
    handed_in = [standing(one, assignment, marks, extras) for one in all_graded]
    if people is None:
        return handed_in, []
    submissions = [one.submission for one in all_graded]
    whose, lines = roster.match(submissions, people, assignment.name)
    theirs: dict[Person, list[Standing]] = {person: [] for person in people}
    for one in sorted(handed_in, key=lambda one: _when(one.graded.submission)):
        one.person = whose.get(one.graded.submission.place)
        if one.person is not None:
            theirs[one.person].append(one)
    for person, several in theirs.items():
        for one in several[:-1]:
            one.instead = text.file_name(several[-1].graded.submission.place)
            place = text.file_name(one.graded.submission.place)
            lines.append(f"{person}: {place} does not count, {one.instead} is later")
    absent = [Standing(None, person) for person in people if not theirs[person]]
    return handed_in + absent, lines


def _when(file: Submission) -> tuple[bool, float, str]:
    """What tells which of a person's files counts: the last in this order."""
    try:
        return not file.problem, file.path.lstat().st_mtime, file.place
    except OSError:
        return False, 0.0, file.place
