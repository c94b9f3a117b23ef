"""The exercises of a chapter: a text with a hint, then a folded, tested solution."""

from __future__ import annotations

import re
from collections.abc import Iterator

import nbformat

from tools.model import chapters
from tools.model.assertions import unasserted

SECTION = "Exercises"
FEWEST = 3
NUMBER = re.compile(r"^\*\*(\d+)\. ", re.MULTILINE)
HINT = "<details><summary>Hint</summary>"


def section(cells: list[nbformat.NotebookNode]) -> range:
    """The cells of the section with the exercises, which may be none."""
    starts = [
        index
        for index, cell in enumerate(cells)
        if cell.cell_type == "markdown" and cell.source.startswith("## ")
    ]
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        if cells[start].source.splitlines()[0] == f"## {SECTION}":
            return range(start, end)
    return range(0)


def problems(
    cells: list[nbformat.NotebookNode],
) -> Iterator[tuple[int | None, str, str]]:
    """What is wrong with the exercises: (cell's index or None, what, how to fix it)."""
    where = section(cells)
    for index, cell in enumerate(cells):
        if "solution" in chapters.tags(cell) and index not in where:
            yield index, "a solution of no exercise", f"move it below `## {SECTION}`"
    found = list(exercises(cells, where))
    for number, (index, said, solution) in enumerate(found, start=1):
        if said != number:
            yield index, f"exercise {said} where {number} is due", "renumber"
        if HINT not in cells[index].source:
            yield index, f"exercise {number} has no hint", f"write `{HINT}`"
        if not solution:
            yield index, f"exercise {number} has no solution", "add a cell below"
        for place in solution:
            yield from ((place, *x) for x in form_problems(cells[place], number))
        for place in solution[-1:]:
            for problem, _ in unasserted(cells[place].source, "solution"):
                yield place, problem, "let it assert its own result"
    if where and len(found) < FEWEST:
        yield where[0], f"{len(found)} exercises", f"have {FEWEST} or more"


def exercises(
    cells: list[nbformat.NotebookNode], where: range
) -> Iterator[tuple[int, int, list[int]]]:
    """Each exercise: its cell, the number that it has, the cells of its solution."""
    current: tuple[int, int, list[int]] | None = None
    for index in where:
        if cells[index].cell_type == "code":
            if current:
                current[2].append(index)
            continue
        for number in NUMBER.findall(cells[index].source):
            if current:
                yield current
            current = index, int(number), []
    if current:
        yield current


def form_problems(
    cell: nbformat.NotebookNode, number: int
) -> Iterator[tuple[str, str]]:
    """What is wrong with how a cell of a solution is folded."""
    if "solution" not in chapters.tags(cell):
        yield "a cell of a solution without its tag", "tag it `solution`"
    title = f"# @title Solution {number}"
    first, _, rest = cell.source.partition("\n")
    if not (rest if first.startswith("%%") else first).startswith(title):
        yield "a solution without its title", f"start it with `{title}`"
    if cell.metadata.get("cellView") != "form":
        yield "the solution is open on Colab", "metadata `cellView: form`"
