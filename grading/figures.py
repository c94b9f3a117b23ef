"""The pictures in a notebook that was handed in, as far as it is safe to show them.

They are what the notebook claims: the grader has not made them. Only PNG and JPEG are
shown, and of them only what a browser can hold. No HTML is shown, and no SVG: that is a
program for the browser, which can draw for ever.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator

from PIL import Image

from grading import submissions, written
from grading.assignment import Assignment
from grading.submissions import Submission

MAX_BYTES = 4 * 2**20  # of a picture: a photograph of a drawing on paper
MAX_PIXELS = 16_000_000  # a browser needs four bytes for each
MAX_SIDE = 8_000  # pixels: a page to mark on is not for ever tall
MAX_SHOWN = 4  # pictures of a question
CHECK = re.compile(r"\bgrader\s*\.\s*check\s*\(")
KINDS = {"PNG": "image/png", "JPEG": "image/jpeg"}
PASTED = re.compile(r"data:image/(?:png|jpeg);base64,([\w+/=]+)")  # as Colab does


def read(submission: Submission, assignment: Assignment) -> dict[str, list[str]]:
    """The pictures of the questions that a person grades, as data URIs.

    They are those of the question's section, and of the cells above its title, below
    the question before it: the figure that is to be explained stands there.

    Args:
        submission: whatever can't be read has no pictures.
        assignment: names the questions.
    """
    figures: dict[str, list[str]] = {
        question.name: [] for question in assignment.questions if question.manual
    }
    try:
        cells = [] if submission.problem else submissions.read_cells(submission.path)
    except submissions.Unreadable:  # the report on the file names it
        return figures
    sources = [(kind, source) for kind, source, _ in cells]
    above: list[int] = []  # cells with code since the last question
    for index, question, opens in written.sections(sources, assignment):
        kind, source, _ = cells[index]
        belongs = [index]
        if opens:
            belongs, above = [*above, index], []
        elif kind == "code":
            above = [] if CHECK.search(source) else [*above, index]
        for cell in belongs if question else ():
            for address in _pictures(cells[cell][2], sources[cell][1]):
                shown = figures[question]
                if address not in shown and len(shown) < MAX_SHOWN:
                    shown.append(address)
    return figures


def _pictures(cell: dict, source: str) -> Iterator[str]:
    """The pictures in a cell's text, outputs and attachments, as data URIs."""
    outputs, attached = cell.get("outputs"), cell.get("attachments")
    bundles = list(attached.values()) if isinstance(attached, dict) else []
    for output in outputs if isinstance(outputs, list) else ():
        bundles.append(output.get("data") if isinstance(output, dict) else None)
    texts: list = PASTED.findall(source)
    for bundle in bundles:
        if isinstance(bundle, dict):
            texts += [bundle.get(kind) for kind in KINDS.values()]
    for data in texts:
        if isinstance(data, list) and all(isinstance(line, str) for line in data):
            data = "".join(data)
        if isinstance(data, str) and (address := _address(data)):
            yield address


def _address(text: str) -> str:
    """The data URI of a picture in base64; an empty text if it is not to be shown."""
    if len(text) > MAX_BYTES * 3 // 2:
        return ""
    try:
        data = base64.b64decode(text)
        # This reads the header alone.
        with Image.open(io.BytesIO(data), formats=list(KINDS)) as image:
            width, height, kind = *image.size, KINDS[image.format]
    except Exception:  # Pillow raises all kinds; a broken picture is not shown
        return ""
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        return ""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
