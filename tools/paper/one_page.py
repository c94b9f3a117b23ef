"""All pages of the book as one, from which the PDF is printed."""

from __future__ import annotations

import copy
import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import matplotlib

from tools.paper import pages
from tools.paper.contents import APPENDIX, SOLUTIONS, Contents
from tools.paper.pages import HEADING, classes, new, words
from tools.paper.sheets import Sheet, page_rules

LOCAL = re.compile(r"url\(#([^)]+)\)")
# Sections that each chapter has: the contents need not say so.
IN_ALL = ("What breaks", "On a GPU", "Exercises", "What you proved", "Go further")
IDS = ("aria-labelledby", "aria-describedby", "for")
FONTS = {  # Matplotlib ships them, so they are the same on each machine
    ("Text", 400, "normal"): "STIXGeneral.ttf",
    ("Text", 700, "normal"): "STIXGeneralBol.ttf",
    ("Text", 400, "italic"): "STIXGeneralItalic.ttf",
    ("Text", 700, "italic"): "STIXGeneralBolIta.ttf",
    ("Head", 400, "normal"): "DejaVuSans.ttf",
    ("Head", 700, "normal"): "DejaVuSans-Bold.ttf",
    ("Code", 400, "normal"): "DejaVuSansMono.ttf",
    ("Code", 700, "normal"): "DejaVuSansMono-Bold.ttf",
    ("Code", 400, "italic"): "DejaVuSansMono-Oblique.ttf",
    ("Code", 700, "italic"): "DejaVuSansMono-BoldOblique.ttf",
}
LICENCE = "https://creativecommons.org/licenses/by/4.0/"


def slug(name: str) -> str:
    """The name of a page within the one page."""
    return re.sub(r"\W+", "-", posixpath.basename(name))


def anchor(name: str, fragment: str = "") -> str:
    """The id of a page's place within the one page."""
    return f"{slug(name)}--{fragment}" if fragment else slug(name)


def join(folder: Path, contents: Contents, sheet: Sheet, date: str) -> str:
    """The book as one page of XHTML.

    Args:
        folder: the pages in the form of paper; the result belongs there.
        contents: which pages there are.
        sheet: what is printed on.
        date: of the edition, in words.
    """
    body = new("body")
    body.append(title_page(contents, date))
    body.append(imprint(contents, sheet, date))
    table = new("nav", class_="contents")
    table.append(new("h1", "Contents"))
    listed = new("ol", class_="toc")
    table.append(listed)
    body.append(table)
    titles: dict[str, str] = {}

    def add(name: str, deeper: int, sections: bool, into: Element) -> None:
        tree = pages.read(folder / f"{name}.xhtml")
        article = new("article", id=slug(name), class_=f"page of-{slug(name)}")
        article.extend(placed(tree, name, deeper))
        body.append(article)
        head = next(x for x in article.iter() if HEADING.fullmatch(x.tag))
        titles[f"of-{slug(name)}"] = words(head)
        into.append(entry(words(head), slug(name)))
        if sections:
            inner = new("ol")
            for section in article.iter("section"):
                heading = section.find(f"h{2 + deeper}")
                known = heading is not None and words(heading) not in IN_ALL
                if known and section.get("id"):
                    inner.append(entry(words(heading), section.get("id")))
            if len(inner):
                into[-1].append(inner)

    for number, part in enumerate(contents.parts, start=1):
        into = listed
        if part.title:
            name = f"part-{number}"
            article = new("article", id=name, class_="page part-page")
            article.extend(placed(pages.read(folder / f"{name}.xhtml"), name, 0))
            body.append(article)
            listed.append(entry(part.title, name, "toc-part"))
            into = new("ol")
            listed[-1].append(into)
        for name in part.names:
            add(name, 1 if part.title else 0, name.startswith("notebooks/"), into)
    for name in APPENDIX:
        add(name, 0, False, listed)
        listed[-1].set("class", "toc-part")

    html = new("html", xmlns="http://www.w3.org/1999/xhtml", lang="en")
    head = new("head")
    head.append(new("title", contents.title))
    head.append(new("meta", name="author", content=contents.author))
    head.append(new("style", "\n".join(styles(sheet, titles))))
    html.append(head)
    html.append(body)
    return pages.xhtml(html)


def styles(sheet: Sheet, titles: dict[str, str]) -> list[str]:
    """All rules: the fonts, the pages, the looks."""
    where = Path(matplotlib.get_data_path(), "fonts", "ttf")
    fonts = [
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; '
        f'font-style: {style}; src: url("{(where / file).as_uri()}"); }}'
        for (family, weight, style), file in FONTS.items()
    ]
    looks = (Path(__file__).parent / "static" / "pdf.css").read_text(encoding="utf-8")
    return [*fonts, page_rules(sheet, titles), looks]


def entry(text: str, aim: str, class_: str = "") -> Element:
    """A line of the contents."""
    item = new("li", **({"class": class_} if class_ else {}))
    link = new("a", href=f"#{aim}")
    link.append(new("span", text))
    link.append(page_number(aim))
    item.append(link)
    return item


def page_number(aim: str) -> Element:
    """A place for the number of the page on which an id stands: `printing` fills it."""
    return new("span", "000", class_="page-number", **{"data-page-of": aim})


def title_page(contents: Contents, date: str) -> Element:
    """The first page."""
    section = new("section", class_="title-page")
    logo = Path(__file__).parents[2] / "book" / "_static" / "logo.svg"
    section.append(pages.parse(logo.read_text(encoding="utf-8"), logo.name))
    section.append(new("p", contents.title, class_="book-title"))
    section.append(new("p", "An executable book", class_="book-subtitle"))
    section.append(new("p", date, class_="book-date"))
    return section


def imprint(contents: Contents, sheet: Sheet, date: str) -> Element:
    """What this edition is, what it leaves out, and under which licence."""
    section = new("section", class_="imprint")

    def paragraph(*parts: str | tuple[str, str]) -> None:
        line = new("p")
        for part in parts:
            if isinstance(part, tuple):
                line.append(new("a", part[0], href=part[1]))
            elif len(line):
                line[-1].tail = part
            else:
                line.text = part
        section.append(line)

    web = contents.pages.removeprefix("https://").rstrip("/")
    paragraph(f"{contents.title}. Edition of {date}, {sheet.about}.")
    paragraph(
        "The book on the web: ",
        (web, contents.pages),
        ". Below its title, each chapter names its own page there and its notebook on "
        "Colab.",
    )
    paragraph(
        "The solutions of the exercises stand ",
        ("at the end", f"#{slug(SOLUTIONS)}"),
        ". Proofs, hints and set-up code are open. Three things are only on the web: "
        "the assignments and pages for teachers, the calculators, and the search.",
    )
    paragraph(
        f"By {contents.author}. Sources: ",
        (contents.repository[8:], contents.repository),
        ".",
    )
    paragraph(
        "Text and figures may be shared and adapted under ",
        ("CC BY 4.0", LICENCE),
        ", code under the Apache License 2.0.",
    )
    return section


def placed(tree: Element, name: str, deeper: int) -> list[Element]:
    """What a page holds, for its place within the one page."""
    body = copy.deepcopy(tree.find("body"))
    folder = posixpath.dirname(name)
    for element in body.iter():
        for attribute, value in list(element.attrib.items()):
            if attribute == "id":
                element.set("id", anchor(name, value))
            elif attribute in IDS:
                found = " ".join(anchor(name, x) for x in value.split())
                element.set(attribute, found)
            elif attribute in ("href", "xlink:href", "src"):
                element.set(attribute, led(value, name, folder))
            elif "url(#" in value:
                found = LOCAL.sub(lambda x: f"url(#{anchor(name, x[1])})", value)
                element.set(attribute, found)
        level = HEADING.fullmatch(element.tag)
        if level:
            element.tag = f"h{min(6, int(level[1]) + deeper)}"
    for line in body.iter("p"):
        if "to-solution" in classes(line):
            line[0].tail = ", page "
            line.append(page_number(line[0].get("href").removeprefix("#")))
    return list(body)


def led(value: str, name: str, folder: str) -> str:
    """Where a link or a picture of a page leads within the one page."""
    parts = urlsplit(value)
    if parts.scheme or parts.netloc:
        return value
    if not parts.path:
        return f"#{anchor(name, parts.fragment)}"
    path = posixpath.normpath(posixpath.join(folder, parts.path))
    if path.endswith(".xhtml"):
        return f"#{anchor(path.removesuffix('.xhtml'), parts.fragment)}"
    return path
