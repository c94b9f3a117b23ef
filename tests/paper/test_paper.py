"""The book to take away: PDF, EPUB, and the zips of the site and the notebooks."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import notebook_factory
import pikepdf
import pytest
from book_site import download_links

from tools.model import files
from tools.model.chapters import ROOT, chapter
from tools.paper import __main__ as paper
from tools.paper import pages, pdf

CHAPTER = "notebooks/01-why-gpus"
TITLE = "1. Why is a GPU fast, and when is it not?"
LONG_TITLE = f"2. {'A title that goes on in a second line ' * 3}".strip()
TOC = f"""\
format: jb-book
root: book/welcome
parts:
  - {{caption: "Part I, One", chapters: [{{file: {CHAPTER}}}]}}
  - {{caption: The class, chapters: [{{file: book/for-teachers}}]}}
  - {{caption: Reference, chapters: [{{file: book/claims}}]}}
"""
FORMULA = "<math><mi>n</mi></math>"
LINKS = '<a href="two.html#b">two</a><a href="../book/claims.html#a">ledger</a>'
WEB_LINK = '<a href="../book/for-teachers.html">class</a><a href="https://a.org">a</a>'
PAGES = {
    "index": '<a href="downloads/book.pdf">a file</a>',
    "book/welcome": "<h1>Welcome</h1>",
    "book/claims": '<h1>Ledger</h1><p id="a">All claims</p>',
    CHAPTER: f"<h1>{TITLE}</h1><h2>{LONG_TITLE}</h2>{FORMULA}{LINKS}{WEB_LINK}",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A small repository with a real chapter and the book's settings."""
    root = notebook_factory.make_house(tmp_path_factory.mktemp("paper"))
    (root / "notebooks" / "05-tiny.ipynb").unlink()
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copy(ROOT / f"{CHAPTER}.ipynb", root / "notebooks")
    shutil.copytree(ROOT / "snippets", root / "snippets", dirs_exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "book", root / "book", ignore=ignored, dirs_exist_ok=True)
    (root / "_toc.yml").write_text(TOC)
    (root / "book/welcome.md").write_text("# Welcome\n\n```{downloads}\n```\n")
    (root / "book/for-teachers.md").write_text("# For teachers\n\nA page.\n")
    (root / "book/claims.md").write_text("# Ledger\n\n:::{claims-ledger}\n:::\n")
    (root / "assignments").mkdir()
    shutil.copy(ROOT / "constraints" / "sets.yml", root / "constraints")
    return root


@pytest.fixture(scope="module")
def site(house) -> Path:
    """The repository, with pages as the site has them."""
    for name, text in PAGES.items():
        path = house / pages.SITE / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<article class="bd-article">{text}</article>')
    return house


@pytest.mark.slow
def test_the_epub_has_each_page_and_each_formula(house):
    # In a process of its own: Sphinx keeps what a first book has registered.
    program = "import sys, pathlib; from tools.paper.__main__ import main; "
    program += "sys.exit(main(['epub'], pathlib.Path(sys.argv[1])))"
    words = [sys.executable, "-c", program, str(house)]
    subprocess.run(words, cwd=ROOT, check=True)
    (epub,) = (house / files.DOWNLOADS).glob("*.epub")
    with zipfile.ZipFile(epub) as archive:
        assert archive.namelist()[0] == "mimetype"
        pages = {x: archive.read(x).decode() for x in archive.namelist() if "html" in x}
        package = archive.read("content.opf").decode()
    for text in pages.values():
        ElementTree.fromstring(text)
    assert f">{TITLE}</a>" in pages["nav.xhtml"]
    assert "For teachers" in pages["nav.xhtml"]
    text = pages[f"{CHAPTER}.xhtml"]
    cells = chapter(ROOT / f"{CHAPTER}.ipynb").cells
    source = "\n".join(x.source for x in cells if x.cell_type == "markdown")
    assert text.count("<math") == len(re.findall(r"\$\$.+?\$\$|\$.+?\$", source, re.S))
    assert "def require(" not in text
    assert "Solution 3" in text
    assert re.search(r'01-why-gpus.xhtml"[^>]* properties="mathml', package)


@pytest.mark.slow
def test_the_pdf_has_bookmarks_with_whole_titles_and_opens_on_a4(site):
    assert paper.main(["pdf"], site) == 0
    (printed,) = (site / files.DOWNLOADS).glob("*.pdf")
    with pikepdf.open(printed) as book, book.open_outline() as outline:
        titles = {mark.title for mark in pdf.bookmarks(outline.root)}
        size = [round(float(x) / 72 * 25.4) for x in book.pages[0].MediaBox[2:]]
    assert {"Part I, One", TITLE, LONG_TITLE, "Ledger"} <= titles
    assert size == [210, 297]


@pytest.mark.slow
def test_what_is_wider_than_the_paper_is_named(tmp_path):
    page = tmp_path / "wide.html"
    page.write_text('<article id="wide"><b style="margin-left:300mm">b</b></article>')
    with pytest.raises(pdf.UserError, match="<B> in #wide is wider than the paper"):
        pdf.print_page(page, tmp_path / "wide.pdf")


def test_the_printed_page_keeps_all_formulas_and_its_links_lead_somewhere(site):
    text, _ = pdf.joined(site / pages.SITE, pages.book(site))
    assert text.count("<math") == "".join(PAGES.values()).count("<math")
    assert 'href="#claims--a"' in text
    assert 'id="claims--a"' in text
    assert 'github.io/book/book/for-teachers.html"' in text
    assert 'href="https://a.org"' in text


def test_the_zips_hold_the_site_and_the_notebooks(site):
    assert paper.main(["zip"], site) == 0
    notebooks, pages = sorted((site / files.DOWNLOADS).glob("*.zip"))
    with zipfile.ZipFile(notebooks) as archive:
        names = {name.split("/", 1)[1] for name in archive.namelist()}
    assert {"README.txt", "requirements.txt", "constraints.txt"} <= names
    assert f"{CHAPTER}.ipynb" in names
    with zipfile.ZipFile(pages) as archive:
        (index,) = (x for x in archive.namelist() if x.endswith("/index.html"))
        assert b'href="https://gpu-computing-with-keras.github.io/book/downloads/' in (
            archive.read(index)
        )


def test_the_site_offers_the_files_that_are_there_with_their_sizes(tmp_path):
    assert download_links.offered(tmp_path) == {}
    folder = tmp_path / files.DOWNLOADS
    folder.mkdir(parents=True)
    (folder / "b.epub").write_bytes(b"0" * 2_960_000)
    assert list(download_links.offered(tmp_path).values()) == [
        ": EPUB, for an e-reader or a phone, 3.0 MB"
    ]
