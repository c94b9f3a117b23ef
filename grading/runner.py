"""Grades one notebook: its cells run in the sandbox, the tests run here."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import time
from collections.abc import Callable

from grading import apart, sandbox, text
from grading.answers import Answers, NotPlainData
from grading.assignment import Assignment
from grading.session import RemoteError, Session, WorkerLost, open_session

SEED = "GRADING_SEED"  # the variable that hidden tests take their inputs' seed from
GRADER_FAILED = "failed"  # the kind of an outcome: the grader failed, not the answer
PREDICTION = "_prediction"  # how the name of a check ends that asks for one
HUNG = "not tried: a call of this question had run out of time before"
NO_TIME = "not run: the cells before it had used up the time that cells have"
TESTS_SHARE = 1 / 3  # of the time of all, which cells that hang leave to the tests
PAUSE = 0.5  # seconds in which a cell's harm may show, once there was some
TOO_SLOW = "too slow"  # how the message of a test starts that measures time


@dataclasses.dataclass(frozen=True)
class Cell:
    """A code cell of a submission."""

    number: int  # its place in the notebook, from 1, text cells counted
    source: str


@dataclasses.dataclass
class CellResult:
    """What became of a cell."""

    number: int
    start: str  # its first line
    error: str = ""  # what it raised, or why the worker was lost in it


@dataclasses.dataclass
class TestResult:
    """What became of a test."""

    name: str
    hidden: bool
    points: float
    passed: bool
    message: str = ""
    kind: str = "wrong"  # or "slow", or "lost" with the worker; empty if it passed
    limit: str = ""  # what it broke, if it was slow: "a call may take 30 s"
    prediction: bool = False  # it asks for a prediction, and has no right answer
    score: float = 0.0  # the points that count


@dataclasses.dataclass
class QuestionResult:
    """What became of a question."""

    name: str
    title: str
    manual: bool
    points: float  # what it is worth
    score: float = 0.0
    extra: bool = False  # no part of the core
    tests: list[TestResult] = dataclasses.field(default_factory=list)

    def count(self) -> None:
        """Give the tests that passed their points, and the question the sum.

        Whoever reads a public check can write an answer for its inputs alone. So its
        points count only beside a hidden check that passed, where the question has
        any. A prediction counts in any case: nothing about it can be checked.
        """
        hidden = [test for test in self.tests if test.hidden]
        shown = not hidden or any(test.passed for test in hidden)
        for test in self.tests:
            counts = test.passed and (shown or test.hidden or test.prediction)
            test.score = test.points if counts else 0.0
        self.score = sum(test.score for test in self.tests)


@dataclasses.dataclass
class Result:
    """What became of a submission, as far as machines can tell."""

    questions: list[QuestionResult]
    cells: list[CellResult] = dataclasses.field(default_factory=list)
    problem: str = ""  # why nothing, or not everything, could be graded
    seconds: float = 0.0
    failed: bool = False  # the grader, not the submission: the next run tries again

    @property
    def score(self) -> float:
        """The points of all tests that passed, extras and all."""
        return sum(question.score for question in self.questions)

    @classmethod
    def from_json(cls, data: dict) -> Result:
        """The result that `dataclasses.asdict` took apart."""
        questions = [
            QuestionResult(
                **{**fields, "tests": [TestResult(**t) for t in fields["tests"]]}
            )
            for fields in data["questions"]
        ]
        cells = [CellResult(**fields) for fields in data["cells"]]
        return cls(**{**data, "questions": questions, "cells": cells})


def seed_number(seed: str) -> int:
    """The number that a secret, any text, stands for."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:6])


def empty_result(assignment: Assignment, problem: str = "") -> Result:
    """The result of a submission of which nothing was graded."""
    questions = []
    for question in assignment.questions:
        cases = []
        if not question.manual:
            cases = load_tests(assignment, question.name)
        tests = [
            TestResult(
                *(case.name, case.hidden, case.points, False, problem),
                prediction=case.name.endswith(PREDICTION),
            )
            for case in cases
        ]
        own = (question.name, question.title, question.manual, question.points)
        questions.append(QuestionResult(*own, extra=question.extra, tests=tests))
    return Result(questions, problem=problem)


@dataclasses.dataclass
class Case:
    """A test that can be run."""

    name: str
    hidden: bool
    points: float
    run: Callable[[Answers], None]  # raises an error if it fails


def load_tests(assignment: Assignment, question: str) -> list[Case]:
    """The tests of a question: trusted code, executed here."""
    tests = assignment.tests.get(question, [])
    name = f"tests of {assignment.name}/{question}.py"
    names: dict = {}
    exec(compile("\n\n\n".join(one.source for one in tests), name, "exec"), names)
    return [Case(one.name, one.hidden, one.points, names[one.name]) for one in tests]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a test that has run."""

    message: str = ""  # why it failed
    kind: str = ""  # see TestResult; or GRADER_FAILED
    limit: str = ""  # see TestResult
    lost: bool = False  # the worker is of no use any more
    asked: int = 0  # the number of the last request to it


class Grading:
    """The grading of one submission, whose code cells are run in order."""

    def __init__(
        self, assignment: Assignment, cells: list[Cell], limits: sandbox.Limits
    ) -> None:
        self.cells = cells
        self.limits = limits
        self.ended: set[int] = set()  # cells that have run to their end
        self.skipped: set[int] = set()  # cells in which a worker was lost
        self.starts = 0
        self.workers_lost = 0  # but for those that ran out of time
        self.hung: set[str] = set()  # questions of which a call ran out of time
        self.slow_cells = 0  # that ran out of time
        self.lost_in_tests = 0  # those of them that were lost while a test ran
        self.sealed = False  # what cells say now could carry hidden inputs
        self.deadline = 0.0
        self.session: Session | None = None
        self.cases = {
            question.name: load_tests(assignment, question.name)
            for question in assignment.questions
            if not question.manual
        }
        self.result = empty_result(assignment)
        for cell in cells:
            first = (cell.source.strip().splitlines() or [""])[0][:80]
            self.result.cells.append(CellResult(cell.number, text.one_line(first)))

    def grade(self, seed: str = "0") -> Result:
        """Run the cells, then the tests.

        Args:
            seed: the secret from which hidden tests draw their inputs.

        Raises:
            OSError: this machine could not grade it, which is no fault of its own.
        """
        start = time.monotonic()
        self.deadline = start + self.limits.total_seconds
        os.environ[SEED] = str(seed_number(seed))
        try:
            self._ready()
            for question, case, report in self._tests():
                if question in self.hung:
                    report.message, report.kind = HUNG, "slow"
                else:
                    self._ready()
                    self._run_test(question, case, report)
        except WorkerLost as error:
            self._give_up(error)
        finally:
            self._end()
            os.environ.pop(SEED, None)
            for question in self.result.questions:
                if not question.manual:
                    question.count()
        self.result.seconds = time.monotonic() - start
        return self.result

    def question(self, name: str) -> QuestionResult:
        """The result of a question."""
        return next(q for q in self.result.questions if q.name == name)

    def _end(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    def _seconds(self, limit: float) -> float:
        """What is left of a time limit.

        Raises:
            WorkerLost: nothing is left of the time of all.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise WorkerLost(f"it used up its {self.limits.total_seconds:g} s", True)
        return min(limit, left)

    def _ready(self) -> None:
        """Have a worker in which all cells have run that can run.

        A cell in which the worker was lost is left out when a new one runs the rest.
        Once one was lost while a test ran, it is looked at after each cell: harm that
        shows late is then laid to the cell that did it.

        Raises:
            WorkerLost: there have been too many workers, or no time is left.
        """
        while self.session is None:
            if self.workers_lost > self.limits.restarts:
                raise WorkerLost(f"{self.workers_lost} workers were lost")
            self.starts += 1
            self._seconds(1)
            self.session = open_session(self.limits)
            for cell, report in zip(self.cells, self.result.cells, strict=True):
                if cell.number not in self.skipped and not self._cell(cell, report):
                    break

    def _cell_seconds(self, number: int) -> float:
        """How long a cell may run; nothing, if no time is left for one that is new.

        Each cell that hangs halves what others may take, so that all of them together
        leave a share of the time to the tests. A cell that has ended once is trusted.
        """
        limit = self.limits.cell_seconds
        if number not in self.ended:
            kept = self.limits.total_seconds * TESTS_SHARE
            limit = min(limit, kept) / 2**self.slow_cells
            limit = min(limit, self.deadline - kept - time.monotonic())
        return self._seconds(limit)

    def _cell(self, cell: Cell, report: CellResult) -> bool:
        """Run a cell; whether the worker is still there."""
        if self.sealed:
            report = dataclasses.replace(report)  # nobody reads it
        seconds = self._cell_seconds(cell.number)
        if seconds <= 0:
            self.skipped.add(cell.number)
            report.error = NO_TIME
            return True
        try:
            error = self.session.run(cell.source, seconds)
            if self.lost_in_tests:
                self.session.pause(PAUSE)
        except WorkerLost as lost:
            self._end()
            self.skipped.add(cell.number)
            self.slow_cells += lost.slow
            self.workers_lost += not lost.slow
            report.error = f"the worker was lost: {lost}"
            return False
        self.ended.add(cell.number)
        report.error = f"{error['type']}: {error['message']}" if error else ""
        return True

    def _tests(self) -> list[tuple]:
        """All tests with their questions and reports: first the public ones.

        What a public test says is shown to the student, and so is what cells say. They
        must not be able to carry hidden inputs, so the worker gets those when all
        public tests are done; what cells say when they run after that is not kept.
        """
        tests = [
            (question.name, case, report)
            for question in self.result.questions
            if not question.manual
            for case, report in zip(
                self.cases[question.name], question.tests, strict=True
            )
        ]
        return sorted(tests, key=lambda test: test[2].hidden)

    def _run_test(self, question: str, case: Case, report: TestResult) -> None:
        """Run a test and note what became of it.

        Where a call ran out of time, no other test of the question is tried: a loop
        without an end costs its own question, and not the time of the others.
        """
        self.sealed = self.sealed or report.hidden
        outcome = self.test(case)
        if outcome.lost and outcome.kind != "slow" and self.lost_in_tests < 2:
            self._ready()  # was it this check, or harm done before?
            outcome = self.test(case)
        if outcome.kind == "slow" and outcome.lost:
            self.hung.add(question)
        report.message, report.kind = outcome.message, outcome.kind
        report.limit = outcome.limit
        report.passed = not outcome.kind

    def _give_up(self, error: WorkerLost) -> None:
        """Say why grading stopped, and of each test that is left why it did not run."""
        self.result.problem = f"grading stopped: {error}"
        for question in self.result.questions:
            for report in question.tests:
                if not report.passed and not report.message:
                    report.message = self.result.problem
                    report.kind = "slow" if error.slow else "lost"
                    whole = f"all of it may take {self.limits.total_seconds:g} s"
                    report.limit = whole if error.slow else ""

    def test(self, case: Case) -> Outcome:
        """Run a test, in a process of its own.

        Raises:
            WorkerLost: the submission has used up its time.
            OSError: this machine could not run it.
        """
        left = self._seconds(self.limits.total_seconds)
        bounds = self.limits.check_seconds, self.limits.check_bytes
        try:
            fields = apart.run(
                lambda: dataclasses.asdict(self._judge(case)), left, *bounds
            )
        except apart.Ended as ended:
            message = f"this check was ended while it looked at your answer: {ended}"
            outcome = Outcome(message, "slow", lost=True)
        else:
            outcome = Outcome(**fields)
            self.session.number = outcome.asked
        if outcome.kind == GRADER_FAILED:
            raise OSError(outcome.message)
        if outcome.lost:
            if outcome.kind != "slow":
                self.workers_lost += 1
                self.lost_in_tests += 1
            self._end()
        return outcome

    def _judge(self, case: Case) -> Outcome:
        """What becomes of a test: the part that runs in a process of its own."""
        message = kind = limit = ""
        seconds = self._seconds(self.limits.call_seconds)
        answers = Answers(self.session, seconds)
        try:
            case.run(answers)
        except AssertionError as error:
            message = str(error) or "the answer is wrong"
            kind = "slow" if message.startswith(TOO_SLOW) else "wrong"
        except WorkerLost as lost:
            message = f"your code did not survive this check: {lost}"
            kind = "slow" if lost.slow else "lost"
            if lost.slow:
                limit = f"a call may take {self.limits.call_seconds:g} s"
        except RemoteError as error:
            message, kind = f"your code raised {error}", "wrong"
        except KeyError as error:
            message = f"there is no {error} in the notebook{self._left_out(error)}"
            kind = "wrong"
        except NotPlainData as error:
            message, kind = str(error), "wrong"
        except OSError as error:  # this machine's fault, not the answer's
            message, kind = str(error), GRADER_FAILED
        except Exception as error:  # the test could not use what came back
            reason = f"{type(error).__name__}: {error}"
            message, kind = f"the check can't use this answer ({reason})", "wrong"
        message = message[:1000]
        if kind and case.hidden and answers.last_call:
            message = f"{message}\nIts last call: {answers.last_call}."
        return Outcome(message, kind, limit, self.session.lost, self.session.number)

    def _left_out(self, missing: KeyError) -> str:
        """Which cell that would have defined a name was left out, if one was."""
        name = re.escape(str(missing).strip("'"))
        defines = re.compile(rf"(?m)^(def|class) {name}\b|^{name} *[:=,]")
        for cell in self.cells:
            if cell.number in self.skipped and defines.search(cell.source):
                return f": cell {cell.number}, which defines it, was left out"
        return ", or a key is missing"
