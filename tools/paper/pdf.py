"""The book as one PDF on A4: the pages of the site, joined and printed by Chromium."""

import datetime
import html
import posixpath
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pikepdf
from bs4 import Tag
from playwright.sync_api import Error, sync_playwright

from tools import chromium
from tools.model import files
from tools.model.errors import UserError
from tools.paper import pages
from tools.paper.pages import Book

STATIC = Path(__file__).parent / "static"
LOGO = Path(__file__).parents[2] / "book" / "_static" / "logo.svg"
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
WIDTH = 627  # pixels of CSS: 166 mm, the width of the text on A4
LIMIT = 600_000  # milliseconds for all pages


def make(root: Path, folder: Path, book: Book) -> Path:
    """Print the pages of the built site into a folder.

    Raises:
        UserError: the site is not built, or what was printed is not whole.
    """
    text, headings = joined(pages.site(root), book)
    files.write_text(folder / "book.html", text)
    pdf = folder / f"{book.slug}.pdf"
    print_page(folder / "book.html", pdf)
    finish(pdf, headings)
    return pdf


def joined(site: Path, book: Book) -> tuple[str, list[str]]:
    """All printed pages as one, behind a title page and the contents.

    Returns:
        The page, and the headings on it.
    """
    listed, articles, headings = [], [], []
    for part, names in book.parts.items():
        if part != pages.FRONT:
            listed.append(f'<li class="part-line">{part}</li>')
            articles.append(f'<h1 class="part">{part}</h1>')
        for name in names:
            article = printed(site, name, book)
            titles = [" ".join(x.get_text().split()) for x in article(HEADINGS)]
            link = f'<a href="#{anchor(name)}">{html.escape(titles[0])}</a>'
            listed.append(f"<li>{link}</li>")
            articles.append(str(article))
            headings += titles
    day = datetime.date.today()
    return (STATIC / "book.html").read_text(encoding="utf-8").format(
        title=book.title,
        author=book.author,
        web=book.web,
        date=f"{day.day} {day:%B %Y}",
        style=(STATIC / "print.css").as_uri(),
        logo=LOGO.read_text(encoding="utf-8"),
        contents="\n".join(listed),
        pages="\n".join(articles),
    ), headings


def anchor(name: str, fragment: str = "") -> str:
    """The id of a page, or of a place on it, within the one page."""
    slug = posixpath.basename(name)
    return f"{slug}--{fragment}" if fragment else slug


def printed(site: Path, name: str, book: Book) -> Tag:
    """A page of the site, unfolded, for its place within the one page."""
    text = (site / f"{name}.html").read_text(encoding="utf-8")
    article = pages.parse(text).find("article", class_="bd-article")
    for element in article.find_all(True):
        if element.get("id"):
            element["id"] = anchor(name, element["id"])
        if element.get("href"):
            element["href"] = printed_link(element["href"], name, book)
        if element.get("src"):
            path = site / posixpath.dirname(name) / element["src"]
            element["src"] = path.resolve().as_uri()
        if element.name in HEADINGS:  # a part's title is the <h1>
            element.name = f"h{min(6, int(element.name[1]) + 1)}"
    article["id"] = anchor(name)
    return article


def printed_link(href: str, name: str, book: Book) -> str:
    """Where a link of a page leads: to a place on paper, or to the web."""
    link = urlsplit(href)
    if link.scheme or link.netloc:
        return href
    path = posixpath.join(posixpath.dirname(name), link.path) if link.path else name
    path = posixpath.normpath(path)
    page = path.removesuffix(".html")
    if any(page in names for names in book.parts.values()):
        return f"#{anchor(page, link.fragment)}"
    return book.web + path + (f"#{link.fragment}" if link.fragment else "")


def print_page(page_file: Path, pdf: Path) -> None:
    """Print a page with its bookmarks and a description of its text.

    Raises:
        UserError: something is wider than the paper, or Chromium stopped.
    """
    fit = (STATIC / "fit.js").read_text(encoding="utf-8")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(**chromium.launch_options())
            page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
            page.set_default_timeout(LIMIT)
            page.emulate_media(media="print")
            page.goto(page_file.as_uri())
            page.evaluate("document.fonts.ready.then(() => null)")
            wide = page.evaluate(fit, WIDTH)
            paper = {"prefer_css_page_size": True, "print_background": True}
            page.pdf(path=pdf, outline=True, tagged=True, **paper)
            browser.close()
    except Error as error:
        raise UserError(
            f"Chromium could not print the book ({error.message.splitlines()[0]}). "
            "Fix: give it 4 GB of memory and 1 GB of disk, and try again"
        ) from None
    if wide:
        raise UserError(
            f"{wide} is wider than the paper. "
            "Fix: let it wrap, in tools/paper/static/print.css, or make it shorter"
        )


def finish(pdf: Path, headings: list[str]) -> None:
    """See that each heading has its bookmark, and make the file smaller.

    Chromium loses the space where a title goes on in a second line.

    Raises:
        UserError: a heading has no bookmark.
    """
    titles = {"".join(heading.split()): heading for heading in headings}
    with pikepdf.open(pdf, allow_overwriting_input=True) as document:
        with document.open_outline() as outline:
            marks = list(bookmarks(outline.root))
            for mark in marks:
                mark.title = titles.get("".join(mark.title.split()), mark.title)
        packed = pikepdf.ObjectStreamMode.generate
        document.save(pdf, object_stream_mode=packed, recompress_flate=True)
    if missing := set(headings) - {mark.title for mark in marks}:
        raise UserError(
            f"{pdf.name} has no bookmark for {min(missing)!r}. "
            "Fix: print it again, with another version of Chromium"
        )


def bookmarks(items: list[pikepdf.OutlineItem]) -> Iterator[pikepdf.OutlineItem]:
    """All bookmarks, those below others too."""
    for item in items:
        yield item
        yield from bookmarks(item.children)
