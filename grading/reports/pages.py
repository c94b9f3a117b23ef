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
from grading.reports import manual, table
from grading.reports.manual import Key, Mark
from grading.runner import QuestionResult
from tools import files

Marks = dict[Key, Mark]
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
    "Your answer takes too long on other inputs: think of loops in Python, of work "
    "that is done twice, of compiling again for each size."
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
    lines: list[str]  # for the terminal: what could not be written, or does not count


def number(value: float) -> str:
    """Points as people write them."""
    return f"{round(value, 2):g}"


def plain(name: str) -> str:
    """A test's name as people write it: `q1 other inputs`."""
    return name.removeprefix("test_").replace("_", " ")


TEMPLATES.filters.update(number=number, plain=plain)


def earned(graded: Graded, question: QuestionResult, marks: Marks) -> float | None:
    """The points of a question; None for one that a person has still to grade."""
    if not question.manual:
        return question.score
    return marks.get((graded.submission.student, question.name), Mark(None)).points


def total(graded: Graded, marks: Marks) -> float:
    """All points that a student has so far."""
    questions = graded.result.questions
    return sum(earned(graded, question, marks) or 0.0 for question in questions)


def maximum(assignment: Assignment) -> float:
    """The points of a submission without a fault, from the tests and the questions."""
    return sum(question.points for question in assignment.questions)


def gradescope(graded: Graded, marks: Marks) -> dict:
    """A submission's results in the form that Gradescope takes.

    Source: Gradescope's autograder specifications, "Output format".
    """
    tests = []
    for question in graded.result.questions:
        for place, test in enumerate(question.tests, start=1):
            tests.append(
                {
                    "name": f"{question.title} ({plain(test.name)})",
                    "number": f"{question.name}.{place}",
                    "score": test.points if test.passed else 0.0,
                    "max_score": test.points,
                    "status": "passed" if test.passed else "failed",
                    "output": test.message or "passed",
                    "visibility": "hidden" if test.hidden else "visible",
                }
            )
        points = earned(graded, question, marks)
        if question.manual and points is not None:
            mark = marks[graded.submission.student, question.name]
            tests.append(
                {
                    "name": question.title,
                    "number": question.name,
                    "score": points,
                    "max_score": question.points,
                    "output": mark.comment,
                    "visibility": "visible",
                }
            )
    results = {
        "score": round(sum(test["score"] for test in tests), 4),
        "execution_time": round(graded.result.seconds, 2),
        "output": graded.result.problem,
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return text.everywhere(results)


def hint(question: QuestionResult) -> str:
    """What a student is told of hidden tests that failed: of what kind, no more."""
    kinds = {test.kind for test in question.tests if test.hidden and not test.passed}
    others = [test for test in question.tests if not test.hidden]
    if not kinds or not all(test.passed for test in others):
        return ""
    if kinds == {"slow"}:
        return SLOW
    return LOST if kinds <= {"slow", "lost"} else WRONG


def feedback(graded: Graded, assignment: Assignment, marks: Marks) -> str:
    """The page that a student gets: no hidden test, and nothing that one says."""
    result = graded.result
    questions = []
    for question in result.questions:
        points = earned(graded, question, marks)
        hidden = [test for test in question.tests if test.hidden]
        mark = marks.get((graded.submission.student, question.name), Mark(None))
        questions.append(
            {
                "title": question.title,
                "points": points,
                "most": question.points,
                "full": points is not None and points >= question.points,
                "open": points is None,
                "tests": [test for test in question.tests if not test.hidden],
                "hidden": len(hidden),
                "hidden_points": sum(test.points for test in hidden if test.passed),
                "hidden_most": sum(test.points for test in hidden),
                "hint": hint(question),
                "comment": mark.comment,
                "answer": graded.answers.get(question.name, ""),
                "manual": question.manual,
            }
        )
    return TEMPLATES.get_template("feedback.html").render(
        title=assignment.title,
        student=graded.submission.student,
        file=text.file_name(graded.submission.path.name),
        problem=result.problem,
        score=total(graded, marks),
        most=maximum(assignment),
        complete=all(not question["open"] for question in questions),
        questions=questions,
        cells=[cell for cell in result.cells if cell.error],
    )


def grades(all_graded: list[Graded], assignment: Assignment, marks: Marks) -> str:
    """grades.csv: a line for each student."""
    names = [question.name for question in assignment.questions]
    rows: list[list[object]] = [
        ["student", "score", "max_score", "complete", *names, "problem", "file"],
    ]
    for graded in all_graded:
        points = [earned(graded, one, marks) for one in graded.result.questions]
        rows.append(
            [
                graded.submission.student,
                number(total(graded, marks)),
                number(maximum(assignment)),
                "no" if None in points else "yes",
                *("" if one is None else number(one) for one in points),
                graded.result.problem,
                text.file_name(graded.submission.path.name),
            ]
        )
    return table.dumps(rows)


def question_rates(
    all_graded: list[Graded], assignment: Assignment, marks: Marks
) -> list[dict]:
    """For each question: what share of its points was earned, and which test failed."""
    rates = []
    for index, question in enumerate(assignment.questions):
        results = [graded.result.questions[index] for graded in all_graded]
        points = [
            earned(graded, result, marks)
            for graded, result in zip(all_graded, results, strict=True)
        ]
        known = [one for one in points if one is not None]
        failed = collections.Counter(
            test.name for result in results for test in result.tests if not test.passed
        )
        rates.append(
            {
                "name": question.name,
                "title": question.title,
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
        known = [rate for rate in rates if rate["share"] is not None][::-1]
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


def summary(all_graded: list[Graded], assignment: Assignment, marks: Marks) -> str:
    """The teacher's page: the picture, each question, each student."""
    scores = [total(graded, marks) for graded in all_graded]
    most = maximum(assignment)
    rates = question_rates(all_graded, assignment, marks)
    hardest = min(
        (rate for rate in rates if rate["share"] is not None),
        key=lambda rate: rate["share"],
        default=None,
    )
    return TEMPLATES.get_template("summary.html").render(
        title=assignment.title,
        date=datetime.date.today().isoformat(),
        scores=scores,
        most=most,
        median=statistics.median(scores),
        mean=statistics.mean(scores),
        rates=rates,
        hardest=hardest,
        picture=drawn(scores, most, rates),
        open=sum(
            earned(graded, question, marks) is None
            for graded in all_graded
            for question in graded.result.questions
        ),
        rows=[
            {
                "student": graded.submission.student,
                "page": f"{batch.STUDENTS}/{graded.submission.folder}/feedback.html",
                "score": score,
                "problem": graded.result.problem,
                "errors": [cell for cell in graded.result.cells if cell.error],
                "seconds": graded.result.seconds,
            }
            for graded, score in zip(all_graded, scores, strict=True)
        ],
    )


def write(out: Path, all_graded: list[Graded], assignment: Assignment) -> Written:
    """Write all reports; one that can't be written keeps no other back.

    Args:
        out: the folder of results; the table manual.csv in it is read.
        all_graded: the submissions. One whose page can't be written gets a problem.
        assignment: what they answer.

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
    lines = []
    for graded in all_graded:
        lines += write_student(out, graded, assignment, marks)
    pages = {
        "grades.csv": lambda: grades(all_graded, assignment, marks),
        "summary.html": lambda: summary(all_graded, assignment, marks),
    }
    lines += [said for name in pages if (said := attempt(out / name, pages[name]))]
    lines += unmatched
    if unmatched or any(question.manual for question in assignment.questions):
        try:
            lines += _update(out, found, unmatched, all_graded, assignment, marks, last)
        except OSError as error:
            lines.append(f"{path}: can't be written ({error.strerror}).")
    return Written(marks, [text.one_line(line) for line in lines])


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
    out: Path, graded: Graded, assignment: Assignment, marks: Marks
) -> list[str]:
    """Write what a student and a platform read; lines about what could not be."""
    folder = batch.folder(out, graded.submission)
    pages = {
        RESULTS: lambda: json.dumps(gradescope(graded, marks), indent=1) + "\n",
        "feedback.html": lambda: feedback(graded, assignment, marks),
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
