"""The book on paper and offline: EPUB, PDF, archives, and the checks of each.

A small book of a real chapter goes through the same code as the whole one, which the
deploy workflow makes and checks.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import notebook_factory
import pikepdf
import pytest
from book_site import download_links
from playwright.sync_api import sync_playwright

from tools import chromium
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.paper import (
    archives,
    check_epub,
    check_pdf,
    contents,
    downloads,
    edition,
    pages,
    pdf,
    printing,
    zips,
)
from tools.paper.sheets import E_READER

CHAPTER = "notebooks/01-why-gpus"
TITLE = "1. Why is a GPU fast, and when is it not?"
TOC = f"""\
format: jb-book
root: book/welcome
parts:
  - caption: Part I, One
    chapters:
      - file: {CHAPTER}
  - caption: The class
    chapters:
      - file: book/for-teachers
  - caption: Reference
    chapters:
      - file: book/claims
"""
TEXTS = {
    "welcome": "# Welcome\n\n[Teach](for-teachers.md), {ref}`claim-1-1`.\n\n"
    "## Offline\n\n```{downloads}\n```\n",
    "for-teachers": "# For teachers\n\nA page of the class.\n",
    "claims": "# Ledger\n\n:::{claims-ledger}\n:::\n",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A small repository with a real chapter and the book's settings."""
    root = notebook_factory.make_house(tmp_path_factory.mktemp("paper"))
    (root / "notebooks" / "05-tiny.ipynb").unlink()
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copy(ROOT / f"{CHAPTER}.ipynb", root / "notebooks")
    shutil.copytree(ROOT / "snippets", root / "snippets", dirs_exist_ok=True)
    shutil.copytree(ROOT / "benchmarks/results", root / "benchmarks/results")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "book/_ext", root / "book/_ext", ignore=ignored)
    (root / "_toc.yml").write_text(TOC)
    for name, text in TEXTS.items():
        (root / "book" / f"{name}.md").write_text(text)
    return root


@pytest.fixture(scope="module")
def built(house) -> Path:
    """The pages of that book as paper has them, with the EPUB."""
    return edition.build(house, house / edition.FOLDER)


@pytest.fixture(scope="module")
def epub(built) -> Path:
    """The EPUB."""
    (found,) = built.glob("*.epub")
    return found


@pytest.fixture(scope="module")
def printed(house, built) -> Path:
    """The PDF on small pages, which `pdf.make` has checked."""
    return pdf.make(built, house, E_READER)


def rewritten(epub: Path, to: Path, change: dict[str, bytes | None]) -> Path:
    """An EPUB with other files; None takes one away."""
    with zipfile.ZipFile(epub) as archive:
        held = {name: archive.read(name) for name in archive.namelist()} | change
    first = [("mimetype", held.pop("mimetype"))]
    archives.write(to, [x for x in held.items() if x[1] is not None], stored=first)
    return to


def test_the_epub_is_whole_and_its_contents_name_parts_and_chapters(epub):
    assert list(check_epub.problems(epub)) == []
    with zipfile.ZipFile(epub) as archive:
        nav = archive.read("nav.xhtml").decode()
        package = archive.read("content.opf").decode()
    for title in ("Part I, One", TITLE, "Exercises", "Solutions of the exercises"):
        assert f">{title}</a>" in nav
    assert "For teachers" not in nav
    assert re.search(r'01-why-gpus.xhtml"[^>]* properties="[^"]*mathml', package)


def test_the_check_of_an_epub_names_what_is_wrong(epub, tmp_path):
    page = f"{CHAPTER}.xhtml"
    with zipfile.ZipFile(epub) as archive:
        text = archive.read(page)
        picture = next(x for x in archive.namelist() if x.startswith("_images/"))
    for change, told in (
        ({page: text.replace(b"#solution-01-why-gpus-1", b"#nowhere")}, "no place in"),
        ({page: text.replace(b"</h1>", b"", 1)}, "is no XML"),
        ({page: text.replace(b"</h1>", b"</h1><button/>", 1)}, "<button>"),
        ({picture: None}, "listed and not there"),
        ({"more.txt": b""}, "there and not listed"),
    ):
        broken = rewritten(epub, tmp_path / "broken.epub", change)
        assert told in "\n".join(check_epub.problems(broken))
        with pytest.raises(UserError, match=r"broken\.epub is not whole"):
            check_epub.check(broken)


def test_solutions_and_helpers_stand_at_the_end_and_links_lead_there_and_back(built):
    chapter = pages.read(built / f"{CHAPTER}.xhtml")
    end = pages.read(built / "solutions.xhtml")
    links = {x.get("href") for x in chapter.iter("a")}
    back = {x.get("href") for x in end.iter("a")}
    for number in (1, 2, 3):
        assert f"../solutions.xhtml#solution-01-why-gpus-{number}" in links
        assert f"{CHAPTER}.xhtml#exercise-01-why-gpus-{number}" in back
    assert not [x for x in chapter.iter() if "solution" in pages.classes(x)]
    helpers = pages.words(pages.read(built / "helpers.xhtml"))
    assert "def require(*requirements):" in helpers
    assert "def require(" not in pages.words(chapter)


def test_what_needs_a_screen_is_gone_and_the_class_is_on_the_web(built):
    chapter = pages.words(pages.read(built / f"{CHAPTER}.xhtml"))
    assert "Hide the" not in chapter
    assert "gpu-computing-with-keras.github.io/book/notebooks/01-why-gpus" in chapter
    welcome = pages.read(built / "book/welcome.xhtml")
    links = {x.get("href") for x in welcome.iter("a")}
    assert "https://gpu-computing-with-keras.github.io/book/book/for-teachers.html" in (
        links
    )
    assert "../notebooks/01-why-gpus.xhtml#claim-1-1" in links
    assert "Offline" not in pages.words(welcome)


def test_the_pdf_has_its_size_its_bookmarks_and_true_numbers_in_its_contents(printed):
    with pikepdf.open(printed) as book:
        points = [round(float(x) / 72 * 25.4) for x in book.pages[0].MediaBox]
        assert points[2:] == [E_READER.width, E_READER.height]
        with book.open_outline() as outline:
            titles = list(check_pdf.bookmarks(outline.root))
        places = check_pdf.places(book)
    assert {"Contents", "Part I, One", TITLE, "Exercises"} <= set(titles)
    shown = check_pdf.texts(printed)
    assert f"{check_pdf.BLANK.sub('', TITLE)}{places['01-why-gpus']}" in shown[2]
    assert f"Solution1,page{places['solutions--solution-01-why-gpus-1']}" in (
        "".join(shown)
    )


def test_the_check_of_a_pdf_names_what_is_wrong(built, printed, tmp_path):
    page = built / f"book{E_READER.name}.xhtml"
    assert list(check_pdf.problems(printed, page)) == []
    text = page.read_text()
    end = ' class="line">print(f"break-even at about'
    assert end in text
    changed = tmp_path / "changed.xhtml"
    changed.write_text(text.replace(end, f"{end} {'and on ' * 20}", 1))
    assert "is not whole" in "\n".join(check_pdf.problems(printed, changed))
    more = '<article id="more"><h2>One chapter more</h2></article></body>'
    changed.write_text(text.replace("</body>", more))
    told = "\n".join(check_pdf.problems(printed, changed))
    assert "no bookmark leads to 'One chapter more'" in told
    assert "no link leads to more" in told


def test_links_to_nowhere_and_fonts_elsewhere_are_named(printed, tmp_path):
    with pikepdf.open(printed) as book:
        notes = [note for page in book.pages for note in page.get("/Annots", [])]
        inside = next(x for x in notes if "/Dest" in x)
        inside.Dest = pikepdf.Name("/nowhere")
        outside = next(x for x in notes if "/URI" in x.get("/A", {}))
        outside.A.URI = pikepdf.String("file:///book.html")
        fonts = book.pages[0].Resources.Font
        font = next(iter(fonts.values()))
        font = font.DescendantFonts[0] if "/DescendantFonts" in font else font
        for name in list(font.FontDescriptor.keys()):
            if name.startswith("/FontFile"):
                del font.FontDescriptor[name]
        told = "\n".join(
            [*check_pdf.link_problems(book), *check_pdf.font_problems(book)]
        )
    assert "a link to /nowhere, which is nowhere" in told
    assert "a link to file:///book.html" in told
    assert "is not in the file" in told


def test_what_is_wider_than_the_page_stops_the_print(tmp_path):
    page = tmp_path / "wide.xhtml"
    body = '<p id="wide"><b style="display:block;width:300mm">too wide</b></p>'
    page.write_text(
        f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
    )
    with pytest.raises(UserError, match="wider than the page, the first: <b> in wide"):
        printing.print_pdf(page, tmp_path / "wide.pdf", E_READER)


def test_raw_html_that_is_not_closed_is_named():
    with pytest.raises(UserError, match=r"page, line 2: </div> closes <p>"):
        pages.parse("<div><p>\n</div>", "page")
    with pytest.raises(UserError, match=r"page: <div> is never closed"):
        pages.parse("<div><br>&nbsp;\x1b", "page")
    svg = '<svg viewBox="0 0 1 1"><linearGradient id="a"/></svg>'
    assert pages.xhtml(pages.parse(svg, "page")).count("viewBox") == 1
    assert "linearGradient" in pages.xhtml(pages.parse(svg, "page"))


@pytest.fixture
def site(house, tmp_path) -> Path:
    """A site of two pages in a repository."""
    root = tmp_path / "root"
    (root / "_build/html/book").mkdir(parents=True)
    (root / "_build/html/downloads").mkdir()
    (root / "_build/html/downloads/book.pdf").write_text("large")
    link = '<a href="downloads/book.pdf">book.pdf</a> <a href="book/two.html">two</a>'
    (root / "_build/html/index.html").write_text(link)
    (root / "_build/html/book/two.html").write_text("<h1>Two</h1>")
    for name in ("_config.yml", "_toc.yml", "requirements.txt"):
        shutil.copy(house / name, root)
    shutil.copy(house / "requirements-book.txt", root)
    shutil.copytree(house / "constraints", root / "constraints")
    shutil.copytree(house / "notebooks", root / "notebooks")
    for name in ("LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, root)
    return root


def test_archives_are_the_same_each_time_and_are_read_without_a_server(site, tmp_path):
    found = []
    for _ in range(2):
        assert zips.main(site) == 0
        paths = sorted((site / downloads.FOLDER).glob("*.zip"))
        found.append([path.read_bytes() for path in paths])
        for path in (site / "_build/html").rglob("*.html"):
            os.utime(path, (1e9, 1e9))
    assert found[0] == found[1]
    notebooks, packed = paths
    with zipfile.ZipFile(notebooks) as archive:
        names = {name.split("/", 1)[1] for name in archive.namelist()}
    assert {"README.txt", "requirements.txt", f"{CHAPTER}.ipynb"} <= names
    with zipfile.ZipFile(packed) as archive:
        assert not [name for name in archive.namelist() if "downloads" in name]
        archive.extractall(tmp_path / "read")
    (index,) = (tmp_path / "read").rglob("index.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium.launch_options())
        page = browser.new_page()
        page.goto(index.as_uri())
        aim = page.get_by_text("book.pdf").get_attribute("href")
        page.get_by_text("two").click()
        assert page.inner_text("h1") == "Two"
        browser.close()
    assert aim == ("https://gpu-computing-with-keras.github.io/book/downloads/book.pdf")


def test_without_a_site_there_is_no_archive(house, capsys):
    assert zips.main(house) == 1
    assert "Fix: make book" in capsys.readouterr().err


def test_the_welcome_page_offers_what_is_there_with_its_size(tmp_path):
    assert download_links.there(tmp_path) == []
    for name, size in (("b.epub", 2_960_000), ("b-ereader.pdf", 7_040_000)):
        file = tmp_path / name
        file.write_bytes(b"0" * size)
        downloads.put(tmp_path, file)
    (tmp_path / downloads.FOLDER / "b.pdf.part").touch()
    found = [(x.name, downloads.size(x)) for x, _ in download_links.there(tmp_path)]
    assert found == [("b-ereader.pdf", "7.0 MB"), ("b.epub", "3.0 MB")]


def test_paper_leaves_out_the_class_and_the_calculators_and_nothing_else():
    book = contents.read(ROOT)
    left_out = {name for name in book.left_out if not name.startswith("assignments/")}
    assert left_out == {
        "book/for-teachers",
        "book/honest-grading",
        "book/what-will-it-take",
    }
    chapters = sorted(x.stem for x in (ROOT / "notebooks").glob("*.ipynb"))
    assert [Path(x).name for x in book.names if x.startswith("notebooks/")] == chapters
