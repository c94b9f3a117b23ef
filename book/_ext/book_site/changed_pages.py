"""Write the pages that have changed, and others where they show what has changed.

Sphinx writes the pages that it reads anew. But every page's menu shows the titles of
all, links show headings of other pages, and the sitemap names every page.
"""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx_sitemap import add_html_link


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """All pages, if a title or a heading has changed since the last build."""
    titles = {page: title.astext() for page, title in env.titles.items()}
    shown = (titles, dict(env.get_domain("std").labels))
    before, env.shown_elsewhere = getattr(env, "shown_elsewhere", None), shown
    return sorted(env.found_docs) if shown != before else []


def name_all_pages(app: Sphinx, env: BuildEnvironment) -> None:
    """Name every page in the sitemap, whether or not this build writes it."""
    if app.builder.name != "html":  # an EPUB has none
        return
    for page in sorted(env.found_docs):
        add_html_link(app, page, "", {}, None)
    app.config.sitemap_excludes = ["*"]  # or those that are written stand there twice


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("env-updated", pages_to_write)
    app.connect("env-updated", name_all_pages)
