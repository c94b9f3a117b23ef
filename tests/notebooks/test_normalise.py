"""The canonical form of a notebook."""

import json

import nbformat
import notebook_factory as factory
import pytest
from nbformat import v4

from tools.model import files
from tools.notebooks import normalise


def messy():
    """A notebook as editors leave it."""
    notebook = v4.new_notebook(
        metadata={
            "kernelspec": {"name": "conda-env", "display_name": "Mine"},
            "language_info": {"name": "python", "version": "3.11.7"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
            "colab": {"toc_visible": True},
            "book": {"verified": {"date": "2026-01-01"}},
        },
        nbformat_minor=4,
    )
    notebook.cells = [
        v4.new_markdown_cell("# Größe  \n\n", metadata={"id": "abc", "tags": []}),
        v4.new_code_cell(
            "print(1)\n",
            execution_count=17,
            metadata={
                "cellView": "form",
                "colab": {"base_uri": "x"},
                "execution": {"iopub.execute_input": "now"},
                "jupyter": {"outputs_hidden": True},
                "outputId": "y",
                "tags": ["setup", "claim"],
            },
            outputs=[
                factory.stream("1\n"),
                factory.stream("2\n"),
                v4.new_output("stream", name="stderr", text="3\n"),
                v4.new_output(
                    "display_data",
                    data={
                        "application/vnd.jupyter.widget-view+json": {"model_id": "z"}
                    },
                ),
                v4.new_output(
                    "execute_result",
                    data={"text/plain": "4"},
                    metadata={"needs_background": "light"},
                    execution_count=17,
                ),
            ],
        ),
        v4.new_code_cell("x", execution_count=None),
        v4.new_code_cell("y", execution_count=3),
    ]
    for cell, name in zip(notebook.cells, ["a", "b", "b", "not valid"], strict=True):
        cell.id = name
    return notebook


def test_the_canonical_form():
    notebook = normalise.normalise(messy())
    assert notebook.metadata == {
        **normalise.METADATA,
        "book": {"verified": {"date": "2026-01-01"}},
    }
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    text, code, skipped, last = notebook.cells
    assert text.source == "# Größe" and text.metadata == {}
    assert code.source == "print(1)"
    assert code.metadata == {  # folded on Colab and in JupyterLab
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "tags": ["claim", "setup"],
    }
    assert [cell.get("execution_count") for cell in (code, skipped, last)] == [
        1,
        None,
        3,
    ]
    first, error, result = code.outputs
    assert (first.name, first.text, error.name) == ("stdout", "1\n2\n", "stderr")
    assert result.execution_count == 1 and result.metadata == {}
    ids = [cell.id for cell in notebook.cells]
    assert ids[:2] == ["a", "b"] and len(set(ids)) == 4
    nbformat.validate(notebook)


def test_doing_it_twice_changes_nothing_and_the_argument_stays():
    notebook = messy()
    before = json.dumps(notebook)
    once = normalise.dumps(notebook)
    assert json.dumps(notebook) == before
    assert normalise.dumps(nbformat.reads(once, as_version=4)) == once
    assert normalise.dumps(notebook) == once


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
