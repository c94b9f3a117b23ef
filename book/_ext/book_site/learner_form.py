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

import html
import re

from docutils import nodes
from sphinx.util import logging

from book_site.markup import input_code, is_code_cell, rewrite
from tools.model import chapters, questions
from tools.model.chapters import Chapter

LOGGER = logging.getLogger(__name__)
TITLE = re.compile(r"^# @title (.*)\n", re.MULTILINE)
PLAIN = "<details>"
FOLD = '<details class="fold" open="open">'


def opening(summary: str, kind: str, more: str = "") -> nodes.raw:
    """What opens a fold.

    Args:
        summary: what stands on the fold.
        kind: a class of its own.
        more: what only a screen reader adds to the summary.
    """
    hidden = f'<span class="visually-hidden"> {html.escape(more)}</span>'
    text = html.escape(summary) + (hidden if more else "")
    tag = f'<details class="fold {kind}" open="open">'
    return nodes.raw("", f"{tag}<summary>{text}</summary>", format="html")


def closing() -> nodes.raw:
    """The tag that closes a fold."""
    return nodes.raw("", "</details>", format="html")


class LearnerForm:
    """Folds and marks what a chapter's reader is to see later."""

    def __init__(self, document: nodes.document, chapter: Chapter) -> None:
        """Take a chapter and its page, whose claims have their banners."""
        self.document = document
        self.chapter = chapter
        self.cells = {
            node["cell_index"]: node for node in document.findall(is_code_cell)
        }

    def apply(self) -> None:
        """Dress the page."""
        claims = {claim.cell: claim for claim in self.chapter.claims}
        for index, node in self.cells.items():
            if index in claims:
                self.fold_proof(node, claims[index])
            elif "solution" in chapters.tags(self.chapter.cells[index]):
                self.fold_solution(node)
        self.mark_folds()
        for question in questions.questions(self.chapter.notebook):
            if isinstance(question, questions.Unclear):
                index, problem, fix = question.args
                cell = self.chapter.cells[index]
                place = chapters.where(self.chapter.path, index, cell)
                text = f"{place}: {problem}. Fix: {fix}."
                LOGGER.warning("%s", text, type="book", subtype="question")
            else:
                self.mark_question(question)

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
                text = raw.astext().replace(PLAIN, FOLD)
                raw.replace_self(nodes.raw("", text, format="html"))

    def mark_question(self, question: questions.Question) -> None:
        """Mark a question's options and what gives its answer away."""
        node, claim = self.cells[question.predict], self.cells[question.claim]
        section = node.parent
        place = section.index(node)
        name = f"guess-{self.chapter.cells[question.predict].id}"
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
