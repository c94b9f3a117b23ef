"""The pictures in a notebook that was handed in, as far as it is safe to show them.

They are what the notebook claims: the grader has not made them. Only PNG and JPEG are
shown, known by their first bytes and not by what the notebook calls them. No HTML is
shown, and no SVG: that is a program for the browser, which can draw for ever.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
import struct
from collections.abc import Iterator

from grading import submissions, written
from grading.assignment import Assignment
from grading.submissions import Submission

MAX_BYTES = 4 * 2**20  # of a picture: a photograph of a drawing on paper
MAX_PIXELS = 16_000_000  # a browser needs four bytes for each
MAX_SHOWN = 4  # pictures of a question
MAX_ALL = 12 * 2**20  # bytes of a submission's pictures
PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
# What a PNG needs. Others hold texts, colour profiles and further frames.
KEPT = (b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"sRGB", b"pHYs", b"IDAT", b"IEND")
STORED = re.compile(r"image/[\w.+-]{1,40}")  # also what is only named
PASTED = re.compile(r"data:(image/[\w.+-]{1,40})(?:;[\w=-]{1,40})*,([^\s\"'()<>]*)")
CHECK = re.compile(r"\bgrader\s*\.\s*check\s*\(")


class NotShown(Exception):
    """A picture that is not shown, with the reason."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A picture, or why it is not shown."""

    cell: int  # its place in the notebook, from 1
    address: str = ""  # a data URI
    problem: str = ""


@dataclasses.dataclass
class _Shown:
    """The pictures of a submission's questions."""

    figures: dict[str, list[Figure]]
    cells: dict[str, set[int]]  # whose pictures are among them
    left: int = MAX_ALL


def read(submission: Submission, assignment: Assignment) -> dict[str, list[Figure]]:
    """The pictures of the questions that a person grades.

    They are those of the question's section, and of the cells above its title, below
    the question before it: the figure that is to be explained stands there.

    Args:
        submission: whatever can't be read has no pictures.
        assignment: names the questions.
    """
    names = [one.name for one in assignment.questions if one.manual]
    shown = _Shown({name: [] for name in names}, {name: set() for name in names})
    try:
        cells = [] if submission.problem else submissions.whole_cells(submission.path)
        _collect(cells, assignment, shown)
    except Exception:  # of whatever kind: the report on the file names it
        return shown.figures
    return shown.figures


def _collect(
    cells: list[tuple[str, str, dict]], assignment: Assignment, shown: _Shown
) -> None:
    """Take each question's pictures, in the notebook's order."""
    sources = [
        (kind, submissions.DATA.sub("data:", source)) for kind, source, _ in cells
    ]
    above: list[int] = []  # cells since the last question
    for part in written.parts(sources, assignment):
        kind, source, cell = cells[part.cell]
        if part.opens:
            for index in above if part.question else ():
                _add(shown, part.question, index, cells[index][2], "")
            above = []
        if kind == "code":
            above = [] if CHECK.search(source) else [*above, part.cell]
        if part.question and (kind == "code" or part.text):
            text = "" if kind == "code" else source
            _add(shown, part.question, part.cell, cell, text)


def _add(shown: _Shown, question: str, index: int, cell: dict, text: str) -> None:
    """Add a cell's pictures to a question's, unless they are there."""
    figures = shown.figures[question]
    if index in shown.cells[question] or len(figures) > MAX_SHOWN:
        return
    shown.cells[question].add(index)
    for kind, data in _pictures(cell, text):
        if len(figures) == MAX_SHOWN:
            figures.append(Figure(index + 1, problem="more pictures"))
            return
        try:
            address = _address(kind, data, shown.left)
            shown.left -= len(address)
            figures.append(Figure(index + 1, address))
        except NotShown as reason:
            figures.append(Figure(index + 1, problem=str(reason)))


def _pictures(cell: dict, text: str) -> Iterator[tuple[str, str]]:
    """What a cell stores as pictures, with what it calls their kind.

    Args:
        cell: its outputs, and pictures that were pasted into it.
        text: in which pictures may stand, too.
    """
    outputs, attached = cell.get("outputs"), cell.get("attachments")
    bundles = [
        one.get("data")
        for one in (outputs if isinstance(outputs, list) else ())
        if isinstance(one, dict)
    ]
    bundles += attached.values() if isinstance(attached, dict) else ()
    for bundle in bundles:
        for kind, data in bundle.items() if isinstance(bundle, dict) else ():
            if not STORED.fullmatch(kind):
                continue
            if isinstance(data, list) and all(isinstance(one, str) for one in data):
                data = "".join(data)
            if isinstance(data, str):
                yield kind, data
    for found in PASTED.finditer(text):
        yield found[1], found[2]


def _address(kind: str, text: str, left: int) -> str:
    """The data URI of a picture.

    Args:
        kind: what the notebook calls it.
        text: in base64.
        left: bytes that the submission's pictures may still take.

    Raises:
        NotShown: it is too large, broken, or of another kind.
    """
    if len(text) > min(MAX_BYTES * 3 // 2, left):
        raise NotShown("a picture that is too large")
    if kind not in ("image/png", "image/jpeg"):
        raise NotShown(f"a picture of the kind {kind}")
    try:
        data = base64.b64decode(text)
        kind, data, size = _checked(data)
    except (binascii.Error, ValueError, struct.error, IndexError):
        raise NotShown("a picture that is broken") from None
    if len(data) > MAX_BYTES or size[0] * size[1] > MAX_PIXELS:
        raise NotShown(f"a picture that is too large, {size[0]} x {size[1]} pixels")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _checked(data: bytes) -> tuple[str, bytes, tuple[int, int]]:
    """A picture's kind, by its bytes, what is shown of it, and width and height.

    Raises:
        ValueError, struct.error, IndexError: it is broken, or none of these.
    """
    if data.startswith(PNG):
        data = _plain_png(data)
        return "image/png", data, struct.unpack(">II", data[16:24])
    if data.startswith(JPEG):
        return "image/jpeg", data, _jpeg_size(data)
    raise ValueError


def _plain_png(data: bytes) -> bytes:
    """A PNG with the parts alone that make one still picture.

    Source of the form: the specification of PNG, third edition, section 5.
    """
    parts, place, kind = [PNG], len(PNG), b""
    while kind != b"IEND":
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        end = place + 12 + length
        if end > len(data) or (place == len(PNG)) != (kind == b"IHDR"):
            raise ValueError
        if kind in KEPT:
            parts.append(data[place:end])
        place = end
    return b"".join(parts)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height of a JPEG.

    Source of the form: ITU-T T.81, annex B: a frame header's marker is one from SOF0 to
    SOF15 but C4, C8 and CC.
    """
    place = 2
    while data[place] == 0xFF:
        marker, length = struct.unpack(">BH", data[place + 1 : place + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + max(length, 2)
    raise ValueError
