"""Fold sections of a page: the directive `fold-sections`.

It stands below a heading, and what follows it there, sections too, is folded. A
dropdown can't hold sections, and only they stand in the page's contents.
"""

from __future__ import annotations

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class fold_mark(nodes.Element):
    """Where a fold begins; its "summary" says what it hides."""


class FoldSections(SphinxDirective):
    """Fold the rest of the section; the argument says what is there."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Leave a mark: what follows is not parsed yet."""
        return [fold_mark(summary=self.arguments[0])]


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Put the rest of each marked section between the tags of a fold."""
    for mark in list(doctree.findall(fold_mark)):
        section = mark.parent
        summary = html.escape(mark["summary"])
        opening = f'<details class="sections"><summary>{summary}</summary>'
        mark.replace_self(nodes.raw("", opening, format="html"))
        section += nodes.raw("", "</details>", format="html")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("fold-sections", FoldSections)
    app.connect("doctree-read", fold)
