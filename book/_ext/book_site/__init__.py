"""What Sphinx does not do for this book by itself, one module for each job."""

import importlib
import sys
from pathlib import Path

from sphinx.application import Sphinx

# The programs of the repository, which Sphinx does not look for.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

MODULES = (
    "calculators",
    "chapter_pages",
    "claims_ledger",
    "corrections",
    "download_links",
    "formulas",
    "landing_page",
    "measured_page",
    "page_description",
    "programs_page",
    "quick_pages",
    "site_address",
    "troubleshooting",
    "two_languages",
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all modules, and let Sphinx read pages on all cores.

    The extension named here does not say that it can be used in parallel. It numbers
    the sections of the table of contents, once all pages have been read.
    """
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    for name in MODULES:
        importlib.import_module(f"{__name__}.{name}").setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
