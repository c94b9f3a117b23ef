"""The canonical form of a notebook."""

import json

import nbformat
import notebook_factory as factory
import pytest
from nbformat import v4

from tools.model import chapters, files
from tools.notebooks import normalise


def messy():
    """A notebook as editors leave it."""
    notebook = v4.new_notebook(
        metadata={
            "kernelspec": {"name": "conda-env", "display_name": "Mine"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
            "book": {"verified": {"date": "2026-01-01"}},
        },
    )
    result = v4.new_output("execute_result", {"text/plain": "4"}, execution_count=17)
    notebook.cells = [
        v4.new_markdown_cell("# Größe  \n\n", metadata={"id": "abc", "tags": []}),
        factory.code("# @title Set-up: a\nprint(1)\n", colab={"base_uri": "x"}),
        v4.new_code_cell("x", execution_count=None),
        v4.new_code_cell("y", execution_count=17, outputs=[result]),
        v4.new_code_cell("%%process\n# Claim: two.\nassert 2", execution_count=3),
        factory.code("# @title Solution 1", tags=["nbval-ignore-output"]),
    ]
    return notebook


def test_the_canonical_form():
    notebook = normalise.normalise(messy())
    assert notebook.metadata == {
        **normalise.METADATA,
        "book": {"verified": {"date": "2026-01-01"}},
    }
    text, setup, skipped, last, claim, solution = notebook.cells
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert text.source == "# Größe" and text.metadata == {}
    assert setup.source == "# @title Set-up: a\nprint(1)"
    assert setup.metadata == {**folded, "tags": ["hide-input", "setup"]}
    assert claim.metadata == {"tags": ["claim"]}
    assert solution.metadata == {**folded, "tags": ["nbval-ignore-output", "solution"]}
    assert [x.execution_count for x in (setup, skipped, last)] == [1, None, 3]
    assert last.outputs[0].execution_count == 3
    nbformat.validate(notebook)


@pytest.mark.parametrize("minor", [4, 5])
def test_cells_get_identifiers_that_stay(tmp_path, minor):
    notebook = messy()
    notebook.nbformat_minor = minor
    for cell in notebook.cells:
        cell.id = "twice"  # as a copied cell has it; before 4.5 there are none
        if minor < 5:
            del cell["id"]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(notebook))
    normalise.write(path, chapters.read(path))
    text = path.read_text()
    identifiers = {cell["id"] for cell in json.loads(text)["cells"]}
    assert len(identifiers) == len(notebook.cells)
    assert normalise.dumps(chapters.read(path)) == text


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def broken(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(type(path), "replace", broken)
    with pytest.raises(OSError):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
