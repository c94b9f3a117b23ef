"""The questions of a master, and what it says of them.

These keys may stand in a question's raw cell, below `# BEGIN QUESTION`:

    minutes: 12       what a student needs who has read the chapters
    chapters: [1, 2]  the chapters that it tests
    extra: true       it is no part of the core
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml

from grading import written
from grading.assignment import Assignment, Question
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

BEGIN = "# BEGIN QUESTION"
ESTIMATES = "All minutes are estimates, for readers of the chapters."
NUMBERED = re.compile(r"q(?P<number>\d+)")
Cell = nbformat.NotebookNode


def begins(master: nbformat.NotebookNode) -> Iterator[tuple[Cell, Cell]]:
    """The raw cell with which each question begins, and the text below it."""
    for cell, text in zip(master.cells, master.cells[1:], strict=False):
        if cell.cell_type == "raw" and cell.source.startswith(BEGIN):
            yield cell, text


def read(path: Path, master: nbformat.NotebookNode) -> list[Question]:
    """The questions that a master holds, in order.

    Raises:
        UserError: what it says of a question can't be.
    """
    known = [chapters.chapter_number(each) for each in chapters.chapter_paths(ROOT)]
    questions: list[Question] = []
    for cell, text in begins(master):
        try:
            config = yaml.safe_load(cell.source)
            question = Question(
                str(config["name"]),
                written.plain(text.source.strip().partition("\n")[0]),
                bool(config.get("manual")),
                float(config["points"]),
                config.get("minutes"),
                tuple(sorted(set(config.get("chapters", [])))),
                config.get("extra", False),
            )
        except (yaml.YAMLError, KeyError, TypeError, ValueError):
            question = None
        if question is None or not _fits(question):
            raise UserError(
                f"{path}: what it says of a question can't be: {cell.source!r}. Fix: "
                "write such as name: q1, points: 4, minutes: 12, chapters: [1, 2], "
                "extra: true; a name and points are needed."
            )
        if text.cell_type != "markdown":
            raise UserError(
                f"{path}: {question.name} does not begin with a text. "
                f"Fix: write its title right below `{BEGIN}`."
            )
        if question.name in {other.name for other in questions}:
            raise UserError(
                f"{path}: two questions are called {question.name}. Fix: rename one."
            )
        if missing := set(question.chapters).difference(known):
            raise UserError(
                f"{path}, {question.name}: there is no chapter {listed(missing)}. "
                "Fix: see notebooks/."
            )
        questions.append(question)
    return questions


def _fits(question: Question) -> bool:
    """Whether the values of the keys are of the right kinds."""
    return (
        (question.minutes is None or type(question.minutes) is int)
        and all(type(chapter) is int for chapter in question.chapters)
        and type(question.extra) is bool
    )


def write_lines(master: nbformat.NotebookNode, questions: list[Question]) -> None:
    """Write what a question takes below its title, in place."""
    for question, (_, text) in zip(questions, begins(master), strict=True):
        title, _, rest = text.source.strip().partition("\n")
        text.source = f"{title}\n\n{line(question)}\n\n{rest.strip()}".rstrip()


def line(question: Question) -> str:
    """What stands below a question's title: `*12 minutes · 5 points · chapter 1*`."""
    parts = ["extra"] if question.extra else []
    parts += [_many(question.minutes, "minute")] if question.minutes else []
    parts.append(_many(question.points, "point"))
    if question.chapters:
        kind = "chapter" if len(question.chapters) == 1 else "chapters"
        parts.append(f"{kind} {listed(question.chapters)}")
    return f"*{' · '.join(parts)}*"


def summary(assignment: Assignment) -> str:
    """What stands below an assignment's title: its core and its extras.

    An empty text if its master says nothing about its questions.
    """
    core, extras = assignment.core, assignment.extras
    if not extras and minutes(core) is None:
        return ""
    if not extras:
        return f"*{_many(len(core), 'question')}: {size(core)}. {ESTIMATES}*"
    most = _many(assignment.points, "point")
    kind = "question" if len(core) == 1 else "questions"
    return (
        f"*The core: {kind} {listed([number(one.name) for one in core])}, "
        f"{size(core)}. The others are extras, {size(extras)} in all: choose what "
        "you like. Their points make up for points that checks take in the core, for "
        "at most a fifth of it, rounded up, and never for points given by hand; your "
        f"teacher can leave them out. Nobody gets more than {most}. {ESTIMATES}*"
    )


def number(name: str) -> str:
    """What a question's title calls it: `3` for q3."""
    match = NUMBERED.fullmatch(name)
    return match["number"] if match else name


def minutes(questions: list[Question]) -> int | None:
    """What some questions take together; None if it is not known of all."""
    if any(one.minutes is None for one in questions):
        return None
    return sum(one.minutes for one in questions)


def size(questions: list[Question]) -> str:
    """`about 60 minutes and 24 points`."""
    points = _many(sum(one.points for one in questions), "point")
    time = minutes(questions)
    return points if time is None else f"about {_many(time, 'minute')} and {points}"


def _many(count: float, word: str) -> str:
    return f"{count:g} {word}{'' if count == 1 else 's'}"


def listed(parts) -> str:
    """`1, 2 and 3`."""
    *first, last = map(str, parts)
    return f"{', '.join(first)} and {last}" if first else last
