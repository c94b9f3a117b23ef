"""The page Measured results: its tables and figures, made from the files of results.

The directive `measured` takes the name of a part, one of PARTS in `page`, and
puts it where the directive stands. A file of results that is invalid stops the build.
"""

from __future__ import annotations

import functools
from pathlib import Path

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from benchmarks import results as files
from book_site.measured import figures, page
from tools.errors import UserError

FOLDER = Path("_build", "measured")  # below the source, for the figures


@functools.cache
def load(folder: Path) -> list[dict]:
    """The results of a folder, read once for all parts of the page."""
    try:
        found = files.load_all(folder)
    except UserError as error:
        raise ExtensionError(str(error)) from None
    if not found:
        raise ExtensionError(f"{folder} holds no results. Fix: make measure")
    return found


class Measured(SphinxDirective):
    """Put a part of the page in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the part."""
        name = self.arguments[0]
        if name not in page.PARTS:
            raise self.error(f"no part {name!r}. Fix: one of {', '.join(page.PARTS)}")
        source = Path(self.env.srcdir)
        folder = source / "benchmarks" / "results"
        for path in folder.glob("*.json"):
            self.env.note_dependency(str(path))
        with plt.rc_context(figures.STYLE):
            text = page.PARTS[name](load(folder), functools.partial(self.draw, source))
        part = nodes.container(classes=["measured"])
        lines = StringList(text.splitlines(), source=f"measured {name}")
        self.state.nested_parse(lines, self.content_offset, part, match_titles=True)
        return part.children

    @staticmethod
    def draw(source: Path, name: str, drawn: plt.Figure) -> str:
        """Store a figure and return its address for a page of the book."""
        (source / FOLDER).mkdir(parents=True, exist_ok=True)
        (source / FOLDER / f"{name}.svg").write_text(figures.as_svg(drawn))
        return f"/{(FOLDER / name).as_posix()}.svg"


def setup(app: Sphinx) -> None:
    """Register what is above."""
    load.cache_clear()
    app.add_directive("measured", Measured)
