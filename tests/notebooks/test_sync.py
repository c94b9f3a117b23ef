"""Copies follow their originals: snippets, addresses, lists of claims."""

import notebook_factory as factory
import pytest

from tools.model.errors import UserError
from tools.notebooks import sync


def path_of(house):
    return house / "notebooks" / "05-tiny.ipynb"


def test_a_synchronised_book_stays_as_it_is(house, capsys):
    before = factory.snapshot(house)
    assert sync.main(["--check"], root=house) == 0
    assert sync.main([], root=house) == 0
    assert capsys.readouterr().out == ""
    assert factory.snapshot(house) == before


def test_a_changed_snippet_is_reported_then_copied(house, capsys):
    notebook = factory.chapter()
    cell = factory.find(notebook, "# @title")
    cell.source += "\nlast = 'stays'"
    cell.outputs = [factory.stream("stays\n")]
    factory.save(house, notebook)
    (house / "snippets" / "quiet_start.py").write_text("new = 1\n\n\nnewer = 2\n")
    before = factory.snapshot(house)

    assert sync.main(["--check"], root=house) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("05-tiny.ipynb, cell 3 ('# @title Set-up: quiet start')")
    assert lines[0].endswith("differs from its snippet. Fix: make sync.")
    assert factory.snapshot(house) == before

    assert sync.main([], root=house) == 0
    cell = factory.find(factory.load(path_of(house)), "# @title")
    assert cell.source.splitlines() == [
        "# @title Set-up: quiet start",
        "# >>> snippets/quiet_start.py",
        "new = 1",
        "",
        "",
        "newer = 2",
        "# <<<",
        "last = 'stays'",
    ]
    assert cell.outputs == [factory.stream("stays\n")]
    assert sync.sync(house, check=True) == []


@pytest.mark.parametrize(
    "source, message",
    [
        ("# >>> snippets/none.py\n# <<<", "no snippet snippets/none.py"),
        ("# >>> snippets/quiet_start.py\nx = 1", "has no end. Fix: .*# <<<"),
        (
            "# >>> snippets/quiet_start.py\n# >>> snippets/quiet_start.py\n# <<<",
            "has no end",
        ),
    ],
)
def test_a_broken_block_changes_nothing(house, source, message):
    notebook = factory.chapter()
    factory.find(notebook, "# @title").source = f"# @title Set-up\n{source}"
    factory.save(house, notebook)
    before = factory.snapshot(house)
    with pytest.raises(UserError, match=rf"05-tiny.ipynb, cell 3 .*{message}"):
        sync.sync(house)
    assert factory.snapshot(house) == before


def test_a_missing_colab_line_is_written_below_the_title(house):
    notebook = factory.chapter()
    whole = notebook.cells[0].source
    title, _, _line, *rest = whole.split("\n")
    notebook.cells[0].source = "\n".join([title, *rest])
    factory.save(house, notebook)
    assert len(sync.sync(house, check=True)) == 1
    sync.sync(house)
    assert factory.load(path_of(house)).cells[0].source == whole


def test_the_list_of_claims_follows_the_claims(house):
    notebook = factory.chapter()
    cells = notebook.cells
    cells.insert(6, factory.code("%%process\n# Claim: two.\nassert 2", tags=["claim"]))
    factory.find(notebook, "## What you proved").source = "## What you proved\n\nold"
    factory.save(house, notebook)
    sync.sync(house)
    proved = factory.find(factory.load(path_of(house)), "## What you proved")
    assert proved.source.splitlines()[-6:] == [
        "<details><summary>Claims of this chapter, numbered as in the claims ledger: 2"
        "</summary>",
        "",
        "- **5.1** one and one make two.",
        "- **5.2** two.",
        "",
        "</details>",
    ]
