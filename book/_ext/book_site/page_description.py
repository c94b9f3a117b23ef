"""What search engines and link previews say about a page: how its text begins.

sphinxext-opengraph would begin with the link to Colab and a chapter's running time.
"""

import html
import itertools
import textwrap
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LIMIT = 200  # characters


def describe(doctree: nodes.document) -> str:
    """How a page's plain paragraphs begin: those that are not wholly bold or italic."""
    texts = (
        paragraph.astext()
        for paragraph in doctree.findall(nodes.paragraph)
        if any(isinstance(x, nodes.Text) and x.strip() for x in paragraph.children)
    )
    begin = " ".join(itertools.islice(texts, 2))
    return textwrap.shorten(begin, LIMIT, placeholder=" …")


def add_description(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Give a page its description, before the link preview is made."""
    if doctree is not None:
        text = html.escape(describe(doctree))
        context["metatags"] += f'<meta name="description" content="{text}" />\n'
        context["meta"] = {**(context["meta"] or {}), "og:description": text}


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("html-page-context", add_description, priority=400)
