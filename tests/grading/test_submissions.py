"""The files that were handed in: whose they are, and what is in them."""

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
        assert submissions.read(one.path, class_factory.mini()).problem == ""
    folders = {unicodedata.normalize("NFKC", one.folder).casefold() for one in found}
    assert len({one.student for one in found}) == len(folders) == len(NAMES)


def test_what_is_known_wrongly_makes_no_two_students_one(tmp_path):
    known = {"a.ipynb": "same", "b.ipynb": "same", "gone.ipynb": "c"}
    found = students(tmp_path, "a.ipynb", "b.ipynb", "c.ipynb", known=known)
    assert sorted(found.values()) == ["c", "same", "same (2)"]


def test_who_comes_late_takes_nobodys_folder(tmp_path):
    (tmp_path / "a?b.ipynb").write_text("{}")
    (first,) = submissions.find(tmp_path, "mini")
    (tmp_path / "a*b.ipynb").write_text("{}")
    known, kept = {first.place: first.student}, {first.place: first.folder}
    found = submissions.find(tmp_path, "mini", known, kept)
    assert [one.folder for one in found] == ["a_b (2)", "a_b"]
    assert found[1] == first


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


def test_who_handed_in_no_notebook_is_named(tmp_path, monkeypatch):
    (tmp_path / "honest.ipynb").write_text(NOTHING)
    for name in ("pdf_1_assignsubmission_file_/a.pdf", "hidden/.a.ipynb", "shut/x"):
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
        "hidden": none + ".a.ipynb",
        "none": none + "it is empty",
        "link": "this is a link",
        "shut": "the folder can't be read (Permission denied)",
    }


def test_a_hidden_notebook_is_a_students(tmp_path):
    names = [".gina.ipynb", "._honest.ipynb", "a/.x.ipynb", "a/b.ipynb", ".x/a.ipynb"]
    found = students(tmp_path, *names)
    assert found == {".gina.ipynb": ".gina", "a/b.ipynb": "a"}


@pytest.mark.slow
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


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-le"])
def test_notebooks_in_all_encodings_of_unicode_are_read(tmp_path, encoding):
    path = tmp_path / "x.ipynb"
    text = json.dumps(notebook("name = 'Zoë'"), ensure_ascii=False)
    path.write_text(text, encoding=encoding)
    content = submissions.read(path, class_factory.mini())
    assert [cell.source for cell in content.cells] == ["name = 'Zoë'"]


@pytest.mark.parametrize(
    "odd",
    [
        {"metadata": []},
        {"metadata": {"x": float("nan")}},
        {"extra": [[{"outputs": 3}]]},
        {"nbformat": 99},
    ],
)
def test_what_does_not_count_does_no_harm(tmp_path, odd):
    data = notebook("a = 1", "b = 2", **odd)
    (tmp_path / "x.ipynb").write_text(json.dumps(data))
    content = submissions.read(tmp_path / "x.ipynb", class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1", "b = 2"]


BROKEN = {
    "latin-1": json.dumps(notebook("é"), ensure_ascii=False).encode("latin-1"),
    "deep": b"[" * 200_000,
    "huge number": b'{"cells": ' + b"9" * 10_000 + b"}",
    "no cells": b'{"a": 1}',
    "cells are text": b'{"cells": "abc"}',
    "a source of numbers": json.dumps(notebook([1, 2])).encode(),
    "a type of a list": b'{"cells": [{"cell_type": [], "source": ""}]}',
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


def test_a_long_code_cell_is_left_out_alone(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(notebook("a", "b" * (2**20 + 1), "c" * 2**20)))
    first, second, third = submissions.read(path, class_factory.mini()).cells
    assert (first.source, third.source) == ("a", "c" * 2**20)
    with pytest.raises(ValueError, match="is longer than 1048576 characters, so it"):
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


@pytest.mark.slow
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


def test_old_notebooks_are_read(tmp_path):
    cell = {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "outputs": []}
    old = {
        **{"nbformat": 3, "nbformat_minor": 0, "metadata": {}},
        "worksheets": [{"cells": [{**cell, "language": "python"}]}],
    }
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    content = submissions.read(tmp_path / "old.ipynb", class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1\nb = 2"]


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
    "a text of the master's": ([MARK, "A.", "Now the  figure.", "B."], "A.\n\nB."),
    "up to a changed text": ([MARK, "A.", "## Hand in\n\nDone!", "No."], "A."),
    "mark deleted": (["{}", "Because."], "Because."),
    "in the question": (["{}\n\nBecause."], "Because."),
    "in the question, marked": (
        ["{}\n\nBecause.", f"{MARK}\n{PLACEHOLDER}"],
        "Because.",
    ),
    "above the mark": (
        ["{}", "Because.", f"{MARK}\n{PLACEHOLDER}"],
        "Because.",
    ),
    "above and below": (["{}", "A.", f"{MARK}\nB.", "C."], "A.\n\nB.\n\nC."),
    "quoted": (["{}", f"{MARK}\n> {{1}}\n\nBecause."], "Because."),
    "question changed": (
        [f"{QUESTION}\n\nWhy, then?", f"{MARK}\nBecause."],
        "Why, then?\n\nBecause.",
    ),
    "title and mark elsewhere": (["Hello.", f"{MARK}\nA.", "{}", "B."], "A.\n\nB."),
    "merged": ([f"{{}}\n\n{MARK}\nBecause.\n\n## Hand in\n\nUp."], "Because."),
    "no cells": ([], ""),
    "marked in code": ([("code", f"{MARK}\nBecause."), "So."], "Because.\n\nSo."),
    "a raw cell": (["{}", MARK, ("raw", "Because.")], "Because."),
    "a comment in given code": (
        ["{}", MARK, ("code", "def draw(rows):\n    # Because.\n    ...")],
        "    # Because.",
    ),
    "a string": (["{}", MARK, ("code", '"""Because."""')], '"""Because."""'),
    "given code": (["{}", MARK, ("code", "def draw(rows):\n    ...")], ""),
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


def test_an_endless_answer_is_cut_and_costs_no_time(tmp_path):
    text = "a\n" * (submissions.MAX_FILE // 8)
    content = with_text(tmp_path / "x.ipynb", f"{MARK}\n{text}")
    answer = content.answers["q4"]
    assert len(answer) < written.MAX_TEXT + 100
    assert answer.endswith(written.CUT)
    assert problem(tmp_path / "x.ipynb") == ""


def test_two_marks_in_one_cell_are_told_apart():
    mini = class_factory.mini()
    question = next(one for one in mini.questions if one.manual)
    both = [question, dataclasses.replace(question, name="q5", title="Question 5")]
    two = dataclasses.replace(mini, questions=both)
    cell = ("markdown", f"{MARK} One. <!--answer:q5-->\nTwo.\n")
    assert written.answers([cell], two) == {"q4": "One.", "q5": "Two."}


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
