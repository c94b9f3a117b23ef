"""What teachers and students read: results.json, feedback, grades.csv, the summary."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import io
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import jinja2

from grading import batch, text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.course import counting, lateness, roster
from grading.course.counting import Course, Marks, Standing, earned, maximum
from grading.reports import manual, table
from grading.reports.manual import Mark
from grading.runner import QuestionResult
from tools.model import files

BY_HAND = "manual.csv"
RESULTS = "results.json"
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
class Written:
    """What became of the reports."""

    marks: Marks  # that count
    standings: list[Standing]  # what counts of each file
    lines: list[str]  # for the terminal: what could not be written, or does not count


def number(value: float) -> str:
    """Points as people write them."""
    return f"{round(value, 2):g}"


def plain(name: str) -> str:
    """A test's name as people write it: `q1 other inputs`."""
    return name.removeprefix("test_").replace("_", " ")


def capitalize_first(sentence: str) -> str:
    """A sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


TEMPLATES.filters.update(number=number, plain=plain, capitalize_first=capitalize_first)


def gradescope(graded: Graded, marks: Marks, most: float) -> dict:
    """A submission's results in the form that Gradescope takes.

    Source: Gradescope's autograder specifications, "Output format".

    Args:
        graded: the submission.
        marks: given by hand.
        most: more points than this it can't get, whatever its tests say together.
    """
    tests = []
    for question in graded.result.questions:
        for place, test in enumerate(question.tests, start=1):
            tests.append(
                {
                    "name": f"{titled(question)} ({plain(test.name)})",
                    "number": f"{question.name}.{place}",
                    "score": test.score,
                    "max_score": test.points,
                    "status": "passed" if test.passed else "failed",
                    "output": test.message or "passed",
                    "visibility": "hidden" if test.hidden else "visible",
                }
            )
        points = earned(graded, question, marks)
        mark = marks.get((graded.submission.student, question.name))
        if question.manual and points is not None and mark is not None:
            tests.append(
                {
                    "name": titled(question),
                    "number": question.name,
                    "score": points,
                    "max_score": question.points,
                    "output": mark.comment,
                    "visibility": "visible",
                }
            )
    results = {
        "score": round(min(most, sum(test["score"] for test in tests)), 4),
        "execution_time": round(graded.result.seconds, 2),
        "output": graded.result.problem,
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return text.everywhere(results)


def titled(question: QuestionResult) -> str:
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
    graded: Graded,
    assignment: Assignment,
    marks: Marks,
    standing: Standing | None = None,
    course: Course | None = None,
) -> str:
    """The page that a student gets: no hidden test, and nothing that one says.

    Args:
        graded: the submission.
        assignment: what it answers.
        marks: given by hand.
        standing: what counts of it; all, if it is not known.
        course: the rule for being late.
    """
    result = graded.result
    if standing is None:
        standing = alone(graded, assignment, marks)
    questions = []
    for question in result.questions:
        points = standing.points(question, marks)
        hidden = [test for test in question.tests if test.hidden]
        mark = marks.get((graded.submission.student, question.name), Mark(None))
        questions.append(
            {
                "title": titled(question),
                "extra": question.extra,
                "points": points,
                "most": question.points,
                "full": points is not None and points >= question.points,
                "open": points is None,
                "left_out": question.extra and points == 0,
                "tests": [test for test in question.tests if not test.hidden],
                "hidden": len(hidden),
                "hidden_points": sum(test.score for test in hidden),
                "hidden_most": sum(test.points for test in hidden),
                "hint": hint(question),
                "comment": mark.comment,
                "answer": graded.answers.get(question.name, ""),
                "manual": question.manual,
                "decided": question.name in standing.given,
            }
        )
    return TEMPLATES.get_template("feedback.html").render(
        title=assignment.title,
        student=graded.submission.student,
        file=text.file_name(graded.submission.path.name),
        problem=result.problem,
        standing=standing,
        handed_in=standing.handed_in and lateness.shown(standing.handed_in),
        late=lateness.span(standing.late),
        rule=str(course.rule) if course else "",
        most=maximum(assignment),
        extras=bool(assignment.extras),
        extra_points=sum(one["points"] or 0 for one in questions if one["extra"]),
        complete=all(not question["open"] for question in questions),
        questions=questions,
        cells=[cell for cell in result.cells if cell.error],
    )


def alone(graded: Graded, assignment: Assignment, marks: Marks) -> Standing:
    """What counts of a submission of which nothing more is known: all of it."""
    points = counting.total(graded, marks)
    capped = min(points, maximum(assignment))
    return Standing(graded, earned=points, capped=capped, score=capped)


def grades(
    standings: list[Standing], assignment: Assignment, marks: Marks, course: Course
) -> str:
    """grades.csv: a line for each file, then one for each who handed in nothing."""
    names = [question.name for question in assignment.questions]
    who = list(roster.COLUMNS) if course.people is not None else []
    rows: list[list[object]] = [
        [
            *("student", *who, "score", "max_score", "complete", *names, "earned"),
            *("late_by", "counts", "decision", "problem", "file"),
        ],
    ]
    for one in standings:
        points = _points(one, assignment, marks)
        person = [getattr(one.person, name, "") for name in who]
        rows.append(
            [
                *(one.student, *person, number(one.score) if one.counts else ""),
                number(maximum(assignment)),
                "no" if None in points and one.graded else "yes",
                *("" if each is None else number(each) for each in points),
                *(number(one.earned), lateness.span(one.late)),
                *("yes" if one.counts else "no", one.why),
                one.problem,
                text.file_name(one.graded.submission.place) if one.graded else "",
            ]
        )
    return table.dumps(rows)


def _points(one: Standing, assignment: Assignment, marks: Marks) -> list[float | None]:
    """The points of each question, as far as there are any."""
    if one.graded is None:
        return [one.given.get(question.name) for question in assignment.questions]
    return [one.points(question, marks) for question in one.graded.result.questions]


def question_rates(
    all_graded: list[Graded], assignment: Assignment, marks: Marks
) -> list[dict]:
    """For each question: what share of its points was earned, and which test failed.

    Of an extra only those count who have points in it: the others chose other ones.
    """
    rates = []
    for index, question in enumerate(assignment.questions):
        results = [graded.result.questions[index] for graded in all_graded]
        points = [
            earned(graded, result, marks)
            for graded, result in zip(all_graded, results, strict=True)
        ]
        if question.extra:
            pairs = zip(results, points, strict=True)
            results = [result for result, one in pairs if one]
            points = [one for one in points if one]
        known = [one for one in points if one is not None]
        failed = collections.Counter(
            test.name for result in results for test in result.tests if not test.passed
        )
        rates.append(
            {
                "name": question.name,
                "title": f"{question.title} (extra)"
                if question.extra
                else question.title,
                "extra": question.extra,
                "manual": question.manual,
                "share": statistics.mean(known) / question.points if known else None,
                "graded": len(known),
                "failed": failed.most_common(),
            }
        )
    return rates


def picture(scores: list[float], most: float, rates: list[dict]) -> bytes:
    """How the scores are distributed, and which questions cost the most points: SVG."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "book", "axes.axisbelow": True}):
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(10, 0.9 + 0.42 * max(6, len(rates))), layout="constrained"
        )
        bins = [most * edge / 10 for edge in range(11)]
        left.hist([min(score, most) for score in scores], bins, color="#0072b2")
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


def drawn(scores: list[float], most: float, rates: list[dict]) -> str:
    """The picture in base64; nothing if matplotlib fails, for what reason ever."""
    try:
        return base64.b64encode(picture(scores, most, rates)).decode()
    except Exception:
        return ""


def summary(
    standings: list[Standing],
    assignment: Assignment,
    marks: Marks,
    course: Course,
    lines: list[str],
) -> str:
    """The teacher's page: the picture, each question, each student.

    Args:
        standings: what counts.
        assignment: what was answered.
        marks: given by hand.
        course: the roster, and the rule for being late.
        lines: what is to be decided.
    """
    counted = [one for one in standings if one.graded and one.counts]
    scores = [one.score for one in counted]
    most = maximum(assignment)
    all_graded = [one.graded for one in counted]
    rates = question_rates(all_graded, assignment, marks)
    hardest = min(
        (one for one in rates if one["share"] is not None and not one["extra"]),
        key=lambda rate: rate["share"],
        default=None,
    )
    return TEMPLATES.get_template("summary.html").render(
        title=assignment.title,
        date=datetime.date.today().isoformat(),
        scores=scores,
        most=most,
        extras=bool(assignment.extras),
        capped=sum(one.earned > most for one in counted),
        median=statistics.median(scores),
        mean=statistics.mean(scores),
        rates=rates,
        hardest=hardest,
        picture=drawn(scores, most, rates),
        open=sum(
            one.points(question, marks) is None
            for one in counted
            for question in one.graded.result.questions
        ),
        rule=str(course.rule),
        lines=[text.one_line(line) for line in lines],
        roster=course.people is not None,
        absent=sum(one.graded is None and not one.other for one in standings),
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
        "earned": one.earned if one.earned > one.capped else None,
        "instead": one.instead,
        "late": lateness.span(one.late),
        "why": one.why,
        "problem": one.problem,
        "errors": [cell for cell in cells if cell.error],
        "seconds": graded.result.seconds if graded else None,
    }


def write(
    out: Path,
    all_graded: list[Graded],
    assignment: Assignment,
    course: Course | None = None,
) -> Written:
    """Write all reports; one that can't be written keeps no other back.

    Args:
        out: the folder of results; the table manual.csv in it is read.
        all_graded: the submissions. One whose page can't be written gets a problem.
        assignment: what they answer.
        course: who is who, what was decided, and the rule for being late.

    Returns:
        The marks that a person has given and that count, and what to tell the teacher.

    Raises:
        UserError: manual.csv is broken; nothing was written.
    """
    path = out / BY_HAND
    found = manual.read(path, assignment)
    answers = {graded.submission.student: graded.answers for graded in all_graded}
    last = manual.Last(
        last_marks(out, all_graded, assignment),
        {
            graded.submission.student: batch.last_answers(out, graded.submission)
            for graded in all_graded
        },
    )
    marks, unmatched = manual.match(path, found, assignment, answers, last)
    course = course or Course()
    standings, undecided = counting.stand(all_graded, assignment, marks, course)
    lines = []
    for one in standings:
        if one.graded is not None:
            lines += write_student(out, one, assignment, marks, course)
    pages = {
        "grades.csv": lambda: grades(standings, assignment, marks, course),
        "summary.html": lambda: summary(
            standings, assignment, marks, course, undecided
        ),
    }
    lines += [said for name in pages if (said := attempt(out / name, pages[name]))]
    lines += undecided + unmatched
    if unmatched or any(question.manual for question in assignment.questions):
        try:
            lines += _update(out, found, unmatched, all_graded, assignment, marks, last)
        except OSError as error:
            lines.append(f"{path}: can't be written ({error.strerror}).")
    return Written(marks, standings, [text.one_line(line) for line in lines])


def _update(
    out: Path,
    found: manual.Table,
    unmatched: list[str],
    all_graded: list[Graded],
    assignment: Assignment,
    marks: Marks,
    last: manual.Last,
) -> list[str]:
    """Write manual.csv anew, and keep which answers it shows; lines to tell."""
    answers = {graded.submission.student: graded.answers for graded in all_graded}
    lines, replaced = manual.update(
        out / BY_HAND, assignment, answers, marks, last, found.data, bool(unmatched)
    )
    names = [one.name for one in assignment.questions if one.manual]
    for graded in all_graded if replaced else []:
        ids = {one: manual.answer_id(graded.answers.get(one, "")) for one in names}
        batch.keep_answers(out, graded.submission, ids)
    return lines


def write_student(
    out: Path, one: Standing, assignment: Assignment, marks: Marks, course: Course
) -> list[str]:
    """Write what a student and a platform read; lines about what could not be."""
    graded = one.graded
    folder = batch.folder(out, graded.submission)
    pages = {
        RESULTS: lambda: (
            json.dumps(gradescope(graded, marks, maximum(assignment)), indent=1) + "\n"
        ),
        "feedback.html": lambda: feedback(graded, assignment, marks, one, course),
    }
    lines = []
    for name, make in pages.items():
        if said := attempt(folder / name, make):
            problems = [graded.result.problem, f"{name} can't be written"]
            graded.result.problem = "; ".join(filter(None, problems))
            lines.append(f"{graded.submission.student}: {said}")
    return lines


def attempt(path: Path, make: Callable[[], str]) -> str:
    """Write a report; why that fails, or an empty text."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, make())
    except Exception as error:  # of whatever kind: the other reports must be written
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        return f"{path}: can't be written ({reason}). Fix: remove what is in its place."
    return ""


def last_marks(out: Path, all_graded: list[Graded], assignment: Assignment) -> Marks:
    """The marks that counted on the last run, as far as its results can be read."""
    by_hand = {one.name for one in assignment.questions if one.manual}
    found: Marks = {}
    for graded in all_graded:
        path = batch.folder(out, graded.submission) / RESULTS
        try:
            tests = (
                json.loads(path.read_text("utf-8"))["tests"] if path.is_file() else []
            )
            marks = {
                (graded.submission.student, test["number"]): Mark(
                    float(test["score"]), str(test["output"])
                )
                for test in tests
                if test["number"] in by_hand
            }
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
        found |= marks
    return found
