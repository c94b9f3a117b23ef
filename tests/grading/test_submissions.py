"""The files that were handed in: whose they are, and what is in them."""

import dataclasses
import json
import os
import re
import unicodedata
from pathlib import Path

import class_factory
import nbformat
import pytest

from grading import submissions, written
from grading.assignment import PLACEHOLDER
from grading.author import masters
from grading.reports import marking
from grading.text import one_line
from tools.model.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

NOTHING = '{"cells": []}'


def students(folder: Path, *names: str | bytes) -> dict[str, str]:
    """Whose the files with these names are."""
    for name in names:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTHING)
    found = submissions.find(folder, "mini")
    return {str(one.path.relative_to(folder)): one.student for one in found}


def problem(path: Path) -> str:
    """What is wrong with a file."""
    return submissions.read(path, class_factory.mini()).problem


def notebook(*sources, **more) -> dict:
    """A notebook with code cells."""
    rest = {"metadata": {}, "outputs": [], "execution_count": None}
    cells = [{"cell_type": "code", "source": source, **rest} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **more}


# Whose a file is.


def test_students_are_told_apart_as_platforms_name_them(tmp_path):
    names = {
        "doejane_123_456_mini.ipynb": "doejane_123_456",
        "Ängström_7_8_mini (1).ipynb": "Ängström_7_8_mini (1)",
        "Ada Lovelace_7_assignsubmission_file_/mini.ipynb": "Ada Lovelace_7",
        "submission_42/anything.ipynb": "submission_42 - anything",
        "two/one.ipynb": "two - one",
        "two/mini.ipynb": "two",
        "two/mini-2.ipynb": "two - mini-2",
        "gemini.ipynb": "gemini",
        "mini.ipynb": "mini.ipynb",
        ".gina.ipynb": ".gina",
    }
    ignored = ("__MACOSX/x.ipynb", "two/.ipynb_checkpoints/a.ipynb", "._two.ipynb")
    assert students(tmp_path, *names, *ignored) == names
    found = submissions.find(tmp_path, "mini")
    assert len({one.folder for one in found}) == len(found)


NAMES = [
    *(b"m\xfcller", "new\nline", "\x1b[31mred", "\u202etxt", "a" * 244, "é" * 122),
    *("grades.csv", "students", "", ".", "..", "...", "CON", "-rf", " ", "=1+1"),
    *("anna", "Anna", "\u00e9", "e\u0301", "\ufb01", "fi", "a?b", "a*b", "a_b"),
    *("01_mini", "x (2)", "x", "X"),
]


def test_any_name_of_a_file_is_a_students(tmp_path):
    names = [os.fsencode(name) + b".ipynb" for name in NAMES]
    assert len(students(tmp_path, *names)) == len(NAMES)
    found = submissions.find(tmp_path, "mini")
    for one in found:
        assert one.student == one_line(one.student).strip() != ""
        assert one.folder.strip(". ") == one.folder and len(one.folder.encode()) < 120
        assert not set(one.folder) & set('/\\<>:"|?*\0\n')
        assert submissions.read(one.path, class_factory.mini()).problem == ""
    folders = {unicodedata.normalize("NFKC", one.folder).casefold() for one in found}
    assert len({one.student for one in found}) == len(folders) == len(NAMES)


def test_who_comes_later_takes_nobodys_name(tmp_path):
    names = ["anna.ipynb", "anna_mini.ipynb", "ANNA/mini.ipynb", "a?b.ipynb"]
    before: dict = {}
    for name in names:
        whose = students(tmp_path, name)
        taken = {one.casefold() for one in whose.values()}
        assert len(taken) == len(whose)
        for place, student in before.items():
            assert whose[place] == student or student not in whose.values()
        before = whose


def test_a_name_made_for_it_takes_over_nobodys_results(tmp_path):
    students(tmp_path, "victim.ipynb", "VICTIM.ipynb")
    victim = students(tmp_path, "victim.ipynb")["victim.ipynb"]
    taken = students(tmp_path, f"{victim}.ipynb", f"{victim.upper()}.ipynb")
    folders = {one.folder.casefold() for one in submissions.find(tmp_path, "mini")}
    assert taken["victim.ipynb"] == victim and len(folders) == len(taken) == 4


# Files that are none.


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no notebook"):
        submissions.find(tmp_path, "mini")
    with pytest.raises(UserError, match="no such folder"):
        submissions.find(tmp_path / "none", "mini")
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="unpack it first"):
        submissions.find(tmp_path / "all.zip", "mini")


def test_who_handed_in_no_notebook_is_named(tmp_path, monkeypatch):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    for name in ("pdf_1_assignsubmission_file_/a.pdf", "shut/x"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "none").mkdir()
    (tmp_path / "link").symlink_to("..")
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = submissions.find(tmp_path, "mini")
    none = "there is no notebook (*.ipynb) in it: "
    assert {one.student: one.problem for one in found if one.problem} == {
        "pdf_1": none + "a.pdf",
        "none": none + "it is empty",
        "link": "this is a link",
        "shut": "the folder can't be read (Permission denied)",
    }


@pytest.mark.timeout(60)  # a pipe would be waited for without end
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.with_name("honest.ipynb")),
    ],
)
def test_what_is_no_file_is_named_and_harms_nobody(tmp_path, make):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    make(tmp_path / "x.ipynb")
    assert students(tmp_path) == {"honest.ipynb": "honest", "x.ipynb": "x"}
    assert problem(tmp_path / "x.ipynb") == "this is no ordinary file"
    assert problem(tmp_path / "honest.ipynb") == ""


def test_links_to_folders_are_not_followed(tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "back").symlink_to(tmp_path / "in")
    assert students(tmp_path / "in", "a/mini.ipynb") == {"a/mini.ipynb": "a"}


@pytest.mark.timeout(60)
def test_a_large_file_is_read_no_further_than_its_limit(tmp_path):
    with (tmp_path / "sparse.ipynb").open("wb") as file:
        file.truncate(2**40)
    assert "too large: at most 30 MiB" in problem(tmp_path / "sparse.ipynb")


def test_the_digest_is_of_what_was_graded(tmp_path, monkeypatch):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(notebook("a = 1")))
    opened = []
    honest = os.open
    monkeypatch.setattr(os, "open", lambda *a, **k: opened.append(a) or honest(*a, **k))
    first = submissions.read(path, class_factory.mini())
    assert len(opened) == 1
    path.write_text(json.dumps(notebook("a = 2")))
    second = submissions.read(path, class_factory.mini())
    path.unlink()
    gone = submissions.read(path, class_factory.mini())
    assert len({first.digest, second.digest, gone.digest, ""}) == 4


# What is in a file.


def test_what_does_not_count_does_no_harm(tmp_path):
    data = notebook("a = 1", metadata=[], nbformat=99, extra=[{"outputs": 3}])
    (tmp_path / "x.ipynb").write_text(json.dumps(data))
    content = submissions.read(tmp_path / "x.ipynb", class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1"]


BROKEN = {
    "latin-1": json.dumps(notebook("é"), ensure_ascii=False).encode("latin-1"),
    "deep": b"[" * 200_000,
    "no cells": b'{"a": 1}',
    "cells are text": b'{"cells": "abc"}',
    "a list": b"[1]",
    "a source of numbers": json.dumps(notebook([1, 2])).encode(),
    "escapes": b'\x1b[31m\n{"cells"',
}


@pytest.mark.parametrize(
    "data, said",
    [
        (b"%PDF-1.7 \xe2", "this is a PDF, not a notebook"),
        (b"PK\x03\x04", "this is a zip or an office file, not a notebook"),
        (b"<!DOCTYPE html>", "this is a web page, not a notebook"),
    ],
)
def test_what_was_handed_in_by_mistake_is_named(tmp_path, data, said):
    (tmp_path / "x.ipynb.txt").write_bytes(data)
    (one,) = submissions.find(tmp_path, "mini")
    assert (one.student, problem(one.path)) == ("x", said)


def test_another_assignment_is_named():
    path = masters.find_master("3").parents[1] / "3-move-and-extend.ipynb"
    wanted = masters.build(masters.find_master("1"))
    found = submissions.read(path, wanted).problem
    assert found.startswith("this is another one: Assignment 3: ")


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_says_so_in_one_line(tmp_path, name):
    path = tmp_path / "x.ipynb"
    path.write_bytes(BROKEN[name])
    said = problem(path)
    assert said.startswith("this is not a notebook (")
    assert said == one_line(said)


@pytest.mark.parametrize(
    "sources, said",
    [
        (1001 * ["a"], "the notebook has more than 1000 cells"),
        (["a", "b" * (2**20 + 1)], "a code cell has more than 1048576 characters"),
    ],
)
def test_what_is_too_much_is_refused(tmp_path, sources, said):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(notebook(*sources)))
    assert problem(path) == said


def with_text(path: Path, source: str, code: str = "a = 1") -> submissions.Content:
    """What a notebook with a code cell and this text holds."""
    data = notebook(code)
    data["cells"].append({"cell_type": "markdown", "source": source, "metadata": {}})
    path.write_text(json.dumps(data))
    return submissions.read(path, class_factory.mini())


def test_a_pasted_picture_is_shortened_and_keeps_nothing_back(tmp_path):
    source = f"{MARK}\nSee ![x](data:image/png;base64,{{}}) and data:, well, `data:a`."
    found = [
        with_text(tmp_path / "x.ipynb", source.replace("{}", letter * 1_500_000))
        for letter in "AAB"
    ]
    assert [len(one.cells) for one in found] == [1, 1, 1]
    one, same, other = (content.answers["q4"] for content in found)
    assert one.startswith("See ![x](data:...")
    assert one.endswith(") and data:, well, `data:a`.")
    assert len(one) < 100
    assert one == same != other  # a mark counts for the picture that got it


def test_half_characters_stay_in_the_cells_and_leave_the_answers(tmp_path):
    source = f"{MARK}\nWell \ud800\x1b."
    content = with_text(tmp_path / "x.ipynb", source, "a = '\ud800'")
    assert content.cells[0].source == "a = '\ud800'"
    assert content.answers == {"q4": "Well \\ud800\\x1b."}


# Written answers.

MARK = "<!-- answer: q4 -->"
QUESTION = "### Question 4: explain (by hand)"  # its heading; {} is its whole text


@pytest.fixture(scope="module")
def longer():
    """The small assignment with texts below its last question, as others have them."""
    mini = class_factory.mini()
    new = nbformat.v4
    place = next(i for i, c in enumerate(mini.student.cells) if MARK in c.source)
    cells = [*mini.student.cells[: place + 1], new.new_code_cell(GIVEN)]
    cells.append(new.new_markdown_cell("Now the figure."))
    cells.append(new.new_markdown_cell("## Hand in\n\nUpload it."))
    student = new.new_notebook(cells=cells)
    return dataclasses.replace(mini, student=student)


GIVEN = "def draw(rows):\n    ..."
ANSWERS = {
    "nothing": ([f"{MARK}\n{PLACEHOLDER}"], ""),
    "in the same cell": ([f"{MARK}\nBecause."], "Because."),
    "below": ([MARK, "Because.", "## Hand in"], "Because."),
    "below the placeholder": ([f"{MARK}\n{PLACEHOLDER}", "Because."], "Because."),
    "below code": ([MARK, ("code", "x"), "Because."], "x\n\nBecause."),
    "on both sides": ([f"{MARK}\nOne.", ("code", "x"), "Two."], "One.\n\nx\n\nTwo."),
    "a text of the master's": ([MARK, "A.", "Now the  figure.", "B."], "A.\n\nB."),
    "up to a changed text": ([MARK, "A.", "## Hand in\n\nDone!", "No."], "A."),
    "mark deleted": (["{}", "Because."], "Because."),
    "in the question": (["{}\n\nBecause."], "Because."),
    "above and below": (["{}", "A.", f"{MARK}\nB.", "C."], "A.\n\nB.\n\nC."),
    "quoted": (["{}", f"{MARK}\n> {{1}}\n\nBecause."], "Because."),
    "question changed": (
        [f"{QUESTION}\n\nWhy, then?", f"{MARK}\nBecause."],
        "Why, then?\n\nBecause.",
    ),
    "merged": ([f"{{}}\n\n{MARK}\nBecause.\n\n## Hand in"], "Because."),
    "marked in code": ([("code", f"{MARK}\nBecause."), "So."], "Because.\n\nSo."),
    "a raw cell": (["{}", MARK, ("raw", "Because.")], "Because."),
    "changed code": (["{}", MARK, ("code", f"# So.\n{GIVEN}")], f"# So.\n{GIVEN}"),
    "given code": (["{}", MARK, ("code", GIVEN)], ""),
    "code of another question": (["{}", "A.", ("code", "bytes_q3 = ...")], "A."),
    "another question": (["{}", "A.", "### Question 1: softmax", "B."], "A."),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_written_answers_are_found(name, longer):
    cells, wanted = ANSWERS[name]
    texts = [cell.source for cell in longer.student.cells]
    question = next(one for one in texts if one.startswith(QUESTION))
    first, _, rest = question.partition("\n\n")
    cells = [one if isinstance(one, tuple) else ("markdown", one) for one in cells]
    for old, new in {"{}": question, "{0}": first, "{1}": rest.split("\n")[0]}.items():
        cells = [(kind, source.replace(old, new)) for kind, source in cells]
    assert written.answers(cells, longer) == {"q4": wanted}


def test_an_endless_answer_is_cut_and_costs_no_time(tmp_path):
    text = "a\n" * (submissions.MAX_FILE // 8)
    content = with_text(tmp_path / "x.ipynb", f"{MARK}\n{text}")
    answer = content.answers["q4"]
    assert len(answer) < written.MAX_ANSWER + 100
    assert answer.endswith(written.CUT)


@pytest.mark.parametrize("path", masters.master_paths(), ids=lambda path: path.stem)
def test_every_model_answer_is_found_and_nothing_else(path):
    assignment = masters.build(path)
    cells = [(cell.cell_type, cell.source) for cell in assignment.solution.cells]
    found = written.answers(cells, assignment)
    assert list(found) == [one.name for one in assignment.questions if one.manual]
    own = [cell.source for cell in assignment.student.cells]
    models = [source for _, source in cells if source not in own]
    for name, answer in found.items():
        assert len(answer) > 100
        asked = marking.question_text(assignment, name).strip()
        assert re.search(r"\*\*Rubric\*\*.*(\n+[-*].*)*$", asked)
        parts = [one for one in models if one in answer]
        assert parts  # a whole model answer, and code of the same cells
        for one in parts:
            answer = answer.replace(one, "")
        left = [line for line in answer.splitlines() if line.strip()]
        assert all(any(line in one for one in models) for line in left)
    starter = [(cell.cell_type, cell.source) for cell in assignment.student.cells]
    assert set(written.answers(starter, assignment).values()) == {""}
