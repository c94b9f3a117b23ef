"""The list of questions: what they test, how long they take, what they are worth."""

from __future__ import annotations

from pathlib import Path

from grading.assignment import Question
from grading.author import about, masters
from tools.model import chapters, files
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PAGE = Path("book", "for-teachers.md")
BEGIN, END = "% >>> questions\n", "% <<<\n"


def by_master(root: Path = ROOT) -> dict[Path, list[Question]]:
    """The questions of all masters, in order."""
    return {path: masters.questions(path, root) for path in masters.master_paths(root)}


def testing(number: int, root: Path = ROOT) -> list[str]:
    """The questions that test a chapter, such as `1.q4`; extras end with a star."""
    return [
        f"{path.stem.partition('-')[0]}.{one.name}{'*' if one.extra else ''}"
        for path, questions in by_master(root).items()
        for one in questions
        if number in one.chapters
    ]


def tables(root: Path = ROOT) -> str:
    """The tables of the page for teachers: by assignment, and by chapter."""
    lines = ["| assignment | core | minutes | points | by hand | extras |"]
    lines.append("|---|---|---|---|---|---|")
    for path, questions in by_master(root).items():
        core = [one for one in questions if not one.extra]
        extras = [one for one in questions if one.extra]
        size = f": {about.size(extras)}" if extras else ""
        cells = [
            f"[{path.stem.replace('-', ': ', 1).replace('-', ' ')}]"
            f"(../assignments/{path.stem}.ipynb)",
            ", ".join(one.name for one in core),
            str(about.minutes(core) or ""),
            f"{sum(one.points for one in core):g}",
            ", ".join(one.name for one in core if one.manual),
            ", ".join(one.name for one in extras) + size,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| chapter | questions, extras with a star |", "|---|---|"]
    for path in chapters.chapter_paths(root):
        number = chapters.chapter_number(path)
        labels = ", ".join(testing(number, root)).replace("*", "\\*")
        lines.append(f"| [{number}](../notebooks/{path.name}) | {labels} |")
    return "\n".join(lines)


def write_tables(check: bool, root: Path = ROOT) -> bool:
    """Write the tables into the page for teachers, if they have changed.

    Args:
        check: only say so.
        root: the repository's folder.

    Returns:
        Whether they had changed.

    Raises:
        UserError: the page does not say where they stand.
    """
    path = root / PAGE
    old = path.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(
            f"{path}: no place for the tables of questions. "
            f"Fix: write the lines `{BEGIN.strip()}` and `{END.strip()}`."
        )
    new = f"{before}{begin}\n{tables(root)}\n\n{end}{after}"
    if new == old:
        return False
    if check:
        print(f"{PAGE}: not the questions of the masters. Fix: make assignments.")
    else:
        files.write_text(path, new)
        print(f"{PAGE}: its tables are those of the masters.")
    return True
