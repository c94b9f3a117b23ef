"""Questions that a reader answers before seeing: how a notebook writes them down.

a text    ends with the question, a paragraph in italics, and two to four options,
          a plain list
a cell    tagged `predict`, whose output is to be predicted
a text    starts with the right option in bold, then gives the reason
a claim   maybe some cells later, asserts it: below its sentence stands a line
          `# Answer:` with the right option
"""

import dataclasses
import re
from collections.abc import Iterator

import nbformat
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.model import chapters

PREDICT = "predict"
ANSWER = re.compile(r"^# Answer: (.*)$", re.MULTILINE)
MARKDOWN = MarkdownIt("commonmark").enable("table")
SAY_WHAT = "end it with the question in italics and a list of 2 to 4 options"


class Unclear(Exception):
    """A question that is not written as above: (cell's index, what, how to fix it)."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A question of a chapter; its cells are indices in the notebook, from 0."""

    predict: int  # the cell whose output is to be predicted; the question is above
    answer: int  # the text that says the answer
    claim: int  # the cell that asserts it
    text: str  # in Markdown, without the marks of the italics
    options: list[str]  # in Markdown
    right: int  # index of the right option


def in_italics(paragraph: Token) -> str:
    """A paragraph's text if all of it is in italics, or nothing."""
    children = paragraph.children or []
    kinds = [child.type for child in children]
    if kinds[:1] != ["em_open"] or kinds.index("em_close") != len(kinds) - 1:
        return ""
    return paragraph.content[1:-1].strip()


def asked(source: str) -> Iterator[str]:
    """The questions of a text: what stands in italics and ends with a question mark."""
    for text in re.findall(r"<em>(.*?)</em>", MARKDOWN.render(source), re.DOTALL):
        if text.endswith("?"):
            yield re.sub(r"<.*?>", "", text)


def last_question(source: str) -> tuple[str, list[str]]:
    """The question and the options at the end of a text; empty where there is none."""
    parts = MARKDOWN.parse(source)
    if not parts or parts[-1].type != "bullet_list_close":
        return "", []
    start = max(i for i, x in enumerate(parts) if x.type == "bullet_list_open")
    options = [x.content for x in parts[start:] if x.type == "inline"]
    if start < 3 or parts[start - 2].type != "inline":
        return "", options
    return in_italics(parts[start - 2]), options


def question(cells: list[nbformat.NotebookNode], predict: int) -> Question:
    """The question whose output a cell shows.

    Args:
        cells: the notebook's cells.
        predict: index of a cell tagged `predict`.

    Raises:
        Unclear: it is not written as this module says.
    """
    text, options = last_question(cells[predict - 1].source)
    if not text.endswith("?") or not 2 <= len(options) <= 4:
        raise Unclear(predict - 1, "no question for the cell below", SAY_WHAT)
    claim, said = claim_below(cells, predict)
    if said not in options:
        problem = f"its answer is no option: {said!r}"
        raise Unclear(claim, problem, f"write one of {options}")
    right = options.index(said)
    answer = predict + 1
    if not cells[answer].source.startswith(f"**{said}**"):
        fix = f"start the text with **{said}**, and say why"
        raise Unclear(answer, "the answer is not at the top", fix)
    return Question(predict, answer, claim, text, options, right)


def claim_below(cells: list[nbformat.NotebookNode], predict: int) -> tuple[int, str]:
    """The cell that asserts an answer, and the option that it names."""
    for index in range(predict + 1, len(cells)):
        cell = cells[index]
        if cell.cell_type == "code":
            said = ANSWER.search(cell.source)
            if said and "claim" in chapters.tags(cell):
                return index, said[1].strip()
            if PREDICT in chapters.tags(cell):
                break
        elif any(x.type == "heading_open" for x in MARKDOWN.parse(cell.source)):
            break
    fix = "write `# Answer:` and the right option into the claim that asserts it"
    raise Unclear(predict, "nothing asserts the answer", fix)


def questions(
    notebook: nbformat.NotebookNode,
) -> Iterator[Question | Unclear]:
    """All questions of a notebook in order, and what is unclear in their place."""
    for index, cell in enumerate(notebook.cells):
        if PREDICT in chapters.tags(cell):
            try:
                yield question(notebook.cells, index)
            except Unclear as unclear:
                yield unclear


def unanswered(notebook: nbformat.NotebookNode) -> Iterator[tuple[int, str]]:
    """Questions in italics that no `predict` cell answers: (cell's index, the text)."""
    cells = notebook.cells
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            texts = list(asked(cell.source))
            if any(PREDICT in chapters.tags(below) for below in cells[index + 1 :][:1]):
                texts = texts[:-1]  # the last is that cell's
            yield from ((index, text) for text in texts)
