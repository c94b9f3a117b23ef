"""The bank: what questions there are, and which chapters they test."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from grading.assignment import Question
from grading.author import about, masters
from tools.model import chapters, files
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PAGE = Path("book", "for-teachers.md")
BEGIN, END = "% >>> questions", "% <<<"
EXTRA = "*"
COLUMNS = ("question", "title", "chapters", "minutes", "points", "graded", "part")
COLUMNS += ("uses",)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A question of the bank."""

    master: Path
    question: Question

    @property
    def label(self) -> str:
        """What listings call it, such as 1.q4."""
        return f"{self.master.stem.partition('-')[0]}.{self.question.name}"


def entries(root: Path = ROOT) -> list[Entry]:
    """The questions of all masters, in order."""
    return [
        Entry(path, one)
        for path in masters.master_paths(root)
        for one in masters.questions(path, root)
    ]


def listing(found: list[Entry]) -> str:
    """A line for each question, in columns."""
    rows = [list(COLUMNS)]
    for entry in found:
        one = entry.question
        rows.append(
            [
                entry.label,
                _title(one),
                ", ".join(map(str, one.chapters)),
                "" if one.minutes is None else str(one.minutes),
                f"{one.points:g}",
                "by hand" if one.manual else "by checks",
                "extra" if one.extra else "core",
                ", ".join(one.needs),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _title(question: Question) -> str:
    """A question's title without its number, which a listing gives."""
    start, colon, rest = question.title.partition(": ")
    return rest if colon and start.startswith("Question") else question.title


def testing(found: list[Entry], number: int) -> list[Entry]:
    """The questions that test a chapter."""
    return [entry for entry in found if number in entry.question.chapters]


def untested(root: Path = ROOT) -> list[int]:
    """The chapters that no question tests."""
    found = entries(root)
    numbers = [chapters.chapter_number(one) for one in chapters.chapter_paths(root)]
    return [number for number in numbers if not testing(found, number)]


def tables(root: Path = ROOT) -> str:
    """The tables of the page for teachers: by assignment, and by chapter."""
    found = entries(root)
    lines = ["| assignment | core | minutes | points | by hand | extras |"]
    lines.append("|---|---|---|---|---|---|")
    for path in masters.master_paths(root):
        questions = [one.question for one in found if one.master == path]
        core = [one for one in questions if not one.extra]
        extras = [one for one in questions if one.extra]
        cells = [
            f"[{path.stem.replace('-', ': ', 1).replace('-', ' ')}]"
            f"(../assignments/{path.stem}.ipynb)",
            ", ".join(one.name for one in core),
            str(about.minutes(core) or ""),
            f"{sum(one.points for one in core):g}",
            ", ".join(one.name for one in core if one.manual),
            ", ".join(one.name for one in extras)
            + (f": {about.size(extras)}" if extras else ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| chapter | questions, extras with a star |", "|---|---|"]
    for path in chapters.chapter_paths(root):
        number = chapters.chapter_number(path)
        labels = [
            entry.label + EXTRA * entry.question.extra
            for entry in testing(found, number)
        ]
        link = f"[{number}](../notebooks/{path.name})"
        lines.append(f"| {link} | {', '.join(labels).replace('*', chr(92) + '*')} |")
    return "\n".join(lines)


def with_tables(text: str, root: Path = ROOT) -> str:
    """The page for teachers with its tables as the masters are now.

    Raises:
        UserError: the page does not say where they stand.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end:
        raise UserError(
            f"{root / PAGE}: no place for the tables of questions. "
            f"Fix: write the lines `{BEGIN}` and `{END}`."
        )
    return f"{before}{begin}\n{tables(root)}\n\n{end}{after}"


def write_tables(check: bool, root: Path = ROOT) -> bool:
    """Write the tables into the page for teachers, if they have changed.

    Args:
        check: only say so.
        root: the repository's folder.

    Returns:
        Whether they had changed.
    """
    path = root / PAGE
    old = path.read_text(encoding="utf-8")
    new = with_tables(old, root)
    if new == old:
        return False
    if check:
        print(f"{PAGE}: not the questions of the masters. Fix: make assignments.")
    else:
        files.write_text(path, new)
        print(f"{PAGE}: its tables are those of the masters.")
    return True


def add_bank(commands) -> None:
    """The command `bank`."""
    parser = commands.add_parser(
        "bank",
        help="list the questions that a master of your own can keep of the book's",
        description="List the questions of all masters: what they test, how long they "
        "take, and what they are worth.",
    )
    parser.add_argument(
        "--chapter", type=int, action="append", help="only those that test a chapter"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the questions."""
    found = entries()
    if options.chapter:
        known = [chapters.chapter_number(path) for path in chapters.chapter_paths()]
        for number in options.chapter:
            if number not in known:
                raise UserError(
                    f"--chapter {number}: there is no such chapter. "
                    f"Fix: a number from {known[0]} to {known[-1]}."
                )
        kept = [testing(found, number) for number in options.chapter]
        found = [one for one in found if any(one in some for some in kept)]
        if not found:
            print("no question tests it")
            return 0
    print(listing(found))
    return 0
