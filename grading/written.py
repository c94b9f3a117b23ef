"""The answers that students wrote, for a person to grade: found among the cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grading.assignment import ANSWER_MARK, PLACEHOLDER, Assignment

MAX_ANSWER = 2**18  # characters of an answer that a person is shown
CUT = "\n(cut here: see the notebook)"
Cells = list[tuple[str, str]]  # kind and source of each cell of a notebook


def answers(cells: Cells, assignment: Assignment) -> dict[str, str]:
    """What the student wrote to the questions that a person grades.

    An answer is all that stands between its question's title, or its mark, and the next
    question or heading of the master's: lines of text that are not the master's own,
    and code cells that are not.

    Args:
        cells: of the student's notebook.
        assignment: names the questions, and has the cells that it brings along.

    Returns:
        The answer to each of these questions; an empty text where there is none.
    """
    texts: dict[str, list[str]] = {
        question.name: [] for question in assignment.questions if question.manual
    }
    given = {_words(cell.source) for cell in assignment.student.cells}
    lines = {_words(line) for line in _lines(assignment)}
    for index, question, _ in sections(cells, assignment):
        kind, source = cells[index]
        if question and _words(source) not in given:
            source = ANSWER_MARK.sub("", source).replace(PLACEHOLDER, "")
            if kind != "code":
                source = "\n".join(
                    line
                    for line in source.splitlines()
                    if _words(line).lstrip("> ") not in lines or not line.strip()
                )
            texts[question].append(source.strip())
    return {name: _short("\n\n".join(filter(None, own))) for name, own in texts.items()}


def sections(cells: Cells, assignment: Assignment) -> Iterator[tuple[int, str, bool]]:
    """Which question each cell belongs to.

    Yields:
        The cell's index; the question, which a person grades, or "" for all others; and
        whether the question's title or mark stands in the cell.
    """
    manual = {question.name for question in assignment.questions if question.manual}
    titles = {plain(question.title): question.name for question in assignment.questions}
    headings = {plain(line) for line in _lines(assignment) if line.startswith("#")}
    current = ""
    for index, (kind, source) in enumerate(cells):
        title = plain(source.strip().partition("\n")[0])
        marks = [name for name in ANSWER_MARK.findall(source) if name in manual]
        opens = bool(marks)
        if marks:
            current = marks[0]
        elif kind != "code" and title in titles:
            current = titles[title] if titles[title] in manual else ""
            opens = bool(current)
        elif kind != "code" and title in headings:
            current = ""
        yield index, current, opens


def plain(line: str) -> str:
    """A title's words, without the marks of a heading or of emphasis."""
    return _words(re.sub(r"[*_`#]", "", line))


def _lines(assignment: Assignment) -> Iterator[str]:
    """The lines of an assignment's texts."""
    for cell in assignment.student.cells:
        if cell.cell_type != "code":
            yield from cell.source.splitlines()


def _short(answer: str) -> str:
    return answer if len(answer) <= MAX_ANSWER else answer[:MAX_ANSWER] + CUT


def _words(text: str) -> str:
    """A text of which only the words count."""
    return " ".join(text.split())
