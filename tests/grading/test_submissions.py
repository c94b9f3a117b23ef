"""The files that were handed in: whose they are, and what is in them."""

import dataclasses
import json
import os
import socket
import threading
from pathlib import Path

import class_factory
import nbformat
import pytest

from grading import submissions, written
from grading.assignment import PLACEHOLDER
from grading.author import masters
from grading.text import one_line
from tools.model.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

NOTHING = '{"cells": []}'


def students(folder: Path, *names: str | bytes, known=None) -> dict[str, str]:
    """Whose the files with these names are."""
    for name in names:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTHING)
    found = submissions.find(folder, "mini", known)
    return {str(one.path.relative_to(folder)): one.student for one in found}


def problem(path: Path) -> str:
    """What is wrong with a file, found out within seconds."""
    said = []

    def read():
        said.append(submissions.read(path, class_factory.mini()).problem)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert said, "it hangs"
    return said[0]


def notebook(*sources, **more) -> dict:
    """A notebook with code cells."""
    rest = {"metadata": {}, "outputs": [], "execution_count": None}
    cells = [{"cell_type": "code", "source": source, **rest} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **more}


# Whose a file is.


def test_students_are_told_apart_as_platforms_name_them(tmp_path):
    names = {
        "doejane_123_456_mini.ipynb": "doejane_123_456",
        "roejohn_LATE_9_8_mini-2.ipynb": "roejohn_LATE_9_8",
        "Ängström_7_8_mini (1).ipynb": "Ängström_7_8",
        "Ada Lovelace_7_assignsubmission_file_/mini.ipynb": "Ada Lovelace_7",
        "submission_42/anything.ipynb": "submission_42",
        "two/one.ipynb": "two - one",
        "two/other.ipynb": "two - other",
        "mini.ipynb": "mini",
    }
    for name in [*names, "__MACOSX/x.ipynb", "two/.ipynb_checkpoints/mini.ipynb"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("{}")
    (tmp_path / "README.txt").touch()
    found = submissions.find(tmp_path, "mini")
    assert {
        one.path.relative_to(tmp_path).as_posix(): one.student for one in found
    } == (names)
    assert len({one.folder for one in found}) == len(found)


@pytest.mark.parametrize(
    "student, folder",
    [("../../etc", "_.._etc"), ("a/b", "a_b"), ("..", "_"), ("ä b", "ä b")],
)
def test_a_students_name_leads_nowhere_else(student, folder):
    assert submissions.folder_name(student) == folder


def test_who_was_there_first_keeps_the_name(tmp_path):
    known = students(tmp_path, "anna_mini.ipynb")
    assert known == {"anna_mini.ipynb": "anna"}
    known = students(tmp_path, "anna/other.ipynb", known=known)
    assert known == {"anna_mini.ipynb": "anna", "anna/other.ipynb": "anna - other"}
    known = students(tmp_path, "ANNA/mini.ipynb", known=known)
    assert known["anna_mini.ipynb"] == "anna"
    assert known["ANNA/mini.ipynb"] == "ANNA - mini"
    (tmp_path / "anna_mini.ipynb").unlink()
    assert students(tmp_path, known=known)["anna/other.ipynb"] == "anna - other"


# Files that are none.


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no notebook"):
        submissions.find(tmp_path, "mini")
    with pytest.raises(UserError, match="no such folder"):
        submissions.find(tmp_path / "none", "mini")
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="unpack it first"):
        submissions.find(tmp_path / "all.zip", "mini")


@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        os.mkfifo,
        lambda path: socket.socket(socket.AF_UNIX).bind("x.ipynb"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.with_name("honest.ipynb")),
        lambda path: path.symlink_to("/etc"),
        lambda path: path.symlink_to("nowhere"),
    ],
)
def test_what_is_no_file_is_named_and_harms_nobody(tmp_path, make, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is at most 108 bytes
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    make(tmp_path / "x.ipynb")
    assert students(tmp_path) == {"honest.ipynb": "honest", "x.ipynb": "x"}
    assert problem(tmp_path / "x.ipynb") == "this is no ordinary file"
    assert problem(tmp_path / "honest.ipynb") == ""


def test_links_to_folders_are_not_followed(tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "back").symlink_to(tmp_path / "in")
    assert students(tmp_path / "in", "a/x.ipynb") == {"a/x.ipynb": "a"}


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


BROKEN = {
    "latin-1": json.dumps(notebook("é"), ensure_ascii=False).encode("latin-1"),
    "deep": b"[" * 200_000,
    "deep below the cells": b'{"cells": ' + b"[" * 200_000,
    "huge number": b'{"cells": ' + b"9" * 10_000 + b"}",
    "no cells": b'{"a": 1}',
    "null": b"null",
    "cells are text": b'{"cells": "abc"}',
    "cells are no dicts": b'{"cells": [1]}',
    "a source of numbers": json.dumps(notebook([1, 2])).encode(),
    "a type of a list": b'{"cells": [{"cell_type": [], "source": ""}]}',
    "worksheets are numbers": b'{"worksheets": [1]}',
    "escapes": b'\x1b[31m\n{"cells"',
    "utf-16 cut": json.dumps(notebook("a")).encode("utf-16")[:-1],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_says_so_in_one_line(tmp_path, name):
    path = tmp_path / "x.ipynb"
    path.write_bytes(BROKEN[name])
    said = problem(path)
    assert said.startswith("this is not a notebook (")
    assert said == one_line(said)


def test_a_million_cells_are_refused(tmp_path):
    path = tmp_path / "x.ipynb"
    one = '{"cell_type":"raw","source":""}'
    path.write_text('{"cells":[' + ",".join([one] * 900_000) + "]}")
    assert problem(path) == "the notebook has more than 1000 cells"


def with_text(path: Path, source: str) -> submissions.Content:
    """What a notebook with a code cell and this text holds."""
    data = notebook("a = 1")
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
    path = tmp_path / "x.ipynb"
    data = notebook("a = '\ud800'")
    source = "<!-- answer: q4 -->\nWell \ud800\x1b."
    data["cells"].append({"cell_type": "markdown", "source": source, "metadata": {}})
    path.write_text(json.dumps(data))
    content = submissions.read(path, class_factory.mini())
    assert content.cells[0].source == "a = '\ud800'"
    assert content.answers == {"q4": "Well \\ud800\\x1b."}


# Written answers.

MARK = "<!-- answer: q4 -->"
QUESTION = "### Question 4: explain (by hand)"  # its heading; {} is its whole text


@pytest.fixture(scope="module")
def longer():
    """The small assignment with texts below its last question, as others have them."""
    mini = class_factory.mini()
    cells = [*mini.student.cells]
    cells = with_code(cells)
    cells.append(nbformat.v4.new_markdown_cell("Now the figure."))
    cells.append(nbformat.v4.new_markdown_cell("## Hand in\n\nUpload it."))
    student = nbformat.v4.new_notebook(cells=cells)
    return dataclasses.replace(mini, student=student)


ANSWERS = {
    "nothing": ([f"{MARK}\n{PLACEHOLDER}"], ""),
    "in the same cell": ([f"{MARK}\nBecause."], "Because."),
    "below": ([MARK, "Because.", "## Hand in"], "Because."),
    "below the placeholder": ([f"{MARK}\n{PLACEHOLDER}", "Because."], "Because."),
    "below code": ([MARK, ("code", "x"), "Because."], "x\n\nBecause."),
    "on both sides": ([f"{MARK}\nOne.", ("code", "x"), "Two."], "One.\n\nx\n\nTwo."),
    "own heading": ([MARK, "# My view", "Because."], "# My view\n\nBecause."),
    "a text of the master's": ([MARK, "A.", "Now the  figure.", "B."], "A.\n\nB."),
    "a longer heading": (["{}", "## Hand in hand", "A."], "## Hand in hand\n\nA."),
    "up to a changed text": ([MARK, "A.", "## Hand in\n\nDone!", "No."], "A."),
    "mark deleted": (["{}", "Because."], "Because."),
    "mark deleted, code": (["{}", ("code", "x"), "Because."], "x\n\nBecause."),
    "in the question": (["{}\n\nBecause."], "Because."),
    "in the question, marked": (
        ["{}\n\nBecause.", f"{MARK}\n{PLACEHOLDER}"],
        "Because.",
    ),
    "in its line": (
        ["{}".replace("{}", "{} Because."), f"{MARK}\n{PLACEHOLDER}"],
        "Because.",
    ),
    "behind the title": ([f"{QUESTION} Because."], "Because."),
    "above the mark": (
        ["{}", "Because.", f"{MARK}\n{PLACEHOLDER}"],
        "Because.",
    ),
    "above and below": (["{}", "A.", f"{MARK}\nB.", "C."], "A.\n\nB.\n\nC."),
    "split": (["{0}", "A.", "{1}", f"{MARK}", "B."], "A.\n\nB."),
    "quoted": (["{}", f"{MARK}\n> {{1}}\n\nBecause."], "Because."),
    "question changed": (
        [f"{QUESTION}\n\nWhy, then?", f"{MARK}\nBecause."],
        "Why, then?\n\nBecause.",
    ),
    "heading copied": (["{}", MARK, f"{QUESTION}\nBecause."], "Because."),
    "title and mark elsewhere": (["Hello.", f"{MARK}\nA.", "{}", "B."], "A.\n\nB."),
    "merged": ([f"{{}}\n\n{MARK}\nBecause.\n\n## Hand in\n\nUp."], "Because."),
    "no cells": ([], ""),
    "nothing of it": (["Hello.", ("code", "x")], ""),
    "marked in code": ([("code", f"{MARK}\nBecause."), "So."], "Because.\n\nSo."),
    "another mark": ([f"{MARK}\nA <!-- answer: q1 --> b"], "A <!-- answer: q1 --> b"),
    "a mark that is broken": (["{}", "<!-- answer: q4\nB."], "<!-- answer: q4\nB."),
    "a raw cell": (["{}", MARK, ("raw", "Because.")], "Because."),
    "a comment": (["{}", MARK, ("code", "# Because.")], "# Because."),
    "a comment in given code": (
        ["{}", MARK, ("code", "def draw(rows):\n    # Because.\n    ...")],
        "    # Because.",
    ),
    "a string": (["{}", MARK, ("code", '"""Because."""')], '"""Because."""'),
    "given code": (["{}", MARK, ("code", "def draw(rows):\n    ...")], ""),
    "given code, twice": (
        ["{}", MARK, ("code", "def draw(rows):\n    ...\n    ...\ndraw(1)")],
        "    ...\ndraw(1)",
    ),
    "code of another question": (["{}", "A.", ("code", "bytes_q3 = ...")], "A."),
    "another question": (["{}", "A.", "### Question 1: softmax", "B."], "A."),
}


def with_code(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cells, with given code below the place for the answer."""
    place = next(i for i, cell in enumerate(cells) if MARK in cell.source)
    given = nbformat.v4.new_code_cell("def draw(rows):\n    ...")
    return [*cells[: place + 1], given, *cells[place + 1 :]]


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


@pytest.mark.parametrize("path", masters.master_paths(), ids=lambda path: path.stem)
def test_every_model_answer_is_found_and_nothing_else(path):
    assignment = masters.build(path)
    cells = [(cell.cell_type, cell.source) for cell in assignment.solution.cells]
    found = written.answers(cells, assignment)
    assert list(found) == [one.name for one in assignment.questions if one.manual]
    own = [cell.source for cell in assignment.student.cells]
    models = [source for _, source in cells if source not in own]
    for answer in found.values():
        assert len(answer) > 100
        parts = [one for one in models if one in answer]
        assert parts  # a whole model answer, and code of the same cells
        for one in parts:
            answer = answer.replace(one, "")
        left = [line for line in answer.splitlines() if line.strip()]
        assert all(any(line in one for one in models) for line in left)
    starter = [(cell.cell_type, cell.source) for cell in assignment.student.cells]
    assert set(written.answers(starter, assignment).values()) == {""}
