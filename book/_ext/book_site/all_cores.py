"""Let Sphinx read pages on all cores."""

from sphinx.application import Sphinx


def declare_safe(app: Sphinx) -> None:
    """Speak for an extension that does not say whether it can be used in parallel.

    It numbers the sections of the table of contents, once all pages have been read.
    """
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("builder-inited", declare_safe)
