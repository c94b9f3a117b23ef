"""The pages that are printed, without what needs a screen.

Folds are open, buttons and fields are gone. The pages of the class are worked on in
notebooks, and the calculators need a browser: links lead to them on the web.
"""

import dataclasses
import re
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag

from tools.model import address
from tools.model.errors import UserError

SITE = Path("_build", "html")
ON_THE_WEB_ONLY = ("The class", "book/what-will-it-take")  # a part and a page
FRONT = "Start"  # the part whose pages follow the welcome page
# Only of use on a screen: cards that lead on, buttons, fields, marks beside headings.
SCREEN_ONLY = (
    "script, style, template, form, input, button, select, textarea, noscript, "
    ".ways, .hero-button, .visually-hidden, .headerlink, section:has(> .downloads), "
    ".filter-start, p:-soup-contains('the field'):has(+ .filter-start)"
)
FOLD_KINDS = frozenset(("proof", "solution", "set-up"))  # those with looks of their own
HELPER = "# >>> snippets/"
HELPER_END = "# <<<"
# What XML can't hold, such as the escape character of coloured output.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclasses.dataclass(frozen=True)
class Book:
    """The book's names and its printed pages."""

    title: str
    author: str
    web: str  # the address of the site
    parts: dict[str, list[str]]  # the pages of each part, as `_toc.yml` names them

    @property
    def slug(self) -> str:
        """How files are called that hold the book."""
        return "-".join(self.title.lower().split())


def book(root: Path) -> Book:
    """What `_config.yml` and `_toc.yml` say of the book."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = {FRONT: [toc["root"]]}
    for part in toc["parts"]:
        if part["caption"] not in ON_THE_WEB_ONLY:
            names = [chapter["file"] for chapter in part["chapters"]]
            printed = [name for name in names if name not in ON_THE_WEB_ONLY]
            parts.setdefault(part["caption"], []).extend(printed)
    web = address.repository(root).pages
    return Book(config["title"], config["author"], web, parts)


def site(root: Path) -> Path:
    """The folder of the site.

    Raises:
        UserError: it is not built.
    """
    if not (root / SITE / "index.html").is_file():
        raise UserError(f"{SITE} holds no site. Fix: make book")
    return root / SITE


def parse(html: str) -> BeautifulSoup:
    """Read a page, or a part of one, and unfold it."""
    page = BeautifulSoup(FORBIDDEN.sub("", html), "html.parser")
    for element in page.select(SCREEN_ONLY):
        element.decompose()
    for fold in page.find_all("details"):
        unfold(fold)
    for label in page.find_all("label"):  # of a tab: its text is the next element
        label.name, label.attrs = "p", {"class": ["fold-title"]}
    for block in page.select(".tag_setup pre"):
        leave_helpers_out(block)
    for drawing in page.find_all("svg"):  # the parser takes its capitals away
        drawing["viewBox"] = drawing.attrs.pop("viewbox", "0 0 1 1")
    return page


def unfold(fold: Tag) -> None:
    """Make an open box of a fold: its title is what stands on the fold."""
    summary = fold.find("summary")
    title = summary.find("p") or summary  # MyST-NB has one title to open, one to close
    text = title.get_text(" ", strip=True).removeprefix("Show ").removeprefix("the ")
    kinds = FOLD_KINDS.intersection(fold.get("class", ()))
    if "set-up" in text:
        kinds = {"set-up"}
    summary.name = "p"
    summary.attrs = {"class": ["fold-title"]}
    summary.string = text[:1].upper() + text[1:]
    fold.name = "div"
    fold.attrs = {"class": ["fold", *sorted(kinds)]}


def leave_helpers_out(block: Tag) -> None:
    """Leave out the copies of `snippets/` in set-up code, but keep their names."""
    inside = False
    for node in list(block.children):
        text = node.get_text().strip()
        if text.startswith(HELPER):
            inside = True
        elif inside:
            node.extract()
            inside = text != HELPER_END
