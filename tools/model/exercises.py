"""The exercises of a chapter: a text with a hint, then the cells of its solution."""

import re
from typing import NamedTuple

from nbformat import NotebookNode

SECTION = "## Exercises"
NUMBER = re.compile(r"^\*\*(\d+)\. ", re.MULTILINE)
HINT = "<details><summary>Hint</summary>"


class Exercise(NamedTuple):
    """An exercise; its cells are indices in the notebook, from 0."""

    number: int  # as it is written
    text: int
    solution: list[int]


def exercises(cells: list[NotebookNode]) -> list[Exercise]:
    """The exercises of the section that is called so."""
    exercises: list[Exercise] = []
    inside = False
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            if cell.source.startswith("## "):
                inside = cell.source.startswith(SECTION)
            numbers = NUMBER.findall(cell.source) if inside else []
            exercises += [Exercise(int(number), index, []) for number in numbers]
        elif inside and exercises:
            exercises[-1].solution.append(index)
    return exercises
