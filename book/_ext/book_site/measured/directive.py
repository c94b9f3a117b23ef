"""The page What a GPU would give: tables and figures, made from the files of results.

The directive `measured` takes the name of a part, one of PARTS in `page` for what was
measured or in `cards` for the compiler's plan, and puts it where the directive stands.
A file of results that is invalid stops the build.
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

from benchmarks import compiled
from benchmarks import results as files
from book_site.measured import cards, figures, page
from tools.model.errors import UserError

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


@functools.cache
def load_plan(path: Path) -> dict:
    """The compiler's plan, read once for all parts of the page."""
    try:
        return compiled.load(path)
    except UserError as error:
        raise ExtensionError(str(error)) from None


class Measured(SphinxDirective):
    """Put a part of the page in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the part."""
        name = self.arguments[0]
        names = {*page.PARTS, *cards.PARTS}
        if name not in names:
            raise self.error(
                f"no part {name!r}. Fix: one of {', '.join(sorted(names))}"
            )
        source = Path(self.env.srcdir)
        folder = source / "benchmarks" / "results"
        for path in folder.glob("*.json"):
            self.env.note_dependency(str(path))
        if name in cards.PARTS:
            text = cards.PARTS[name](load_plan(folder / compiled.PATH.name))
        else:
            with plt.rc_context(figures.STYLE):
                draw = functools.partial(self.draw, source)
                text = page.PARTS[name](load(folder), draw)
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
    load_plan.cache_clear()
    app.add_directive("measured", Measured)
