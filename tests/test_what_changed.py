"""What changed between releases: the claims' names, the files, the page, the feed."""

from __future__ import annotations

import datetime
import itertools
import json
import re
import subprocess
from urllib.parse import urlsplit
from xml.etree import ElementTree

import bs4
import notebook_factory as factory
import pytest
import test_site
from book_site import what_changed

from tools.checks import summary
from tools.drift import claims, identity, machines, releases, versions
from tools.model import chapters
from tools.model.errors import UserError

browser = test_site.browser  # a fixture
SECOND = factory.code("# Claim: two is two.\nassert 2 == 2", tags=["claim"])
UNTOLD = factory.code(
    "# Claim: nobody knows.\nassert True",
    factory.stream("Not checked: it is dark\n"),
    tags=["claim"],
)
SITE = "https://someone.github.io/some-book/"


@pytest.fixture
def book(tmp_path):
    """A repository with claims 5.1 to 5.3, the last of which was not checked."""
    notebook = factory.chapter()
    notebook.cells[6:6] = [SECOND, UNTOLD]
    for name in ("notebooks", "book"):
        (tmp_path / name).mkdir()
    factory.save(tmp_path, notebook)
    config = f"repository:\n  url: {factory.ADDRESS}\n  branch: main\n"
    (tmp_path / "_config.yml").write_text(config)
    (tmp_path / ".gitignore").write_text("_build/\n")
    return tmp_path


# Which claim is which


def claim(cell, sentence, **more):
    return {"cell": f"05-memory/{cell}", "sentence": sentence, **more}


LONG = "without a GPU, `auto` is off for a Dense layer on TensorFlow, and on with JAX"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (claim("a", "One is one."), claim("a", "One is one."), True),
        (claim("a", "One is one."), claim("b", "One  is\none."), True),
        (claim("a", f"{LONG}."), claim("a", f"{LONG}; a GPU changes that."), True),
        (claim("a", "One is one."), claim("a", "A GPU has its own memory."), False),
        (claim("a", f"{LONG}."), claim("b", f"{LONG}, always."), True),
        (claim("a", "One is one, so far."), claim("b", "Two is one, now."), False),
    ],
    ids=["kept", "moved", "mended", "other claim", "mended and moved", "only similar"],
)
def test_a_claim_is_found_again(old, new, same):
    assert identity.matches([old], [new]) == ({0: 0} if same else {})


def test_of_claims_with_the_same_words_each_stays_in_its_cell():
    one, two = claim("a", "One is one."), claim("b", "One is one.")
    assert identity.matches([one, two], [two, one]) == {0: 1, 1: 0}


def test_claims_that_change_places_keep_their_names():
    released = [
        claim("a", "One is one.", id="x"),
        claim("b", "Two is two.", id="y"),
        claim("c", "Three is a number.", id="05-memory/c"),
    ]
    now = [
        claim("b", "One is one."),
        claim("a", "Two is two."),
        claim("c", "A processor waits for its memory."),
    ]
    identity.name(now, released, {"05-memory/c"})
    assert [x["id"] for x in now] == ["x", "y", "05-memory/c-2"]


# The claims as a file


def entry(sentence, day):
    """A row of another machine on which one claim held."""
    row = machines.provenance(machines.ROWS[0], {"keras": "3.13.2"})
    row |= {"date": day, "seconds": 9, "chapters": [5], "cells": 3, "counts": {}}
    held = {"5": f"1:{machines.fingerprint(sentence)}"}
    return row | {"held": held, "not held": [], "failed cells": []}


def test_the_file_says_what_the_stored_outputs_say(book):
    rows = {"busy": entry("nobody knows.", "2025-05-05")}
    machines.save(rows, book)
    content = claims.stored(book)
    first, _, last = content["claims"]
    assert first["page"] == "notebooks/05-tiny.html#claim-5-1"
    assert (first["sentence"], first["outcome"]) == ("one and one make two.", "held")
    assert first["versions"] == factory.VERIFIED["packages"]
    assert first["date"] == first["last_held"]["date"] == factory.VERIFIED["date"]
    assert (last["outcome"], last["reason"]) == ("not checked", "it is dark")
    assert (last["last_held"]["date"], last["last_held"]["on"]) == (
        "2025-05-05",
        "busy",
    )
    text = claims.text(content)
    assert json.loads(text) == content
    assert sum(line.startswith('{"id"') for line in text.splitlines()) == 3


def test_what_other_versions_did_stands_beside_a_claim(book):
    machines.save({"colab": entry("two is two.", "2026-02-03")}, book, versions.TABLE)
    content = claims.stored(book)
    first, second, _ = content["claims"]
    assert (first["with"], second["with"]["colab"]["outcome"]) == ({}, "held")
    assert second["last_held"]["on"] == "colab"
    assert content["sets"]["colab"]["versions"] == {"keras": "3.13.2"}


class Config:
    """What `Summary` asks of pytest's settings."""

    def __init__(self, root):
        self.rootpath = root
        self.options = {"xmlpath": str(root / "_build" / "claims.xml")}

    def getoption(self, name, default):
        return self.options.get(name, default)


def run_tests(root, *outcomes):
    """Write what a run of the tests writes whose claims ended like this."""
    report = summary.Summary(Config(root))
    (root / "_build" / "reports").mkdir(parents=True, exist_ok=True)
    report.pytest_sessionstart()
    for cell, outcome in enumerate(outcomes, start=5):
        ran = summary.Ran("notebooks/05-tiny.ipynb", cell, "5.1", outcome, "why")
        report.ran[ran.notebook, cell] = ran
    report.pytest_sessionfinish()
    made = root / "_build" / "claims.json"
    if made.exists():
        made.replace(root / releases.REPORT)


def test_a_run_of_the_tests_writes_the_file(book, monkeypatch):
    monkeypatch.setattr(machines, "installed", lambda: {"keras": "3.15.1"})
    run_tests(book, "held", "broken")
    content = json.loads((book / releases.REPORT).read_text())
    assert content["commit"] == ""  # there is no git here
    found = [(x["label"], x["outcome"], x["versions"]) for x in content["claims"]]
    used = {"keras": "3.15.1"}
    assert found == [("5.1", "held", used), ("5.2", "broken", used)]


def test_a_run_without_claims_writes_no_file(book):
    run_tests(book)
    assert not (book / releases.REPORT).exists()


# A new release


def git(root, *words):
    config = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *config, *words], cwd=root, check=True, capture_output=True)


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


@pytest.fixture
def tested(book):
    """The repository with a commit at which all claims were tested."""
    git(book, "init", "-q")
    commit(book)
    run_tests(book, "held", "held", "not checked")
    return book


def test_a_release_keeps_its_claims_and_says_how_it_is_published(tested, capsys):
    assert releases.main(["2026.11"], tested) == 0
    said = capsys.readouterr().out
    assert "git tag -a v2026.11" in said
    assert "git push --atomic origin main v2026.11" in said
    (made,) = claims.releases(tested)
    assert [x["sentence"] for x in made["claims"]][:1] == ["one and one make two."]
    assert re.fullmatch("[0-9a-f]{40}", made["commit"])
    names = [x["id"] for x in made["claims"]]
    # The next one knows a claim whose sentence was mended by its name.
    path = tested / "notebooks/05-tiny.ipynb"
    path.write_text(path.read_text().replace("two is two.", "two is still two."))
    commit(tested)
    run_tests(tested, "held", "held", "held")
    assert releases.main(["2026.12"], tested) == 0
    assert "since 2026.11: 0 new, 0 gone, 1 reworded" in capsys.readouterr().out
    assert [x["id"] for x in claims.releases(tested)[1]["claims"]] == names


def refuse_dirty(root):
    (root / "a").write_text("b")


def refuse_untested(root):
    (root / releases.REPORT).unlink()


def refuse_other_commit(root):
    refuse_dirty(root)
    commit(root)


def refuse_part(root):
    run_tests(root, "held", "held")


def refuse_broken(root):
    run_tests(root, "held", "broken", "held")


def refuse_tag(root):
    git(root, "tag", "v2026.11")


def refuse_damage(root):
    (root / releases.REPORT).write_text("[]")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (refuse_dirty, "files were changed (a). Fix: commit"),
        (refuse_untested, "no such file. Fix: make test"),
        (refuse_other_commit, "of another commit, or files were changed. Fix: "),
        (refuse_part, "1 claims were not tested, 5.3 first. Fix: make test"),
        (refuse_broken, "broken: claim 5.2. Fix: mend"),
        (refuse_tag, "the tag v2026.11 exists. Fix: choose"),
        (refuse_damage, "not what make test writes. Fix: make test"),
    ],
)
def test_a_release_is_refused(tested, capsys, spoil, message):
    spoil(tested)
    assert releases.main(["2026.11"], tested) == 1
    assert message in capsys.readouterr().err
    assert claims.releases(tested) == []


@pytest.mark.parametrize(
    "name", ["november", "2026.13", "v2026.11", "2026.11-rc", "../x"]
)
def test_a_name_is_a_month_or_a_version(tested, capsys, name):
    assert releases.main([name], tested) == 1
    assert "is no name. Fix: NAME=2026.11" in capsys.readouterr().err


def test_only_the_newest_release_is_made_again(tested, capsys):
    for name in ("2026.11", "2026.12"):
        assert releases.main([name], tested) == 0
        commit(tested)
        run_tests(tested, "held", "held", "held")
    assert releases.main(["2026.12"], tested) == 1
    assert "2026.12.json exists. Fix: ARGS=--again" in capsys.readouterr().err
    assert releases.main(["2026.12", "--again"], tested) == 0
    git(tested, "checkout", "--", ".")
    assert releases.main(["2026.11", "--again"], tested) == 1


def test_a_damaged_release_names_its_fix(tested):
    releases.main(["2026.11"], tested)
    path = tested / "book/releases/2026.11.json"
    path.write_text(path.read_text().replace('"sentence"', '"words"'))
    with pytest.raises(UserError, match=r"2026.11.json: not what .* Fix: git checkout"):
        claims.releases(tested)


# What changed


def told(name, number, sentence, outcome="held", **tried):
    """A claim of a release, with its outcomes in sets of versions."""
    return {
        "id": name,
        "cell": f"05-memory/{name}",
        "label": f"5.{number}",
        "sentence": sentence,
        "outcome": outcome,
        "reason": "it is <dark> & cold" if outcome != "held" else "",
        "date": "2026-01-01",
        "versions": {"keras": "3.15.1"},
        "with": {x: {"outcome": one, "reason": ""} for x, one in tried.items()},
    }


def release(name, *found):
    sets = {"colab": {"title": "Colab", "versions": {"keras": "3.13.2"}}}
    return {
        "release": name,
        "date": f"{name.replace('.', '-')}-01",
        "sets": sets,
        "claims": list(found),
    }


FIRST = release(
    "2026.01",
    told("a", 1, "`one` is <one> &amp; more"),
    told("b", 2, "two", colab="held"),
    told("c", 3, "three", colab="held"),
    told("d", 4, "four"),
)
NEXT = release(
    "2026.02",
    told("e", 1, "a `new` one", "not checked"),
    told("a", 2, "`one` is one, and an odd ` stays"),
    told("b", 3, "two", colab="broken"),
    told("c", 4, "three", "not checked"),
)
LAST = release("2026.03", *NEXT["claims"], told("d", 9, "four", odd="broken"))


def test_what_differs_between_two_releases():
    found = releases.compare(FIRST, NEXT)
    assert [x["id"] for x in found.new] == ["e"]
    assert [x["id"] for x in found.gone] == ["d"]
    assert [after["id"] for _, after in found.reworded] == ["a"]
    turned = [(x.claim["id"], x.where, x.before, x.after) for x in found.turned]
    assert turned == [
        ("b", "colab", "held", "broken"),
        ("c", releases.OWN, "held", "not checked"),
    ]
    assert found.summary() == "1 new, 1 gone, 1 reworded, 2 with another outcome"
    assert releases.compare(NEXT, NEXT).count == 0


def test_a_set_that_is_new_is_news_only_where_a_claim_broke():
    with_set = release("2026.02", told("d", 4, "four", odd="held"))
    assert releases.compare(FIRST, with_set).turned == []
    (turn,) = releases.compare(FIRST, LAST).turned[2:]
    assert (turn.where, turn.before, turn.after) == ("odd", "not tried", "broken")


@pytest.fixture
def page(browser):
    """The page's form with three releases, in a browser."""
    tab = browser.new_context().new_page()
    tab.set_content(f"<main>{what_changed.form_html([FIRST, NEXT, LAST])}</main>")
    tab.add_script_tag(path=chapters.ROOT / "book/_static/what-changed.js")
    yield tab
    tab.close()


def test_without_scripts_the_newest_is_held_against_the_one_before():
    form = bs4.BeautifulSoup(what_changed.form_html([FIRST, NEXT, LAST]), "html.parser")
    chosen = [x["value"] for x in form.find_all("option", selected=True)]
    assert chosen == ["2026.02", "2026.03"]
    assert "4 claims before, 5 after." in form.find(class_="changes-found").text
    assert "To compare other releases" in form.noscript.text


def test_the_page_compares_any_two_as_python_does(page):
    known = {one["release"]: one for one in (FIRST, NEXT, LAST)}
    make = "html => { const box = document.createElement('div'); box.innerHTML = html;"
    make += " return box.innerHTML; }"
    for old, new in itertools.product(known, known):
        page.locator("#changes-from").select_option(old)
        page.locator("#changes-to").select_option(new)
        expected = "".join(what_changed.changes_html(known[old], known[new]))
        shown = page.locator(".changes-found").inner_html()
        assert shown == page.evaluate(make, expected), (old, new)
    assert page.url.endswith("#from=2026.03&to=2026.03")


# The feed

ATOM = f"{{{what_changed.ATOM}}}"


def text_of(node, name):
    return node.findtext(f"{ATOM}{name}")


def check_feed(text, site):
    """Hold a feed against what RFC 4287 requires (sections 3.3 and 4.1)."""
    root = ElementTree.fromstring(text.encode())
    entries = root.findall(f"{ATOM}entry")
    assert root.tag == f"{ATOM}feed" and entries
    assert root.find(f"{ATOM}author/{ATOM}name").text
    own = [x for x in root.findall(f"{ATOM}link") if x.get("rel") == "self"]
    assert [x.get("href") for x in own] == [f"{site}feed.xml"]
    for node in (root, *entries):
        assert text_of(node, "title")
        assert urlsplit(text_of(node, "id")).scheme in ("https", "tag")
        updated = datetime.datetime.fromisoformat(text_of(node, "updated"))
        assert updated.tzinfo
        others = [x for x in node.findall(f"{ATOM}link") if not x.get("rel")]
        assert len(others) == 1 and others[0].get("href").startswith(site)
    for entry in entries:
        assert entry.find(f"{ATOM}content").get("type") == "html"
    ids = [text_of(node, "id") for node in (root, *entries)]
    assert len(set(ids)) == len(ids)
    assert text_of(root, "updated") == max(text_of(x, "updated") for x in entries)
    return entries


def test_the_feed_has_a_valid_entry_for_each_release():
    text = what_changed.feed([FIRST, NEXT], SITE, "Some <book>", "Some & one")
    newest, oldest = check_feed(text, SITE)
    assert text_of(newest, "title") == "Release 2026.02"
    content = bs4.BeautifulSoup(text_of(newest, "content"), "html.parser")
    assert "`" not in content.find("code").text
    assert [x.text for x in content.find_all("h3")] == [
        *("New: 1", "Gone: 1", "Reworded: 1", "Another outcome: 2")
    ]
    assert text_of(oldest, "summary") == "The first release: 4 claims."


# The site

HTML = test_site.HTML
built = pytest.mark.skipif(not HTML.exists(), reason="run `make book` first")


@built
def test_the_site_publishes_its_claims_and_its_feed():
    content = json.loads((HTML / "claims.json").read_text())
    found = [
        one.sentence
        for path in chapters.chapter_paths(test_site.SITE)
        for one in chapters.claims(path)
    ]
    assert [x["sentence"] for x in content["claims"]] == found
    check_feed((HTML / "feed.xml").read_text(), test_site.REPOSITORY.pages)
    for name in ("index.html", "notebooks/01-why-gpus.html"):
        head = bs4.BeautifulSoup((HTML / name).read_text(), "html.parser").head
        (link,) = head.find_all("link", rel="alternate", type="application/atom+xml")
        assert (HTML / name).parent.joinpath(link["href"]).resolve().exists()


@built
def test_the_page_lists_the_releases():
    text = (HTML / "book/what-changed.html").read_text()
    rows = bs4.BeautifulSoup(text, "html.parser").select("ul.releases > li")
    known = [one["release"] for one in claims.releases(test_site.SITE)]
    links = [row.a["href"] for row in rows]
    pages = test_site.REPOSITORY.pages
    assert links == [f"{pages}releases/{name}/" for name in reversed(known)]
