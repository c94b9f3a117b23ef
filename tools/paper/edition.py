"""The pages of the book as paper has them, and the EPUB that packs them."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
from pathlib import Path
from unittest import mock

from tools.model.errors import UserError
from tools.paper import contents

HERE = Path(__file__).parent
FORMULAS = Path("book/_static/vendor/latin-modern-math/formulas.woff")
FOLDER = Path("_build", "paper")
# Those of the site's extensions that write something that stays on paper.
EXTENSIONS = [
    "jupyter_book",
    "myst_nb",
    "sphinx_design",
    "sphinx_external_toc",
    "book_site",
]
OTHERS = ("comments_", "copybutton_", "notfound_", "ogp_", "sitemap_")  # their settings


def commit_time(root: Path) -> int:
    """When the last commit was made, in seconds since 1970; 1980 without git."""
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True
    )
    said = done.stdout.strip()
    return int(said) if said.isdigit() else 315532800


def edition_date(root: Path) -> str:
    """The day of the last commit, such as `23 November 2026`."""
    day = datetime.datetime.fromtimestamp(commit_time(root), datetime.UTC)
    return f"{day.day} {day:%B %Y}"


def settings(root: Path, only: tuple[str, ...]) -> dict[str, object]:
    """What differs from the settings in `_config.yml`."""
    from myst_nb.core.render import base_render_priority

    book = contents.read(root)
    outputs = base_render_priority()["html"]
    return {
        "extensions": EXTENSIONS,
        "templates_path": [str(HERE / "templates")],
        "html_static_path": [
            str(HERE / "static"),
            str(HERE.parents[1] / FORMULAS),
        ],
        "html_css_files": [],
        "html_js_files": [],
        "html_copy_source": False,
        "html_favicon": None,
        "nitpicky": True,
        "nb_mime_priority_overrides": [("paper", *pair) for pair in outputs.items()],
        "version": edition_date(root),
        "paper_pages": only,
        "epub_basename": book.slug,
        "epub_title": book.title,
        "epub_author": book.author,
        "epub_publisher": book.author,
        "epub_identifier": book.pages,
        "epub_scheme": "URL",
        "epub_uid": "book",
        "epub_description": "An executable book: what a Keras model does on a GPU.",
        "epub_cover": ("_static/cover.png", "epub-cover.html"),
        "epub_show_urls": "no",
        "epub_tocdepth": 3,
        "epub_tocscope": "includehidden",
        "epub_use_index": False,
        "latex_individualpages": False,  # Jupyter Book asks for it
    }


def sphinx(root: Path, out: Path, doctrees: Path, config: dict[str, object]) -> int:
    """Run Sphinx with the book's settings and others; warnings are errors.

    Returns:
        Its status. What went wrong stands in stderr.
    """
    from jupyter_book.config import get_final_config
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    known, _ = get_final_config(
        user_yaml=root / "_config.yml",
        cli_config=config,
        sourcedir=root,
        use_external_toc=True,
    )
    known = {name: x for name, x in known.items() if not name.startswith(OTHERS)}
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            root,
            None,
            out,
            doctrees,
            "paper",
            confoverrides=known,
            status=None,
            warningiserror=True,
            keep_going=True,
        )
        app.build()
    return app.statuscode


def build(root: Path, folder: Path, only: tuple[str, ...] = ()) -> Path:
    """Write the pages of paper, and the EPUB beside them.

    Args:
        root: the repository's folder.
        folder: where to write; `pages` in it is written anew.
        only: pages to take, as `_toc.yml` names them; all, if there are none.

    Returns:
        The folder with the pages.

    Raises:
        UserError: the build failed; Sphinx has said why in stderr.
    """
    out = folder / "pages"
    shutil.rmtree(out, ignore_errors=True)
    epoch = {"SOURCE_DATE_EPOCH": str(commit_time(root))}
    with mock.patch.dict(os.environ, epoch):
        status = sphinx(root, out, folder / "doctrees", settings(root, only))
    if status:
        raise UserError("the pages for paper can't be built. Fix: see above")
    return out
