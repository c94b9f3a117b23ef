"""Parts of a class: each stable, and together the same as one run."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import class_factory
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading import shards
from tools.model.chapters import ROOT

pytestmark = class_factory.NEEDS_SANDBOX

SECRET = "--seed=a secret"


def command(folder: Path, out: str, *options: str) -> list[str]:
    """The command as a teacher writes it."""
    start = [sys.executable, "-m", "grading", "grade", str(folder / "in")]
    return [*start, str(class_factory.MINI), "--out", str(folder / out), *options]


def run(folder: Path, out: str, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(folder, out, *options),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def hand_in(folder: Path, count: int) -> None:
    """Have this many students hand in, with scores that differ."""
    (folder / "in").mkdir()
    for number in range(count):
        answered = ("q1", "q2", "q3")[number % 4 :]
        text = class_factory.masters.dumps(class_factory.notebook(answered))
        (folder / "in" / f"s{number}_mini.ipynb").write_text(text)
    for name in ("a:b", "a*b", "a?b"):  # all in folders of the same name
        text = class_factory.HONEST["starter"].text
        (folder / "in" / f"{name}.ipynb").write_text(text + " " * len(name))


@given(st.lists(st.text()), st.integers(1, 20))
def test_each_file_is_in_one_part(places, count):
    parts = [shards.Shard(number, count) for number in range(1, count + 1)]
    for place in places:
        assert sum(part.holds(place) for part in parts) == 1


@pytest.mark.parametrize("given", ["0/8", "9/8", "a/b", "2"])
def test_what_names_no_part_is_told(handed_in, given, capsys):
    assert class_factory.grade(handed_in, f"--shard={given}", SECRET) == 1
    assert f"--shard {given}: names no part. Fix: " in capsys.readouterr().err
    assert not (handed_in / "out").exists()


def test_parts_with_secrets_of_their_own_are_refused(handed_in, capsys):
    assert class_factory.grade(handed_in, "--shard=1/2") == 1
    message = "each part would draw its own hidden inputs. Fix: "
    assert message in capsys.readouterr().err
    assert not (handed_in / "out").exists()


def test_a_part_writes_no_report_and_removes_nothing(handed_in, capsys):
    assert class_factory.grade(handed_in, SECRET) == 0
    out = handed_in / "out"
    for report in ("grades.csv", "summary.html", "manual.csv"):
        (out / report).write_text("mine")
    (handed_in / "in" / "wrong_mini.ipynb").unlink()
    for part in ("1/2", "2/2"):
        assert class_factory.grade(handed_in, SECRET, f"--shard={part}") == 0
        assert f"part {part}: " in capsys.readouterr().out
    assert {(out / x).read_text() for x in ("grades.csv", "summary.html")} == {"mine"}
    assert (out / "students" / "wrong" / "graded.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_parts_side_by_side_are_one_run_even_if_one_dies(tmp_path):
    hand_in(tmp_path, 5)
    assert run(tmp_path, "whole", SECRET).returncode == 0
    parts = [
        subprocess.Popen(
            command(tmp_path, "parts", SECRET, f"--shard={number}/3", "--jobs=1"),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2, 3)
    ]
    for line in parts[1].stderr:
        if " to grade" in line:
            break
    parts[1].send_signal(signal.SIGKILL)
    said = [part.communicate(timeout=120)[1] for part in parts]
    assert [part.returncode for part in parts] == [0, -signal.SIGKILL, 0], said
    assert not (tmp_path / "parts" / "grades.csv").exists()
    last = run(tmp_path, "parts", SECRET)
    before, left = re.search(r"(\d+) graded before, (\d+) to gr", last.stderr).groups()
    assert int(before) + int(left) == 8 and int(before) > 0 and int(left) > 0
    for name in ("grades.csv", "manual.csv"):
        one, other = (tmp_path / x / name for x in ("whole", "parts"))
        assert other.read_bytes() == one.read_bytes()
    students = [
        {path.name for path in (tmp_path / x / "students").iterdir()}
        for x in ("whole", "parts")
    ]
    assert students[0] == students[1] and "s0" in students[0]
    assert sum(name.startswith("a_b ") for name in students[0]) == 3
