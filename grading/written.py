"""The answers that students wrote, for a person to grade: found among the cells."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterator

import nbformat

from grading.assignment import ANSWER_MARK, PLACEHOLDER, Assignment

HEADING = re.compile(r"#{1,6}[ \t].*")
POINTS = re.compile(r"_Points:_ [\d.]+")  # otter-grader's, if the master says no more
MAX_ANSWER = 2**20  # characters of an answer
CUT = "(cut here: see the notebook)"


@dataclasses.dataclass(frozen=True)
class Part:
    """What of a cell belongs to a question."""

    cell: int  # its place in the notebook, from 0
    question: str  # that a person grades; or "" for all that is none's
    opens: bool  # a question's title, or its mark, stands before it
    text: str  # what is not the master's


@dataclasses.dataclass
class _Own:
    """What the master itself says in a question's section."""

    lines: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    text: set[str] = dataclasses.field(default_factory=set)  # words, not code

    def add(self, line: str, is_text: bool) -> None:
        """Note a line of the master's."""
        if flat := _flat(line):
            self.lines[flat] += 1
            if is_text and any(map(str.isalnum, flat)):
                self.text.add(flat)


@dataclasses.dataclass(frozen=True)
class _Master:
    """The students' notebook as the master makes it."""

    questions: set[str]  # that a person grades
    cells: set[str]  # the text of each cell
    titles: dict[str, str]  # the first line of each question: the question, or ""
    headings: set[str]  # the others, which end a section
    own: dict[str, _Own]  # by question


def answers(cells: list[tuple[str, str]], assignment: Assignment) -> dict[str, str]:
    """What the student wrote to the questions that a person grades.

    An answer is all that stands between its question's title, or its mark, and the next
    question or heading of the master's, and is not the master's own: in whatever cells,
    text or code.

    Args:
        cells: kind and source of each cell.
        assignment: names the questions, and has the cells that it brings along.

    Returns:
        The answer to each of these questions; an empty text where there is none.
    """
    found: dict[str, list[str]] = {
        one.name: [] for one in assignment.questions if one.manual
    }
    for part in parts(cells, assignment):
        if part.question and part.text:
            found[part.question].append(part.text)
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def parts(cells: list[tuple[str, str]], assignment: Assignment) -> Iterator[Part]:
    """The cells taken apart: what of each belongs to which question.

    Args:
        cells, assignment: see answers.
    """
    master = _master(assignment)
    left = {name: collections.Counter(one.lines) for name, one in master.own.items()}
    taken: collections.Counter[str] = collections.Counter()
    pattern = _boundaries(master)
    current = ""
    for index, (kind, source) in enumerate(cells):
        text = source.replace("\r\n", "\n")
        is_own = _flat(text) in master.cells
        if kind == "code" and is_own:
            yield Part(index, current, False, "")
            continue
        for boundary, piece in _pieces(text, pattern, master, kind == "code"):
            if boundary is not None and not _is_inside(boundary, current, master):
                current = _question(boundary, master)
            opens = boundary is not None and boundary not in master.headings
            written = ""
            room = MAX_ANSWER - taken[current]
            if current and not is_own and room >= 0:
                own, more = master.own[current], piece[:room]
                written = _written(more, own, left[current], kind == "code")
                written += f"\n{CUT}" * (len(piece) > room)
                taken[current] += len(piece)
            yield Part(index, current, opens, written)


def _master(assignment: Assignment) -> _Master:
    """What is known of the master's own text."""
    cells = assignment.student.cells
    manual = {one.name for one in assignment.questions if one.manual}
    titles = {one.title: one.name for one in assignment.questions}
    starts = _starts(cells, manual, titles)
    found = _Master(manual, {_flat(one.source) for one in cells}, {}, set(), {})
    found.own.update({name: _Own() for name in manual})
    current, asking = "", False  # asking: from the title to the mark
    for index, cell in enumerate(cells):
        is_text = cell.cell_type != "code"
        lines = cell.source.split("\n")
        if index in starts:
            current = starts[index]
            asking = bool(current)
            found.titles[_flat(_first_line(cell.source))] = current
        for line in lines:
            heading = is_text and HEADING.fullmatch(line.strip())
            if heading and not asking and _flat(line) not in found.titles:
                found.headings.add(_flat(line))
                current = ""
            if current:
                found.own[current].add(line, is_text)
        if _marked(cell, manual):
            asking = False
    return found


def _starts(
    cells: list[nbformat.NotebookNode], manual: set[str], titles: dict[str, str]
) -> dict[int, str]:
    """The cells with which the questions start; "" for one that no person grades."""
    starts: dict[int, str] = {}
    last = -1  # a text cell above
    for index, cell in enumerate(cells):
        if cell.cell_type == "code":
            continue
        if question := _marked(cell, manual):
            if question not in starts.values() and last >= 0:
                starts[last] = question
        elif (name := titles.get(plain(_first_line(cell.source)))) is not None:
            starts[index] = name if name in manual else ""
            last = index
        else:
            last = index
    return starts


def plain(line: str) -> str:
    """A title's words, without the marks of a heading or of emphasis."""
    return re.sub(r"[*_`#]", "", line).strip()


def _marked(cell: nbformat.NotebookNode, manual: set[str]) -> str:
    """The question whose answer a cell of the master's waits for; or ""."""
    for mark in ANSWER_MARK.finditer(cell.source):
        if mark["question"] in manual:
            return mark["question"]
    return ""


def _boundaries(master: _Master) -> re.Pattern:
    """What finds the marks, the titles and the master's headings in a text.

    More words may follow a title in its line, but not a heading.
    """

    def any_of(lines) -> str:
        longest_first = sorted(lines, key=len, reverse=True)
        words = (map(re.escape, line.split()) for line in longest_first)
        return "|".join(r"[ \t]+".join(line) for line in words) or "(?!)"

    return re.compile(
        rf"{ANSWER_MARK.pattern}|^[ \t]*(?P<title>{any_of(master.titles)})(?!\w)|"
        rf"^[ \t]*(?P<heading>{any_of(master.headings)})[ \t]*$",
        re.MULTILINE,
    )


def _pieces(
    text: str, pattern: re.Pattern, master: _Master, is_code: bool
) -> Iterator[tuple[str | None, str]]:
    """A text cut at marks, titles and headings, for cells can be merged.

    Yields:
        The boundary (a question's name in place of its mark), and what stands below it.
    """
    boundary, end = None, 0
    for found in pattern.finditer(text):
        mark = found["question"]
        if (mark and mark not in master.questions) or (is_code and not mark):
            continue
        if end or found.start() or boundary is not None:
            yield boundary, text[end : found.start()]
        boundary, end = mark or _flat(found["title"] or found["heading"]), found.end()
    yield boundary, text[end:]


def _is_inside(boundary: str, question: str, master: _Master) -> bool:
    """Whether a heading ends no section: the question's own text has one like it."""
    own = master.own.get(question)
    return boundary in master.headings and own is not None and boundary in own.lines


def _question(boundary: str, master: _Master) -> str:
    """Whose section starts at a boundary."""
    return boundary if boundary in master.questions else master.titles.get(boundary, "")


def _written(
    piece: str, own: _Own, left: collections.Counter[str], is_code: bool
) -> str:
    """What the student wrote in a piece of a section.

    Args:
        piece: the text.
        own: what the master says in this section.
        left: how often each line of the master's is still to come: code, and lines
            without a word, are the student's when they come more often.
        is_code: no line of it starts with the master's and goes on with the student's.
    """
    starts: dict[str, list[str]] = {}
    for line in sorted(own.text, key=len, reverse=True):
        starts.setdefault(line[0], []).append(line)
    kept = []
    for line in piece.replace(PLACEHOLDER, "").split("\n"):
        flat = _flat(line).lstrip("> ")
        if flat in own.text or POINTS.fullmatch(flat):
            continue
        if flat and left[flat] > 0:
            left[flat] -= 1
            continue
        for start in () if is_code else starts.get(flat[:1], ()):
            if flat.startswith(start) and not flat[len(start)].isalnum():
                line = flat[len(start) :].strip()
                break
        kept.append(line)
    if not is_code:
        return "\n".join(kept).strip()
    lines = itertools.dropwhile(lambda line: not line.strip(), kept)
    return "\n".join(lines).rstrip()  # the first line keeps its indentation


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _flat(text: str) -> str:
    """A text of which only the words count."""
    return " ".join(text.split())
