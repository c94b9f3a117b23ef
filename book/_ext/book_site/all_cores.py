"""Read and write pages on all cores, for which Jupyter Book has no option."""

from __future__ import annotations

import os

from sphinx.application import Sphinx


def declare_safe(app: Sphinx) -> None:
    """Speak for an extension that does not say whether it can be used in parallel.

    It numbers the sections of the table of contents, once all pages have been read.
    """
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.parallel = os.cpu_count() or 1
    app.connect("builder-inited", declare_safe)
