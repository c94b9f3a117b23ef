"""Code with fewer tags: what looks alike shares a tag, and what is plain has none.

Pygments wraps each word and each mark in a tag of its own kind. The site's two styles,
light and dark, tell few of these kinds apart. Half a chapter's page was such tags.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import IO, Any

from pygments.formatters import HtmlFormatter
from pygments.style import Style
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Text, _TokenType
from sphinx.application import Sphinx


class LeanFormatter(HtmlFormatter):
    """Writes code as HTML, with one class for all that looks alike in some styles."""

    def __init__(self, like: dict[_TokenType, _TokenType], **options: Any) -> None:
        """Make one.

        Args:
            like: which kind of token stands for a kind, see `looks`.
            options: those of Pygments.
        """
        super().__init__(**options)
        self.like = like

    def format(
        self, tokensource: Iterable[tuple[_TokenType, str]], outfile: IO[str]
    ) -> None:
        """Write tokens."""
        tokens = ((self.like.get(kind, kind), text) for kind, text in tokensource)
        super().format(tokens, outfile)


def looks(*styles: type[Style]) -> dict[_TokenType, _TokenType]:
    """Which kind of token stands for each: that with the shortest name of its look.

    `Text`, which has no tag, stands for all that adds nothing to the colour of text.
    """

    def look(kind: _TokenType) -> str:
        found = [style.style_for_token(kind) for style in styles]
        adds_nothing = not any(any(one.values()) for one in found)
        return look(Text) if adds_nothing and kind is not Text else repr(found)

    like: dict[_TokenType, _TokenType] = {}
    first: dict[str, _TokenType] = {look(Text): Text}
    for kind in sorted(STANDARD_TYPES, key=lambda kind: len(STANDARD_TYPES[kind])):
        like[kind] = first.setdefault(look(kind), kind)
    return like


def use(app: Sphinx) -> None:
    """Have the builder of the site write code like this, in the theme's two styles."""
    if app.builder.name != "html":
        return
    theme = {**app.builder.theme.get_options(), **app.builder.theme_options}
    names = [theme[f"pygments_{mode}_style"] for mode in ("light", "dark")]
    like = looks(*map(get_style_by_name, names))
    app.builder.highlighter.formatter = functools.partial(LeanFormatter, like)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("builder-inited", use)
