"""`make book`: green on a sound book, red on a broken one, and never stale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.model import address, chapters
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
FORK = "https://github.com/a-fork/its-book"
PAGE = "_build/html/notebooks/05-tiny.html"


@pytest.fixture
def book(house) -> Path:
    """A book of three pages with the settings and the extensions of the real one."""
    shutil.copy(ROOT / "_config.yml", house)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, house / "book" / name, ignore=ignored)
    for path in (ROOT / "book").glob("*.py"):
        shutil.copy(path, house / "book")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    for name in settings.get("html_extra_path", []):
        if not (house / name).exists():
            shutil.copy(ROOT / name, house / name)
    (house / "_toc.yml").write_text(TOC)
    claim = chapters.book(house)[0].claims[0]
    (house / "book/welcome.md").write_text(
        f"# Welcome\n\nA {{ref}}`claim <{claim.anchor}>`.\n"
    )
    (house / "book/claims.md").write_text("# Claims\n\n:::{claims-ledger}\n:::\n")
    (house / "tools/install.sh").write_text("")  # all is installed
    sync.main([], house)
    return house


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


def change(path: Path, old: str, new: str) -> None:
    """Replace a text in a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_sound_book_is_built_once_and_shows_what_has_changed(book):
    done = make(book)
    assert done.returncode == 0, done.stdout + done.stderr
    built = book / PAGE
    anchor = chapters.book(book)[0].claims[0].anchor
    assert f'href="#{anchor}">Claim 5.1:</a>' in built.read_text()
    welcome = book / "_build/html/book/welcome.html"
    assert welcome.read_text().count(f"05-tiny.html#{anchor}") == 1
    before = built.stat().st_mtime_ns
    assert make(book).returncode == 0
    assert built.stat().st_mtime_ns == before
    change(book / "book/welcome.md", "Welcome", "Good morning")
    assert make(book).returncode == 0
    assert "Good morning" in built.read_text()  # in its menu


def test_a_broken_page_is_red_until_it_is_mended(book):
    change(book / "book/welcome.md", "A ", "{ref}`nowhere` {what}`no` $\\nosuch{x}$ ")
    for _ in range(2):
        done = make(book)
        assert done.returncode != 0
        assert "welcome.md:3: WARNING: undefined label: 'nowhere'" in done.stderr
        assert 'Unknown interpreted text role "what"' in done.stderr
        assert "the formula \\nosuch{x} cannot be shown" in done.stderr
        assert not (book / "_build/html").exists()


def test_a_stale_copy_stops_the_build(book):
    change(book / "snippets/quiet_start.py", "import os", "import sys")
    assert "differs from its snippet. Fix: make sync." in make(book).stdout
    assert not (book / "_build/html").exists()


@pytest.mark.slow
def test_every_address_follows_from_that_of_the_repository(book):
    for words in ("git init -q", "git add .", "make address URL=" + FORK):
        subprocess.run(words.split(), cwd=book, check=True)
    done = make(book)
    assert done.returncode == 0, done.stdout + done.stderr
    chapter = (book / PAGE).read_text()
    here = "https://a-fork.github.io/its-book/notebooks/05-tiny.html"
    assert address.repository(book).colab("notebooks/05-tiny.ipynb") in chapter
    assert f'<link rel="canonical" href="{here}" />' in chapter
    assert f"<loc>{here}</loc>" in (book / "_build/html/sitemap.xml").read_text()
    assert "gpu-computing-with-keras/book" not in chapter
