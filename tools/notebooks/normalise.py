"""The canonical form of a notebook: a diff shows only what an author changed."""

import copy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.model import chapters, files

METADATA = {
    "accelerator": "GPU",
    "colab": {"gpuType": "T4", "provenance": []},
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
CELL_METADATA = ("cellView", "mystnb", "tags")
# How a cell begins, and the tags that follow.
TAGS = {"Set-up": {"hide-input", "setup"}, "Solution": {"solution"}}


def normalise(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook in canonical form; the argument stays as it is.

    Cells that were not executed stay without a count, and the form check sees them.
    """
    notebook = copy.deepcopy(notebook)
    kept = {name: x for name, x in notebook.metadata.items() if x and name == "book"}
    notebook.metadata = nbformat.from_dict(METADATA | kept)
    count = 0
    for cell in notebook.cells:
        cell.source = cell.source.rstrip()
        cell.metadata = cell_metadata(cell)
        if cell.cell_type == "code":
            count += 1
            _number(cell, count)
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """The canonical text of a notebook's file."""
    return nbformat.writes(normalise(notebook), ensure_ascii=False) + "\n"


def write(path: Path, notebook: NotebookNode) -> None:
    """Write a notebook in canonical form, whole or not at all."""
    files.write_text(path, dumps(notebook))


def cell_metadata(cell: NotebookNode) -> NotebookNode:
    """What the book uses of a cell's metadata, and what follows from its first line."""
    metadata = {
        key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata
    }
    tags = set(metadata.pop("tags", []))
    for title, implied in TAGS.items():
        if chapters.titled(cell, title):
            tags |= implied
            metadata["cellView"] = "form"
    if cell.cell_type == "code" and chapters.split_claim(cell.source)[0]:
        tags.add("claim")
    if tags:
        metadata["tags"] = sorted(tags)
    if metadata.get("cellView") == "form":  # folded on Colab, so in JupyterLab, too
        metadata["jupyter"] = {"source_hidden": True}
    return nbformat.from_dict({key: value for key, value in metadata.items() if value})


def _number(cell: NotebookNode, count: int) -> None:
    """Number a cell if it was executed, in place."""
    if cell.execution_count is not None:
        cell.execution_count = count
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
