"""The gates of an assignment: its solution, its starter, empty and wrong answers.

Wrong answers stand in tests/grading/wrong_answers: each redefines a question's names in
the solution, and says how many points that question must then get.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
from collections.abc import Iterator
from unittest import mock

import nbformat
import yaml

from grading import runner, sandbox
from grading.assignment import Assignment
from grading.runner import Cell, Result
from grading.session import WorkerLost
from tools.model.chapters import ROOT

SECRET = "a secret of the gates"
SAVE = "import builtins; builtins.saved = dict(globals())"
RESTORE = "import builtins; globals().update(builtins.saved)"
MOST_HARD_CODED = 0.1  # of the core's points, for the printed examples alone
EMPTY = (None, ..., float("nan"), [], {}, "", True, 0, mock.MagicMock())
# Messages that nobody wrote for the student: they were raised by accident.
ACCIDENTS = ("the check can't use", "your code raised", "got an object", "key is")


class AnyName(dict):
    """An environment in which every name has the same value."""

    def __init__(self, value) -> None:
        self.value = value

    def __getitem__(self, name):
        return self.value

    def get(self, name, default=None):
        """The same value, whatever the default."""
        return self.value


def cells(notebook: nbformat.NotebookNode) -> list[Cell]:
    """The code cells of a notebook, as they are graded."""
    return [
        Cell(number, cell.source)
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
    ]


def passing(assignment: Assignment, environment) -> list[str]:
    """The tests that pass in an environment, here, without a worker."""
    passed = []
    for question in assignment.tests:
        for case in runner.load_tests(assignment, question):
            try:
                case.run(environment)
            except Exception:
                continue
            passed.append(case.name)
    return passed


def empty_answers(assignment: Assignment) -> list[str]:
    """What is wrong with empty answers: each test that passes without an answer."""
    said = [f"{name} passes without any name" for name in passing(assignment, {})]
    for value in EMPTY:
        passed = passing(assignment, AnyName(value))
        said += [f"{name} passes where every name is {value!r}" for name in passed]
    return said


def solution(result: Result) -> list[str]:
    """What is wrong with a solution: it must run, and get all points."""
    said = [result.problem] if result.problem else []
    said += _errors(result)
    for question in result.questions:
        said += [f"{t.name} fails: {t.message}" for t in question.tests if not t.passed]
        wanted = 0 if question.manual else question.points
        if not said and not math.isclose(question.score, wanted):
            said.append(f"{question.name} has {question.score:g} of {wanted:g} points")
    return said


def _errors(result: Result) -> list[str]:
    return [
        f"cell {cell.number} raises {cell.error}" for cell in result.cells if cell.error
    ]


def starter(result: Result) -> list[str]:
    """What is wrong with a starter: it must run, get nothing, and be told why."""
    said = _errors(result)
    for question in result.questions:
        for test in question.tests:
            if test.passed:
                said.append(f"{test.name} passes")
            elif not test.hidden and not helpful(test.message):
                said.append(f"{test.name} says nothing that helps: {test.message}")
    return said


def helpful(message: str) -> bool:
    """Whether a message was written for the student, not raised by accident."""
    return len(message) > 15 and not message.startswith(ACCIDENTS)


@contextlib.contextmanager
def graded(
    assignment: Assignment, notebook: str = "solution"
) -> Iterator[tuple[runner.Grading, Result]]:
    """The grading of its solution or `student`, its worker still there, and its result.

    The slow originals among the wrong answers get their zero, and are not stopped,
    where other programs run beside them; a solution's worker answers all of them.
    """
    patient = {"call_seconds": 600, "total_seconds": 3600}
    limits = sandbox.Limits(**(patient if notebook == "solution" else {}))
    grading = runner.Grading(assignment, cells(getattr(assignment, notebook)), limits)
    grading._end = lambda: None  # it ends below, after the wrong answers
    try:
        yield grading, grading.grade(SECRET)
    finally:
        if grading.session is not None:
            grading.session.close()


def known_wrong_answers(name: str) -> list[dict]:
    """The wrong answers of an assignment."""
    path = ROOT / "tests" / "grading" / "wrong_answers" / f"{name}.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def wrong_answers(grading: runner.Grading, answers: list[dict]) -> list[str]:
    """What is wrong with the tests: each wrong answer that gets other points.

    Args:
        grading: of the solution, its worker still there.
        answers: each with question, why, code, and points, which may be a list, where
            speed is near its limit.
    """
    said = []
    for number, answer in enumerate(answers, start=1):
        with mock.patch.dict(os.environ, {runner.SEED: str(1000 * number)}):
            try:
                deserved, score = answer["points"], _score(grading, answer)
            except WorkerLost as lost:
                said.append(f"{answer['question']}, {answer['why']}: {lost}")
                break  # nobody is left to ask
        if score not in (deserved if isinstance(deserved, list) else [deserved]):
            said.append(f"{answer['question']}, {answer['why']}: {score}")
    return said


def _score(grading: runner.Grading, answer: dict) -> float | str:
    """The points of a question whose answer is replaced, or why it has none.

    Raises:
        WorkerLost: the answer has ended the worker.
    """
    if error := grading.session.run(SAVE, 10):
        return f"the solution can't be kept ({error['message']})"
    if error := grading.session.run(answer["code"], 60):
        return f"its code raises {error['type']}: {error['message']}"
    cases = grading.cases[answer["question"]]
    outcomes = [grading.test(case) for case in cases]
    if lost := [outcome.message for outcome in outcomes if outcome.lost]:
        raise WorkerLost(lost[0])
    if error := grading.session.run(RESTORE, 10):
        return f"the solution can't be brought back ({error['message']})"
    question = copy.deepcopy(grading.question(answer["question"]))
    for test, outcome in zip(question.tests, outcomes, strict=True):
        test.passed = not outcome.kind
    question.count()
    return question.score


def hard_coded(
    assignment: Assignment, starter: runner.Grading, answers: list[dict]
) -> list[str]:
    """What is wrong with a starter that has the printed examples and nothing else."""
    cheap = {one["question"]: one["code"] for one in answers if one.get("public")}
    for code in cheap.values():
        starter.session.run(code, 60)
    grading = runner.Grading(assignment, [], sandbox.Limits())
    grading.session = starter.session
    result = grading.grade(SECRET)
    said = []
    for question in result.questions:
        if not question.manual and question.name not in cheap:
            said.append(f"no answer for {question.name} alone is marked `public: true`")
        for test in question.tests if question.name in cheap else []:
            if not (test.hidden or test.passed):
                said.append(f"{test.name} fails: {test.message}")
    if result.score > assignment.points * MOST_HARD_CODED:
        said.append(f"{result.score:g} of {assignment.points:g} points")
    return said
