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
MAX_SHOWN = 4  # pictures of a question
CHECK = re.compile(r"\bgrader\s*\.\s*check\s*\(")
KINDS = {"PNG": "image/png", "JPEG": "image/jpeg"}


def read(submission: Submission, assignment: Assignment) -> dict[str, list[str]]:
    """The pictures of the questions that a person grades, as data URIs.

    They are those of the question's section, and of the cells above its title, below
    the question before it: the figure that is to be explained stands there.

    Args:
        submission: whatever can't be read has no pictures.
        assignment: names the questions.
    """
    figures: dict[str, list[str]] = {
        one.name: [] for one in assignment.questions if one.manual
    }
    try:
        cells = [] if submission.problem else submissions.whole_cells(submission.path)
        sources = [(kind, source) for kind, source, _ in cells]
        above: list[int] = []  # cells with code since the last question
        for part in written.parts(sources, assignment):
            belongs = [part.cell]
            if part.opens:
                belongs, above = [*above, part.cell], []
            elif cells[part.cell][0] == "code":
                done = CHECK.search(sources[part.cell][1])  # of the question before
                above = [] if done else [*above, part.cell]
            for index in belongs if part.question else ():
                for address in _pictures(cells[index][2]):
                    shown = figures[part.question]
                    if address not in shown and len(shown) < MAX_SHOWN:
                        shown.append(address)
    except Exception:  # of whatever kind: the report on the file names it
        return figures
    return figures


def _pictures(cell: dict) -> Iterator[str]:
    """The pictures among a cell's outputs and attachments, as data URIs."""
    outputs, attached = cell.get("outputs"), cell.get("attachments")
    bundles = [
        output.get("data")
        for output in (outputs if isinstance(outputs, list) else ())
        if isinstance(output, dict)
    ]
    bundles += attached.values() if isinstance(attached, dict) else ()
    for bundle in bundles:
        for kind in KINDS.values() if isinstance(bundle, dict) else ():
            data = bundle.get(kind)
            data = "".join(data) if isinstance(data, list) else data
            if isinstance(data, str) and (address := _address(data)):
                yield address


def _address(text: str) -> str:
    """The data URI of a picture in base64; an empty text if it is not to be shown."""
    if len(text) > MAX_BYTES * 3 // 2:
        return ""
    try:
        data = base64.b64decode(text)
        with Image.open(
            io.BytesIO(data), formats=list(KINDS)
        ) as image:  # reads the header
            width, height, kind = *image.size, KINDS[image.format]
    except Exception:  # Pillow raises all kinds; a broken picture is not shown
        return ""
    if width * height > MAX_PIXELS:
        return ""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
