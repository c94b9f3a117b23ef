"""What a master says of its questions: read, checked, and written for students."""

import class_factory
import pytest

from grading.author import masters
from tools.model.errors import UserError

KEYS = {
    "q1": "minutes: 12\nchapters: [2, 1]",
    "q2": "minutes: 9\nchapters: [7]\nextra: true\nneeds: [q1]",
    "q3": "minutes: 1\nchapters: [1, 2, 5]",
    "q4": "minutes: 8\nextra: true",
}


def master(folder, keys=KEYS):
    """The small master with keys in its questions."""
    text = class_factory.MINI.read_text()
    for name, lines in keys.items():
        assert f"name: {name}\n" in text
        text = text.replace(f"name: {name}\n", f"name: {name}\n{lines}\n")
    path = folder / "mini.md"
    path.write_text(text)
    return path


def test_the_keys_are_the_questions(tmp_path):
    found = masters.build(master(tmp_path))
    minutes = [(one.name, one.minutes, one.extra) for one in found.questions]
    assert minutes == [
        ("q1", 12, False),
        ("q2", 9, True),
        ("q3", 1, False),
        ("q4", 8, True),
    ]
    assert found.questions[0].chapters == (1, 2)
    assert found.questions[1].needs == ("q1",)
    assert (found.points, [one.name for one in found.extras]) == (5, ["q2", "q4"])
    assert masters.questions(master(tmp_path)) == found.questions


def test_students_read_them_below_the_titles(tmp_path):
    found = masters.build(master(tmp_path))
    for notebook in (found.student, found.solution):
        texts = [cell.source for cell in notebook.cells if "###" in cell.source]
        assert [text.splitlines()[2] for text in texts] == [
            "*12 minutes · 4 points · chapters 1 and 2*",
            "*extra · 9 minutes · 3 points · chapter 7*",
            "*1 minute · 1 point · chapters 1, 2 and 5*",
            "*extra · 8 minutes · 2 points*",
        ]
        assert not any("_Points:_" in text or "about:" in text for text in texts)
        assert notebook.cells[0].source.splitlines()[-1] == (
            "*The core: questions 1 and 3, about 13 minutes and 5 points. The others "
            "are extras, about 17 minutes and 5 points in all: choose what you like. "
            "Their points make up for points that checks take in the core, for at most "
            "a fifth of it, and never for points given by hand; your teacher can leave "
            "them out. Nobody gets more than 5 points. All minutes are estimates, for "
            "readers of the chapters.*"
        )


WRONG = {
    "a text for minutes": ("minutes: ten", "minutes: 'ten'"),
    "a chapter that is not there": ("chapters: [1, 99]", "there is no chapter 99"),
    "a need that comes later": ("needs: [q4]", "needs q4, and no such question"),
}


@pytest.mark.parametrize("lines, said", WRONG.values(), ids=WRONG)
def test_a_wrong_key_is_refused_with_its_question(lines, said, tmp_path):
    path = master(tmp_path, {"q2": lines})
    with pytest.raises(UserError, match=r"mini\.md, q2") as error:
        masters.build(path)
    assert said in str(error.value) and "Fix: " in str(error.value)
