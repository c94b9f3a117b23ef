"""Whether a PDF of the book is whole: `python -m tools.paper.check_pdf FILE`.

Its bookmarks name each page of the book, its links lead somewhere, its fonts are in it,
and each line of code is there to its end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import pikepdf
import pypdfium2

from tools.model.errors import UserError, command
from tools.paper import pages
from tools.paper.pages import HEADING, classes, words

LONG = 70  # columns: shorter lines of code can't be cut
END = 40  # letters at the beginning and the end of a line, which may fill two pages
# Spaces, and hyphens: one at the end of a line on paper is not told from a letter.
BLANK = re.compile("[\\s\x02\u00ad\ufffe-]+")
WEB = ("http:", "https:", "mailto:")


def problems(pdf: Path, page: Path) -> Iterator[str]:
    """What is wrong with a PDF.

    Args:
        pdf: the file.
        page: the one page of XHTML that it was printed from.
    """
    body = pages.read(page).find("body")
    articles = [x for x in body if x.tag == "article"]
    try:
        with pikepdf.open(pdf) as book:
            yield from bookmark_problems(book, articles)
            yield from link_problems(book)
            yield from font_problems(book)
            starts, count = places(book), len(book.pages)
    except (OSError, pikepdf.PdfError) as error:
        yield f"it can't be read ({error})"
        return
    shown = texts(pdf)
    for article, after in zip(articles, [*articles[1:], None], strict=True):
        first = starts.get(article.get("id"))
        last = count if after is None else starts.get(after.get("id"), count + 1) - 1
        if first is None:
            yield f"no link leads to {article.get('id')}"
        else:
            yield from text_problems("".join(shown[first - 1 : last]), article)


def texts(pdf: Path) -> list[str]:
    """The text of each page, without spaces."""
    with pypdfium2.PdfDocument(pdf) as book:
        return [BLANK.sub("", page.get_textpage().get_text_bounded()) for page in book]


def places(book: pikepdf.Pdf) -> dict[str, int]:
    """The numbers of the pages, from 1, of all places that links lead to."""
    numbers = {page.objgen: number for number, page in enumerate(book.pages, start=1)}
    if "/Names" in book.Root and "/Dests" in book.Root.Names:
        named = dict(pikepdf.NameTree(book.Root.Names.Dests))
    else:
        named = dict(book.Root.get("/Dests", {}))
    found = {}
    for name, place in named.items():
        place = place.D if isinstance(place, pikepdf.Dictionary) else place
        found[name.removeprefix("/")] = numbers[place[0].objgen]
    return found


def bookmarks(entries: list[pikepdf.OutlineItem]) -> Iterator[str]:
    """The titles of all bookmarks."""
    for entry in entries:
        yield " ".join(entry.title.split())
        yield from bookmarks(entry.children)


def bookmark_problems(book: pikepdf.Pdf, articles: list[Element]) -> Iterator[str]:
    """Pages of the book that no bookmark names."""
    with book.open_outline() as outline:
        known = set(bookmarks(outline.root))
    for article in articles:
        head = next(x for x in article.iter() if HEADING.fullmatch(x.tag))
        if words(head) not in known:
            yield f"no bookmark leads to {words(head)!r}"


def link_problems(book: pikepdf.Pdf) -> Iterator[str]:
    """Links that lead nowhere, or to a file of the machine that printed it."""
    known = places(book)
    for number, page in enumerate(book.pages, start=1):
        for note in page.get("/Annots", []):
            action = note.get("/A", pikepdf.Dictionary())
            aim = note.get("/Dest", action.get("/D"))
            address = str(action.get("/URI", ""))
            if isinstance(aim, pikepdf.Name | pikepdf.String):
                if str(aim).removeprefix("/") not in known:
                    yield f"page {number}: a link to {aim}, which is nowhere"
            elif aim is None and not address.startswith(WEB):
                yield f"page {number}: a link to {address or 'nothing'}"


def font_problems(book: pikepdf.Pdf) -> Iterator[str]:
    """Fonts that are not in the file."""
    seen = set()
    for page in book.pages:
        for font in page.Resources.get("/Font", pikepdf.Dictionary()).values():
            if font.objgen in seen or font.Subtype == "/Type3":
                continue  # shapes of type 3 are drawn in the file
            seen.add(font.objgen)
            inner = font.DescendantFonts[0] if "/DescendantFonts" in font else font
            shape = inner.get("/FontDescriptor", pikepdf.Dictionary())
            if not {"/FontFile", "/FontFile2", "/FontFile3"} & set(shape.keys()):
                yield f"the font {font.get('/BaseFont')} is not in the file"


def text_problems(text: str, article: Element) -> Iterator[str]:
    """Lines of code that a chapter's pages don't have: the first, last and long ones.

    Args:
        text: of the chapter's pages, without spaces.
        article: what was printed on them.
    """
    lines = [
        said
        for line in article.iter("span")
        if "line" in classes(line) and (said := BLANK.sub("", "".join(line.itertext())))
    ]
    told = [said for said in lines if len(said) > LONG] + lines[:1] + lines[-1:]
    for line in dict.fromkeys(told):
        if line[:END] not in text or line[-END:] not in text:
            yield f"{article.get('id')}: a line of code is not whole: {line}"


def check(pdf: Path, page: Path) -> int:
    """Hold a PDF against the page that it was printed from.

    Returns:
        How many pages it has.

    Raises:
        UserError: something is wrong with it.
    """
    found = list(problems(pdf, page))
    if found:
        told = "\n".join(f"  {problem}" for problem in found[:20])
        raise UserError(
            f"{pdf.name} is not whole: {len(found)} problems\n{told}\n"
            "Fix: see tools/paper, and print it anew"
        )
    with pikepdf.open(pdf) as book:
        return len(book.pages)


@command
def main(pdf: str, page: str) -> None:
    """Check a PDF and say how many pages it has."""
    print(f"{pdf}: {check(Path(pdf), Path(page))} pages, whole")


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
