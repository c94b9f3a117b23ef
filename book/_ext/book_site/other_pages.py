"""After a change of one page, also mend what other pages show of it.

Sphinx writes the pages that have changed and those that depend on their files. It
forgets pages that show a title, a number or a link which now leads elsewhere, and
sphinx-sitemap forgets all pages that were not written.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx_sitemap import add_html_link

UNSEEN = "wordcount"  # MyST's field of each page, which none shows


def shown_elsewhere(env: BuildEnvironment) -> str:
    """A fingerprint of what pages show of others: titles, their order, links' aims."""
    standard = env.domaindata["std"]
    told = {
        name: {key: field for key, field in env.metadata[name].items() if key != UNSEEN}
        for name in env.found_docs
    }
    known = (
        {name: title.astext() for name, title in env.titles.items()},
        told,
        env.toctree_includes,
        env.toc_secnumbers,
        *(standard[name] for name in ("labels", "anonlabels", "terms")),
    )
    text = repr([sorted(one.items()) for one in known])
    return hashlib.sha256(text.encode()).hexdigest()


def changed(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """All pages, if what they show of others has changed since the last build."""
    before = getattr(env, "book_shown_elsewhere", None)
    env.book_shown_elsewhere = shown_elsewhere(env)
    return [] if before == env.book_shown_elsewhere else sorted(env.found_docs)


def early_styles(app: Sphinx) -> None:
    """Put MyST-NB's styles in place, so that links to them have a checksum at once."""
    (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
    add_global_html_resources(app, None)


def whole_sitemap(app: Sphinx, exception: Exception | None) -> None:
    """Give sphinx-sitemap the pages that were not written anew, too."""
    if exception or not hasattr(app.env.app, "sitemap_links"):
        return
    links = app.env.app.sitemap_links
    for name in app.env.found_docs:
        add_html_link(app, name, "", {}, None)
    found = set()
    while not links.empty():
        found.add(links.get())
    for link in sorted(found, key=lambda link: link[0]):
        links.put(link)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("builder-inited", early_styles)
    app.connect("env-updated", changed)
    app.connect("build-finished", whole_sitemap, priority=400)
