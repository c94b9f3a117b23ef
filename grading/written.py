"""The answers that students wrote, for a person to grade: found among the cells."""

from __future__ import annotations

import dataclasses
import itertools
import re

import nbformat

from grading.assignment import ANSWER_MARK, PLACEHOLDER, Assignment

HEADING = re.compile(r"(?m)^#{1,6}[ \t].*$")


@dataclasses.dataclass(frozen=True)
class _Own:
    """A text cell that the assignment brings along."""

    text: str
    question: str  # whose text it is, if a person grades the answer; or ""


def answers(cells: list[tuple[str, str]], assignment: Assignment) -> dict[str, str]:
    """What the student wrote to the questions that a person grades.

    An answer starts below its question's text, or at its mark. It goes on, across code
    cells and the student's own headings, up to the next text of the assignment's.

    Args:
        cells: kind and source of each cell.
        assignment: names the questions, and has the cells that it brings along.

    Returns:
        The answer to each of these questions; an empty text where there is none.
    """
    found: dict[str, list[str]] = {
        one.name: [] for one in assignment.questions if one.manual
    }
    own = _own_cells(assignment.student, found)
    texts = [source.replace("\r\n", "\n") for kind, source in cells if kind != "code"]
    marked = {mark["question"] for text in texts for mark in _marks(text, found)}
    current = ""
    for piece in itertools.chain(*(_pieces(text, own, found) for text in texts)):
        mark = ANSWER_MARK.match(piece)
        one = own.get(_flat(piece)) or own.get(_flat(_first_line(piece)))
        if mark:
            current, piece = mark["question"], piece[mark.end() :]
        elif one:
            expected = one.question == current or one.question not in marked
            piece = _below(piece, one, expected)
            current = one.question
        if current:
            found[current].append(piece.replace(PLACEHOLDER, "").strip())
    return {name: "\n\n".join(filter(None, parts)) for name, parts in found.items()}


def _own_cells(notebook: nbformat.NotebookNode, questions: dict) -> dict[str, _Own]:
    """The text cells of the students' notebook, by text and by heading."""
    own: dict[str, _Own] = {}
    last = ""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        if mark := next(_marks(cell.source, questions), None):
            asked = _Own(last, mark["question"])  # what stands above asks it
            own |= dict.fromkeys(_keys(last), asked)
        else:
            last = cell.source.strip()
            own |= dict.fromkeys(_keys(last), _Own(last, ""))
    return own


def _keys(text: str) -> list[str]:
    """What a cell is known by: its text, and its first line if that is a heading."""
    first = _first_line(text)
    return [_flat(text), *([_flat(first)] if HEADING.match(first) else [])]


def _pieces(text: str, own: dict[str, _Own], questions: dict) -> list[str]:
    """A text cut at marks and at the assignment's headings: cells can be merged."""
    cuts = [mark.start() for mark in _marks(text, questions)]
    cuts += [one.start() for one in HEADING.finditer(text) if _flat(one[0]) in own]
    places = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def _marks(text: str, questions: dict):
    """The marks of questions that a person grades."""
    for mark in ANSWER_MARK.finditer(text):
        if mark["question"] in questions:
            yield mark


def _below(piece: str, own: _Own, expected: bool) -> str:
    """What the student wrote below a text of the assignment's, in the same cell.

    Args:
        piece: starts with the text, or with its heading.
        own: the text.
        expected: an answer is expected here; then what is not the text may be one.
    """
    piece = piece.strip()
    if not own.question or _flat(piece) == _flat(own.text):
        return ""
    if piece.startswith(own.text):
        return piece.removeprefix(own.text)
    return piece.removeprefix(_first_line(piece)) if expected else ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _flat(text: str) -> str:
    """A text of which only the words count."""
    return " ".join(text.split())
