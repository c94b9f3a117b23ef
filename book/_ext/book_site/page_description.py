"""What search engines and link previews say about a page: how its text begins.

The link to Colab and the line on a chapter's running time are left out.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ENOUGH, LIMIT = 80, 200  # characters


def paragraphs(doctree: nodes.document) -> Iterator[str]:
    """The texts of a page's plain paragraphs."""
    for paragraph in doctree.findall(nodes.paragraph):
        dressed = all(
            isinstance(part, nodes.strong | nodes.emphasis) or not part.astext().strip()
            for part in paragraph.children
        )
        if not dressed and not list(paragraph.findall(nodes.math)):
            yield paragraph.astext()


def describe(doctree: nodes.document) -> str:
    """The first sentences of a page, shortened at a word."""
    text = ""
    for paragraph in paragraphs(doctree):
        text = f"{text} {paragraph}".strip()
        if len(text) >= ENOUGH:
            break
    return textwrap.shorten(text, LIMIT, placeholder=" …")


def add_description(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Give a page its description, before the link preview is made."""
    if doctree is None:
        return
    text = describe(doctree)
    escaped = html.escape(text)
    context["metatags"] += f'<meta name="description" content="{escaped}" />\n'
    context["meta"] = {**(context["meta"] or {}), "og:description": escaped}


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("html-page-context", add_description, priority=400)
