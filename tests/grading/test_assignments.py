"""The gate of each assignment: what its solution, its starter and wrong answers score.

Wrong answers stand in tests/grading/wrong_answers; gates.py says how they are tried.
"""

import ast
import functools

import class_factory
import gates
import nbclient
import pytest

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
    for question, text in assignment(name).tests.items():
        for node in ast.walk(ast.parse(text)):
            said = not isinstance(node, ast.Assert) or node.msg
            assert said, f"{question}: {ast.unparse(node)}"


@pytest.mark.parametrize("name", NAMES)
def test_each_question_has_a_public_check_or_is_marked_by_hand(name):
    found = assignment(name)
    for question in found.questions:
        assert question.manual or question.name in found.public_tests, question.name


@pytest.mark.parametrize("name", NAMES)
def test_the_students_notebook_gives_nothing_away(name):
    found = assignment(name)
    text = "\n".join(cell.source for cell in found.student.cells)
    assert not masters.SECRETS.search(text)
    for question, tests in found.tests.items():
        for source in hidden_tests(tests):
            assert source not in text, question


def hidden_tests(text: str) -> list[str]:
    """The hidden tests of a test file, each from its `def` on."""
    parts = text.split("@test_case(")[1:]
    hidden = [part for part in parts if "hidden=True" in part.partition("\ndef ")[0]]
    return ["def " + part.partition("\ndef ")[2].strip() for part in hidden]


@pytest.fixture(scope="class")
def solved(request):
    """The grading of a gate's solution, its worker still there, and its result."""
    with gates.solved(assignment(request.cls.name)) as found:
        yield found


class Gate:
    """Runs an assignment in the sandbox; a class for each, so that they run apart."""

    name = ""

    def test_the_solution_scores_full_marks(self, solved):
        assert gates.solution(solved[1]) == []

    def test_the_starter_runs_and_scores_nothing(self):
        assert gates.starter(assignment(self.name)) == []

    def test_no_test_passes_without_an_answer(self):
        assert gates.empty_answers(assignment(self.name)) == []

    def test_the_printed_examples_alone_are_worth_a_tenth_at_most(self):
        answers = gates.known_wrong_answers(self.name)
        assert gates.hard_coded(assignment(self.name), answers) == []

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
    with gates.solved(class_factory.mini()) as (grading, _):
        faults = gates.wrong_answers(grading, WRONG_ANSWERS)
    assert len(faults) == 2
    assert faults[0] == "q3, four: 1.0"
    assert "q1, broken: its code raises SyntaxError" in faults[1]


@pytest.mark.parametrize("answered, said", [(True, "passed!"), (False, "Replace the")])
def test_a_students_checks_work_in_an_empty_folder(answered, said, tmp_path):
    notebook = class_factory.notebook(("q1", "q2", "q3") if answered else ())
    client = nbclient.NotebookClient(
        notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert len(shown) == 3
    assert all("passed!" in text for text in shown) == answered
    assert said in shown[0]


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
    assert "class Right" in found.tests["q3"]
    assert "class Right" not in masters.dumps(found.student)
    case = runner.load_tests(found, "q3").test_cases[0]
    case.body.call_func({"bytes_q3": 4})
    with pytest.raises(AssertionError):
        case.body.call_func({"bytes_q3": 5})
    path.write_text(master.replace(hidden, "points: 1\n"))
    with pytest.raises(masters.UserError, match="below a public test of q3"):
        masters.build(path)
