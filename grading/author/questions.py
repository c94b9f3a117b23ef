"""The list of questions: what they test, how long they take, what they are worth."""

from __future__ import annotations

from pathlib import Path

from grading.author import about, masters
from tools.model import chapters, files
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PAGE = Path("book", "for-teachers.md")
BEGIN, END = "% >>> questions\n", "% <<<\n"


def tables() -> str:
    """The tables of the page for teachers: by assignment, and by chapter."""
    lines = ["| assignment | core | minutes | points | by hand | extras |"]
    lines.append("|---|---|---|---|---|---|")
    testing: dict[int, list[str]] = {}  # the questions that test each chapter
    for path in masters.master_paths():
        questions = about.read(path, masters.read(path))
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
        for one in questions:
            label = f"{path.stem.partition('-')[0]}.{one.name}"
            for chapter in one.chapters:
                star = "\\*" if one.extra else ""
                testing.setdefault(chapter, []).append(f"{label}{star}")
    lines += ["", "| chapter | questions, extras with a star |", "|---|---|"]
    for path in chapters.chapter_paths(ROOT):
        number = chapters.chapter_number(path)
        labels = ", ".join(testing.get(number, []))
        lines.append(f"| [{number}](../notebooks/{path.name}) | {labels} |")
    return "\n".join(lines)


def write_tables() -> None:
    """Write the tables into the page for teachers.

    Raises:
        UserError: the page does not say where they stand.
    """
    path = ROOT / PAGE
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise UserError(
            f"{path}: no place for the tables of questions. "
            f"Fix: write the lines `{BEGIN.strip()}` and `{END.strip()}`."
        )
    files.write_text(path, f"{before}{begin}\n{tables()}\n\n{end}{after}")
