"""Sphinx's settings for `make serve`: Jupyter Book makes them of `_config.yml`."""

from pathlib import Path

from jupyter_book.config import get_final_config
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[3]
SETTINGS, _ = get_final_config(
    user_yaml=ROOT / "_config.yml",
    cli_config={
        "external_toc_path": str(ROOT / "_toc.yml"),
        "latex_individualpages": False,
    },
    sourcedir=ROOT,
)
globals().update(SETTINGS)


def setup(app: Sphinx) -> None:
    """Take paths in the settings from the repository, as Jupyter Book does."""
    app.confdir = type(app.confdir)(ROOT)
