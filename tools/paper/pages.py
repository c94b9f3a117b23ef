"""Pages as trees of elements: read from HTML, written as XHTML."""

from __future__ import annotations

import html.parser
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from tools.model.errors import UserError

VOID = frozenset(("br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"))
HEADING = re.compile(r"h([1-6])")
FOREIGN = frozenset(("svg", "math"))  # elements whose names have capitals
# What XML can't hold, such as the escape character of coloured output.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'


class Reader(html.parser.HTMLParser):
    """Builds a tree from HTML whose elements are all closed."""

    def __init__(self, name: str) -> None:
        """Take the page's name, for messages."""
        super().__init__()
        self.name = name
        self.builder = ElementTree.TreeBuilder()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element; one of SVG or MathML keeps the capitals in its names."""
        names = [name for name, _ in attrs]
        if tag in FOREIGN or not FOREIGN.isdisjoint(x.lower() for x in self.open):
            said = self.get_starttag_text()
            tag = said[1 : 1 + len(tag)]
            names = [as_written(name, said) for name in names]
        values = (FORBIDDEN.sub("", value or "") for _, value in attrs)
        self.builder.start(tag, dict(zip(names, values, strict=True)))
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element that closes itself."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        if tag in VOID:
            return
        if not self.open or self.open[-1].lower() != tag:
            last = self.open[-1] if self.open else "nothing"
            raise UserError(
                f"{self.name}, line {self.getpos()[0]}: </{tag}> closes <{last}>. "
                "Fix: close each element in the page's raw HTML"
            )
        self.builder.end(self.open.pop())

    def handle_data(self, data: str) -> None:
        """Add text, without what XML forbids."""
        if self.open:
            self.builder.data(FORBIDDEN.sub("", data))


def as_written(name: str, tag: str) -> str:
    """The name of an attribute with its capitals, which the parser takes away."""
    found = re.search(rf"[\s\"']({re.escape(name)})(?=[\s=>/])", tag, re.IGNORECASE)
    return found[1] if found else name


def parse(text: str, name: str) -> Element:
    """Read a page.

    Args:
        text: HTML or XHTML in which each element is closed.
        name: what messages call the page.

    Raises:
        UserError: an element is not closed, or closed too often.
    """
    reader = Reader(name)
    reader.feed(text)
    reader.close()
    if reader.open:
        raise UserError(
            f"{name}: <{reader.open[-1]}> is never closed. "
            "Fix: close each element in the page's raw HTML"
        )
    return reader.builder.close()


def read(path: Path) -> Element:
    """Read a page from its file."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def xhtml(page: Element) -> str:
    """A page as XHTML."""
    return HEAD + ElementTree.tostring(page, encoding="unicode") + "\n"


def classes(element: Element) -> list[str]:
    """The classes of an element."""
    return element.get("class", "").split()


def words(element: Element) -> str:
    """The text of an element, each space single."""
    return " ".join("".join(element.itertext()).split())


def new(tag: str, text: str = "", **attributes: str) -> Element:
    """An element with a text; `class_` stands for the attribute `class`."""
    element = Element(tag, {name.rstrip("_"): x for name, x in attributes.items()})
    element.text = text or None
    return element


def with_parents(
    root: Element, wanted: Callable[[Element], bool]
) -> Iterator[tuple[Element, Element]]:
    """Elements that are wanted, each with its parent; the tree may be changed."""
    parents = {child: parent for parent in root.iter() for child in parent}
    for element in [x for x in root.iter() if x is not root and wanted(x)]:
        yield element, parents[element]


def replace(parent: Element, old: Element, *new_: Element) -> None:
    """Put elements in the place of another, and keep the text behind it."""
    place = list(parent).index(old)
    tail, old.tail = old.tail, None
    parent.remove(old)
    for offset, element in enumerate(new_):
        parent.insert(place + offset, element)
    if new_:
        new_[-1].tail = (new_[-1].tail or "") + (tail or "")
    elif tail and place:
        parent[place - 1].tail = (parent[place - 1].tail or "") + tail
    elif tail:
        parent.text = (parent.text or "") + tail
