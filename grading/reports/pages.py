"""What teachers and students read: feedback, grades.csv and the summary."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import io
import statistics
from collections.abc import Callable
from pathlib import Path

import jinja2

from grading import batch, text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.reports import marks, roster, scores, table
from grading.reports.marks import Mark, Marks
from grading.reports.roster import Person
from grading.reports.scores import Standing
from grading.runner import QuestionResult
from tools.model import files

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
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


TEMPLATES.filters.update(number=number, plain=plain)


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


def feedback(
    standing: Standing, assignment: Assignment, given: Marks, options: Options
) -> str:
    """The page that a student gets.

    It names no hidden test, and nothing that one says, unless `options.reveal` is set.

    Args:
        standing: what counts of the submission.
        assignment: what it answers.
        given: the marks.
        options: whether extras count, and whether hidden checks are named.
    """
    graded = standing.graded
    questions = []
    for question in graded.result.questions:
        points = standing.points[question.name]
        hidden = [test for test in question.tests if test.hidden]
        mark = given.get((graded.submission.student, question.name), Mark())
        shown = [one for one in question.tests if options.reveal or not one.hidden]
        questions.append(
            {
                "title": titled(question),
                "points": points,
                "most": question.points,
                "full": points is not None and points >= question.points,
                "left_out": question.extra and points == 0,
                "tests": shown,
                "hidden": [] if options.reveal else hidden,
                "hidden_points": sum(test.score for test in hidden),
                "hidden_most": sum(test.points for test in hidden),
                "hint": hint(question),
                "comment": mark.comment,
                "answer": graded.answers.get(question.name, ""),
                "manual": question.manual,
            }
        )
    return TEMPLATES.get_template("feedback.html").render(
        title=assignment.title,
        file=text.file_name(graded.submission.path.name),
        standing=standing,
        most=assignment.points,
        most_extras=scores.EXTRAS * assignment.points,
        extras=bool(assignment.extras) and options.extras,
        complete=None not in standing.points.values(),
        questions=questions,
        cells=[cell for cell in graded.result.cells if cell.error],
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
        place = text.file_name(one.graded.submission.place) if one.graded else ""
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
                "name": question.name,
                "title": titled(question),
                "extra": question.extra,
                "manual": question.manual,
                "share": statistics.mean(known) / question.points if known else None,
                "graded": len(known),
                "failed": failed.most_common(),
            }
        )
    return rates


def picture(values: list[float], most: float, rates: list[dict]) -> bytes:
    """How the scores are distributed, and which questions cost the most points: SVG."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "book", "axes.axisbelow": True}):
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(10, 0.9 + 0.42 * max(6, len(rates))), layout="constrained"
        )
        left.hist(values, [most * edge / 10 for edge in range(11)], color="#0072b2")
        left.set(xlabel="points", ylabel="students", title="Scores", xlim=(0, most))
        left.yaxis.get_major_locator().set_params(integer=True)
        known = [one for one in rates if one["share"] is not None and not one["extra"]]
        known = known[::-1]
        lost = [100 * (1 - rate["share"]) for rate in known]
        right.barh([rate["name"] for rate in known], lost, color="#d55e00")
        right.set(xlabel="points lost, %", title="By question", xlim=(0, 100))
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.3)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        plt.close(figure)
    return file.getvalue()


def summary(
    standings: list[Standing],
    assignment: Assignment,
    options: Options,
    lines: list[str],
) -> str:
    """The teacher's page: the picture, each question, each student.

    Args:
        standings: what counts.
        assignment: what was answered.
        options: the roster, and whether extras count.
        lines: what the teacher is to look at.
    """
    counted = [one for one in standings if one.graded and one.counts]
    values = [one.score for one in counted]
    rates = question_rates(counted, assignment)
    core = [one for one in rates if one["share"] is not None and not one["extra"]]
    drawn = base64.b64encode(picture(values, assignment.points, rates)).decode()
    return TEMPLATES.get_template("summary.html").render(
        title=assignment.title,
        date=datetime.date.today().isoformat(),
        scores=values,
        most=assignment.points,
        most_extras=scores.EXTRAS * assignment.points,
        extras=bool(assignment.extras) and options.extras,
        median=statistics.median(values),
        mean=statistics.mean(values),
        rates=rates,
        hardest=min(core, key=lambda rate: rate["share"], default=None),
        picture=drawn,
        open=sum(list(one.points.values()).count(None) for one in counted),
        lines=lines,
        roster=options.people is not None,
        rows=[_row(one) for one in standings],
    )


def _row(one: Standing) -> dict:
    """A student's row on the teacher's page."""
    graded, page, cells = one.graded, "", []
    if graded is not None:
        cells = graded.result.cells
        page = f"{batch.STUDENTS}/{graded.submission.folder}/feedback.html"
    return {
        "student": one.student,
        "page": page,
        "person": one.person,
        "score": one.score if one.counts else None,
        "extras": one.extras,
        "instead": one.instead,
        "problem": one.problem,
        "errors": [cell for cell in cells if cell.error],
        "seconds": graded.result.seconds if graded else None,
    }


def write(
    out: Path, all_graded: list[Graded], assignment: Assignment, options: Options
) -> tuple[list[Standing], list[str]]:
    """Write all reports; one that can't be written keeps no other back.

    Args:
        out: the folder of results; the table manual.csv in it is read.
        all_graded: the submissions. One whose page can't be written gets a problem.
        assignment: what they answer.
        options: what the teacher chose.

    Returns:
        What counts, and lines for the terminal: what is to be looked at.

    Raises:
        UserError: manual.csv is broken; nothing was written.
    """
    path = out / marks.FILE
    answers = {one.submission.student: one.answers for one in all_graded}
    kept = marks.read(path, assignment)
    given, changed = marks.current(kept, answers)
    standings, lines = scores.standings(
        all_graded, assignment, given, options.people, options.extras
    )
    lines += changed
    for one in standings:
        if one.graded is not None:
            page = batch.folder(out, one.graded.submission) / "feedback.html"
            problem = attempt(
                page, lambda one=one: feedback(one, assignment, given, options)
            )
            if problem:
                result = one.graded.result
                said = "feedback.html can't be written"
                result.problem = "; ".join(filter(None, [result.problem, said]))
                lines.append(text.one_line(f"{one.student}: {problem}"))
    pages = {
        "grades.csv": lambda: grades(standings, assignment, options.people),
        "summary.html": lambda: summary(standings, assignment, options, lines),
    }
    lines += [said for name in pages if (said := attempt(out / name, pages[name]))]
    if any(question.manual for question in assignment.questions):
        try:
            marks.write(path, assignment, answers, given)
        except OSError as error:
            lines.append(f"{path}: can't be written ({error.strerror}).")
    return standings, lines


def attempt(path: Path, make: Callable[[], str]) -> str:
    """Write a report; why that fails, or an empty text."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, make())
    except Exception as error:  # of whatever kind: the other reports must be written
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        return f"{path}: can't be written ({reason}). Fix: remove what is in its place."
    return ""
