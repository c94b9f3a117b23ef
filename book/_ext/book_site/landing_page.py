"""The welcome page at the address of the site itself, without a redirect."""

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(
    r'(?P<name> (?:href|src|action|data-content_root))="'
    r'(?!#|/|[a-z][a-z0-9+.-]*:)(?P<to>[^"]+)"'
)


def move_up(html: str, folder: str) -> str:
    """Turn the links of a page that moves from `folder` to the folder above it."""

    def turn(link: re.Match[str]) -> str:
        moved = posixpath.normpath(posixpath.join(folder, link["to"]))
        return f'{link["name"]}="{moved}{"/" if link["to"].endswith("/") else ""}"'

    return LINK.sub(turn, html)


def copy_first_page(app: Sphinx, exception: Exception | None) -> None:
    """Write the first page over the `index.html` by which Jupyter Book redirects."""
    if exception is None and app.builder.name == "html":
        page, out = Path(app.outdir, f"{app.config.root_doc}.html"), Path(app.outdir)
        html = move_up(page.read_text(encoding="utf-8"), page.parent.name)
        (out / "index.html").write_text(html, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("build-finished", copy_first_page)
