"""What a master says of its questions: read, checked, and written for students."""

import class_factory
import pytest

from grading.author import masters, questions
from tools.model.errors import UserError

KEYS = {
    "q1": "minutes: 12\nchapters: [2, 1]",
    "q2": "minutes: 9\nchapters: [7]\nextra: true",
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
        size = notebook.cells[0].source.splitlines()[-1]
        assert size.startswith("*The core: questions 1 and 3, about 13 minutes and 5 p")
        assert "The others are extras, about 17 minutes and 5 points in all" in size


@pytest.mark.parametrize(
    "lines, said",
    [
        ("minutes: ten", "can't be: '# BEGIN QUESTION\\nname: q2"),
        ("chapters: [1, 99]", "q2: there is no chapter 99"),
    ],
)
def test_a_wrong_key_is_refused_with_its_question(lines, said, tmp_path):
    with pytest.raises(UserError, match=r"mini\.md") as error:
        masters.build(master(tmp_path, {"q2": lines}))
    assert said in str(error.value) and "Fix: " in str(error.value)


def test_the_page_for_teachers_has_the_tables_of_the_masters():
    page = (questions.ROOT / questions.PAGE).read_text()
    assert questions.tables() in page, "Fix: make assignments."
