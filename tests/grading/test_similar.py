"""The students' own code as plain files, for a tool that looks for copies."""

import json
from pathlib import Path

import class_factory
import pytest

from grading import cli


def code(folder: Path, *more: str) -> int:
    start = ["code", str(folder / "in"), str(class_factory.MINI)]
    return cli.main([*start, "--to", str(folder / "out"), *more])


@pytest.fixture
def course(tmp_path):
    (tmp_path / "in").mkdir()
    extra = "def mine():\n    return '\ud800'"
    cases = {
        "anna": json.dumps(class_factory.notebook(("q3",), after=(extra,))),
        "bert": class_factory.HONEST["starter"].text,
        "cleo": "broken",
    }
    for name, text in cases.items():
        (tmp_path / "in" / f"{name}.ipynb").write_text(text)
    return tmp_path


def test_what_a_student_wrote_is_written_and_nothing_that_was_given(course, capsys):
    assert code(course) == 0
    said = capsys.readouterr()
    assert "the code of 1 of 3 submissions: " in said.out
    assert "bert: holds no code of the student's own" in said.err
    assert "cleo: this is not a notebook" in said.err
    assert [path.name for path in (course / "out/students").iterdir()] == ["anna.py"]
    own = (course / "out" / "students" / "anna.py").read_text()
    assert own == "bytes_q3 = 4\n\n\ndef mine():\n    return '\\ud800'\n\n\n"
    given = (course / "out" / "given" / "given.py").read_text()
    assert "CHECKS" in given and "def softmax(logits):" in given
    assert "bytes_q3 = 4" not in given


def test_no_file_of_an_earlier_run_is_lost(course, capsys):
    assert code(course) == 0
    notes = course / "out" / "students" / "anna.py"
    notes.write_text("# my notes")
    assert code(course) == 1
    assert "is there already, and not empty. Fix: " in capsys.readouterr().err
    assert notes.read_text() == "# my notes"


def test_nothing_that_was_handed_in_is_run(course):
    trace = course / "trace"
    text = class_factory.case(f"open({str(trace)!r}, 'w')").text
    (course / "in" / "dora.ipynb").write_text(text)
    assert code(course) == 0
    assert str(trace) in (course / "out" / "students" / "dora.py").read_text()
    assert not trace.exists()
