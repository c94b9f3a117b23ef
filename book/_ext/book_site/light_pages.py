"""Keep pages light: MathJax, 2 MB, is loaded only where there is a formula to draw.

Jupyter Book asks Sphinx to load every script on every page, and Sphinx counts a formula
of any chapter as one of the welcome page, which lists the chapters.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def load_per_page(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Let each page load what it needs itself."""
    app.set_html_assets_policy("per_page")


def drop_mathjax(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Take MathJax and its settings from a page that has no formula of its own."""
    if app.env.domaindata["math"]["has_equations"].get(pagename):
        return
    context["script_files"][:] = [
        script
        for script in context["script_files"]
        if app.config.mathjax_path not in str(script.filename)
        and "window.MathJax" not in str(script.attributes.get("body"))
    ]


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("env-before-read-docs", load_per_page)
    app.connect("html-page-context", drop_mathjax, priority=900)
