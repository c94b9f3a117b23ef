"""Parts of the grader: the sandbox, remote objects, files, marks, a second run."""

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import class_factory
import numpy as np
import pytest

from grading import __main__ as cli
from grading import manual, masters, runner, sandbox, submissions
from grading.answers import NotPlainData, Remote
from grading.manual import Mark
from grading.protocol import Handle
from tools.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

LIMITS = sandbox.Limits(cell_seconds=20, call_seconds=10, total_seconds=60)


def run_cells(*sources: str, limits: sandbox.Limits = LIMITS) -> runner.Result:
    """Grade a notebook with these cells."""
    cells = [runner.Cell(number, text) for number, text in enumerate(sources, start=1)]
    return runner.Grading(class_factory.mini(), cells, limits).grade("a secret")


# The sandbox.


def inside(code: str) -> str:
    """What Python prints in the sandbox."""
    line = sandbox.command([sys.executable, "-c", code], LIMITS)
    done = subprocess.run(line, capture_output=True, text=True, cwd="/", timeout=60)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_sandbox_works_here():
    sandbox.check()


SEEN = "('HOME', 'GRADING_SEED', 'GITHUB_TOKEN')"
PROMISES = [
    ("import os; print(os.getuid())", "65534"),
    (
        f"import os; print([os.environ.get(name) for name in {SEEN}])",
        "['/tmp/home', None, None]",
    ),
    ("open('/usr/x', 'w')", "Read-only file system"),
    ("open('/x', 'w')", "Read-only file system"),
    ("open('/grading/worker.py', 'w')", "Read-only file system"),
    ("import os; print(os.listdir('/tmp/work'))", "[]"),
    ("import glob; print(glob.glob('/*/*/assignments'))", "[]"),
    ("import socket; socket.create_connection(('192.0.2.1', 1), 1)", "unreachable"),
    (
        "import socket; print(socket.gethostbyname(socket.gethostname()))",
        "127.0.0.1",
    ),
]


@pytest.mark.parametrize("code, said", PROMISES)
def test_the_sandbox_keeps_what_it_promises(code, said, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GRADING_SEED", "1")
    assert said in inside(code)


def test_the_number_of_processes_is_limited():
    fork = (
        "import os, time\nn = 0\ntry:\n    while n < 2000:\n"
        "        if os.fork() == 0: time.sleep(1000)\n        n += 1\n"
        "except OSError: pass\nraise RuntimeError(f'forks {n}')"
    )
    limits = dataclasses.replace(LIMITS, processes=60)
    result = run_cells(fork, "bytes_q3 = 4", limits=limits)
    forks = int(result.cells[0].error.split()[-1])
    assert 5 < forks < 60
    assert result.score == 1


def refusal(monkeypatch, **changes) -> str:
    """What the command says where there can be no sandbox; nothing may run."""
    for name, value in changes.items():
        monkeypatch.setattr(name, value)
    sandbox.check.cache_clear()
    try:
        with pytest.raises(sandbox.NoSandbox) as error:
            sandbox.check()
    finally:
        sandbox.check.cache_clear()
    return str(error.value)


def test_without_bubblewrap_nothing_runs(monkeypatch, tmp_path, capsys):
    class_factory.write_all(
        tmp_path / "in", {"correct": class_factory.HONEST["correct"]}
    )
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    sandbox.check.cache_clear()
    arguments = ["grade", str(tmp_path / "in"), str(class_factory.MINI)]
    assert cli.main([*arguments, "--out", str(tmp_path / "out")]) == 1
    sandbox.check.cache_clear()
    said = capsys.readouterr().err
    assert "bubblewrap is not installed, so no student's code is run" in said
    assert "apt-get install bubblewrap" in said
    assert not (tmp_path / "out").exists()


def test_elsewhere_than_on_linux_nothing_runs(monkeypatch):
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")
    assert "Linux sandbox, and this is darwin" in refusal(monkeypatch)


def test_a_sandbox_that_fails_says_why(monkeypatch, tmp_path):
    false = tmp_path / "bwrap"
    false.write_text("#!/bin/sh\necho 'bwrap: No permissions to create' >&2; exit 1\n")
    false.chmod(0o755)
    monkeypatch.setattr(sandbox, "find", lambda: str(false))
    said = refusal(monkeypatch)
    assert "makes no sandbox here (bwrap: No permissions to create)" in said
    assert "Fix: " in said


def test_a_sandbox_that_keeps_less_than_it_promises_is_refused(monkeypatch):
    monkeypatch.setattr(
        sandbox, "command", lambda arguments, limits, slot=0: list(arguments)
    )
    assert "no student's code is run" in refusal(monkeypatch)


# Remote objects.


class NoAnswers:
    def ask(self, request, values):
        raise AssertionError("the worker was asked")


@pytest.mark.parametrize(
    "use",
    [
        lambda one: one == 1,
        lambda one: 1 == one,  # noqa: SIM300
        lambda one: one != 1,
        lambda one: one < 1,
        lambda one: bool(one),
        lambda one: not one,
        lambda one: len(one),
        lambda one: list(one),
        lambda one: 1 in one,
        lambda one: int(one),
        lambda one: float(one),
        lambda one: abs(one),
        lambda one: one + 1,
        lambda one: 1 - one,
        lambda one: one @ np.ones(2),
        lambda one: np.ones(2) * one,
        lambda one: np.asarray(one),
        lambda one: np.allclose(one, 1),
        lambda one: np.add(one, 1),
        lambda one: np.isfinite(one),
        lambda one: range(one),
        lambda one: {one: 1},
        lambda one: round(one),
    ],
)
def test_a_remote_object_passes_no_assertion_by_itself(use):
    with pytest.raises(TypeError):
        assert use(Remote(NoAnswers(), Handle(1, "Sly"))) is not None


def test_a_remote_object_says_nothing_that_the_student_chose():
    one = Remote(NoAnswers(), Handle(1, "relu"))
    assert "relu" not in f"{one} {one!r} {one}"
    assert not isinstance(one, (int, float, str, list, np.ndarray))
    with pytest.raises(NotPlainData, match="type 'relu'"):
        bool(one)


def test_attributes_methods_items_and_handles_as_arguments():
    result = run_cells(
        "import numpy as np\n"
        "class Layer:\n"
        "    def __init__(self, n): self.n = n\n"
        "    def count(self): return self.n\n"
        "def dense(inputs, units): return Layer((inputs + 1) * units)\n"
        "bytes_q3 = np.int8(4)\n"
    )
    assert result.questions[1].score == 3
    assert result.questions[2].score == 1


# Cells.


def test_cells_run_in_order_and_an_error_stops_none():
    result = run_cells("a = 1", "raise ValueError('first')", "bytes_q3 = a + 3")
    assert result.score == 1
    assert [cell.error for cell in result.cells] == ["", "ValueError: first", ""]


def test_a_cell_that_ends_the_worker_costs_only_itself():
    result = run_cells(
        "bytes_q3 = 4", "import os; os._exit(1)", "def dense(i, u): return None"
    )
    assert result.score == 1
    assert "ended the process" in result.cells[1].error
    assert not result.problem


def test_harm_that_shows_late_is_laid_to_its_cell():
    result = run_cells(
        "bytes_q3 = 4",
        "import os, signal, subprocess, sys\n"
        "code = f'import os, time; time.sleep(0.05); os.kill({os.getpid()}, 9)'\n"
        "subprocess.Popen([sys.executable, '-c', code])",
        "import time; time.sleep(0.5)",
    )
    assert result.score == 1


def test_a_submission_that_loses_worker_after_worker_comes_to_an_end():
    result = run_cells(*["import os; os._exit(1)"] * 10, "bytes_q3 = 4")
    assert result.score == 0
    assert "workers were lost" in result.problem
    assert all(t.message for q in result.questions for t in q.tests)


def test_the_time_of_a_submission_ends():
    start = time.monotonic()
    limits = dataclasses.replace(LIMITS, total_seconds=4)
    result = run_cells("import time; time.sleep(60)", "bytes_q3 = 4", limits=limits)
    assert time.monotonic() - start < 10
    assert "used up its 4 s" in result.problem


@pytest.mark.parametrize(
    "source, wanted",
    [
        ("%pip install keras", "pass"),
        ("  !pip install keras", "  pass"),
        ("! pip3 install x", "pass"),
        ("!uv pip install x", "pass"),
        ("print('%pip install')", "print('%pip install')"),
        ("!ls", "!ls"),
    ],
)
def test_installations_are_left_out(source, wanted):
    assert runner.without_installs(source).split("  #")[0] == wanted


def test_magics_processes_and_plots_work():
    result = run_cells(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
        "plt.plot([1]); plt.show()",
        "from IPython.display import display\ndisplay(1)",
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'print(4)']\n"
        "done = subprocess.run(command, capture_output=True)",
        "bytes_q3 = int(done.stdout)",
        "!echo hello",
    )
    assert [cell.error for cell in result.cells] == [""] * 5
    assert result.score == 1


def test_the_seed_decides_the_hidden_inputs():
    assert runner.seed_number("a") != runner.seed_number("b")
    assert runner.SEED not in os.environ
    fixed = "def dense(i, u):\n    class L:\n        count = lambda self: (i + 1) * u\n"
    assert run_cells(fixed + "    return L()").questions[1].score == 3
    assert runner.SEED not in os.environ


# Files.


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
    for name in [*names, "__MACOSX/x.ipynb", "a/.ipynb_checkpoints/mini.ipynb"]:
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
    assert submissions.Submission(student, Path("x")).folder == folder


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no notebook"):
        submissions.find(tmp_path, "mini")
    with pytest.raises(UserError, match="no such folder"):
        submissions.find(tmp_path / "none", "mini")
    (tmp_path / "all.zip").touch()
    with pytest.raises(UserError, match="unpack it first"):
        submissions.find(tmp_path / "all.zip", "mini")


def test_links_and_large_files_are_not_read(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "secret")
    content = submissions.read(tmp_path / "link.ipynb", class_factory.mini())
    assert content.problem == "this is no ordinary file"
    monkeypatch.setattr(submissions, "MAX_FILE", 1)
    content = submissions.read(tmp_path / "secret", class_factory.mini())
    assert "too large" in content.problem


def test_old_notebooks_are_read(tmp_path):
    cell = {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "outputs": []}
    old = {
        **{"nbformat": 3, "nbformat_minor": 0, "metadata": {}},
        "worksheets": [{"cells": [{**cell, "language": "python"}]}],
    }
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    content = submissions.read(tmp_path / "old.ipynb", class_factory.mini())
    assert [cell.source for cell in content.cells] == ["a = 1\nb = 2"]


def test_written_answers_are_found_below_their_mark():
    mark = "<!-- answer: q4 -->"
    read = submissions.written_answers
    mini = class_factory.mini()
    assert read([("markdown", f"{mark}\n{masters.PLACEHOLDER}")], mini) == {"q4": ""}
    assert read([("markdown", f"{mark}\nBecause.")], mini) == {"q4": "Because."}
    below = [("markdown", mark), ("markdown", "Because."), ("markdown", "## Hand in")]
    assert read(below, mini) == {"q4": "Because."}
    other = [("markdown", mark), ("code", "x"), ("markdown", "Not this.")]
    assert read(other, mini) == {"q4": ""}
    assert read([], mini) == {"q4": ""}


# Marks given by hand, and a second run.


def write_marks(path: Path, text: str) -> None:
    path.write_text("student,question,points,comment\n" + text)


def test_marks_are_read_as_spreadsheets_write_them(tmp_path):
    path = tmp_path / "manual.csv"
    text = '\ufeffstudent;question;points;comment\r\nanna;q4;1,5;"good; short"\r\n'
    path.write_text(text, encoding="utf-8", newline="")
    marks = manual.read(path, class_factory.mini())
    assert marks == {("anna", "q4"): Mark(1.5, "good; short")}


@pytest.mark.parametrize(
    "line, said",
    [
        ("anna,q4,3,", r"line 2, anna, q4: '3' is no number from 0 to 2"),
        ("anna,q4,-1,", "no number from 0 to 2"),
        ("anna,q4,good,", "'good' is no number"),
        ("anna,q4,nan,", "'nan' is no number"),
        ("anna,q9,1,", "no question that is graded by hand. Fix: q4"),
    ],
)
def test_broken_marks_are_refused_with_their_line(tmp_path, line, said):
    path = tmp_path / "manual.csv"
    write_marks(path, line + "\n")
    with pytest.raises(UserError, match=said):
        manual.read(path, class_factory.mini())


def test_a_table_without_its_columns_is_refused(tmp_path):
    path = tmp_path / "manual.csv"
    path.write_text("name,mark\n")
    with pytest.raises(UserError, match="line 1: no column comment, points"):
        manual.read(path, class_factory.mini())


def test_formulas_stay_text_and_names_stay_names(tmp_path):
    path = tmp_path / "manual.csv"
    mini = class_factory.mini()
    marks = {("=1+1", "q4"): Mark(1.0, "=cmd|'/c calc'!A1")}
    manual.write(path, mini, {"=1+1": {"q4": "@SUM(1)"}}, marks)
    row = next(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    assert row["student"] == "'=1+1"
    assert row["answer"] == "'@SUM(1)"
    assert row["comment"].startswith("'=")
    assert manual.read(path, mini).keys() == {("=1+1", "q4")}


@pytest.fixture
def handed_in(tmp_path):
    cases = {name: class_factory.HONEST[name] for name in ("correct", "wrong", "empty")}
    class_factory.write_all(tmp_path / "in", cases)
    return tmp_path


def grade(folder: Path, *options: str) -> int:
    arguments = ["grade", str(folder / "in"), str(class_factory.MINI)]
    return cli.main([*arguments, "--out", str(folder / "out"), *options])


def test_a_second_run_grades_only_what_changed(handed_in, capsys):
    assert grade(handed_in) == 0
    capsys.readouterr()
    assert grade(handed_in) == 0
    assert "3 graded before, 0 to grade" in capsys.readouterr().err
    wrong = handed_in / "in" / "wrong_mini.ipynb"
    wrong.write_text(class_factory.HONEST["correct"].text)
    (handed_in / "in" / "empty_mini.ipynb").unlink()
    assert grade(handed_in) == 0
    said = capsys.readouterr().err
    assert "[1/1] wrong: 8 points" in said
    assert "empty: no longer there" in said
    assert not (handed_in / "out" / "empty").exists()
    assert grade(handed_in, "--seed=another secret") == 0
    assert "0 graded before, 2 to grade" in capsys.readouterr().err


def test_marks_given_by_hand_count_on_the_next_run(handed_in, capsys):
    file = handed_in / "in" / "correct_mini.ipynb"
    text = file.read_text().replace(masters.PLACEHOLDER, "Because it overflows.")
    file.write_text(text)
    grade(handed_in)
    path = handed_in / "out" / "manual.csv"
    write_marks(path, "correct,q4,1.5,well put\n")
    assert grade(handed_in) == 0
    text = (handed_in / "out" / "grades.csv").read_text("utf-8-sig")
    rows = {row["student"]: row for row in csv.DictReader(text.splitlines())}
    assert rows["correct"]["score"] == "9.5"
    assert rows["correct"]["complete"] == "yes"
    assert rows["wrong"]["complete"] == "no"
    page = (handed_in / "out" / "correct" / "feedback.html").read_text()
    assert "well put" in page
    assert "9.5 of 10 points." in page
    results = json.loads((handed_in / "out" / "correct" / "results.json").read_text())
    assert results["score"] == 9.5
    assert "well put" in path.read_text("utf-8-sig")
    assert "Because it overflows." in path.read_text("utf-8-sig")


def test_broken_marks_stop_the_run_before_anything_is_lost(handed_in, capsys):
    grade(handed_in)
    before = (handed_in / "out" / "grades.csv").read_text()
    path = handed_in / "out" / "manual.csv"
    write_marks(path, "correct,q4,many,\n")
    assert grade(handed_in) == 1
    assert "'many' is no number" in capsys.readouterr().err
    assert path.read_text().endswith("correct,q4,many,\n")
    assert (handed_in / "out" / "grades.csv").read_text() == before


def test_the_seed_is_drawn_once_and_kept_to_its_owner(tmp_path):
    first = cli.seed(tmp_path, None)
    assert len(first) == 32
    assert cli.seed(tmp_path, None) == first
    assert cli.seed(tmp_path, "mine") == "mine"
    assert (tmp_path / cli.SEED_FILE).stat().st_mode & 0o077 == 0


def test_results_do_not_go_among_the_submissions(handed_in, capsys):
    arguments = ["grade", str(handed_in / "in"), str(class_factory.MINI), "--out"]
    assert cli.main([*arguments, str(handed_in / "in" / "out")]) == 1
    assert "can't lie in the folder" in capsys.readouterr().err


def test_an_unknown_assignment_is_refused(handed_in, capsys):
    assert cli.main(["grade", str(handed_in / "in"), "99"]) == 1
    assert "no assignment '99'. Fix: name one of 1-" in capsys.readouterr().err


def test_interrupted_grading_keeps_what_is_done(handed_in):
    (handed_in / "in" / "zz_mini.ipynb").write_text(
        class_factory.case("import time; time.sleep(100)").text
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "grading", "grade", str(handed_in / "in")),
            *(str(class_factory.MINI), "--out", str(handed_in / "out"), "--jobs=1"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        # A run in the background ignores Ctrl-C, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "PYTHONPATH": str(sandbox.GRADING.parent)},
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if "wrong:" in line:
            process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert "interrupted: what is graded is kept" in said[-1]
    assert (handed_in / "out" / "correct" / "graded.json").exists()


def test_python_may_lie_below_tmp(monkeypatch, tmp_path):
    (tmp_path / "packages").touch()
    tmp_path.chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    line = sandbox.command(["/bin/ls", str(tmp_path)], LIMITS)
    done = subprocess.run(line, capture_output=True, text=True, cwd="/")
    assert done.stdout == "packages\n", done.stderr
