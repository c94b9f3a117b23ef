"""The gate of each assignment: what its solution, its starter and wrong answers score.

Wrong answers stand in tests/grading/wrong_answers; gates.py says how they are tried.
"""

import ast
import functools
from itertools import chain

import class_factory
import gates
import nbclient
import pytest
from test_handing_out import MARK

from grading import runner
from grading.assignment import Assignment
from grading.author import masters
from tools.model.chapters import ROOT

NAMES = [path.stem for path in masters.master_paths()]


@functools.cache
def assignment(name: str) -> Assignment:
    return masters.build(ROOT / "assignments" / "masters" / f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
def test_the_students_notebook_is_what_its_master_makes(name):
    path = ROOT / "assignments" / f"{name}.ipynb"
    assert path.read_text() == masters.dumps(assignment(name).student), (
        f"{path.name}: not what its master makes. Fix: make assignments."
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_check_says_what_is_wrong(name):
    for test in chain(*assignment(name).tests.values()):
        for node in ast.walk(ast.parse(test.source)):
            said = not isinstance(node, ast.Assert) or node.msg
            assert said, f"{test.name}: {ast.unparse(node)}"


@pytest.mark.parametrize("name", NAMES)
def test_each_question_has_a_public_check_or_is_marked_by_hand(name):
    found = assignment(name)
    for question in found.questions:
        public = [not test.hidden for test in found.tests.get(question.name, [])]
        assert question.manual or any(public), question.name


@pytest.mark.parametrize("name", NAMES)
def test_the_students_notebook_gives_nothing_away_and_no_solution_holds_a_mark(name):
    found = assignment(name)
    for cell in found.solution.cells:
        assert not MARK.search(cell.source), cell.source
    text = "\n".join(cell.source for cell in found.student.cells)
    assert not masters.SECRETS.search(text)
    hidden = [test for test in chain(*found.tests.values()) if test.hidden]
    assert hidden
    assert [test.name for test in hidden if test.name in text] == []


@pytest.fixture(scope="class")
def solved(request):
    """The grading of a gate's solution, its worker still there, and its result."""
    with gates.graded(assignment(request.cls.name)) as found:
        yield found


@pytest.fixture(scope="class")
def started(request):
    """The same of a gate's starter."""
    with gates.graded(assignment(request.cls.name), "student") as found:
        yield found


class Gate:
    """Runs an assignment in the sandbox; a class for each, so that they run apart."""

    name = ""

    def test_the_solution_scores_full_marks(self, solved):
        assert gates.solution(solved[1]) == []

    def test_the_starter_runs_and_scores_nothing(self, started):
        assert gates.starter(started[1]) == []

    def test_no_test_passes_without_an_answer(self):
        assert gates.empty_answers(assignment(self.name)) == []

    def test_the_printed_examples_alone_are_worth_a_tenth_at_most(self, started):
        answers = gates.known_wrong_answers(self.name)
        assert gates.hard_coded(assignment(self.name), started[0], answers) == []

    @pytest.mark.slow
    def test_wrong_answers_score_what_they_deserve(self, solved):
        grading, result = solved
        answers = gates.known_wrong_answers(self.name)
        graded = {answer["question"] for answer in answers}
        assert graded == {one.name for one in result.questions if not one.manual}
        assert gates.wrong_answers(grading, answers) == []


for _name in NAMES:  # the first one is fast enough for each run of the tests
    _marks = [class_factory.NEEDS_SANDBOX]
    _marks += [] if _name == NAMES[0] else [pytest.mark.slow]
    _class = "Test" + _name.title().replace("-", "")
    globals()[_class] = type(_class, (Gate,), {"name": _name, "pytestmark": _marks})


# Its hidden tests must tell these answers apart, or the gate says so.
WRONG_ANSWERS = [
    {"question": "q3", "why": "five", "points": 0, "code": "bytes_q3 = 5"},
    {"question": "q3", "why": "four", "points": 0, "code": "bytes_q3 = 4"},
    {"question": "q1", "why": "broken", "points": 0, "code": "def softmax(:"},
]


@class_factory.NEEDS_SANDBOX
def test_a_wrong_answer_that_gets_other_points_is_told():
    with gates.graded(class_factory.mini()) as (grading, _):
        faults = gates.wrong_answers(grading, WRONG_ANSWERS)
    assert len(faults) == 2
    assert faults[0] == "q3, four: 1.0"
    assert "q1, broken: its code raises SyntaxError" in faults[1]


# What a student sees who checks.


def shown(notebook, folder) -> list[str]:
    """What the cells print that check a question, in a folder of the student's."""
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=60, resources=resources).execute()
    checks = [cell for cell in notebook.cells if cell.source.startswith("check(")]
    return ["".join(one["text"] for one in cell.outputs) for cell in checks]


def test_a_students_checks_work_in_an_empty_folder(tmp_path):
    passed = [f"test_{name} passed\n" for name in ("q1_form", "q2_small", "q3_bytes")]
    assert shown(class_factory.notebook(), tmp_path) == passed
    assert list(tmp_path.iterdir()) == []


def test_a_check_says_what_is_wrong_and_where(tmp_path):
    after = [source for code, name, _ in SLIPS for source in (code, f'check("{name}")')]
    nothing, _, _, *found = shown(class_factory.notebook((), after=after), tmp_path)
    said = "test_q1_form failed: softmax returned None. Replace the ... by your code.\n"
    assert nothing == said
    for (_, _, said), text in zip(SLIPS, found, strict=True):
        assert said in text
        assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []


SLIPS = (
    (
        "import numpy as np\ndef softmax(logits):\n    return np.exp(logits) / nothing",
        "q1",
        "test_q1_form failed: NameError: name 'nothing' is not defined\n"
        "(in softmax, line 3: return np.exp(logits) / nothing)\n",
    ),
    (
        "def softmax(logits):\n    assert False, 'mine'",
        "q1",
        "AssertionError: mine\n(in softmax, line 2: assert False, 'mine')\n",
    ),
    (
        "def dense(inputs, units):\n    return 5",
        "q2",
        "AttributeError: 'int' object has no attribute 'count'\n(in test_q2_small, ",
    ),
    (
        "del bytes_q3",
        "q3",
        "there is no 'bytes_q3' in the notebook, or a key is missing",
    ),
    ("bytes_q3 = 4", "q9", "no checks of 'q9'. Fix: name one of q1, q2, q3.\n"),
)


MISTAKES = {
    "no checks": ("# >>> checks\n# <<<", "", "0 cells hold the line"),
    "two questions of one name": (
        "name: q2",
        "name: q1",
        "two questions are called q1",
    ),
    "fewer points in tests than the question has": (
        "points: 4",
        "points: 5",
        "q1 has 5 points, its tests have 4 together",
    ),
    "a solution outside of its block": (
        "# >>> checks\n# <<<",
        "# >>> checks\n# <<<\nx = 1  # SOLUTION",
        "is left in the student's notebook",
    ),
    "tests without a question": (
        "# BEGIN QUESTION\nname: q1",
        "# BEGIN TESTS\nname: q1",
        "a raw cell `# BEGIN TESTS` stands inside of no part",
    ),
    "a solution without an end": ("    # END SOLUTION\n", "", "has no END"),
    "a prompt that a solution's end ends": (
        "# BEGIN SOLUTION\n    exp",
        "# BEGIN PROMPT\n    exp",
        "the line '# END SOLUTION' does not belong",
    ),
    "a test without points": ("points: 1\n", "", "no test: "),
    "a test that is no Python": (
        "def test_q2_small(env):",
        "def test_q2_small(env:",
        "can't be read",
    ),
}


@pytest.mark.parametrize("old, new, said", MISTAKES.values(), ids=MISTAKES)
def test_a_broken_master_is_refused_with_its_place(old, new, said, tmp_path):
    text = class_factory.MINI.read_text()
    assert old in text
    path = tmp_path / "mini.md"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(masters.UserError, match="mini") as error:
        masters.build(path)
    assert said in str(error.value)


HELPED = """def test_q3_hidden(env):
    assert env["bytes_q3"] == Right().value


class Right:
    value = 4
"""


def test_a_class_below_a_hidden_test_serves_the_grader_alone(tmp_path):
    text = class_factory.MINI.read_text()
    test, hidden = text[text.index("def test_q3_bytes") :], "points: 1\nhidden: true\n"
    test = test[: test.index("```")]
    master = text.replace(
        f'points: 1\n""" # END TEST CONFIG\n{test}',
        f'{hidden}""" # END TEST CONFIG\n{HELPED}',
    )
    path = tmp_path / "mini.md"
    path.write_text(master)
    found = masters.build(path)
    assert "class Right" not in masters.dumps(found.student)
    case = runner.load_tests(found, "q3")[0]
    case.run({"bytes_q3": 4})
    with pytest.raises(AssertionError):
        case.run({"bytes_q3": 5})
    path.write_text(master.replace(hidden, "points: 1\n"))
    with pytest.raises(masters.UserError, match="below the public test test_q3"):
        masters.build(path)
