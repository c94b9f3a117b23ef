"""What the book is called, where it is built, and which of its pages are printed.

The pages of the class are worked on in notebooks, and the calculators need a browser:
on paper, links lead to them on the web.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import yaml

from tools.model import address
from tools.model.errors import UserError

SITE = Path("_build", "html")
ON_THE_WEB_ONLY = ("The class", "book/what-will-it-take")  # a part and a page
FRONT = "Start"  # the part whose pages follow the welcome page


@dataclasses.dataclass(frozen=True)
class Contents:
    """The book's names and its printed pages."""

    title: str
    author: str
    web: str  # the address of the site
    parts: dict[str, list[str]]  # the pages of each part, as `_toc.yml` names them

    @property
    def slug(self) -> str:
        """How files are called that hold the book."""
        return "-".join(self.title.lower().split())


def read(root: Path) -> Contents:
    """The contents of the book, from `_config.yml` and `_toc.yml`."""
    web = address.repository(root).pages
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = {FRONT: [toc["root"]]}
    for part in toc["parts"]:
        pages = [chapter["file"] for chapter in part["chapters"]]
        if part["caption"] not in ON_THE_WEB_ONLY:
            printed = [page for page in pages if page not in ON_THE_WEB_ONLY]
            parts.setdefault(part["caption"], []).extend(printed)
    return Contents(config["title"], config["author"], web, parts)


def built_site(root: Path) -> Path:
    """The folder of the site.

    Raises:
        UserError: it is not built.
    """
    if not (root / SITE / "index.html").is_file():
        raise UserError(f"{SITE} holds no site. Fix: make book")
    return root / SITE
