"""The canonical form of a notebook: a diff shows only what an author changed."""

from __future__ import annotations

import copy
import hashlib
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.model import files

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
CELL_METADATA = ("cellView", "jupyter", "mystnb", "tags")
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
WIDGETS = ("application/vnd.jupyter.widget", "application/vnd.google.colaboratory")


def normalise(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook in canonical form; the argument stays as it is.

    Cells that were not executed stay without a count, and the form check sees them.
    """
    notebook = copy.deepcopy(notebook)
    metadata = copy.deepcopy(METADATA)
    if notebook.metadata.get("book"):
        metadata["book"] = notebook.metadata["book"]
    notebook.metadata = nbformat.from_dict(metadata)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    count = 0
    for cell in notebook.cells:
        cell.source = cell.source.rstrip()
        cell.metadata = _cell_metadata(cell.metadata)
        cell.id = _cell_id(cell, seen)
        seen.add(cell.id)
        if cell.cell_type == "code":
            count += 1
            _normalise_code(cell, count)
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """The canonical text of a notebook's file."""
    return nbformat.writes(normalise(notebook), ensure_ascii=False) + "\n"


def write(path: Path, notebook: NotebookNode) -> None:
    """Write a notebook in canonical form, whole or not at all."""
    files.write_text(path, dumps(notebook))


def _cell_metadata(metadata: NotebookNode) -> NotebookNode:
    """Keep what the book uses, leave out what is empty."""
    kept = {name: metadata[name] for name in CELL_METADATA if metadata.get(name)}
    if "tags" in kept:
        kept["tags"] = sorted(set(kept["tags"]))
    kept.pop("jupyter", None)
    if kept.get("cellView") == "form":  # folded on Colab, so in JupyterLab, too
        kept["jupyter"] = {"source_hidden": True}
    return nbformat.from_dict(kept)


def _cell_id(cell: NotebookNode, seen: set[str]) -> str:
    """The cell's own identifier if it is valid and new, else one from its source."""
    name = cell.get("id", "")
    attempt = 0
    while not CELL_ID.fullmatch(name) or name in seen:
        name = hashlib.sha256(f"{attempt} {cell.source}".encode()).hexdigest()[:8]
        attempt += 1
    return name


def _normalise_code(cell: NotebookNode, count: int) -> None:
    """Number an executed cell and tidy its outputs, in place."""
    if cell.execution_count is not None:
        cell.execution_count = count
    outputs: list[NotebookNode] = []
    for output in cell.outputs:
        if "data" in output:
            for kind in [kind for kind in output.data if kind.startswith(WIDGETS)]:
                del output.data[kind]
            if not output.data:
                continue
            output.metadata = nbformat.from_dict(
                {
                    kind: output.metadata[kind]
                    for kind in output.data
                    if output.metadata.get(kind)
                }
            )
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
        last = outputs[-1] if outputs else None
        if (
            last
            and last.output_type == output.output_type == "stream"
            and last.name == output.name
        ):
            last.text += output.text
        else:
            outputs.append(output)
    cell.outputs = outputs
