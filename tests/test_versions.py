"""Claims and older versions: the sets, what a run keeps, and what the site says."""

from __future__ import annotations

import dataclasses
import re
import subprocess

import notebook_factory as factory
import pytest
from book_site import claims_ledger, version_marks
from docutils import nodes

from tools.drift import machines, versions
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

OLD, _, NEW, _ = versions.SETS
SECOND = factory.code("# Claim: two is two.\nassert 2 == 2", tags=["claim"])


@pytest.fixture
def book(tmp_path):
    """A chapter with two claims, 5.1 and 5.2; nothing is known of the sets."""
    notebook = factory.chapter()
    notebook.cells.insert(6, SECOND)
    for name in ("notebooks", "book", "constraints"):
        (tmp_path / name).mkdir()
    factory.save(tmp_path, notebook)
    return tmp_path


def entry(held="", chapter=5, **changes):
    """What the record says of a set whose claims held, if they have these words."""
    row = machines.provenance(OLD, {"keras": "3.13.2", "torch": "2.13.0"})
    names = [f"1:{machines.fingerprint(held)}"] if held else []
    counts = {"held": len(names), "broken": 0, "not checked": 0}
    row |= {"python": "3.11.7", "seconds": 10, "cells": 3, "counts": counts}
    row |= {"chapters": [chapter], "not held": [], "failed cells": []}
    row["held"] = {str(chapter): names[0]} if names else {}
    return row | changes


def not_held(sentence, outcome, reason):
    return {
        "label": "5.2",
        "sentence": sentence,
        "outcome": outcome,
        "reason": reason,
    }


# The sets


@pytest.mark.parametrize("row", versions.SETS, ids=lambda row: row.name)
def test_a_sets_file_pins_its_keras_and_the_engines_and_no_cuda(row):
    path = ROOT / (row.constraints or "constraints/latest.txt")
    pins = machines.read_pins(path)
    engines = {"tensorflow", "keras", "jax", "torch", "numpy"}
    assert engines <= set(pins)
    release = row.release[1] or "3"
    assert f"{pins['keras']}.".startswith(f"{release}.")
    assert not [name for name in pins if re.match("nvidia|cuda|triton", name)]


def test_a_set_installs_what_the_chapters_need_within_the_ranges():
    lines = machines.requirements(OLD, ROOT).splitlines()
    names = [re.match(r"[\w-]*", line)[0] for line in lines]
    assert names == list(versions.READERS)
    assert any(line.startswith("torch>=") and "<" in line for line in lines)


def test_versions_are_found_by_the_times_of_upload(tmp_path, monkeypatch):
    asked = {}

    def run(words, **options):
        asked.update(options, words=words)
        said = "keras==3.13.2\nnvidia-nccl-cu13==2.28\ntorch==2.11.0\n"
        return subprocess.CompletedProcess(words, 0, said, "")

    monkeypatch.setattr(versions.subprocess, "run", run)
    monkeypatch.setattr(versions.uv, "program", lambda: ["uv"])
    pip = {"find-links": "/a/folder", "cert": "/a/cert.pem"}
    monkeypatch.setattr(versions.uv, "pip_settings", lambda: pip)
    text = versions.find_versions(OLD, ROOT)
    assert machines.read_pins(write(tmp_path, text)) == {
        "keras": "3.13.2",
        "torch": "2.11.0",
    }
    words = asked["words"]
    assert words[words.index("--exclude-newer") + 1] == OLD.last_day
    assert "keras==3.13.*\n" in asked["input"]
    # A folder of packages does not say when a file was uploaded.
    assert "UV_FIND_LINKS" not in asked["env"]
    assert asked["env"]["SSL_CERT_FILE"] == "/a/cert.pem"


def write(folder, text):
    path = folder / "pins.txt"
    path.write_text(text)
    return path


def test_versions_that_cannot_be_found_name_file_and_fix(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "error: no\n network")
    monkeypatch.setattr(versions.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(versions.uv, "program", lambda: ["uv"])
    monkeypatch.setattr(versions.uv, "pip_settings", dict)
    with pytest.raises(UserError, match=r"keras-3.13.txt: .*no network.* Fix: "):
        versions.find_versions(OLD, ROOT)


def test_an_engine_of_this_environment_stands_in_for_the_sets_own(book, monkeypatch):
    (book / OLD.constraints).write_text("keras==3.13.2\ntorch==2.11.0\n")
    monkeypatch.setattr(machines, "installed", lambda names: {"torch": "2.13.0"})
    session = machines.Session(book, versions.TABLE)
    path = machines.constraints(dataclasses.replace(OLD, here=("torch",)), session)
    assert path.read_text() == "keras==3.13.2\ntorch==2.13.0\n"
    assert machines.constraints(OLD, session) == OLD.constraints


def test_the_newest_keras_is_not_taken_for_another(book, monkeypatch):
    monkeypatch.setattr(machines, "installed", lambda: {"keras": "3.150.0"})
    with pytest.raises(UserError, match=r"keras is 3.150.0 here, not 3.15. Fix: "):
        machines.run(NEW, book, (), versions.TABLE)


# What is kept


def run(book, monkeypatch, found, *words):
    monkeypatch.setattr(machines, "run", lambda *_: found)
    return versions.main(["keras-3.13", *words], book)


def test_chapters_can_be_run_bit_by_bit(book, monkeypatch):
    first = entry("one and one make two.")
    assert run(book, monkeypatch, first, "--chapters", "5") == 0
    assert machines.load(book, versions.TABLE) == {"keras-3.13": first}
    second = entry("six.", chapter=6, **{"not held": [not_held("x.", "broken", "y")]})
    run(book, monkeypatch, second, "--chapters", "6")
    row = machines.load(book, versions.TABLE)["keras-3.13"]
    assert row["chapters"] == [5, 6] and set(row["held"]) == {"5", "6"}
    assert (row["seconds"], row["cells"]) == (20, 6)
    assert row["counts"] == {"held": 2, "broken": 1, "not checked": 0}


def test_a_chapter_under_other_versions_replaces_nothing(book, monkeypatch):
    first = entry("one and one make two.")
    run(book, monkeypatch, first, "--chapters", "5")
    run(book, monkeypatch, entry(versions={"keras": "3.13.1"}), "--chapters", "5")
    assert machines.load(book, versions.TABLE) == {"keras-3.13": first}


def test_the_record_of_this_book_is_whole():
    names = {row.name for row in versions.SETS}
    assert set(machines.load(ROOT, versions.TABLE)) <= names


# The site


def results(book, **rows):
    """What is known after a run, by the sets' names with `_` for `-3.`."""
    known = {name.replace("_", "-3."): row for name, row in rows.items()}
    machines.save(known, book, versions.TABLE)
    return versions.results(book)


def test_a_claim_says_where_it_did_not_hold(book):
    first, second = chapters.claims(book / "notebooks/05-tiny.ipynb")
    wrong = [not_held("two is two.", "broken", "KeyError: 'x'")]
    mute = [not_held("two is two.", "not checked", "it is `busy`")]
    words = "one and one make two."
    found = results(
        book,
        keras_13=entry(words, **{"not held": wrong}),
        keras_14=entry(**{"not held": mute}),
    )
    assert "".join(x.astext() for x in version_marks.marks(first, found)) == (
        "  3.13\u00a0✓ 3.14\u00a0– 3.15\u00a0– Colab\u00a0– "
    ).removeprefix(" ")
    assert claims_ledger.not_held_nodes(first, found) == []
    said = [x.astext() for x in claims_ledger.not_held_nodes(second, found)]
    assert said == [
        "Broken with Keras 3.13: KeyError: 'x'",
        "Not checked with Keras 3.14: It is busy.",
    ]
    link = nodes.inline("", "the ledger")
    assert version_marks.margin_note(first, found, link) is None
    assert version_marks.margin_note(second, found, link).astext() == (
        "Claim 5.2 does not hold with Keras 3.13 (PyTorch 2.13.0): the ledger."
    )
    rows = claims_ledger.version_table(found, [first, second]).findall(nodes.row)
    lines = [[x.astext() for x in row.findall(nodes.entry)] for row in rows]
    assert lines[1][2:] == ["1", "1", "0", "0"]
    assert lines[3][1:] == ["", "0", "0", "0", "2"]


def test_a_claim_with_new_words_was_tried_nowhere(book):
    found = results(book, keras_13=entry("one and one make three."))
    first, _ = chapters.claims(book / "notebooks/05-tiny.ipynb")
    assert version_marks.marks(first, found) == []
    assert version_marks.count(found[0], [first]) == [0, 0, 0, 1]


def test_a_set_says_what_it_left_out_and_what_stood_in(book):
    own = {"of its time": {"torch": "2.11.0"}}
    found = results(book, keras_13=entry("x.", **own), keras_14=entry(chapters=[1, 2]))
    about = version_marks.about(found[0], {1, 2, 3, 5})
    assert "stood in for PyTorch 2.11.0 of the set." in about
    assert about.endswith("Chapter 5 was run so far, the other 3 were not.")
    assert version_marks.left_out({1, 2}, {1, 2, 3}) == "Chapter 3 was not run."
    assert version_marks.left_out({1, 2}, {1, 2}) == ""
    assert version_marks.about(found[3], {1}).endswith("Not run yet.")


def test_a_damaged_record_names_its_fix(book):
    (book / versions.TABLE.record).write_text("{")
    with pytest.raises(UserError, match=r"book/versions.json: not what make versions"):
        versions.results(book)
