"""The ledger, Troubleshooting and Corrections, built from a small book."""

import io

import notebook_factory as factory
import pytest
from docutils import nodes
from sphinx.application import Sphinx

from tools.versions import record

CLAIMS = {
    "one is one": 'assert (\n    "Torch not "\n    "compiled"\n)',
    "two is not three": "assert 2 != 3",
    "a card is there": "assert True",
}
SETS = """\
old: {title: Keras 3.13, about: The old one.}
new: {title: Keras 3.14, about: The new one.}
never: {title: Colab, about: The third.}
"""
TROUBLES = """\
- {claim: one is, message: Torch not compiled, cause: A *cause*., fix: A fix.}
- {claim: two is, message: "ValueError: too long", cause: x, fix: x}
- chapter: 5
  id: lost
  message: device lost
  also: [card gone]
  cause: x
  fix: x
  thread: https://github.com/a/b/issues/7
"""
CORRECTIONS = """\
- statement: One is two.
  where: [{page: A comment, url: "https://y.org/", date: read 2026-11}]
  truth: It is not.
  claim: one is
  found: true
- statement: Two is three.
  where: [{page: A guide, url: "https://x.org/", date: read 2026-11}]
  truth: It is not.
  claim: two is
  costly: true
"""
CONF = """\
extensions = ["myst_nb"] + [
    f"book_site.{name}"
    for name in ("chapter_pages", "claims_ledger", "corrections", "troubleshooting")
]
nb_execution_mode = "off"
exclude_patterns = ["_build", "tools", "benchmarks", "README.md"]
"""


def small_book(root):
    """A book of one chapter, whose last claim its run did not check."""
    notebook = factory.chapter()
    place = notebook.cells.index(factory.find(notebook, "# Claim"))
    notebook.cells[place : place + 1] = [
        factory.code(f"# Claim: {sentence}.\n{code}", tags=["claim"])
        for sentence, code in CLAIMS.items()
    ]
    notebook.cells[place + 2].outputs = [factory.stream("Not checked: no card\n")]
    factory.find(notebook, "print").outputs = [
        factory.stream("\x1b[31mValueError\x1b[0m: too\nlong\n")
    ]
    factory.save(root, notebook)
    held, broken, unchecked = (f"{sentence}." for sentence in CLAIMS)
    texts = {
        record.SETS: SETS,
        "conf.py": CONF,
        "index.md": "# Book\n\n```{toctree}\n:glob:\nbook/*\nnotebooks/*\n```\n",
        "book/claims.md": "# Ledger\n\n```{claims-ledger}\n```\n",
        "book/troubleshooting.md": "# Troubles\n\n```{troubles}\n```\n",
        "book/troubleshooting.yml": TROUBLES,
        "book/corrections.md": "# Corrections\n\n```{corrections}\n```\n",
        "book/corrections.yml": CORRECTIONS,
    }
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    run = {"date": "2026-11-23", "python": "3.11.7", "replaced": {"torch": "2.11.0"}}
    run["versions"] = {"keras": "3.13.2", "torch": "2.13.0"}
    run["held"] = {"5": record.fingerprint(held)}
    run["not_held"] = [failure(broken, "broken", "KeyError: 'x'")]
    other = run | {"replaced": {}, "held": {"5": record.fingerprint(unchecked)}}
    other["not_held"] = [failure(broken, "not checked", "it is `busy`")]
    record.save({"old": run, "new": other}, root)


def failure(sentence, outcome, reason):
    """A claim in the record that did not hold."""
    return {"id": "05-tiny/x", "sentence": sentence, "outcome": outcome} | {
        "reason": reason
    }


def build(root):
    """Build the book; the pages as documents, and the warnings."""
    warnings, folder = io.StringIO(), root / "_build"
    app = Sphinx(
        *(root, root, folder, folder / "trees", "dummy"),
        status=None,
        warning=warnings,
    )
    app.build()
    pages = {name: app.env.get_doctree(name) for name in sorted(app.env.found_docs)}
    return pages, warnings.getvalue()


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The small book, built."""
    root = factory.make_house(tmp_path_factory.mktemp("site"))
    small_book(root)
    pages, warnings = build(root)
    assert not warnings
    return pages


def rows(page, kind):
    """The texts of a page's lists of a class."""
    return [
        [" ".join(item.astext().split()) for item in list_.children]
        for list_ in page.findall(nodes.bullet_list)
        if kind in list_["classes"]
    ]


def test_the_ledger_says_where_a_claim_did_not_hold(book):
    ((held, broken, unchecked),) = rows(book["book/claims"], "ledger")
    assert held == "5.1 One is one. library 3.13 ✓ 3.14 – Colab –"
    assert broken == (
        "5.2 Two is not three. library 3.13 ✗ 3.14 ? Colab – "
        "Broken with Keras 3.13: KeyError: 'x'Not checked with Keras 3.14: It is busy."
    )
    assert unchecked == (
        "5.3 A card is there. library 3.13 – 3.14 ✓ Colab – "
        "Not checked in this run: no card."
    )


def test_the_ledger_counts_claims_and_sets(book):
    page = book["book/claims"]
    text = " ".join(page.astext().split())
    assert "3 claims asserted 3 library: how a library behaves 0 measured" in text
    lines = [
        [cell.astext() for cell in row.findall(nodes.entry)]
        for row in page.findall(nodes.row)
    ]
    assert lines[1] == ["Keras 3.13", "23 November 2026", "1", "1", "0", "1"]
    assert lines[3] == ["Colab", "", "0", "0", "0", "3"]
    ((old, _, never),) = rows(page, "versions")
    assert old.endswith("own version stood in for PyTorch 2.11.0 of the set.")
    assert never == "Colab: The third. Not run yet."


def test_a_chapter_marks_its_claims(book):
    page = book["notebooks/05-tiny"]
    banners = [x for x in page.findall(nodes.container) if "claim" in x["classes"]]
    assert len({anchor for banner in banners for anchor in banner["ids"]}) == 3
    assert ["claim-unchecked" in banner["classes"] for banner in banners] == [0, 0, 1]
    (note,) = page.findall(nodes.sidebar)
    assert note.astext() == (
        "Claim 5.2 does not hold with Keras 3.13 (PyTorch 2.13.0): see the ledger."
    )
    assert not [x for x in page.findall(nodes.literal_block) if "# Claim" in x.astext()]


def test_an_entry_leads_to_the_claim_that_proves_it(book):
    ((first, second, cited),) = rows(book["book/troubleshooting"], "troubles")
    assert first == (
        "Torch not compiled Cause. A cause. Fix. A fix. Shown in claim 5.1. Link"
    )
    assert second.startswith("ValueError: too long")
    assert cited == (
        "device lost Also, not printed by this book: card gone Cause. x Fix. x "
        "Not shown by this book, see chapter 5; users met it in b#7. Link"
    )
    (costly,), (found,) = rows(book["book/corrections"], "corrections")
    assert "Found in A comment (" in found
    assert costly == (
        "Two is three. Said in A guide (read in November 2026). "
        "False. It is not. Proved by claim 5.2. Link"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("troubleshooting", "too long", "too short", "chapter 5 neither prints nor"),
        ("troubleshooting", "one is", "four is", "0 claims begin with 'four is'"),
        ("troubleshooting", "fix: A fix.", "fixes: x", "Fix: mend fix, fixes"),
        ("troubleshooting", "chapter: 5", "chapter: 6", "'lost': no such chapter"),
        ("corrections", "claim: two is", "claim: ''", "3 claims begin with ''"),
        ("corrections", "https://x.org/", "x.html", "Fix: mend 'x.html'"),
        ("corrections", "read 2026-11", "July 2023", "Fix: mend 'July 2023'"),
    ],
)
def test_an_entry_that_does_not_hold_is_a_warning(
    book, tmp_path, name, old, new, message
):
    root = factory.make_house(tmp_path)
    small_book(root)
    path = root / f"book/{name}.yml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert message in build(root)[1]
