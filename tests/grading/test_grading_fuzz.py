"""Submissions of any name, kind and content: none harms another, none finds a secret.

The suite draws the same few folders of them each time. To draw many others:

    FOLDERS=500 python -m pytest --timeout=0 tests/grading/test_grading_fuzz.py
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import socket
import tempfile
from pathlib import Path

import class_factory
import pytest
from class_factory import ALL
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_submissions import BROKEN

pytestmark = class_factory.NEEDS_SANDBOX

CANARY = f"CANARY-{os.urandom(6).hex()}"
LIMITS = [
    "--cell-seconds=8",
    "--call-seconds=6",
    "--total-seconds=40",
    "--memory-gib=0.5",
    "--jobs=2",
]
NEIGHBOUR = "aa-honest_mini.ipynb"
FORMULA = re.compile(r"[=+@]|-\S")

WHOLE = [one.text.encode(errors="backslashreplace") for one in ALL.values() if one.text]


def damaged(data: bytes, places: list[tuple[int, int]]) -> bytes:
    """The same with some bytes changed."""
    changed = bytearray(data)
    for place, value in places:
        changed[place % len(changed)] = value
    return bytes(changed)


notebooks = st.sampled_from(WHOLE + list(BROKEN.values()))
damage = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=20)
contents = notebooks | st.builds(damaged, notebooks, damage) | st.binary(max_size=200)
names = (
    st.binary(min_size=1, max_size=200)
    | st.text(min_size=1, max_size=40).map(lambda name: name.encode(errors="replace"))
    | st.sampled_from(
        [
            *(b"grades.csv", b"summary.html", b"manual.csv", b"seed.txt", b"students"),
            *(b"graded.json", b"..", b".", b"-rf", b"~", b"aa-honest", b"AA-HONEST"),
            *(b"a;=cmd|' /c calc'!A1", b"=1+1", b"a\t@SUM(1)", b"con", b"{{7*7}}"),
            *("é".encode(), "e\u0301".encode(), b"\x1b[31m[1/9] x: 8 points\n"),
            *(b"A" * 200, "ä".encode() * 100, b"<script>", b"%s%n", b"$(id)"),
        ]
    )
)
kinds = st.sampled_from(["file"] * 8 + ["folder", "pipe", "socket", "link", "sparse"])
submissions = st.lists(
    st.tuples(names, kinds, contents, st.booleans()), min_size=1, max_size=5
)


def hand_in(folder: Path, name: bytes, kind: str, content: bytes, below: bool) -> None:
    """Put a submission into a folder; a name that can't be is left out."""
    name = name.replace(b"/", b"_").replace(b"\0", b"_")[:240]
    where = os.fsencode(folder)
    if below:
        where = os.path.join(where, name.strip(b".") or b"x")
        name = b"mini"
    path = os.path.join(where, name + b".ipynb")
    with contextlib.suppress(FileExistsError, NotADirectoryError):
        os.makedirs(where, exist_ok=True)
        if os.path.lexists(path):
            return
        if kind == "folder":
            os.mkdir(path)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            os.symlink(os.path.join(os.fsencode(folder.parent), b"secret"), path)
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as one, contextlib.suppress(OSError):
                one.bind(path)
        else:
            with open(path, "wb") as file:
                file.write(content)
                if kind == "sparse":
                    file.truncate(2**40)


def check(drawn: list[tuple]) -> None:
    """Grade a folder of submissions and one honest neighbour."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        (folder / "in").mkdir()
        (folder / "secret").write_text(CANARY)
        (folder / "in" / NEIGHBOUR).write_text(class_factory.HONEST["correct"].text)
        for one in drawn:
            hand_in(folder / "in", *one)
        terminal = io.StringIO()
        with (
            contextlib.redirect_stderr(terminal),
            contextlib.redirect_stdout(terminal),
        ):
            status = class_factory.grade(folder, f"--seed={CANARY}", *LIMITS)
        said = terminal.getvalue()
        assert status == 0, said
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), said
        out = folder / "out"
        table = (out / "grades.csv").read_text("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(table)))
        scores = {row["file"]: float(row["score"]) for row in rows}
        assert scores[NEIGHBOUR] == class_factory.FULL, said
        assert max(scores.values()) <= class_factory.FULL
        assert len({row["student"] for row in rows}) == len(rows)
        students = out / "students"
        assert len(list(students.iterdir())) == len(rows)
        for one in students.iterdir():
            json.loads((one / "graded.json").read_text())
            assert (one / "feedback.html").read_text().rstrip().endswith("</html>")
        for separator in ",;\t|":
            for fields in csv.reader(io.StringIO(table), delimiter=separator):
                for field in fields:
                    assert not FORMULA.match(field.strip('" ')), field
        for name, text in class_factory.written(out).items():
            assert CANARY not in text, name
        assert CANARY not in said


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("FOLDERS", "6")),
    deadline=None,
    derandomize="FOLDERS" not in os.environ,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=QUIET,
)
@given(submissions)
def test_any_submission_gets_its_row_and_harms_no_other(drawn):
    os.environ["TOKEN"] = CANARY
    try:
        check(drawn)
    finally:
        del os.environ["TOKEN"]
