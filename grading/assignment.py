"""What an assignment is: its questions, its notebooks and its tests."""

from __future__ import annotations

import dataclasses
import re

import nbformat

# Where a student writes an answer that a person grades, and what stands there before.
ANSWER_MARK = re.compile(r"<!--\s*answer:\s*(?P<question>[\w-]+)\s*-->")
PLACEHOLDER = "_Write your answer here, in place of this line._"


@dataclasses.dataclass(frozen=True)
class Question:
    """A question as the master states it."""

    name: str  # such as q3
    title: str  # the first words of its text
    manual: bool  # a person grades it
    points: float  # what a full answer is worth
    minutes: int | None = None  # what it takes who has read the chapters
    chapters: tuple[int, ...] = ()  # that it tests
    extra: bool = False  # no part of the core


@dataclasses.dataclass(frozen=True)
class Test:
    """A test of a question as the master states it."""

    name: str  # such as test_q3_form
    points: float
    hidden: bool  # the student does not get it
    source: str  # the function, and classes that all tests of the question may use


@dataclasses.dataclass(frozen=True)
class Assignment:
    """What a master makes."""

    name: str  # the master's file name without its ending
    title: str
    questions: list[Question]
    student: nbformat.NotebookNode
    solution: nbformat.NotebookNode
    tests: dict[str, list[Test]]  # of each question, hidden tests included

    @property
    def core(self) -> list[Question]:
        """The questions that everybody answers."""
        return [one for one in self.questions if not one.extra]

    @property
    def extras(self) -> list[Question]:
        """The questions that students choose from."""
        return [one for one in self.questions if one.extra]

    @property
    def points(self) -> float:
        """What the assignment is out of: the core's points. Nobody gets more."""
        return sum(one.points for one in self.core)
