"""The answers that students wrote, for a person to grade: found among the cells."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator

from grading.assignment import ANSWER_MARK, PLACEHOLDER, Assignment

HEADING = re.compile(r"#{1,6}[ \t].*")
MAX_TEXT = 2**20  # characters of a notebook that are looked at
CUT = "(cut here: see the notebook)"


@dataclasses.dataclass(frozen=True)
class Part:
    """What of a cell belongs to a question."""

    cell: int  # its place in the notebook, from 0
    question: str  # that a person grades; or "" for all that is none's
    opens: bool  # a question's title, or its mark, stands before it
    text: str  # what is not the master's


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
    master = _Master(assignment)
    room = MAX_TEXT
    current = ""
    for index, (kind, source) in enumerate(cells):
        is_text, is_own = kind != "code", _flat(source) in master.cells
        if is_own and not is_text:
            yield Part(index, current, False, "")
            continue
        opens, kept, begun = False, [], False
        cut = [CUT] if len(source) > room else []
        source = source[:room]
        room -= len(source)
        for line in [*_lines(source), *cut]:
            found = master.boundary(line, current, is_text)
            if found is not None:
                if begun:
                    yield Part(index, current, opens, _joined(kept, is_text))
                current, opens, line = found
                kept = []
            begun = begun or found is not None or bool(line.strip())
            if not current or is_own:
                continue
            if written := master.written(line, current):
                kept.append(written)
            elif kept:
                kept.append("")
        yield Part(index, current, opens, _joined(kept, is_text))


class _Master:
    """What is known of the master's own text.

    Args:
        assignment: see answers.
    """

    def __init__(self, assignment: Assignment) -> None:
        cells = assignment.student.cells
        self.cells = {_flat(one.source) for one in cells}
        self.manual = {one.name for one in assignment.questions if one.manual}
        self.titles = {
            plain(one.title): one.name if one.manual else ""
            for one in sorted(assignment.questions, key=lambda one: -len(one.title))
        }
        self.headings: set[str] = set()  # that end a section
        # By question, the words in its section, and how often each line is to come:
        # code, and lines without a word, are the student's when they come more often.
        self.text = {name: set() for name in self.manual}
        self.left = {name: collections.Counter() for name in self.manual}
        current, asking = "", False  # asking: from the title to the mark
        for cell in cells:
            is_text = cell.cell_type != "code"
            for line in _lines(cell.source):
                found = self.boundary(line, current, is_text)
                if found is not None and found[1]:
                    marked = ANSWER_MARK.fullmatch(line)
                    current, asking = found[0], bool(found[0]) and not marked
                elif is_text and HEADING.fullmatch(line.strip()) and not asking:
                    self.headings.add(_flat(line))
                    current = ""
                if current and (flat := _flat(line)):
                    self.left[current][flat] += 1
                    if is_text and any(map(str.isalnum, flat)):
                        self.text[current].add(flat)

    def boundary(
        self, line: str, current: str, is_text: bool
    ) -> tuple[str, bool, str] | None:
        """Where a section starts: whose, whether by title or mark, what follows it.

        Args:
            line: of a cell.
            current: the question in whose section it stands, or "".
            is_text: the cell is no code, in which marks alone count.
        """
        mark = ANSWER_MARK.fullmatch(line)
        if mark and mark["question"] in self.manual:
            return mark["question"], True, ""
        if not is_text:
            return None
        words = plain(line)
        for title, name in self.titles.items():
            rest = words.removeprefix(title)
            if words.startswith(title) and not rest[:1].isalnum():
                return name, True, rest
        flat = _flat(line)
        if flat in self.headings and not (current and flat in self.left[current]):
            return "", False, ""
        return None

    def written(self, line: str, question: str) -> str:
        """What of a line in a question's section the student wrote."""
        line = line.replace(PLACEHOLDER, "")
        flat, left = _flat(line).lstrip("> "), self.left[question]
        if flat in self.text[question]:
            return ""
        if left[flat] > 0:
            left[flat] -= 1
            return ""
        return line


def plain(line: str) -> str:
    """A title's words, without the marks of a heading or of emphasis."""
    return " ".join(re.sub(r"[*_`#]", "", line).split())


def _lines(source: str) -> list[str]:
    """The lines of a cell; a mark is a line of its own, for cells can be merged."""
    return ANSWER_MARK.sub(r"\n\g<0>\n", source.replace("\r\n", "\n")).split("\n")


def _joined(lines: list[str], is_text: bool) -> str:
    """Lines as a text; the first one of code keeps its indentation."""
    joined = "\n".join(lines)
    return joined.strip() if is_text else joined.rstrip()


def _flat(text: str) -> str:
    """A text of which only the words count."""
    return " ".join(text.split())
