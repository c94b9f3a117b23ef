"""Notebooks of students whose loops do not end: all else in them is right.

They answer the book's assignments by their solutions, but for a few functions.
"""

from __future__ import annotations

import copy
import re

import nbformat

from grading.assignment import Assignment

# Assignment 1: a step that is forgotten, and a comparison that is never true.
QUEUE_TIMES = """
def queue_times(launch, work):
    done, i, free = [0.0] * len(work), 0, 0.0
    while i < len(work):
        free = max(free, (i + 1) * launch) + work[i]
        done[i] = free
    return [launch * (n + 1) for n in range(len(work))], done
"""
OPERATIONS_NEEDED = """
def operations_needed(cpu, device, road):
    gain, n = cpu[1] - device[1], 1
    while n * gain != road:
        n += 1
    return n
"""
# Assignment 3: cells that run in other processes, one of which ends in no case.
PREDICT_WITH = """
def predict_with(images, *weights):
    while True:
        pass
"""
CONTRAST = """
def contrast(rows):
    while True:
        pass
"""
LOG1MEXP = """
while True:
    pass
"""
NOTEBOOKS = {  # the answers that hang, and the questions that they are of
    "1-measure-and-explain": (
        {"queue_times": QUEUE_TIMES, "operations_needed": OPERATIONS_NEEDED},
        {"q2", "q5"},
    ),
    "3-move-and-extend": (
        {"predict_with": PREDICT_WITH, "contrast": CONTRAST, "log1mexp": LOG1MEXP},
        {"q1", "q5", "q7"},
    ),
}


def notebook(assignment: Assignment) -> nbformat.NotebookNode:
    """The solutions of an assignment with its answers that hang.

    They stand below the right ones, in the same cells, and take their place.
    """
    answers, _ = NOTEBOOKS[assignment.name]
    result = copy.deepcopy(assignment.solution)
    for name, code in answers.items():
        defines = re.compile(rf"(?m)^def {name}\(").search
        (cell,) = [one for one in result.cells if defines(one.source)]
        cell.source += f"\n\n{code}"
    return result
