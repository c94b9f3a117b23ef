"""The build of the site: green on a sound book, red on a broken one, one address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import bs4
import nbformat
import notebook_factory
import pytest

from tools.model import address
from tools.model.chapters import ROOT
from tools.notebooks import sync
from tools.site import build as build_site
from tools.site.build import OPTIONS

TOC = """\
format: jb-book
root: book/welcome
parts:
  - caption: One
    chapters:
      - file: book/claims
      - file: notebooks/05-tiny
"""
WELCOME = """\
# Welcome

A small book. Its {{ref}}`first claim <{claim}>` stands in the ledger.
"""
LEDGER = """\
# Ledger

All claims.

:::{claims-ledger}
:::
"""


def make_book(root: Path) -> Path:
    """A book of three pages with the settings and the extensions of the real one."""
    notebook_factory.make_house(root)
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copy(ROOT / "snippets" / "waiting.py", root / "snippets")
    for name in ("_ext", "_static", "_templates"):
        ignored = shutil.ignore_patterns("__pycache__", "vendor")
        shutil.copytree(ROOT / "book" / name, root / "book" / name, ignore=ignored)
    (root / "_toc.yml").write_text(TOC)
    (root / "book" / "welcome.md").write_text(WELCOME.format(claim="claim-5-1"))
    (root / "book" / "claims.md").write_text(LEDGER)
    return root


def build(root: Path) -> subprocess.CompletedProcess[str]:
    """Build the site with the options of `make book`."""
    program = Path(sys.executable).with_name("jupyter-book")
    return subprocess.run(
        [program, "build", ".", *OPTIONS],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def page(root: Path, name: str) -> str:
    """A page of the built site."""
    return (root / "_build" / "html" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A sound book, built."""
    root = make_book(tmp_path_factory.mktemp("sound"))
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_a_chapter_has_its_number_and_a_label_on_its_set_up(book):
    text = page(book, "notebooks/05-tiny.html")
    assert '<h1><span class="chapter-number">5. </span>Tiny' in text
    assert "<title>5. Tiny" in text
    assert "Show the set-up code" in text


def test_a_claim_is_a_banner_above_its_code(book):
    text = page(book, "notebooks/05-tiny.html")
    banner = text.index('id="claim-5-1"')
    sentence = text.index("One and one make two", banner)
    assert sentence < text.index(">assert<", sentence)
    assert "# Claim:" not in text
    assert 'href="#claim-5-1">Claim 5.1:</a>' in text
    assert 'href="../book/claims.html#ledger-claim-5-1"' in text


def test_the_ledger_counts_and_lists_the_claims(book):
    text = page(book, "book/claims.html")
    assert "<strong>1</strong> <span>claim asserted</span>" in text
    assert "<strong>1</strong> <span>chapter</span>" in text
    assert "100 %" in text
    assert "Verified on 31 January 2026 with Python 3.12.1" in text
    assert "numpy 2.4.0." in text
    assert 'id="ledger-claim-5-1"' in text
    assert 'href="../notebooks/05-tiny.html#claim-5-1"' in text


def test_prose_can_refer_to_a_claim(book):
    text = page(book, "book/welcome.html")
    assert 'href="../notebooks/05-tiny.html#claim-5-1"' in text


def test_the_welcome_page_stands_at_the_address_of_the_site(book):
    text = page(book, "index.html")
    assert "A small book." in text
    assert 'href="notebooks/05-tiny.html#claim-5-1"' in text
    assert 'http-equiv="refresh"' not in text.lower()


def test_a_build_after_a_change_of_one_page_leaves_the_sitemap_whole(book):
    path = book / "book" / "welcome.md"
    other = book / "_build" / "html" / "notebooks" / "05-tiny.html"
    before = other.stat().st_mtime_ns
    path.write_text(path.read_text() + "\nOne more sentence.\n")
    assert build(book).returncode == 0
    assert other.stat().st_mtime_ns == before, "written again"
    assert page(book, "sitemap.xml").count("<loc>") == 3


def make(root: Path, *options: str) -> None:
    """Build the site as `make book` does, in a process of its own."""
    sync.main([], root)
    words = [sys.executable, "-m", "tools.site.build", *options]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def built(root: Path) -> dict[str, object]:
    """All files of the site; words of the search that lead nowhere do not count."""
    folder = root / "_build" / "html"
    files = {x.relative_to(folder).as_posix(): x for x in folder.rglob("*")}
    found = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
    index = found["searchindex.js"].decode().removeprefix("Search.setIndex(")
    index = json.loads(index.removesuffix(")"))
    for kind in ("terms", "titleterms"):
        index[kind] = {
            word: pages for word, pages in index[kind].items() if pages != []
        }
    return found | {"searchindex.js": index}


EDITS = {
    "a claim": ("notebooks/05-tiny.ipynb", "make two", "make 2, as *ever*"),
    "a title that others show": ("notebooks/05-tiny.ipynb", "# Tiny", "# Small"),
    "the first quote, which needs styles": ("book/welcome.md", "A small", "> A small"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_build_of_what_changed_is_a_build_of_all(book, edit):
    name, old, new = EDITS[edit]
    path = book / name
    assert old in path.read_text()
    make(book)
    path.write_text(path.read_text().replace(old, new))
    make(book)
    changed = built(book)
    make(book, "--anew")
    clean = built(book)
    assert changed.keys() == clean.keys()
    assert [name for name in clean if changed[name] != clean[name]] == []


def test_without_a_change_nothing_is_built(book, monkeypatch, capsys):
    make(book)
    monkeypatch.setattr(build_site, "jupyter_book", lambda *_: pytest.fail("built"))
    assert build_site.main(book) == 0
    assert "nothing has changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("book/welcome.md", ()),
        ("_config.yml", ("--all",)),
        ("book/_static/site.css", ("--all",)),
        ("tools/x.py", ("--all",)),
        ("book/new-page.md", ("--all",)),
    ],
)
def test_what_all_pages_may_show_builds_all(book, monkeypatch, name, options):
    make(book)
    told = []
    monkeypatch.setattr(build_site, "jupyter_book", lambda *words: told.append(words))
    with (book / name).open("a") as file:
        file.write("\n")
    build_site.main(book)
    assert told == [(book, *options)]


def test_a_changed_notebook_changes_the_ledger(book):
    changed = notebook_factory.chapter(claim="# Claim: 1 is `int`.\nassert 1 == 1")
    path = notebook_factory.save(book, changed)
    os.utime(path, (path.stat().st_mtime + 5,) * 2)
    done = build(book)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "<code" in page(book, "book/claims.html").split("ledger-claim-5-1")[1][:400]


def test_a_broken_page_and_a_claim_without_a_sentence_turn_the_build_red(tmp_path):
    root = make_book(tmp_path)
    (root / "book" / "welcome.md").write_text(WELCOME.format(claim="claim-9-9"))
    broken = notebook_factory.chapter(claim="assert 1 + 1 == 2")
    notebook_factory.save(root, broken)
    done = build(root)
    assert done.returncode != 0
    assert "claim-9-9" in done.stderr
    assert "05-tiny.ipynb, cell 6 ('assert 1 + 1 == 2'): tagged `claim`" in done.stderr


FORMULAS = r"""# Welcome

Inline $a < b$, and, by itself,

$$n^* = \frac{L_2}{c_1}$$

$$x &= 1 \\ y &= 2$$

\begin{align}
p &= 1 \\
q &= 2
\end{align}

$$E = 1$$ (energy)
"""


def test_formulas_are_mathml_without_a_script(tmp_path):
    root = make_book(tmp_path)
    (root / "book" / "welcome.md").write_text(FORMULAS)
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = bs4.BeautifulSoup(page(root, "book/welcome.html"), "html.parser")
    assert shown.select_one(".unbroken").get_text() == "a<ba < b,"
    inline, fraction, split, align, named = shown.select("math")
    assert inline.get("display") is None and fraction["display"] == "block"
    tex = inline.find("annotation", encoding="application/x-tex").get_text()
    assert tex == "a < b"
    assert [x.get_text() for x in fraction.select("mfrac > *")] == ["L2", "c1"]
    assert [len(x.select("mtr")) for x in (split, align)] == [2, 2]
    assert "(1)" not in align.get_text()
    numbers = [x.find_previous_sibling(class_="eqno") for x in (split, align, named)]
    assert [x and x.get_text() for x in numbers] == [None, "(1)", "(2)"]


def test_a_formula_that_cannot_be_converted_turns_the_build_red(tmp_path):
    root = make_book(tmp_path)
    (root / "book" / "welcome.md").write_text("# Welcome\n\nSee $\\nosuch{x}$.\n")
    done = build(root)
    assert done.returncode != 0
    assert r"book/welcome.md: the formula \nosuch{x} cannot be shown" in done.stderr


def with_question(answer: str) -> nbformat.NotebookNode:
    """A chapter with a question, whose claim names this answer."""
    notebook = notebook_factory.chapter()
    ask = "*How much?*\n\n- `Two`.\n- Three."
    assertion = f"# Claim: two it is.\n# Answer: {answer}\nassert 1 + 1 == 2"
    cells = [
        nbformat.v4.new_markdown_cell(ask),
        notebook_factory.code("print(1 + 1)", tags=["predict"]),
        nbformat.v4.new_markdown_cell("**`Two`.** One and one."),
        notebook_factory.code(assertion, tags=["claim"]),
    ]
    cells[1].outputs = [notebook_factory.stream("2\n")]
    for number, cell in enumerate(cells):
        cell.id = f"asked-{number}"
    notebook.cells[6:6] = cells
    return notebook


def test_a_question_its_answer_and_the_folds_are_marked(tmp_path):
    root = make_book(tmp_path)
    notebook_factory.save(root, with_question("`Two`."))
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = bs4.BeautifulSoup(page(root, "notebooks/05-tiny.html"), "html.parser")
    options = shown.select("#guess-asked-1 > li")
    assert [x.get_text(strip=True) for x in options] == ["Two.", "Three."]
    assert ["guess-right" in x.get("class", []) for x in options] == [True, False]
    output, answer = shown.select(".guess-answer.guess-asked-1-answer")
    assert output.get_text(strip=True) == "2"
    assert "One and one." in answer.find("p").get_text()
    assert answer.select_one("#claim-5-2") and not answer.select_one("#claim-5-1")
    assert "How much?" in shown.select_one(".guess-question").get_text()
    proofs = shown.select("details.fold.proof[open]")
    assert [x.find_previous_sibling("div")["id"] for x in proofs] == [
        "claim-5-1",
        "claim-5-2",
    ]
    assert all(x.select(".cell_input") for x in proofs)
    solutions = shown.select("details.fold.solution[open]")
    titles = [x.find("summary").get_text() for x in solutions]
    assert titles == ["Solution 1", "Solution 2", "Solution 3"]
    assert all("assert" in x.get_text() for x in solutions)
    assert len(shown.select("details.fold[open]")) == 2 + 3 + 3 + 1  # hints, the recap
    assert "@title Solution" not in shown.get_text()


def test_a_question_without_its_answer_turns_the_build_red(tmp_path):
    root = make_book(tmp_path)
    notebook_factory.save(root, with_question("Four."))
    done = build(root)
    assert done.returncode != 0
    assert "05-tiny.ipynb, cell 10 ('# Claim: two it is.')" in done.stderr
    assert "its answer is no option: 'Four.'" in done.stderr


def test_every_address_follows_from_that_of_the_repository(tmp_path):
    root = make_book(tmp_path)
    address.set_address(root, "https://github.com/a-fork/its-book")
    assert build(root).returncode == 0
    repository = address.repository(root)
    chapter = page(root, "notebooks/05-tiny.html")
    here = "https://a-fork.github.io/its-book/notebooks/05-tiny.html"
    assert repository.colab("05-tiny.ipynb") in chapter
    assert f'<link rel="canonical" href="{here}" />' in chapter
    assert f'<meta property="og:url" content="{here}" />' in chapter
    assert "https://a-fork.github.io/its-book/_static/social-card.png" in chapter
    assert f"<loc>{here}</loc>" in page(root, "sitemap.xml")
    assert 'href="/its-book/_static/' in page(root, "404.html")
    assert "gpu-computing-with-keras/book" not in chapter


BUTTON = "btn-source-repository-button"


def test_the_repository_button_needs_the_recursive_update(tmp_path):
    root = make_book(tmp_path)
    config = root / "_config.yml"
    text = config.read_text()
    assert "recursive_update: true" in text
    for update in ("true", "false"):
        words = f"recursive_update: {update}"
        config.write_text(text.replace("recursive_update: true", words))
        build(root)
        there = BUTTON in page(root, "notebooks/05-tiny.html")
        assert there == (update == "true")
