"""Pages without what needs a screen: folds are open, buttons and fields are gone."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag

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
