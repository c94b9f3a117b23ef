"""The form of paper: what is folded is open, what needs a screen or a hand is gone.

- A fold becomes a box whose title is what stood on it.
- The solution of an exercise moves to a page at the end; a link leads there, and back.
- The helpers that set-up cells carry stand at the end, once.
- A chapter says where it stands on the web, with the link to Colab beside it.
- Buttons, cards and fields to filter by are gone; links to pages that paper leaves out
  lead to the web.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from tools.model import files
from tools.paper import lines, pages
from tools.paper.contents import HELPERS, SOLUTIONS, Contents, Part
from tools.paper.pages import classes, new, replace, with_parents, words

APPENDIX_TITLES = {
    HELPERS: "The helpers of the set-up code",
    SOLUTIONS: "Solutions of the exercises",
}
HELPER = re.compile(r"# >>> (snippets/[\w.]+)$")
COLAB = "https://colab.research.google.com/"
# Only of use on a screen: cards that lead on, a button, marks on folds.
SCREEN_ONLY = frozenset(("ways", "hero-button", "filter-start", "visually-hidden"))
FOLD_STYLES = frozenset(("proof", "solution"))  # of the site that paper knows too
SAID = re.compile(r"^(Show|Hide) ")
EXERCISE = re.compile(r"(?:Solution|Exercise) (\d+)")
EMPTY_PATH = re.compile(r"<path(?![^>]*\sd=)([^>]*)/>")  # Matplotlib writes some
MATHML = "http://www.w3.org/1998/Math/MathML"
DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")


def dress(folder: Path, contents: Contents) -> dict[str, list[tuple[str, str]]]:
    """Give all pages of a folder the form of paper, and write the pages they need.

    Args:
        folder: where Sphinx wrote the pages, as XHTML.
        contents: which pages paper has, and in which order.

    Returns:
        The sections of each chapter: their ids and their titles.

    Raises:
        UserError: a page is no well-formed HTML.
    """
    trees = {name: pages.read(folder / f"{name}.xhtml") for name in contents.names}
    moved: list[tuple[str, list[Element]]] = []
    helpers: dict[str, list[Element]] = {}
    for name, tree in trees.items():
        tidy(tree)
        for block in tree.iter("pre"):
            lines.split(block)
        open_folds(tree)
        body = tree.find("body")
        if name.startswith("notebooks/"):
            address = f"{contents.pages}{name}.html"
            name_web_page(body, address)
            take_helpers(body, helpers)
            found = list(take_solutions(body, name))
            if found:
                moved.append((name, found))
    trees[HELPERS] = helpers_page(helpers)
    trees[SOLUTIONS] = solutions_page(moved, trees)
    mend_links(trees, contents)
    for number, part in enumerate(contents.parts, start=1):
        if part.title:
            trees[f"part-{number}"] = part_page(part, trees)
    for name, tree in trees.items():
        files.write_text(folder / f"{name}.xhtml", pages.xhtml(tree))
    for path in folder.rglob("*.svg"):  # an EPUB must not name what is elsewhere
        text = DOCTYPE.sub("", path.read_text(encoding="utf-8"), count=1)
        path.write_text(EMPTY_PATH.sub(r'<path d="M0 0"\1/>', text), encoding="utf-8")
    return {
        name: [
            (section.get("id"), words(section.find("h2")))
            for section in tree.iter("section")
            if section.get("id") and section.find("h2") is not None
        ]
        for name, tree in trees.items()
        if name.startswith("notebooks/")
    }


def page(title: str, *body: Element) -> Element:
    """A page that Sphinx did not write."""
    root = new("html", xmlns="http://www.w3.org/1999/xhtml", lang="en")
    root.set("xmlns:epub", "http://www.idpf.org/2007/ops")
    root.set("xml:lang", "en")
    head = new("head")
    head.append(new("title", title))
    style = {"rel": "stylesheet", "type": "text/css", "href": "_static/epub.css"}
    head.append(new("link", **style))
    root.append(head)
    root.append(new("body"))
    root.find("body").extend(body)
    return root


def title(tree: Element) -> Element:
    """The title of a page."""
    return next(tree.iter("h1"))


def part_page(part: Part, trees: dict[str, Element]) -> Element:
    """The page in front of a part: its name and its chapters."""
    section = new("section", class_="part")
    section.append(new("h1", part.title))
    for name in part.names:
        line = new("p")
        line.append(new("a", words(title(trees[name])), href=f"{name}.xhtml"))
        section.append(line)
    return page(part.title, section)


def tidy(tree: Element) -> None:
    """Take away what is only of use on a screen."""
    for parent, section in parents(tree, lambda x: x.tag == "section"):
        if any("downloads" in classes(x) for x in section):
            replace(parent, section)
    for parent, element in parents(tree, lambda x: SCREEN_ONLY & set(classes(x))):
        if "filter-start" in classes(element):
            place = list(parent).index(element)
            before = parent[place - 1] if place else None
            if before is not None and "field" in words(before):
                replace(parent, before)  # how to use the field
        replace(parent, element)
    for code in tree.iter("code"):  # Sphinx puts each word into an element
        code.text = "".join(code.itertext())
        code[:] = []
    for formula in tree.iter("math"):
        formula.set("xmlns", MATHML)
    for parent, element in parents(tree, lambda x: x.tag in ("a", "p")):
        if element.tag == "p" and not len(element) and not words(element):
            if parent.tag not in ("td", "th"):
                replace(parent, element)
        elif "headerlink" in classes(element):
            replace(parent, element)


def parents(tree: Element, wanted) -> Iterator[tuple[Element, Element]]:
    """As `with_parents`, but the parent first."""
    for element, parent in with_parents(tree, wanted):
        yield parent, element


def open_folds(tree: Element) -> None:
    """Make boxes of folds."""
    for fold in list(tree.iter("details")):
        summary = fold.find("summary")
        closed = summary.find("p[@class='collapsed admonition-title']")
        said = SAID.sub("", words(summary if closed is None else closed))
        known = FOLD_STYLES & set(classes(fold))
        if "hide" in classes(fold) and "set-up" in said:
            known = {"set-up"}
        fold.tag = "div"
        fold.attrib = {"class": " ".join(["fold", *sorted(known)])}
        replace(fold, summary, new("p", said[:1].upper() + said[1:], class_="folded"))


def name_web_page(body: Element, address: str) -> None:
    """Say where a chapter stands on the web, beside the link to Colab."""
    for paragraph in body.iter("p"):
        colab = next(paragraph.iter("a"), None)
        if colab is not None and colab.get("href", "").startswith(COLAB):
            shown = address.removeprefix("https://")
            paragraph.clear()
            paragraph.set("class", "where")
            paragraph.append(new("a", shown, href=address))
            paragraph[0].tail = " · "
            paragraph.append(colab)
            colab.tail = None
            return


def take_helpers(body: Element, helpers: dict[str, list[Element]]) -> None:
    """Take the copies of `snippets/` out of a chapter's set-up; links say where.

    Args:
        body: of the chapter's page; its code is in lines.
        helpers: the lines of each helper by its file's name, to which new ones come.
    """
    for block in body.iter("pre"):
        inside = ""
        for line in list(block):
            starts, ends = HELPER.match(words(line)), words(line) == "# <<<"
            if starts:
                inside = starts[1]
                taken = helpers.setdefault(inside, [])
                new_here = not taken
                line.clear()
                line.set("class", "line to-helper")
                line.text = "# "
                line.append(new("a", inside, href=f"/{HELPERS}.xhtml#{slug(inside)}"))
                line[0].tail = "\n"
            elif inside:
                if not ends and new_here:
                    taken.append(line)
                block.remove(line)
                inside = "" if ends else inside


def slug(path: str) -> str:
    """The id of a helper's section."""
    return "helper-" + re.sub(r"\W+", "-", path)


def helpers_page(helpers: dict[str, list[Element]]) -> Element:
    """The page with the helpers that set-up cells carry."""
    whole = new("section", id="helpers")
    whole.append(new("h1", APPENDIX_TITLES[HELPERS]))
    whole.append(
        new(
            "p",
            "In its notebook each chapter carries the helpers that it uses, so that it "
            "runs from one file. On paper they stand here, once.",
        )
    )
    for path, code_lines in sorted(helpers.items()):
        section = new("section", id=slug(path))
        section.append(new("h2", path))
        while code_lines and not words(code_lines[-1]):
            code_lines.pop()
        box, code = new("div", class_="highlight"), new("pre")
        code.extend(code_lines)
        box.append(code)
        outer = new("div", class_="highlight-python helper")
        outer.append(box)
        section.append(outer)
        whole.append(section)
    return page(APPENDIX_TITLES[HELPERS], whole)


def take_solutions(body: Element, name: str) -> Iterator[Element]:
    """Take the solutions out of a chapter and leave links to them.

    A solution of several cells has one link.
    """
    slug = posixpath.basename(name)
    last, section = 0, None
    for fold, parent in with_parents(body, lambda x: "solution" in classes(x)):
        number = int(EXERCISE.search(words(fold[0]))[1])
        there, here = f"solution-{slug}-{number}", f"exercise-{slug}-{number}"
        if number == last:
            replace(parent, fold)
            section.append(fold)
            continue
        if section is not None:
            yield section
        last = number
        line = new("p", class_="to-solution", id=here)
        line.append(new("a", f"Solution {number}", href=f"#{there}"))
        replace(parent, fold, line)
        section = new("section", id=there)
        head = new("h3")
        head.append(new("a", f"Exercise {number}", href=f"#{here}"))
        section.append(head)
        section.append(fold)
    if section is not None:
        yield section


def solutions_page(
    moved: list[tuple[str, list[Element]]], trees: dict[str, Element]
) -> Element:
    """The page with all solutions, one section a chapter."""
    whole = new("section", id="solutions")
    whole.append(new("h1", APPENDIX_TITLES[SOLUTIONS]))
    whole.append(
        new("p", "Each solution ran with its chapter, and asserts its own result.")
    )
    for name, found in moved:
        chapter = new("section", id=f"solutions-{posixpath.basename(name)}")
        head = new("h2")
        head.append(new("a", words(title(trees[name])), href=f"/{name}.xhtml"))
        chapter.append(head)
        chapter.extend(found)
        whole.append(chapter)
        for element in chapter.iter():
            if element.get("src"):  # it is a picture: the page lies in another folder
                path = posixpath.join(posixpath.dirname(name), element.get("src"))
                element.set("src", posixpath.normpath(path))
            href = element.get("href", "")
            near = href and not urlsplit(href).scheme
            if near and not href.startswith(("#", "/")):
                here = posixpath.join(posixpath.dirname(name), href)
                element.set("href", "/" + posixpath.normpath(here))
    return page(APPENDIX_TITLES[SOLUTIONS], whole)


def mend_links(trees: dict[str, Element], contents: Contents) -> None:
    """Lead each link to where its aim is on paper, or to the web."""
    ids = {
        (name, element.get("id")): name
        for name, tree in trees.items()
        for element in tree.iter()
        if element.get("id")
    }
    moved = {x: SOLUTIONS for name, x in ids if name == SOLUTIONS}
    moved |= {x: name for name, x in ids if x.startswith("exercise-")}
    for name, tree in trees.items():
        for anchor in tree.iter("a"):
            href = anchor.get("href", "")
            parts = urlsplit(href)
            if not href or parts.scheme or parts.netloc:
                continue
            folder = posixpath.dirname(name)
            path = parts.path.removeprefix("/")
            if path and not parts.path.startswith("/"):
                path = posixpath.normpath(posixpath.join(folder, path))
            aim = re.sub(r"\.x?html$", "", path) or name
            if aim in trees or aim == "index":
                aim = contents.names[0] if aim == "index" else aim
                mark = parts.fragment
                if mark and (aim, mark) not in ids:
                    aim = moved.get(mark, aim)
                to = posixpath.relpath(f"{aim}.xhtml", folder or ".")
                to = "" if aim == name and mark else to
                anchor.set("href", to + (f"#{mark}" if mark else ""))
            else:
                mark = f"#{parts.fragment}" if parts.fragment else ""
                path = re.sub(r"\.xhtml$", ".html", path)
                anchor.set("href", f"{contents.pages}{path}{mark}")
                anchor.set("class", "reference external")
