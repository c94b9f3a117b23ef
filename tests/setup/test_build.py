"""`make book`: green on a sound book, red on a broken one, and never stale."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import notebook_factory as factory
import pytest
import yaml

from tools.model import address
from tools.model.chapters import ROOT
from tools.notebooks import sync

TOC = """\
format: jb-book
root: book/welcome
parts:
  - caption: One
    chapters:
      - file: book/claims
      - file: notebooks/05-tiny
"""
PAGE = "_build/html/notebooks/05-tiny.html"


def make_book(root: Path) -> Path:
    """A book of two pages with the settings and the extensions of the real one."""
    factory.make_house(root)
    shutil.copy(ROOT / "_config.yml", root)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name, ignore=ignored)
    shutil.copytree(ROOT / "constraints", root / "constraints", dirs_exist_ok=True)
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    files = [ROOT / name for name in settings.get("html_extra_path", [])]
    files.append(ROOT / "book" / "run.py")
    for path in (*files, *(ROOT / "snippets").glob("*.py")):
        copy = root / path.relative_to(ROOT)
        if not copy.exists():
            shutil.copy(path, copy)
    (root / "_toc.yml").write_text(TOC)
    (root / "book/welcome.md").write_text("# Welcome\n\nA {ref}`claim <claim-5-1>`.\n")
    (root / "book/claims.md").write_text("# Claims\n\n:::{claims-ledger}\n:::\n")
    (root / "tools/install.sh").write_text("")  # all is installed
    sync.main([], root)
    return root


def make(root: Path) -> subprocess.CompletedProcess[str]:
    """Build the site with this Python."""
    environment = {k: v for k, v in os.environ.items() if "MAKE" not in k}
    return subprocess.run(
        ["make", "book", f"VENV={sys.prefix}"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A sound book, built; tests leave it sound."""
    root = make_book(tmp_path_factory.mktemp("sound"))
    done = make(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture
def page(book):
    """The welcome page, whose text is put back."""
    path = book / "book/welcome.md"
    text = path.read_text()
    yield path
    path.write_text(text)


def test_all_pages_are_there_and_nothing_is_built_twice(book):
    built = book / PAGE
    assert 'href="#claim-5-1">Claim 5.1:</a>' in built.read_text()
    assert "05-tiny.html" in (book / "_build/html/sitemap.xml").read_text()
    before = built.stat().st_mtime_ns
    began = time.monotonic()
    assert make(book).returncode == 0
    assert time.monotonic() - began < 3
    assert built.stat().st_mtime_ns == before


def test_a_title_that_another_page_shows_is_changed_there(book, page):
    page.write_text(page.read_text().replace("Welcome", "Good morning"))
    assert make(book).returncode == 0
    assert "Good morning" in (book / PAGE).read_text()


def test_a_broken_page_is_red_until_it_is_mended(book, page):
    page.write_text("# Welcome\n\n{ref}`nowhere` {what}`no` $\\nosuch{x}$\n")
    for _ in range(2):
        done = make(book)
        assert done.returncode != 0
        assert "welcome.md:3: WARNING: undefined label: 'nowhere'" in done.stderr
        assert 'Unknown interpreted text role "what"' in done.stderr
        assert "the formula \\nosuch{x} cannot be shown" in done.stderr
        assert not (book / "_build/html").exists()


def test_a_stale_copy_and_a_broken_list_of_contents_stop_the_build(tmp_path):
    root = make_book(tmp_path)
    (root / "snippets/quiet_start.py").write_text("other = 1\n")
    assert "differs from its snippet. Fix: make sync." in make(root).stdout
    sync.main([], root)
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/welcome\n")
    assert "05-tiny.ipynb: not in _toc.yml. Fix: add " in make(root).stdout
    assert not (root / "_build/html").exists()


@pytest.mark.slow
def test_every_address_follows_from_that_of_the_repository(tmp_path):
    root = make_book(tmp_path)
    address.set_address(root, "https://github.com/a-fork/its-book")
    sync.main([], root)
    done = make(root)
    assert done.returncode == 0, done.stdout + done.stderr
    chapter = (root / PAGE).read_text()
    here = "https://a-fork.github.io/its-book/notebooks/05-tiny.html"
    assert address.repository(root).colab("05-tiny.ipynb") in chapter
    assert f'<link rel="canonical" href="{here}" />' in chapter
    assert f"<loc>{here}</loc>" in (root / "_build/html/sitemap.xml").read_text()
    assert "gpu-computing-with-keras/book" not in chapter
