"""Which claim held with which versions: from a run's report to the record."""

import re

import notebook_factory as factory
import pytest

from tools.model import claims_file, outcomes
from tools.model.chapters import ROOT, book
from tools.model.errors import UserError
from tools.versions import __main__ as versions
from tools.versions import record

SECOND = factory.code("# Claim: two is two.\nassert 2 == 2", tags=["claim"])
RUN = {
    "date": "2026-11-23",
    "python": "3.11.7",
    "versions": {"keras": "3.13.2", "torch": "2.13.0+cpu"},
}


@pytest.fixture
def house(house):
    """A book of two chapters, 5 with two claims and 6 with one; one set, never run."""
    notebook = factory.chapter()
    notebook.cells.insert(6, SECOND)
    factory.save(house, notebook)
    factory.save(house, factory.chapter(), "06-next.ipynb")
    (house / record.SETS).write_text(
        "old: {title: Keras 3.13, about: Old., python: '3.11'}\n"
    )
    (house / "constraints/old.txt").write_text("keras==3.13.2\ntorch==2.11.0\n")
    return house


def report(house, chapters=(5, 6), broken="", **changes):
    """Write a run's report in which all claims held but the one with a label."""
    lines = [
        claims_file.line(
            chapter,
            claim,
            *(
                (outcomes.BROKEN, "KeyError: /home/me/x.py")
                if claim.label == broken
                else (outcomes.HELD, "")
            ),
        )
        for chapter in book(house)
        if chapter.number in chapters
        for claim in chapter.claims
    ]
    path = house / claims_file.REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(claims_file.text(lines, **RUN | changes))


def tried(house):
    """The outcome of each claim with the set, by its label."""
    (one,) = record.sets(house)
    claims = [claim for chapter in book(house) for claim in chapter.claims]
    return {claim.label: one.tried(claim.sentence).outcome for claim in claims}


def test_a_run_is_recorded_with_what_broke_and_what_was_replaced(house, capsys):
    report(house, broken="5.2")
    assert versions.main(["old"], house) == 1
    assert "broken 05-tiny/" in capsys.readouterr().err
    (one,) = record.sets(house)
    assert one.run["versions"]["torch"] == "2.13.0"
    assert one.run["replaced"] == {"torch": "2.11.0"}
    # The second chapter's claim has the words of the first one's.
    assert tried(house) == {"5.1": "held", "5.2": "broken", "6.1": "held"}
    assert one.tried("two is two.").reason == "KeyError: .../x.py"


def test_a_claim_with_new_words_was_not_tried(house):
    report(house)
    versions.main(["old"], house)
    (one,) = record.sets(house)
    assert one.tried("one and one make three.").outcome == record.NOT_TRIED


def test_chapters_can_be_run_again_alone(house):
    report(house, broken="5.2")
    versions.main(["old"], house)
    report(house, chapters=[5], date="2026-12-01")
    assert versions.main(["old"], house) == 0
    (one,) = record.sets(house)
    assert list(one.run["held"]) == ["5", "6"] and one.run["not_held"] == []
    assert one.run["date"] == "2026-11-23"  # of the older part


def test_a_chapter_under_other_versions_replaces_nothing(house, capsys):
    report(house)
    versions.main(["old"], house)
    before = record.load(house)
    report(house, chapters=[5], versions={"keras": "3.13.2", "torch": "2.14.0"})
    assert versions.main(["old"], house) == 1
    assert "chapters 6 were run with other versions. Fix: " in capsys.readouterr().err
    assert record.load(house) == before


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("new", {}, r"no set 'new'. Fix: name one of old"),
        ("old", {"python": "3.13.1"}, r"3.11. Fix: .*PYTHON=python3.11"),
    ],
)
def test_a_run_of_something_else_is_not_recorded(house, name, changes, message):
    report(house, **changes)
    with pytest.raises(UserError, match=message):
        versions.keep(name, house)
    assert record.load(house) == {}


def test_a_claim_that_never_ran_does_not_count_as_held(house):
    notebook = factory.chapter()
    del notebook.metadata["book"]
    factory.save(house, notebook)
    first, second = claims_file.claims_text(house).splitlines()[2:-2]
    assert '"outcome": "not checked"' in first
    assert '"outcome": "held"' in second


@pytest.mark.parametrize("one", record.sets(), ids=lambda one: one.name)
def test_a_set_of_this_book_pins_the_engines_and_no_cuda(one):
    text = (ROOT / f"constraints/{one.name}.txt").read_text()
    pins = dict(versions.PIN.findall(text))
    assert {"tensorflow", "keras", "jax", "torch", "numpy"} <= pins.keys()
    assert not [name for name in pins if re.match("nvidia|cuda|triton", name)]
    assert one.run, "it was never run"
