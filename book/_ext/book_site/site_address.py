"""The addresses of the site, which all follow from the repository's address.

The canonical links, the sitemap, the social card, the page for missing pages, the menu
*Run* and the program behind it take that address, so that a fork's site points to the
fork. Pages can write `{{ repository_url }}`, `{{ clone }}`, the commands that fetch the
book, `{{ run_here }}`, the one that opens a chapter on the reader's machine, and
`{{ measure_on_colab }}`, those that measure a machine of Colab.
"""

from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config

from tools.model import address

RUN = "run.py"
CODE = "```{}\n{}\n```"


def set_addresses(app: Sphinx, config: Config) -> None:
    """Fill in every setting that holds an address of the site."""
    repository = address.repository(Path(app.srcdir))
    url, name, pages = repository.url, repository.name, repository.pages
    config.html_baseurl = pages
    config.ogp_site_url = pages
    config.notfound_urls_prefix = urlsplit(pages).path
    config.html_context["repository"] = repository  # for run-menu.html
    measure = f"!git clone {url}\n%cd {name}\n!python -m tools.plan.measure --quick"
    config.myst_substitutions = {
        **config.myst_substitutions,
        "repository_url": f"<{url}>",
        "clone": CODE.format("sh", f"git clone {url}\ncd {name}"),
        "run_here": CODE.format("sh", f"uv run {pages}{RUN} 04"),
        "measure_on_colab": CODE.format("text", measure),
    }


def write_program(app: Sphinx, exception: Exception | None) -> None:
    """Write the program that opens a notebook, with the site's address in it."""
    if exception is None and app.builder.name == "html":
        program = Path(__file__).parents[2].joinpath(RUN).read_text(encoding="utf-8")
        program = program.replace("{{ pages_url }}", app.config.html_baseurl)
        Path(app.outdir, RUN).write_text(program, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("config-inited", set_addresses)
    app.connect("build-finished", write_program)
