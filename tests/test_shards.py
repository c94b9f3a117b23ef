"""Parts of a class: each stable, and together the same as one run."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import class_factory
import kubernetes_validate
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from grading import batch, shards, submissions
from tools.model.chapters import ROOT

pytestmark = class_factory.NEEDS_SANDBOX

PAGE = (ROOT / "book" / "for-teachers.md").read_text(encoding="utf-8")
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


def test_the_parts_are_about_equal_and_stable():
    places = [f"student {number}/1.ipynb" for number in range(4000)]
    sizes = [sum(map(shards.Shard(number, 8).holds, places)) for number in range(1, 9)]
    assert min(sizes) > 400 and max(sizes) < 600
    assert [n for n in range(1, 9) if shards.Shard(n, 8).holds("anna.ipynb")] == [5]
    assert shards.Shard(1, 1).holds("m\udcfcller.ipynb")


@pytest.mark.parametrize(
    "given", ["0/8", "9/8", "a/b", "2/0", "2", "", "-1/8", "1/8/9"]
)
def test_what_names_no_part_is_told(handed_in, given, capsys):
    assert class_factory.grade(handed_in, f"--shard={given}", SECRET) == 1
    said = capsys.readouterr().err
    assert f"--shard {given}: names no part. Fix: " in said
    assert not (handed_in / "out").exists()


def test_parts_with_secrets_of_their_own_are_refused(handed_in, capsys):
    assert class_factory.grade(handed_in, "--shard=1/2") == 1
    said = capsys.readouterr().err
    assert "each part would draw its own hidden inputs. Fix: " in said
    assert not (handed_in / "out").exists()
    (handed_in / "out").mkdir()
    (handed_in / "out" / "seed.txt").write_text("a secret\n")
    assert class_factory.grade(handed_in, "--shard=1/2") == 0


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


def test_a_name_is_the_same_whichever_part_was_first(tmp_path):
    folder = tmp_path / "in"
    names = ["a:b", "a*b", "a?b", "x", "X", "x (2)", "two/one", "two/other", "two"]
    for name in names:
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    whole = submissions.find(folder, "mini")
    assert len({one.folder for one in whole}) == len(names)
    for number in range(1, 4):
        part = shards.Shard(number, 3).of(whole)
        known = {one.place: one.student for one in part}
        kept = {one.place: one.folder for one in part}
        assert submissions.find(folder, "mini", known, kept) == whole


def test_who_comes_late_takes_nobodys_folder(tmp_path):
    (tmp_path / "a?b.ipynb").write_text("{}")
    (first,) = submissions.find(tmp_path, "mini")
    (tmp_path / "a*b.ipynb").write_text("{}")
    known, kept = {first.place: first.student}, {first.place: first.folder}
    found = submissions.find(tmp_path, "mini", known, kept)
    assert [one.folder for one in found] == ["a_b (2)", "a_b"]
    assert found[1] == first


def test_what_an_earlier_run_knows_is_whose_and_where(handed_in):
    class_factory.grade(handed_in, SECRET)
    place = "correct_mini.ipynb"
    students, folders = batch.known(handed_in / "out")
    assert (students[place], folders[place]) == ("correct", "correct")


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
    assert students[0] == students[1] >= {"s0", "a_b", "a_b (2)", "a_b (3)"}


# What For teachers says.


def block(language: str, holds: str) -> str:
    """The file or the commands on the page that hold a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)
    (found,) = [one for one in blocks if holds in one]
    return found


def told(folder: Path, script: str, **variables: object) -> list[str]:
    """What a script of the page would have Python do, in a folder of its own."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\n')
    python.chmod(0o755)
    environment = os.environ | {name: str(one) for name, one in variables.items()}
    return subprocess.check_output(
        ["bash", "-euc", script], env=environment, cwd=folder, text=True
    ).splitlines()


def arguments(line: str) -> list[str]:
    """The arguments of `grade`, which the command must understand."""
    words = shlex.split(line)
    assert words[:3] == ["-m", "grading", "grade"]
    return words[3:]


def test_slurms_tasks_are_the_parts(tmp_path):
    script = block("sh", "#SBATCH")
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", script).groups())
    parts = set()
    for task in range(first, last + 1):
        variables = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": last}
        (line,) = told(tmp_path, script, **variables)
        assert arguments(line)[:2] == ["submissions/1", "1"]
        parts.add(str(shards.parse(arguments(line)[-1])))
    assert parts == {f"{number}/{last}" for number in range(1, last + 1)}


def test_kubernetes_pods_are_the_parts(tmp_path):
    job = yaml.safe_load(block("yaml", "kind: Job"))
    newest = kubernetes_validate.latest_version()
    kubernetes_validate.validate(job, newest, strict=True)
    spec = job["spec"]
    with pytest.raises(kubernetes_validate.ValidationError, match="completion"):
        wrong = job | {"spec": spec | {"completion": 8}}
        kubernetes_validate.validate(wrong, newest, strict=True)
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    shell, option, script = container["command"]
    assert (shell, option) == ("bash", "-c")
    parts = set()
    for index in range(spec["completions"]):
        (line,) = told(tmp_path, script, JOB_COMPLETION_INDEX=index)
        parts.add(str(shards.parse(arguments(line)[-1])))
    assert spec["completionMode"] == "Indexed"
    assert parts == {f"{n}/{spec['completions']}" for n in range(1, 9)}
    assert [one["name"] for one in container["volumeMounts"]] == [
        one["name"] for one in pod["volumes"]
    ]


def test_the_secret_is_written_as_the_page_says(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    *first, last = block("sh", "secrets.token_hex").strip().splitlines()
    subprocess.run(["bash", "-euc", "\n".join(first)], cwd=tmp_path, check=True)
    (path,) = tmp_path.glob("grades/*/seed.txt")
    assert re.fullmatch(r"[0-9a-f]{32}\n", path.read_text())
    assert (ROOT / "assignments" / "masters" / f"{path.parent.name}.md").exists()
    (line,) = told(tmp_path / "x", last)
    assert arguments(line)[-1] == "2/8"
