"""What a question is worth: public beside hidden checks, and what hangs."""

import dataclasses
import re
import time

import class_factory
import gates
import pytest

from grading import runner, sandbox
from grading.runner import QuestionResult

SHORT = sandbox.Limits(cell_seconds=4, call_seconds=1, total_seconds=60, restarts=0)
HANGS = "import time; time.sleep(99)"


def graded(*code: str, limits: sandbox.Limits = SHORT, seed: str = "0"):
    """The small assignment's solution with cells below it, and how it was graded."""
    cells = gates.cells(class_factory.notebook(after=code))
    grading = runner.Grading(class_factory.mini(), cells, limits)
    return grading, {one.name: one for one in grading.grade(seed).questions}


@pytest.mark.parametrize(
    "passed, score",
    [
        ("public", 0),
        ("hidden", 3),
        ("public hidden", 4),
        ("prediction", 0.5),
        ("public prediction", 0.5),
        ("public hidden prediction", 4.5),
    ],
)
def test_a_public_check_counts_only_beside_a_hidden_one(passed, score):
    tests = [
        runner.TestResult("q1_form", False, 1, "public" in passed),
        runner.TestResult("q1_prediction", False, 0.5, "prediction" in passed),
        runner.TestResult("q1_other", True, 3, "hidden" in passed),
    ]
    tests[1].prediction = True
    question = QuestionResult("q1", "", False, 4.5, tests=tests)
    question.count()
    assert question.score == sum(test.score for test in tests) == score


@class_factory.NEEDS_SANDBOX
def test_a_question_that_hangs_costs_that_question_alone():
    hangs = f"def dense(inputs, units):\n    {HANGS}"
    grading, found = graded(hangs, "dense(1, 1)")
    assert (found["q1"].score, found["q2"].score, found["q3"].score) == (4, 0, 1)
    tried, other = found["q2"].tests
    assert "still running" in tried.message and "1 s" in tried.limit
    assert (other.message, other.kind) == (runner.HUNG, "slow")
    assert grading.starts == 3  # after the cell, and the check
    assert grading.workers_lost == 0
    assert grading.result.problem == ""


@class_factory.NEEDS_SANDBOX
def test_cells_that_hang_leave_time_to_the_checks_and_to_later_cells():
    start = time.monotonic()
    limits = dataclasses.replace(SHORT, cell_seconds=8, total_seconds=46)
    _, found = graded(*4 * [HANGS], "bytes_q3 = 5", limits=limits)
    assert (found["q1"].score, found["q2"].score, found["q3"].score) == (4, 3, 0)
    assert time.monotonic() - start < 58


@class_factory.NEEDS_SANDBOX
def test_a_hidden_check_tells_what_it_asked_and_what_came_back():
    wrong = "def dense(a, b):\n    return type('Two', (), {'count': lambda self: 2})()"
    seed = str(runner.seed_number("a secret"))
    _, found = graded(wrong, seed="a secret")
    public, hidden = found["q2"].tests
    assert public.passed and public.message == ""
    assert re.search(
        r"Its last call: dense\(\d+, \d+\)\.count\(\), which gave 2\.$", hidden.message
    )
    assert seed not in hidden.message
