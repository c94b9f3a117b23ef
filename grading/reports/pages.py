"""What teachers and students read: feedback, grades.csv and the summary."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import statistics
import zipfile
from collections.abc import Callable
from pathlib import Path

import jinja2

from grading import batch, text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.reports import marks, roster, scores, table
from grading.reports.marks import Marks
from grading.reports.scores import Standing
from grading.runner import QuestionResult
from grading.submissions import ENDING, Person, Submission
from tools.model import files

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
BINS = 10  # of the histogram of scores
SLOW = (
    "Too slow: your answer takes too long on other inputs{limit}. Think of loops in "
    "Python, of work that is done twice, of compiling again for each size."
)
LOST = (
    "The process that ran your code did not survive: think of how much memory and how "
    "much time other inputs need."
)
WRONG = (
    "Your answer does not hold for all inputs that the question allows: think of "
    "sizes, signs, limits and types that you did not try."
)


@dataclasses.dataclass(frozen=True)
class Options:
    """What a teacher chose for the reports."""

    people: list[Person] | None = None  # the roster, if there is one
    extras: bool = True  # they make up for points lost in the core's checks
    reveal: bool = False  # feedback names each hidden check and its message


def number(value: float) -> str:
    """Points as people write them."""
    return f"{round(value, 2):g}"


def plain(name: str) -> str:
    """A test's name as people write it: `q1 other inputs`."""
    return name.removeprefix("test_").replace("_", " ")


def titled(question) -> str:
    """A question's title, and whether it is an extra."""
    return f"{question.title} (extra)" if question.extra else question.title


def hint(question: QuestionResult) -> str:
    """What a student is told of hidden tests that failed: of what kind, no more."""
    kinds = {test.kind for test in question.tests if test.hidden and not test.passed}
    others = [test for test in question.tests if not test.hidden]
    if not kinds or not all(test.passed for test in others):
        return ""
    if kinds == {"slow"}:
        limits = {test.limit for test in question.tests if test.hidden and test.limit}
        return SLOW.format(limit=f" ({', '.join(sorted(limits))})" if limits else "")
    return LOST if kinds <= {"slow", "lost"} else WRONG


TEMPLATES.filters.update(number=number, plain=plain, titled=titled, hint=hint)


def feedback(
    standing: Standing, assignment: Assignment, given: Marks, options: Options
) -> str:
    """The page that a student gets.

    It names no hidden test, and nothing that one says, unless `options.reveal` is set.
    """
    graded = standing.graded
    student = graded.submission.student
    return TEMPLATES.get_template("feedback.html").render(
        title=assignment.title,
        file=text.file_name(graded.submission.path.name),
        standing=standing,
        most=assignment.points,
        most_extras=scores.most_extras(assignment),
        extras=bool(assignment.extras) and options.extras,
        reveal=options.reveal,
        answers=graded.answers,
        comments={
            name: mark.comment for (who, name), mark in given.items() if who == student
        },
        questions=graded.result.questions,
        cells=graded.result.cells,
    )


def grades(
    standings: list[Standing], assignment: Assignment, people: list[Person] | None
) -> str:
    """grades.csv: a line for each file, then one for each who handed in nothing."""
    names = [question.name for question in assignment.questions]
    who = [] if people is None else list(roster.COLUMNS)
    header = ["student", *who, "score", "max_score", "complete", "core", "extras"]
    rows: list[list[object]] = [[*header, *names, "counts", "problem", "file"]]
    for one in standings:
        points = [one.points.get(name) for name in names]
        waits = one.graded is not None and None in points
        score = number(one.score) if one.counts else ""
        place = text.file_name(one.submission.place) if one.submission else ""
        rows.append(
            [
                *(one.student, *(getattr(one.person, name, "") for name in who)),
                *(score, number(assignment.points), "no" if waits else "yes"),
                *(number(one.core), number(one.extras)),
                *("" if each is None else number(each) for each in points),
                *("yes" if one.counts else "no", one.problem, place),
            ]
        )
    return table.dumps(rows)


def gradebook(standings: list[Standing], people: list[Person] | None) -> str:
    """gradebook.csv: what a learning platform reads, of those whose score counts."""
    who = ["student"] if people is None else list(roster.COLUMNS)
    rows: list[list[object]] = [[*who, "score"]]
    for one in standings:
        if one.counts and (people is None or one.person):
            names = [getattr(one if people is None else one.person, x) for x in who]
            rows.append([*names, number(one.score)])
    return table.dumps(rows)


def pack(path: Path, standings: list[Standing]) -> None:
    """feedback.zip: the pages under the very paths under which the files came.

    Moodle finds a student by the name of the folder or of the file.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in standings:
            if one.graded is not None:
                name = ENDING.sub("", one.submission.place) + ".html"
                page = batch.folder(path.parent, one.submission) / "feedback.html"
                archive.write(page, name.encode(errors="replace").decode())


def question_rates(standings: list[Standing], assignment: Assignment) -> list[dict]:
    """For each question: what share of its points was earned, and which test failed.

    Of an extra only those count who have points in it: the others chose other ones.
    """
    rates = []
    for index, question in enumerate(assignment.questions):
        chosen = [
            one
            for one in standings
            if not question.extra or one.points[question.name] != 0
        ]
        points = [one.points[question.name] for one in chosen]
        known = [] if None in points else points  # else only who wrote nothing has any
        failed = collections.Counter(
            test.name
            for one in chosen
            for test in one.graded.result.questions[index].tests
            if not test.passed
        )
        rates.append(
            {
                "question": question,
                "share": statistics.mean(known) / question.points if known else None,
                "graded": len(known),
                "failed": failed.most_common(),
            }
        )
    return rates


def summary(
    standings: list[Standing],
    assignment: Assignment,
    options: Options,
    lines: list[str],
) -> str:
    """The teacher's page: how scores are spread, each question, each student."""
    counted = [one for one in standings if one.graded and one.counts]
    values = [one.score for one in counted]
    bins = collections.Counter(
        min(int(BINS * value / assignment.points), BINS - 1) for value in values
    )
    return TEMPLATES.get_template("summary.html").render(
        title=assignment.title,
        date=datetime.date.today().isoformat(),
        scores=values,
        most=assignment.points,
        most_extras=scores.most_extras(assignment),
        extras=bool(assignment.extras) and options.extras,
        median=statistics.median(values),
        mean=statistics.mean(values),
        bins=[bins[index] for index in range(BINS)],
        rates=question_rates(counted, assignment),
        open=sum(list(one.points.values()).count(None) for one in counted),
        lines=lines,
        roster=options.people is not None,
        standings=standings,
    )


def write(
    out: Path,
    settled: list[Submission],
    all_graded: list[Graded],
    assignment: Assignment,
    options: Options,
) -> tuple[list[Standing], list[str]]:
    """Write all reports; one that can't be written keeps no other back.

    Returns:
        What counts, and lines for the terminal: what is to be looked at.

    Raises:
        UserError: manual.csv is broken; nothing was written.
    """
    path = out / marks.FILE
    answers = {one.submission.student: one.answers for one in all_graded}
    given, lines = marks.current(marks.read(path, assignment), answers)
    standings = scores.standings(
        settled, all_graded, assignment, given, options.people, options.extras
    )
    for one in standings:
        if one.graded is not None:
            page = batch.folder(out, one.graded.submission) / "feedback.html"
            make = functools.partial(feedback, one, assignment, given, options)
            lines += attempt(page, make)
    lines += attempt(
        out / "grades.csv", lambda: grades(standings, assignment, options.people)
    )
    lines += attempt(
        out / "gradebook.csv", lambda: gradebook(standings, options.people)
    )
    zipped = out / "feedback.zip"
    lines += attempt(zipped, functools.partial(pack, zipped, standings))
    if any(question.manual for question in assignment.questions):
        lines += attempt(path, lambda: marks.dumps(assignment, answers, given))
    page = out / "summary.html"
    lines += attempt(page, lambda: summary(standings, assignment, options, lines))
    return standings, lines


def attempt(path: Path, make: Callable[[], str | None]) -> list[str]:
    """Write a report, or let it write itself; if that fails, a line that says why."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if (made := make()) is not None:
            files.write_text(path, made)
    except Exception as error:  # of whatever kind: the other reports must be written
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        told = f"{path}: can't be written ({reason}). Fix: remove what is in its place."
        return [text.one_line(told)]
    return []
