"""What a master says of its questions: read, checked, and written for students."""

import json

import class_factory
import pytest

from grading.assignment import Question
from grading.author import about, masters
from grading.reports import gradescope
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
        assert notebook.cells[0].source.splitlines()[2] == (
            "*The core: questions 1 and 3, about 13 minutes and 5 points. The others "
            "are extras, about 17 minutes and 5 points in all: choose what you like. "
            "Their points make up for points lost in the core. Nobody gets more than "
            "5 points.*"
        )


def test_without_extras_the_head_says_how_large_it_is(tmp_path):
    keys = dict.fromkeys(KEYS, "minutes: 5")
    head = masters.build(master(tmp_path, keys)).student.cells[0].source
    assert "*4 questions: about 20 minutes and 10 points.*" in head


def test_a_master_without_keys_stays_as_it_is(tmp_path):
    text = masters.dumps(masters.build(class_factory.MINI).student)
    assert "_Points:_ 4" in text and "minute" not in text and "core" not in text


def test_a_key_in_one_question_alone_is_enough(tmp_path):
    found = masters.build(master(tmp_path, {"q2": "extra: true"}))
    text = masters.dumps(found.student)
    assert "*extra · 3 points*" in text and "_Points:_ 4" in text
    assert "The core: questions 1, 3 and 4, 7 points." in text


WRONG = {
    "a text for minutes": ("minutes: ten", "minutes: 'ten'"),
    "no time at all": ("minutes: 0", "from 1 to 600"),
    "true minutes": ("minutes: true", "minutes: True"),
    "a chapter alone": ("chapters: 1", "a list of numbers"),
    "a chapter that is not there": ("chapters: [1, 99]", "there is no chapter 99"),
    "a word for extra": ("extra: perhaps", "extra: 'perhaps'"),
    "a need alone": ("needs: q1", "a list of names"),
    "a need that comes later": ("needs: [q4]", "needs q4, and no such question"),
    "a need of itself": ("needs: [q2]", "name one of q1."),
}


@pytest.mark.parametrize("lines, said", WRONG.values(), ids=WRONG)
def test_a_wrong_key_is_refused_with_its_question(lines, said, tmp_path):
    path = master(tmp_path, {"q2": lines})
    with pytest.raises(UserError, match=r"mini\.md, q2") as error:
        masters.build(path)
    assert said in str(error.value) and "Fix: " in str(error.value)


def test_keys_need_a_text_below_them(tmp_path):
    path = master(tmp_path)
    text = path.read_text()
    begin = text.index("### Question 3")
    path.write_text(text[:begin] + text[text.index("```", begin) :])
    with pytest.raises(UserError, match="q3 does not begin with a text"):
        masters.build(path)


def test_an_unknown_key_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"mini\.md.*no such key 'minute'"):
        masters.build(master(tmp_path, {"q2": "minute: 3"}))
    masters.build(master(tmp_path, {"q2": "all_or_nothing: true"}))


def test_the_keys_travel_to_gradescope(tmp_path):
    found = masters.build(master(tmp_path))
    gradescope.pack(found, "secret", tmp_path / "made.zip")
    with gradescope.zipfile.ZipFile(tmp_path / "made.zip") as archive:
        data = archive.read(gradescope.DATA)
    (tmp_path / gradescope.DATA).write_bytes(data)
    there, _ = gradescope.read_assignment(tmp_path / gradescope.DATA)
    assert there.questions == found.questions and there.points == 5
    assert json.loads(data)["questions"][1]["extra"] is True


def test_what_is_not_numbered_is_called_by_its_name():
    names = [about.number(one) for one in ("q12", "warm_up", "q1b")]
    assert names == ["12", "warm_up", "q1b"]
    assert about.minutes([Question("q1", "", False, 1.0)]) is None
