"""The addresses of the site, which all follow from the repository's address.

GitHub Pages serves a repository OWNER/NAME at https://OWNER.github.io/NAME/. The
canonical links, the sitemap, the social card and the page for missing pages take that
address, so that a fork's site points to the fork. Pages can write
`{{ repository_url }}`, `{{ pages_url }}`, `{{ clone }}`, the commands that fetch the
book, `{{ run_here }}`, the one that opens a chapter on the reader's machine, and
`{{ measure_on_colab }}`, those that measure a machine of Colab.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config

from book_site.run_menu import places
from tools.model import address

EXAMPLE = "notebooks/04-place-operations"  # a chapter, for `run_here`
CLONE = """\
```sh
git clone {url}
cd {name}
```"""

RUN_HERE = """\
```sh
uv run {program}
```"""

MEASURE_ON_COLAB = """\
```text
!git clone {url}
%cd {name}
!python -m tools.plan.measure --quick
```"""


def set_addresses(app: Sphinx, config: Config) -> None:
    """Fill in every setting that holds an address of the site."""
    repository = address.repository(Path(app.srcdir))
    config.html_baseurl = repository.pages
    config.ogp_site_url = repository.pages
    config.notfound_urls_prefix = urlsplit(repository.pages).path
    config.myst_substitutions = {
        **config.myst_substitutions,
        "repository_url": f"<{repository.url}>",
        "pages_url": f"<{repository.pages}>",
        "clone": CLONE.format(url=repository.url, name=repository.name),
        "run_here": RUN_HERE.format(program=places.program(repository, EXAMPLE)),
        "measure_on_colab": MEASURE_ON_COLAB.format(
            url=repository.url, name=repository.name
        ),
    }


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("config-inited", set_addresses)
