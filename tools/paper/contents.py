"""Which pages paper has, and in which order: those of `_toc.yml`, with few left out.

A reader of paper has no keyboard at hand. The pages of the class are worked on in
notebooks, or say how to hand these out; the calculators need a browser. Links lead to
them on the web.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import yaml

from tools.model import address

LEFT_OUT_PARTS = ("The class",)
LEFT_OUT = ("book/what-will-it-take",)
SOLUTIONS = "solutions"  # the page that holds them, which Sphinx does not know
HELPERS = "helpers"  # the page with the code that set-up cells have in common
APPENDIX = (HELPERS, SOLUTIONS)
FRONT = ("Start",)  # parts that need no page of their own


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the book; the first has no title and holds the welcome page."""

    title: str
    names: tuple[str, ...]  # of its pages, as Sphinx calls them


@dataclasses.dataclass(frozen=True)
class Contents:
    """The pages of paper."""

    title: str
    author: str
    pages: str  # the address of the site
    repository: str
    parts: tuple[Part, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All pages that Sphinx writes, in order."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def slug(self) -> str:
        """How files are called that hold the book."""
        return "-".join(self.title.lower().split())


def read(root: Path, only: tuple[str, ...] = ()) -> Contents:
    """The contents of the book.

    Args:
        root: the repository's folder.
        only: pages to take; all, if there are none. The first page is always taken.
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = address.repository(root)
    front, parts, left_out = [toc["root"]], [], []
    for part in toc["parts"]:
        names = [chapter["file"] for chapter in part["chapters"]]
        kept = [
            name
            for name in names
            if part["caption"] not in LEFT_OUT_PARTS
            and name not in LEFT_OUT
            and (not only or name in only)
        ]
        left_out += [name for name in names if name not in kept]
        if part["caption"] in FRONT:
            front += kept
        elif kept:
            parts.append(Part(part["caption"], tuple(kept)))
    return Contents(
        title=config["title"],
        author=config["author"],
        pages=repository.pages,
        repository=repository.url,
        parts=(Part("", tuple(front)), *parts),
        left_out=tuple(left_out),
    )
