"""Give the pages of notebooks the menu *Run*, and the site the programs behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from book_site.run_menu import places, program
from tools.model import address
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
SUFFIX = ".ipynb"


def is_notebook(app: Sphinx, page: str) -> bool:
    """Whether a page shows a notebook."""
    found = page in app.env.found_docs
    return found and Path(app.env.doc2path(page)).suffix == SUFFIX


def add_menu(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Say to the template `run-menu.html` what the menu of this page holds."""
    if doctree is None or not is_notebook(app, pagename):
        return
    repository = address.repository(Path(app.srcdir))
    context["run_menu"] = {
        "places": places.places(repository, pagename),
        "command": f"uv run {places.program(repository, pagename)}",
        "program": f"{places.FOLDER}/{pagename.rpartition('/')[2]}.py",
        "notebook": f"_sources/{context['sourcename']}",
        "name": pagename.rpartition("/")[2] + SUFFIX,
    }


def write_programs(app: Sphinx) -> list[tuple]:
    """Write the programs that open the notebooks, with the pages; no page of theirs."""
    if app.builder.name != "html":  # an e-book has no menu
        return []
    root = Path(app.srcdir)
    pages = sorted(page for page in app.env.found_docs if is_notebook(app, page))
    try:
        program.write_all(address.repository(root), root, pages, Path(app.outdir))
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="run")
    return []


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("html-page-context", add_menu)
    app.connect("html-collect-pages", write_programs)
