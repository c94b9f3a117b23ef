"""The parts of the site's extensions that need no build."""

from __future__ import annotations

import dataclasses

import notebook_factory
import pytest
from book_site import (
    chapter_pages,
    claims_ledger,
    corrections,
    troubleshooting,
)
from docutils import nodes
from nbformat import v4

from tools.model import chapters
from tools.model.errors import UserError


def test_what_stands_between_backticks_is_code():
    parts = chapter_pages.sentence_nodes("`tf.add` gives a tensor of `int32`")
    kinds = [(type(part), part.astext()) for part in parts]
    assert kinds == [
        (nodes.literal, "tf.add"),
        (nodes.Text, " gives a tensor of "),
        (nodes.literal, "int32"),
    ]


def test_dates_and_nouns_are_readable():
    assert claims_ledger.readable("2026-03-01") == "1 March 2026"
    assert [claims_ledger.counted(n, "claim") for n in (0, 1, 2)] == [
        "claims",
        "claim",
        "claims",
    ]


def test_an_entry_knows_its_title_and_its_compared_outputs():
    notebook = notebook_factory.chapter()
    entry = claims_ledger.Entry("notebooks/05-tiny", 5, notebook, [])
    assert entry.title == "Tiny"
    assert entry.compared == (1, 1)
    notebook_factory.find(notebook, "print").metadata["tags"] = ["nbval-ignore-output"]
    assert dataclasses.replace(entry, notebook=notebook).compared == (0, 1)


def test_a_claim_that_was_not_checked_says_why_and_where_it_held():
    notebook = notebook_factory.chapter()
    cell = notebook_factory.find(notebook, "# Claim")
    claims = [chapters.Claim(5, 1, "one and one make two.", notebook.cells.index(cell))]
    entry = claims_ledger.Entry("notebooks/05-tiny", 5, notebook, claims)
    assert entry.why_not_checked(claims[0]) == ""
    cell.outputs = [notebook_factory.stream("Not checked: no XPU is here\n")]
    assert entry.why_not_checked(claims[0]) == "no XPU is here"
    said = claims_ledger.not_checked_nodes("no XPU is here", ["one core", "Haswell"])
    assert said.astext() == (
        "Not checked in this run: no XPU is here. It held on: one core and Haswell."
    )
    said = claims_ledger.not_checked_nodes("no XPU is here", [])
    assert said.astext().endswith("It never held anywhere yet.")


# --- troubleshooting -----------------------------------------------------------------


@pytest.fixture
def chapter(house):
    """A chapter of the ledger whose claim asserts one message and prints another."""
    claim = """# Claim: two is not three.
assert error == "two is "\\
    "not three"
assert "Torch not compiled" in error"""
    notebook = notebook_factory.chapter(claim=claim)
    notebook_factory.find(notebook, "print").outputs = [
        notebook_factory.stream("\x1b[31mValueError\x1b[0m: too\nlong\n")
    ]
    path = notebook_factory.save(house, notebook)
    claims = chapters.claims(path, notebook)
    return claims_ledger.Entry("notebooks/05-tiny", 5, notebook, claims)


def trouble(**changes):
    entry = {"claim": "two is", "message": "Torch not compiled", "cause": "", "fix": ""}
    entry |= changes
    return {name: text for name, text in entry.items() if text is not None}


@pytest.mark.parametrize("message", ["Torch not compiled", "ValueError: too long"])
def test_a_message_stands_in_a_claim_or_in_an_output(chapter, message):
    found = troubleshooting.check(trouble(message=message), [chapter])
    assert found.claim.label == "5.1"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"message": "no such words"}, "chapter 5 neither prints nor asserts it"),
        ({"claim": "three is"}, "0 claims begin with 'three is'"),
        ({"cause": None}, "Fix: mend cause"),
        ({"fixes": "x"}, "Fix: mend fixes"),
        ({"message": None}, "either message or symptom"),
        ({"symptom": "x"}, "either message or symptom"),
    ],
)
def test_an_entry_that_does_not_hold_is_named(chapter, changes, problem):
    with pytest.raises(UserError) as error:
        troubleshooting.check(trouble(**changes), [chapter])
    assert str(error.value).startswith("troubleshooting.yml, ")
    assert problem in str(error.value)


def test_two_claims_that_begin_alike_are_no_answer(chapter):
    with pytest.raises(UserError, match="2 claims begin with"):
        troubleshooting.check(trouble(), [chapter, chapter])


# --- corrections ---------------------------------------------------------------------


def correction(page, **changes):
    page = {"page": "A guide", "url": "https://x.org/", "date": "2023-07"} | page
    entry = {"claim": "two is", "statement": "2 is 3", "truth": "", "where": [page]}
    return entry | changes


def test_a_correction_stands_on_a_claim(chapter):
    found = corrections.check(correction({}, since="Python 4"), [chapter])
    assert found.claim.label == "5.1"


@pytest.mark.parametrize(
    ("page", "changes", "problem"),
    [
        ({}, {"claim": "three is"}, "0 claims begin with 'three is'"),
        ({}, {"reason": "x"}, "Fix: mend reason"),
        ({"url": "guide.html"}, {}, "Fix: mend the address 'guide.html'"),
        ({"date": "July 2023"}, {}, "Fix: mend the date: 'July 2023' is neither"),
        ({"date": "2023-13"}, {}, "Fix: mend the date: '2023-13' is neither"),
        ({"author": "x"}, {}, "Fix: mend author"),
    ],
)
def test_a_correction_that_does_not_hold_is_named(chapter, page, changes, problem):
    with pytest.raises(UserError) as error:
        corrections.check(correction(page, **changes), [chapter])
    assert str(error.value).startswith("corrections.yml, '2 is 3'")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("date", "text"),
    [
        ("2023", "2023"),
        ("2023-07", "July 2023"),
        ("2023-07-05", "5 July 2023"),
        ("read 2026-11", "read in November 2026"),
        ("read 2026-11-21", "read on 21 November 2026"),
    ],
)
def test_the_date_of_a_page_is_readable(date, text):
    assert corrections.readable(date) == text


PICTURE = v4.new_output("display_data", data={"image/png": ""})


@pytest.mark.parametrize(
    ("source", "outputs", "tags", "says"),
    [
        ("# @title Set-up: all", [], ["setup"], "the set-up code"),
        ("# @title Start them\nstart()", [], [], "the code: Start them"),
        ("plt.plot(x)", [PICTURE], [], "the code of the figure"),
        ("def helper():\n    pass", [], [], "the code"),
    ],
)
def test_a_fold_says_what_it_holds(source, outputs, tags, says):
    cell = v4.new_code_cell(source, outputs=outputs, metadata={"tags": tags})
    assert chapter_pages.hidden(cell) == says
