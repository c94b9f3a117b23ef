"""A master taken apart: its set-up, and what belongs to each question.

Between two questions stand cells of both. A heading `## ...` begins what belongs to the
question below it. Without one, what uses names of the question above still belongs to
that one, up to the last such cell and one text below it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import nbformat

from grading.assignment import Question
from grading.author import about, masters, names
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.notebooks import sync

HEADING = re.compile(r"## .*")
FENCE = re.compile(r"\s*(```|~~~)")
HAND_IN = "## Hand in"
Cells = list[nbformat.NotebookNode]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Part:
    """What belongs to a question."""

    master: Path
    question: Question
    section: str  # the heading that it stands under; "" if there is none
    before: list[Cells]  # given cells, by section
    sections: list[str]  # the heading that each of these stands under
    own: Cells  # from BEGIN QUESTION to END QUESTION
    after: Cells  # what shows the answer at work

    @property
    def cells(self) -> Cells:
        """All of its cells, in order."""
        return [
            *(cell for some in self.before for cell in some),
            *self.own,
            *self.after,
        ]

    @property
    def answers(self) -> set[str]:
        """The names that an answer binds; imports are none."""
        return {name for cell in self.own for name in _bound(cell)}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """A master."""

    path: Path
    head: nbformat.NotebookNode  # the text with its title
    set_up: str  # the set-up cell, as it is written
    known: set[str]  # the names that it binds
    parts: list[Part]
    end: str  # the section that says how to hand in; "" if there is none

    def part(self, name: str) -> Part:
        """The part of a question.

        Raises:
            UserError: there is no such question.
        """
        for one in self.parts:
            if one.question.name == name:
                return one
        known = ", ".join(one.question.name for one in self.parts) or "none"
        raise UserError(f"{self.path}: no question {name!r}. Fix: name one of {known}.")


@functools.cache
def read(path: Path, root: Path = ROOT) -> Parts:
    """Take a master apart.

    Raises:
        UserError: it is broken, or no set-up cell stands above its first question.
    """
    cells = [one for cell in masters.read(path).cells for one in _sections(cell)]
    begins = [n for n, one in enumerate(cells) if _is(one, about.BEGIN)]
    ends = [n for n, one in enumerate(cells) if _is(one, "# END QUESTION")]
    questions = masters.questions(path, root)
    if not questions or len(begins) != len(ends):
        raise UserError(
            f"{path}: {len(begins)} questions begin and {len(ends)} end. "
            "Fix: see CONTRIBUTING.md, Assignments."
        )
    at = next(
        (n for n, one in enumerate(cells[: begins[0]]) if masters.CHECKS in one.source),
        None,
    )
    if at is None:
        raise UserError(
            f"{path}: no set-up cell above its first question. "
            f"Fix: write one with the line `{masters.CHECKS}`."
        )
    set_up = cells[at].source
    full = sync.insert_snippets(set_up.partition(masters.CHECKS)[0], path.name, root)
    known = names.bound(nbformat.v4.new_code_cell(full)) | names.CHECKS
    known |= names.bound(nbformat.v4.new_code_cell(set_up.partition("# <<<\n")[2]))
    parts: list[Part] = []
    section, given = "", [*cells[1:at], *cells[at + 1 : begins[0]]]
    end = ""
    for number, (begin, stop) in enumerate(zip(begins, ends, strict=True)):
        last = number + 1 == len(begins)
        between = cells[stop + 1 : len(cells) if last else begins[number + 1]]
        if last:
            at = next((n for n, c in enumerate(between) if _hands_in(c)), len(between))
            end = "\n\n".join(one.source for one in between[at:])
            between = between[:at]
        own = cells[begin : stop + 1]
        after, below = (between, []) if last else _split(own, between)
        before, sections = _chunks(given), []
        for some in before:
            section = heading(some[0]) or section
            sections.append(section)
        question = questions[number]
        parts.append(Part(path, question, section, before, sections, own, after))
        for cell in after:
            section = heading(cell) or section
        given = below
    return Parts(path, cells[0], set_up, known, parts, end)


def _is(cell: nbformat.NotebookNode, mark: str) -> bool:
    return cell.cell_type == "raw" and cell.source.startswith(mark)


def _hands_in(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "markdown" and cell.source.startswith(HAND_IN)


def heading(cell: nbformat.NotebookNode) -> str:
    """The heading of a section that a cell begins with, or an empty text."""
    match = HEADING.match(cell.source) if cell.cell_type == "markdown" else None
    return match[0].strip() if match else ""


def _sections(cell: nbformat.NotebookNode) -> Cells:
    """A text cut before each heading of a section; another cell as it is."""
    if cell.cell_type != "markdown":
        return [cell]
    pieces: list[list[str]] = [[]]
    fenced = False
    for line in cell.source.splitlines():
        fenced ^= bool(FENCE.match(line))
        if HEADING.match(line) and not fenced:
            pieces.append([])
        pieces[-1].append(line)
    texts = ["\n".join(lines).strip() for lines in pieces]
    return [nbformat.v4.new_markdown_cell(text) for text in texts if text]


def _chunks(cells: Cells) -> list[Cells]:
    """Given cells by section."""
    chunks: list[Cells] = []
    for cell in cells:
        if not chunks or heading(cell):
            chunks.append([])
        chunks[-1].append(cell)
    return chunks


def _split(own: Cells, between: Cells) -> tuple[Cells, Cells]:
    """What stands between two questions: what belongs to the first, and the rest."""
    begin = next((n for n, one in enumerate(between) if heading(one)), None)
    if begin is not None:
        return between[:begin], between[begin:]
    answers = {name for cell in own for name in _bound(cell)}
    uses = [
        number
        for number, cell in enumerate(between)
        if answers & (names.used(cell) | names.quoted(cell))
    ]
    if not uses:
        return [], between
    cut = uses[-1] + 1
    cut += cut < len(between) and between[cut].cell_type == "markdown"
    return between[:cut], between[cut:]


def _bound(cell: nbformat.NotebookNode) -> set[str]:
    return names.bound(cell) - set(names.imports(cell))


@dataclasses.dataclass(frozen=True)
class Need:
    """A name that some cells use, and where it comes from."""

    name: str
    part: Part  # whose it is
    chunk: int | None  # which of its given cells bind it; None: its own, or those after
    imported: str = ""  # the line that imports it; "" if it is no import
    process: str = ""  # where: see names.process


def needs(master: Parts, cells: Cells, until: Part) -> list[Need]:
    """What some cells use that other cells of their master bind.

    Args:
        master: the cells are of this one.
        cells: in order.
        until: only what stands above this part's own cells can be meant.

    Returns:
        For each name the nearest place above that binds it. A name that no place binds
        is left out.
    """
    own = {(names.process(one), name) for one in cells for name in names.bound(one)}
    wanted = {(names.process(one), name) for one in cells for name in names.used(one)}
    texts = {name for one in cells for name in names.quoted(one)}
    return [
        need
        for key, need in _provided(master, until).items()
        if key not in own and (key in wanted or (need.process and need.name in texts))
    ]


def _provided(master: Parts, until: Part) -> dict[tuple[str, str], Need]:
    """The names that cells above a question bind, by process and name."""
    found: dict[tuple[str, str], Need] = {}
    for part in master.parts[: master.parts.index(until) + 1]:
        places: list[tuple[int | None, Cells]] = [*enumerate(part.before)]
        if part is not until:
            places.append((None, [*part.own, *part.after]))
        for chunk, cells in places:
            for cell in cells:
                for name in names.bound(cell):
                    key = (names.process(cell), name)
                    line = names.imports(cell).get(name, "")
                    found[key] = Need(name, part, chunk, line, key[0])
    return {key: need for key, need in found.items() if key not in _set_up(master)}


def _set_up(master: Parts) -> set[tuple[str, str]]:
    return {("", name) for name in master.known}
