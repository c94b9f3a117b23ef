"""What a person sees who grades by hand: the answers, and the pictures beside them."""

import base64
import copy
import io
import json
import re
import struct
import zlib
from pathlib import Path

import class_factory
import matplotlib.image
import numpy as np
import pytest

from grading import cli, figures, runner
from grading.batch import Graded
from grading.reports import by_hand
from grading.reports.manual import Mark
from grading.submissions import Submission

pytestmark = class_factory.NEEDS_SANDBOX

MARK = "<!-- answer: q4 -->"
SCRIPT = "<script>alert(1)</script>"


def chunk(kind: bytes, data: bytes) -> bytes:
    return (
        struct.pack(">I", len(data))
        + kind
        + data
        + struct.pack(">I", zlib.crc32(kind + data))
    )


def png(width: int = 3, height: int = 2, *more: bytes) -> bytes:
    """A grey picture, with further parts."""
    rows = zlib.compress(b"\0" + b"\x80" * width) if height < 9 else b""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", head), *more, chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def jpeg(width: int, height: int) -> bytes:
    file = io.BytesIO()
    matplotlib.image.imsave(file, np.zeros((height, width, 3)), format="jpeg")
    return file.getvalue()


def output(data: bytes | str, kind: str = "image/png") -> dict:
    """An output of a cell, as a notebook stores it."""
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode()
    return {"output_type": "display_data", "data": {kind: data}, "metadata": {}}


def code(*outputs: dict) -> dict:
    return {"cell_type": "code", "source": "draw()", "outputs": list(outputs)}


def handed_in(folder: Path, *inside: dict, above: tuple[dict, ...] = (), answer="So."):
    """A submission with cells in the section of the question by hand, and above it."""
    cells = copy.deepcopy(class_factory.mini().student.cells)
    place = next(i for i, cell in enumerate(cells) if MARK in cell.source)
    cells[place].source = f"{MARK}\n{answer}"
    cells[place + 1 :] = inside
    cells[place - 1 : place - 1] = above
    path = folder / "anna.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    return Submission("anna", path, "anna")


def shown(submission: Submission) -> list[figures.Figure]:
    return figures.read(submission, class_factory.mini())["q4"]


def page(submission: Submission, *neighbours: Graded | None) -> str:
    mini = class_factory.mini()
    graded = Graded(submission, runner.empty_result(mini), {"q4": SCRIPT}, True)
    marks = {("anna", "q4"): Mark(1.5, SCRIPT)}
    return by_hand.student(graded, mini, marks, *neighbours)


def test_the_pictures_of_a_questions_section_are_shown_and_no_others(tmp_path):
    given = [png(size) for size in range(1, 6)]
    before, between, in_text, below, pasted = given
    mini = class_factory.mini()
    count = len(mini.student.cells)
    text = {
        "cell_type": "markdown",
        "source": f"![x](data:image/png;base64,{base64.b64encode(below).decode()})",
        "attachments": {"y.png": {"image/png": base64.b64encode(in_text).decode()}},
    }
    submission = handed_in(
        tmp_path,
        *(text, code(output(pasted)), {"cell_type": "markdown", "source": "## End"}),
        above=(code(output(between)),),
    )
    data = json.loads(submission.path.read_text())
    check = next(c for c in data["cells"] if 'grader.check("q3")' in c["source"])
    data["cells"].insert(data["cells"].index(check), code(output(before)))
    submission.path.write_text(json.dumps(data))
    found = shown(submission)
    assert [one.problem for one in found] == [""] * 4
    wanted = [between, in_text, below, pasted]
    assert [base64.b64decode(one.address.partition(",")[2]) for one in found] == wanted
    assert [one.cell for one in found] == [count, count + 3, count + 3, count + 4]
    html = page(submission)
    assert html.count("<img ") == 4
    assert "what it claims, and not what the grader ran" in html


HOSTILE = {
    "html": (output(SCRIPT, "text/html"), None),
    "javascript": (output("alert(1)", "application/javascript"), None),
    "svg": (output(f"<svg>{SCRIPT}</svg>", "image/svg+xml"), "kind image/svg.xml"),
    "an svg called png": (output(b"<svg onload='alert(1)'/>"), "broken"),
    "html called jpeg": (output(SCRIPT, "image/jpeg"), "broken"),
    "a kind that leaves the page": (output("x", f"image/{SCRIPT}"), None),
    "a kind that is long": (output("x", "image/" + "x" * 1000), None),
    "no base64": (output("\ud800\"'><b>"), "broken"),
    "too many pixels": (output(png(40_000, 40_000)), "too large, 40000 x 40000"),
    "a jpeg of too many pixels": (
        output(
            jpeg(64, 64).replace(b"\0\x40\0\x40", b"\xff\xff\xff\xff", 1), "image/jpeg"
        ),
        "too large, 65535 x 65535",
    ),
    "too many bytes": (output("A" * 7 * 2**20), "too large"),
    "cut": (output(png()[:-20]), "broken"),
    "a length beyond the end": (output(png()[:-12] + b"\xff" * 12), "broken"),
    "a head that comes twice": (output(png(3, 2, png()[8:33])), "broken"),
    "a jpeg without an end": (
        output(b"\xff\xd8" + b"\xff\xe0\0\2" * 9, "image/jpeg"),
        "broken",
    ),
    "numbers": ({"data": {"image/png": [1, 2]}}, None),
    "no output": (7, None),
    "data that is none": ({"data": [1]}, None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_output_is_shown_and_an_honest_one_is(name, tmp_path):
    hostile, said = HOSTILE[name]
    submission = handed_in(tmp_path, code(hostile, output(png())))
    *problems, last = shown(submission)
    assert last.address.startswith("data:image/png;base64,iVBORw0KGgo")
    assert len(problems) == (said is not None)
    assert all(re.search(said, one.problem) for one in problems)
    html = page(submission)
    assert "<script" not in html and "<svg" not in html and "<b>" not in html
    assert html.count("<img ") == 1
    assert "default-src 'none'" in html


def test_many_pictures_are_bounded_in_number_and_in_bytes(tmp_path):
    found = shown(handed_in(tmp_path, *[code(output(png()))] * 900))
    assert [one.problem for one in found] == [""] * 4 + ["more pictures"]
    large = png(3, 2, chunk(b"IDAT", bytes(4 * 2**20 - 200)))
    submission = handed_in(tmp_path, *[code(output(large))] * 4)
    assert [bool(one.address) for one in shown(submission)] == [
        True,
        True,
        False,
        False,
    ]
    assert len(page(submission)) < figures.MAX_ALL + 10_000


def test_the_command_writes_the_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (tmp_path / "in").mkdir()
    handed_in(tmp_path / "in", code(output(png())))
    (tmp_path / "in" / "bert.ipynb").write_text("broken")
    work = ["grade", str(tmp_path / "in"), str(class_factory.MINI)]
    assert cli.main([*work, "--out", str(tmp_path / "out"), "--jobs=1"]) == 0
    out = tmp_path / "out"
    assert "<img " in (out / "students" / "anna" / "by-hand.html").read_text()
    assert "No answer was found" in (out / "students/bert/by-hand.html").read_text()
    listed = (out / "by-hand.html").read_text()
    assert 'href="students/anna/by-hand.html#q4">to grade<' in listed
    assert 'href="students/bert/by-hand.html#q4">no answer<' in listed
    assert 'href="by-hand.html"' in (out / "summary.html").read_text()
