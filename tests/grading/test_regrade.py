"""One question graded again: the others keep their points."""

import json
from pathlib import Path

import class_factory
import pytest

from grading import cli

pytestmark = class_factory.NEEDS_SANDBOX


def scores(folder: Path) -> dict[str, dict[str, str]]:
    """The points by question, by student."""
    rows = class_factory.rows(folder / "out" / "grades.csv")
    return {
        student: {question: row[question] for question in ("q1", "q2", "q3")}
        for student, row in rows.items()
    }


def variant(folder: Path, *changes: tuple[str, str]) -> Path:
    """A master of the teacher's own."""
    text = class_factory.MINI.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "my-variant.md"
    path.write_text(text)
    return path


def grade(folder: Path, master: Path, *options: str) -> int:
    start = ["grade", str(folder / "in"), str(master), "--out", str(folder / "out")]
    return cli.main([*start, "--seed=x", *options])


MENDED = ('assert env["bytes_q3"] == 4,', 'assert env["bytes_q3"] in (4, 5),')
WORSE = ("assert layer.count() == 2,", "assert layer.count() == 3,")


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_one_question_is_mended_and_the_others_keep_their_points(handed_in, capsys):
    text = class_factory.HONEST["correct"].text.replace("bytes_q3 = 4", "bytes_q3 = 5")
    (handed_in / "in" / "five_mini.ipynb").write_text(text)
    assert class_factory.grade(handed_in, "--seed=x") == 0
    before = scores(handed_in)
    assert before["five"] == {"q1": "4", "q2": "3", "q3": "0"}
    (handed_in / "in" / "new_mini.ipynb").write_text(text)
    (handed_in / "in" / "wrong_mini.ipynb").write_text(text)
    (handed_in / "in" / "correct_mini.ipynb").touch()
    master = variant(handed_in, MENDED, WORSE)
    capsys.readouterr()
    assert grade(handed_in, master, "--only=q3") == 0
    assert "0 graded before, 4 to grade" in capsys.readouterr().err
    after = scores(handed_in)
    assert after["five"] == {"q1": "4", "q2": "3", "q3": "1"}
    assert after["correct"] == before["correct"]
    assert after["new_mini"] == {"q1": "4", "q2": "2", "q3": "1"}  # all of it
    assert after["wrong"] == {"q1": "4", "q2": "2", "q3": "1"}  # changed, so too
    assert grade(handed_in, master) == 0  # as after a mark by hand
    assert "5 graded before, 0 to grade" in capsys.readouterr().err
    assert scores(handed_in) == after


def test_what_cant_be_graded_again_is_told(handed_in, capsys):
    assert class_factory.grade(handed_in, "--only=q4") == 1  # it is graded by hand
    message = "--only q4: no question that is graded here (q1, q2, q3)"
    assert message in capsys.readouterr().err
    assert class_factory.grade(handed_in, "--only=q3") == 1
    assert "no earlier result in" in capsys.readouterr().err


def test_other_questions_are_not_mixed(handed_in, capsys):
    (handed_in / "in" / "wrong_mini.ipynb").unlink()
    class_factory.grade(handed_in, "--seed=x")
    before = (handed_in / "out" / "students" / "correct" / "graded.json").read_bytes()
    master = variant(handed_in, ("name: q2\npoints: 3", "name: q2\npoints: 4"))
    master.write_text(
        master.read_text().replace(
            'points: 1\n""" # END TEST CONFIG\ndef test_q2_small',
            'points: 2\n""" # END TEST CONFIG\ndef test_q2_small',
        )
    )
    capsys.readouterr()
    assert grade(handed_in, master, "--only=q3") == 1
    assert "was graded with other questions" in capsys.readouterr().err
    after = (handed_in / "out" / "students" / "correct" / "graded.json").read_bytes()
    assert after == before


@pytest.mark.slow
def test_where_the_grader_fails_the_old_points_stay(handed_in, capsys, monkeypatch):
    from grading import parallel

    class_factory.grade(handed_in, "--seed=x")
    before = scores(handed_in)
    monkeypatch.setattr(
        parallel,
        "grade",
        lambda work, *_: (
            (number, parallel._failed(one[1], "no room"))
            for number, one in enumerate(work)
        ),
    )
    capsys.readouterr()
    assert class_factory.grade(handed_in, "--seed=x", "--only=q1") == 0
    assert "correct: q1 keeps its points; the grader failed" in capsys.readouterr().err
    assert scores(handed_in) == before
    path = handed_in / "out" / "students" / "correct" / "graded.json"
    assert json.loads(path.read_text())["result"]["failed"] is False
