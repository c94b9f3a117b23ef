"""The files that were handed in: whose they are, and what is in them."""

import copy
import dataclasses
import json
import os
import socket
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import class_factory
import nbformat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grading import submissions, written
from grading.assignment import PLACEHOLDER
from grading.author import masters
from grading.text import one_line
from tools.model.chapters import ROOT
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


@given(st.text(min_size=1))
@example("CON")
@example("aux.x")
@example("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 40)
def test_any_name_makes_a_folder(student):
    name = submissions.folder_name(one_line(student))
    assert name and name.strip(". ") == name
    assert len(name.encode()) <= 110
    assert not set(name) & set('/\\<>:"|?*\0\n')
    assert name.partition(".")[0].upper() not in ("CON", "PRN", "AUX", "NUL")


NAMES = [
    *(b"m\xfcller", "new\nline", "\x1b[31mred", "\u202etxt", "a" * 244, "é" * 122),
    *("grades.csv", "summary.html", "manual.csv", "seed.txt", "graded.json"),
    *("", ".", "..", "...", "students", "CON", "-rf", "~", "%2e", "a b", " ", "=1+1"),
    *("anna", "Anna", "\u00e9", "e\u0301", "\ufb01", "fi", "a?b", "a*b", "a_b"),
    *("01_mini", "x (2)", "x", "X"),
]


def test_any_name_of_a_file_is_a_students(tmp_path):
    names = [os.fsencode(name) + b".ipynb" for name in NAMES]
    assert len(students(tmp_path, *names)) == len(NAMES)
    found = submissions.find(tmp_path, "mini")
    for one in found:
        assert one.student == one_line(one.student).strip() != ""
        assert one.folder not in ("", ".", "..")
        assert len(one.folder.encode()) <= 120
        assert submissions.read(one.path, class_factory.mini()).problem == ""
    for names in (
        {one.student for one in found},
        {unicodedata.normalize("NFKC", one.folder).casefold() for one in found},
    ):
        assert len(names) == len(NAMES)


def test_bytes_that_are_no_text_are_told_by_their_escapes(tmp_path):
    (name,) = students(tmp_path, b"m\xfcller.ipynb").values()
    assert name == "m\\xfcller"


def test_folders_named_with_dots_and_endings_in_capitals_count(tmp_path):
    names = {".../work.ipynb": "...", "x.ipynb/work.ipynb": "x.ipynb"}
    names |= {"B.IPYNB": "B", "x.ipynb": "x"}
    assert students(tmp_path, *(set(names) - {"x.ipynb"})) == names


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


def test_two_files_at_once_both_get_the_long_name(tmp_path):
    known = students(tmp_path, "anna/one.ipynb", "anna/two.ipynb")
    assert sorted(known.values()) == ["anna - one", "anna - two"]
    (tmp_path / "anna" / "two.ipynb").unlink()
    assert students(tmp_path, known=known) == {"anna/one.ipynb": "anna - one"}
    third = students(tmp_path, "anna/three.ipynb", known=known)
    assert third["anna/three.ipynb"] == "anna - three"


def test_what_is_known_wrongly_makes_no_two_students_one(tmp_path):
    known = {"a.ipynb": "same", "b.ipynb": "same", "gone.ipynb": "c"}
    found = students(tmp_path, "a.ipynb", "b.ipynb", "c.ipynb", known=known)
    assert sorted(found.values()) == ["c", "same", "same (2)"]


# Files that are none.


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no notebook"):
        submissions.find(tmp_path, "mini")
    with pytest.raises(UserError, match="no such folder"):
        submissions.find(tmp_path / "none", "mini")
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="unpack it first"):
        submissions.find(tmp_path / "all.zip", "mini")


def problems(folder: Path) -> dict[str, str]:
    """Whose submissions can't be read, and why."""
    found = submissions.find(folder, "mini")
    return {one.student: one.problem for one in found if one.problem}


def test_a_folder_in_which_is_no_notebook_is_a_students(tmp_path):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    names = ["pdf_1_assignsubmission_file_/answer.pdf", "txt/a.ipynb.txt", "many/x/y"]
    names += [f"many/{number}" for number in range(5)] + [".git/x", "__MACOSX/y"]
    names += ["kept/.ipynb_checkpoints/a.ipynb", "hidden/.a.ipynb", "bad/a\x1b.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "none").mkdir()
    said = {
        **{"pdf_1": "answer.pdf", "txt": "a.ipynb.txt", "none": "it is empty"},
        **{"many": "0, 1, 2, ...", "kept": ".ipynb_checkpoints"},
        **{"hidden": ".a.ipynb", "bad": r"a\x1b.txt"},
    }
    assert problems(tmp_path) == {
        student: f"there is no notebook (*.ipynb) in it: {what}"
        for student, what in said.items()
    }


def test_a_student_keeps_the_name_when_the_notebook_comes(tmp_path):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    (tmp_path / "Ida_mini").mkdir()
    assert list(problems(tmp_path)) == ["Ida_mini"]
    found = students(tmp_path, "Ida_mini/a.ipynb", known=students(tmp_path))
    assert found["Ida_mini/a.ipynb"] == "Ida_mini"


def test_a_link_is_a_students(tmp_path):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    for name, target in {"up": "..", "file": "honest.ipynb", "gone": "x"}.items():
        (tmp_path / name).symlink_to(target)
    assert problems(tmp_path) == dict.fromkeys(["up", "file", "gone"], "this is a link")


def test_without_any_notebook_no_folder_is_a_students(tmp_path):
    (tmp_path / "anna").mkdir()
    with pytest.raises(UserError, match="holds no notebook"):
        submissions.find(tmp_path, "mini")


def test_a_hidden_notebook_is_a_students(tmp_path):
    names = [".gina.ipynb", ".HANS.IPYNB", "._honest.ipynb", "a/.x.ipynb", "a/b.ipynb"]
    assert students(tmp_path, *names, ".x/a.ipynb", ".y.txt") == {
        ".gina.ipynb": ".gina",
        ".HANS.IPYNB": ".HANS",
        "a/b.ipynb": "a",
    }


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


def test_a_folder_that_cant_be_read_is_named(tmp_path, monkeypatch):
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "anna":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (tmp_path / "anna").mkdir()
    assert students(tmp_path, "bert/x.ipynb") == {
        "anna": "anna",
        "bert/x.ipynb": "bert",
    }
    first = submissions.find(tmp_path, "mini")[0]
    assert first.problem == "the folder can't be read (Permission denied)"
    with pytest.raises(UserError, match=r"the folder can't be read .*Fix: "):
        submissions.find(tmp_path / "anna", "mini")


def test_folders_nested_without_end_are_named(tmp_path, monkeypatch):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    monkeypatch.chdir(tmp_path)
    try:
        for _ in range(2500):
            Path("d").mkdir()
            os.chdir("d")
        monkeypatch.undo()
        found = submissions.find(tmp_path, "mini")
    finally:  # pytest could not remove them
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
    assert [one.student for one in found] == ["d", "honest"]
    assert "name too long" in found[0].problem


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


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-le"]
)
def test_notebooks_in_all_encodings_of_unicode_are_read(tmp_path, encoding):
    path = tmp_path / "x.ipynb"
    text = json.dumps(notebook("name = 'Zoë'"), ensure_ascii=False)
    path.write_text(text, encoding=encoding)
    content = submissions.read(path, class_factory.mini())
    assert [cell.source for cell in content.cells] == ["name = 'Zoë'"]


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


ODD = {
    "metadata is a list": {"metadata": []},
    "not a number": {"metadata": {"x": float("nan")}},
    "outputs of anything": {"extra": [[{"outputs": 3}]]},
    "a later format": {"nbformat": 99},
}


@pytest.mark.parametrize("name", ODD)
def test_what_does_not_count_does_no_harm(tmp_path, name):
    path = tmp_path / "x.ipynb"
    data = notebook("a = 1", "b = 2", **ODD[name])
    for cell in data["cells"]:
        cell["id"] = "same"
    path.write_text(json.dumps(data))
    content = submissions.read(path, class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1", "b = 2"]


def test_a_million_cells_are_refused(tmp_path):
    path = tmp_path / "x.ipynb"
    one = '{"cell_type":"raw","source":""}'
    path.write_text('{"cells":[' + ",".join([one] * 900_000) + "]}")
    assert problem(path) == "the notebook has more than 1000 cells"


def test_a_long_code_cell_is_left_out_alone(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(notebook("a", "b" * (2**20 + 1), "c" * 2**20)))
    content = submissions.read(path, class_factory.mini())
    assert content.problem == ""
    first, second, third = content.cells
    said = "this cell is longer than 1048576 characters, so it was left out"
    assert (first.source, third.source) == ("a", "c" * 2**20)
    with pytest.raises(ValueError, match=said):
        exec(second.source, {})


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


@pytest.mark.parametrize("text", ["data:" * 10**6, "data:a," * 10**6, "data:," * 10**6])
def test_what_looks_like_pictures_takes_no_time(tmp_path, text):
    path = tmp_path / "x.ipynb"
    data = notebook()
    data["cells"].append({"cell_type": "markdown", "source": f"{MARK}\n{text} x"})
    path.write_text(json.dumps(data))
    assert problem(path) == ""


def test_a_file_of_empty_lists_takes_little_memory(tmp_path):
    count = (submissions.MAX_FILE - 100) // len("[[[]]],")
    text = '{"cells":[' + "[[[]]]," * count + "[]]}"
    (tmp_path / "x.ipynb").write_text(text)
    code = (
        "import pathlib, resource, sys; from grading import submissions\n"
        "print(submissions.read(pathlib.Path(sys.argv[1]), None).problem)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.ipynb")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    said, kib = done.stdout.splitlines()
    assert "cell 1 has no type" in said
    assert int(kib) < 2 * 2**20


def test_half_characters_stay_in_the_cells_and_leave_the_answers(tmp_path):
    path = tmp_path / "x.ipynb"
    data = notebook("a = '\ud800'")
    source = "<!-- answer: q4 -->\nWell \ud800\x1b."
    data["cells"].append({"cell_type": "markdown", "source": source, "metadata": {}})
    path.write_text(json.dumps(data))
    content = submissions.read(path, class_factory.mini())
    assert content.cells[0].source == "a = '\ud800'"
    assert content.answers == {"q4": "Well \\ud800\\x1b."}


def test_old_notebooks_are_read(tmp_path):
    cell = {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "outputs": []}
    old = {
        **{"nbformat": 3, "nbformat_minor": 0, "metadata": {}},
        "worksheets": [{"cells": [{**cell, "language": "python"}]}],
    }
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    content = submissions.read(tmp_path / "old.ipynb", class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1\nb = 2"]


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


def test_lines_without_words_are_the_students_when_there_are_more_of_them():
    mini = class_factory.mini()
    cells = copy.deepcopy(mini.student.cells)
    question = next(one for one in cells if one.source.startswith(QUESTION))
    question.source = f"{QUESTION}\n\nWhy?\n\n```\nlike this\n```"
    fenced = dataclasses.replace(mini, student=nbformat.v4.new_notebook(cells=cells))
    changed = question.source.replace("Why?", "Why? So.")
    given = [("markdown", changed), ("markdown", f"{MARK}\n```\nmine\n```")]
    assert written.answers(given, fenced) == {"q4": "So.\n\n```\nmine\n```"}


def test_a_subheading_of_a_question_ends_no_section(longer):
    cells = copy.deepcopy(longer.student.cells)
    question = next(one for one in cells if one.source.startswith(QUESTION))
    question.source += "\n\n## Hand in"
    odd = dataclasses.replace(longer, student=nbformat.v4.new_notebook(cells=cells))
    given = [("markdown", question.source), ("markdown", "Because.")]
    assert written.answers(given, odd) == {"q4": "Because."}


def test_a_question_without_a_heading_has_its_section():
    mini = class_factory.mini()
    cells = copy.deepcopy(mini.student.cells)
    question = next(one for one in cells if one.source.startswith(QUESTION))
    question.source = "Why is that?"
    questions = [
        dataclasses.replace(one, title="Why is that?") if one.manual else one
        for one in mini.questions
    ]
    bare = nbformat.v4.new_notebook(cells=cells)
    bare = dataclasses.replace(mini, student=bare, questions=questions)
    given = [("markdown", "Why is that?"), ("markdown", "Because.")]
    assert written.answers(given, bare) == {"q4": "Because."}


def test_an_endless_answer_is_cut_and_costs_no_time(tmp_path):
    text = "a\n" * (submissions.MAX_FILE // 8)
    content = with_text(tmp_path / "x.ipynb", f"{MARK}\n{text}")
    answer = content.answers["q4"]
    assert len(answer) < written.MAX_ANSWER + 100
    assert answer.endswith(written.CUT)
    assert problem(tmp_path / "x.ipynb") == ""


def test_two_marks_in_one_cell_are_told_apart():
    mini = class_factory.mini()
    question = next(one for one in mini.questions if one.manual)
    both = [question, dataclasses.replace(question, name="q5", title="Question 5")]
    two = dataclasses.replace(mini, questions=both)
    cell = ("markdown", f"{MARK} One. <!--answer:q5-->\nTwo.\n")
    assert written.answers([cell], two) == {"q4": "One.", "q5": "Two."}


def test_without_the_students_notebook_marks_are_enough():
    bare = dataclasses.replace(class_factory.mini(), student=nbformat.v4.new_notebook())
    cells = [("markdown", MARK), ("markdown", "Because.")]
    assert written.answers(cells, bare) == {"q4": "Because."}


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
