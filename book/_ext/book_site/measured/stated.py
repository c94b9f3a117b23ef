"""The measured numbers that chapters state: each stands in a committed file of results.

A chapter links such a number to its row on the page What a GPU would give, and the text
of the link is the number as it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from benchmarks import results
from book_site.measured import report
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PAGE = "book/measured-results.html"
SECTION = "On a GPU"
ROW = re.compile(rf"/{PAGE}#(m-[\w-]+)$")
NUMBER = re.compile(
    r"\d[\d.,\u202f]*[\s\u202f-]*"
    r"(?:[nµm]?s|seconds?|minutes?|times|%|×|[kMGTP]?(?:FLOP|B)/s|[KMG]i?B)(?!\w)"
)

# What it is and how to fix it.
Problem = tuple[str, str]


def stated(root: Path = ROOT) -> dict[str, str]:
    """The rows of what was measured here and the time in each.

    Raises:
        UserError: a file of results is invalid.
    """
    return report.anchors(results.load_all(root / "benchmarks" / "results"))


def problems(
    texts: Iterable[tuple[int, list[Token]]], rows: dict[str, str]
) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a chapter's numbers.

    Args:
        texts: the text cells as Markdown tokens, with their indices.
        rows: as `stated` gives them.
    """
    inside, place, pointed = False, None, False
    for index, tokens in texts:
        for before, token in zip([None, *tokens], tokens, strict=False):
            if token.type != "inline":
                continue
            if before.type == "heading_open" and before.tag == "h2":
                inside = token.content == SECTION
                place = index if inside else place
            yield from ((index, *problem) for problem in wrong_rows(token, rows))
            if inside:
                pointed |= any(PAGE in address for address, _ in links(token))
                found = NUMBER.search(outside_links(token))
                if found:
                    fix = f"link it to its row on {PAGE}, or to where it is from"
                    yield index, f"a number without its source: {found[0]}", fix
    if place is not None and not pointed:
        fix = f"say what the reader finds on {PAGE}, with a link"
        yield place, f"`## {SECTION}` does not point to What a GPU would give", fix


def wrong_rows(token: Token, rows: dict[str, str]) -> Iterator[Problem]:
    """Links to a row that is not there or that holds another number."""
    for address, text in links(token):
        row = ROW.search(address)
        if row and row[1] not in rows:
            fix = "take the address from the page, or measure it: make measure"
            yield f"no measured result has the address #{row[1]}", fix
        elif row and text != rows[row[1]]:
            yield (
                f"{text!r} was not measured",
                f"write {rows[row[1]]!r}, as in the file",
            )


def links(token: Token) -> Iterator[tuple[str, str]]:
    """The links of a text: address and text."""
    address, words = "", []
    for part in token.children:
        if part.type == "link_open":
            address, words = str(part.attrs["href"]), []
        elif part.type == "link_close":
            yield address, "".join(words)
            address = ""
        elif address:
            words.append(part.content)


def outside_links(token: Token) -> str:
    """A text without its links and without code."""
    words, depth = [], 0
    for part in token.children:
        depth += {"link_open": 1, "link_close": -1}.get(part.type, 0)
        if part.type in ("text", "softbreak") and not depth:
            words.append(part.content or " ")
        elif part.type in ("code_inline", "link_close"):
            words.append(" … ")
    return "".join(words)


def told(cells: list[NotebookNode]) -> dict[int, NotebookNode]:
    """The text cells of the section on GPUs, and others that link the page."""
    found, inside = {}, False
    for index, cell in enumerate(cells):
        if cell.cell_type != "markdown":
            continue
        before = inside
        for title in re.findall(r"(?m)^## *(.*?) *$", cell.source):
            inside = title == SECTION
            before |= inside
        if before or PAGE in cell.source:
            found[index] = cell
    return found


def book_problems(root: Path) -> list[str]:
    """What is wrong with the numbers of all chapters, one line each.

    Raises:
        UserError: a chapter can't be read, or a file of results is invalid.
    """
    found, rows = [], stated(root)
    parser = MarkdownIt("commonmark").enable("table")
    for path in chapters.chapter_paths(root):
        cells = chapters.read(path).cells
        texts = (
            (index, parser.parse(cell.source)) for index, cell in told(cells).items()
        )
        for index, problem, fix in problems(texts, rows):
            place = chapters.where(path, index, cells[index])
            found.append(f"{place}: {problem}. Fix: {fix}.")
    return found


def check(app: Sphinx) -> None:
    """Stop the build if a chapter states a number that was not measured."""
    try:
        found = book_problems(Path(app.srcdir))
    except UserError as error:
        raise ExtensionError(str(error)) from None
    if found:
        raise ExtensionError("\n".join(found))


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("builder-inited", check)
