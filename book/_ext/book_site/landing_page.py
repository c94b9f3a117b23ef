"""The welcome page at the address of the site itself, without a redirect.

Jupyter Book would write an `index.html` that only redirects to the first page. A copy
of that page stands there instead, with its links turned to the folder above.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

ADDRESS = re.compile(
    r'(?P<name> (?:href|src|action|data-content_root))="(?P<to>[^"]*)"'
)
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|/|#|$")


def move(html: str, folder: str) -> str:
    """Turn the links of a page that moves from `folder` to the folder above it."""

    def turn(match: re.Match[str]) -> str:
        to = match["to"]
        if ABSOLUTE.match(to):
            return match[0]
        moved = posixpath.normpath(posixpath.join(folder, to))
        if to.endswith("/"):
            moved += "/"
        return f'{match["name"]}="{moved}"'

    return ADDRESS.sub(turn, html)


def copy_root_page(app: Sphinx, exception: Exception | None) -> None:
    """Copy the first page of the book to the top of the site."""
    if exception is not None or app.builder.name != "html":
        return
    root = app.config.root_doc
    out = Path(app.outdir)
    html = (out / f"{root}.html").read_text(encoding="utf-8")
    moved = move(html, posixpath.dirname(root))
    (out / "index.html").write_text(moved, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("build-finished", copy_root_page)
