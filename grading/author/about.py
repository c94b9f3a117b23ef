"""What a master says about its questions, beyond what otter-grader knows.

These keys stand in a question's raw cell, below `# BEGIN QUESTION`:

    minutes: 12       what a student needs who has read the chapters
    chapters: [1, 2]  the chapters that it tests
    extra: true       it is no part of the core
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import yaml

from grading.assignment import Assignment, Question
from tools.model import chapters
from tools.model.errors import UserError

KEYS = ("minutes", "chapters", "extra")
BEGIN = "# BEGIN QUESTION"
PLACE = "<!-- about: {question} -->"  # where the line goes, below a question's title
ESTIMATES = "All minutes are estimates, for readers of the chapters."
OTTERS_POINTS = re.compile(r"\n*^_Points:_ [\d.]+\s*\Z", re.MULTILINE)
NUMBERED = re.compile(r"q(?P<number>\d+)")


def read(path: Path, config: dict, root: Path) -> dict:
    """The keys of a question, as the fields of a Question.

    Args:
        path: the master, for messages.
        config: what its raw cell says.
        root: the repository's folder, which has the chapters.

    Raises:
        UserError: a value is none that the key can have.
    """
    place = f"{path}, {config['name']}"
    minutes = config.get("minutes")
    if minutes is not None and (type(minutes) is not int or not 1 <= minutes <= 600):
        raise UserError(
            f"{place}: minutes: {minutes!r}. Fix: a whole number from 1 to 600, such "
            "as minutes: 12."
        )
    extra = config.get("extra", False)
    if type(extra) is not bool:
        raise UserError(
            f"{place}: extra: {extra!r}. Fix: write extra: true, or leave it out."
        )
    return {
        "minutes": minutes,
        "chapters": _chapters(place, config.get("chapters", []), root),
        "extra": extra,
    }


def _chapters(place: str, given: object, root: Path) -> tuple[int, ...]:
    """The numbers of chapters.

    Raises:
        UserError: it is no list of them, or there is no such chapter.
    """
    if not isinstance(given, list) or any(type(one) is not int for one in given):
        raise UserError(
            f"{place}: chapters: {given!r}. Fix: a list of numbers, such as "
            "chapters: [1, 2]."
        )
    known = [chapters.chapter_number(one) for one in chapters.chapter_paths(root)]
    for one in given:
        if one not in known:
            raise UserError(f"{place}: there is no chapter {one}. Fix: see notebooks/.")
    return tuple(sorted(set(given)))


def take_out(path: Path, master: nbformat.NotebookNode) -> None:
    """Take the keys out of a master, in place, and mark where their line goes.

    Raises:
        UserError: a question with keys has no text.
    """
    for cell, text in zip(master.cells, [*master.cells[1:], None], strict=True):
        if cell.cell_type != "raw" or not cell.source.startswith(BEGIN):
            continue
        config = yaml.safe_load(cell.source)
        if not any(key in config for key in KEYS):
            continue
        if text is None or text.cell_type != "markdown":
            raise UserError(
                f"{path}: {config['name']} does not begin with a text. "
                f"Fix: write its title right below `{BEGIN}`."
            )
        kept = {key: value for key, value in config.items() if key not in KEYS}
        cell.source = f"{BEGIN}\n{yaml.safe_dump(kept, sort_keys=False)}".rstrip()
        title, _, rest = text.source.strip().partition("\n")
        place = PLACE.format(question=config["name"])
        text.source = f"{title}\n\n{place}\n\n{rest.strip()}".rstrip()


def put_in(notebook: nbformat.NotebookNode, questions: list[Question]) -> None:
    """Write the line of each question where its place is marked, in place.

    It takes the place of otter-grader's line of points, below the question's text.
    """
    for cell in notebook.cells:
        for one in questions:
            place = PLACE.format(question=one.name)
            if cell.cell_type == "markdown" and place in cell.source:
                source = OTTERS_POINTS.sub("", cell.source)
                cell.source = source.replace(place, line(one))


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
    if not extras and all(one.minutes is None for one in core):
        return ""
    if not extras:
        return f"*{_many(len(core), 'question')}: {size(core)}. {ESTIMATES}*"
    most = _many(assignment.points, "point")
    kind = "question" if len(core) == 1 else "questions"
    return (
        f"*The core: {kind} {listed([number(one.name) for one in core])}, "
        f"{size(core)}. The others are extras, {size(extras)} in all: choose what "
        "you like. Their points make up for points that checks take in the core, for "
        "at most a fifth of it, and never for points given by hand; your teacher can "
        f"leave them out. Nobody gets more than {most}. {ESTIMATES}*"
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
