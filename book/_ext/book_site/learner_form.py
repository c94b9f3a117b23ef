"""Proofs and solutions are folded, and a question waits for the reader's guess.

Everything is open in the HTML, so that paper and readers without JavaScript have it
all; `site.css` and `site.js` fold it. `tools/model/questions.py` says how a question is
written in a notebook.

- The code of a claim stands in a fold below the claim's sentence.
- A cell tagged `solution` stands in a fold, outputs included.
- What a notebook folds itself, in HTML, is a fold like these.
- The options of a question have the class `guess`; what gives the answer away, from
  the output of its cell to its claim, has the class `guess-answer`.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.util import logging

from book_site.markup import input_code, is_code_cell, rewrite
from tools.model import chapters, questions

LOGGER = logging.getLogger(__name__)
TITLE = re.compile(r"^# @title (.*)\n", re.MULTILINE)
PLAIN = "<details>"


def fold_tag(kind: str = "") -> str:
    """The tag that opens a fold, whose class may have a kind beside it."""
    return f'<details class="{f"fold {kind}".strip()}" open="open">'


def opening(summary: str, kind: str, more: str = "") -> nodes.raw:
    """What opens a fold.

    Args:
        summary: what stands on the fold.
        kind: a class of its own.
        more: what only a screen reader adds to the summary.
    """
    hidden = f'<span class="visually-hidden"> {html.escape(more)}</span>'
    text = html.escape(summary) + (hidden if more else "")
    return nodes.raw("", f"{fold_tag(kind)}<summary>{text}</summary>", format="html")


def closing() -> nodes.raw:
    """The tag that closes a fold."""
    return nodes.raw("", "</details>", format="html")


class LearnerForm:
    """Folds and marks what a chapter's reader is to see later."""

    def __init__(
        self, document: nodes.document, path: Path, notebook: nbformat.NotebookNode
    ) -> None:
        """Take a chapter's page.

        Args:
            document: the page, whose claims have their banners.
            path: the chapter's notebook, for messages.
            notebook: what stands in it.
        """
        self.document = document
        self.path = path
        self.notebook = notebook
        self.cells = {
            node["cell_index"]: node for node in document.findall(is_code_cell)
        }

    def apply(self, claims: dict[int, chapters.Claim]) -> None:
        """Dress the page, whose claims are known by their cells."""
        for index, node in self.cells.items():
            if index in claims:
                self.fold_proof(node, claims[index])
            elif "solution" in chapters.tags(self.notebook.cells[index]):
                self.fold_solution(node)
        self.mark_folds()
        for found in questions.questions(self.notebook):
            if isinstance(found, questions.Unclear):
                index, problem, fix = found.args
                place = chapters.where(self.path, index, self.notebook.cells[index])
                text = f"{place}: {problem}. Fix: {fix}."
                LOGGER.warning("%s", text, type="book", subtype="question")
            else:
                self.mark_question(found)

    def fold_proof(self, node: nodes.container, claim: chapters.Claim) -> None:
        """Fold a claim's code; its output, if it has one, stays open."""
        for code in node.children:
            if "cell_input" in code.get("classes", []):
                place = node.index(code)
                label = f"of claim {claim.label}"
                node.insert(place + 1, closing())
                node.insert(place, opening("Proof", "proof", label))
                return

    def fold_solution(self, node: nodes.container) -> None:
        """Fold a solution, under the title that its first line gives."""
        code = input_code(node)
        title = TITLE.search(code.astext())
        rewrite(code, TITLE.sub("", code.astext(), count=1))
        node.insert(0, opening(title[1] if title else "Solution", "solution"))
        node.append(closing())

    def mark_folds(self) -> None:
        """Make folds of what a text folds itself."""
        for raw in self.document.findall(nodes.raw):
            if raw.astext().startswith(PLAIN):
                text = raw.astext().replace(PLAIN, fold_tag())
                raw.replace_self(nodes.raw("", text, format="html"))

    def mark_question(self, question: questions.Question) -> None:
        """Mark a question's options and what gives its answer away."""
        node, claim = self.cells[question.predict], self.cells[question.claim]
        section = node.parent
        place = section.index(node)
        name = f"guess-{self.notebook.cells[question.predict].id}"
        options = section[place - 1]
        options["classes"].append("guess")
        options["ids"].append(name)
        self.document.note_explicit_target(options)
        options[question.right]["classes"].append("guess-right")
        asked = section[place - 2]
        asked["classes"].append("guess-question")
        answer = nodes.container(classes=["guess-answer", f"{name}-answer"])
        end = section.index(claim) + 1
        answer += section[place + 1 : end]
        del section[place + 1 : end]
        section.insert(place + 1, answer)
        for output in node.children:
            if "cell_output" in output.get("classes", []):
                output["classes"] += ["guess-answer", f"{name}-answer"]
