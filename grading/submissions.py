"""The notebooks that students handed in: which there are, and what is in them."""

from __future__ import annotations

import dataclasses
import logging
import re
import warnings
from pathlib import Path

import nbformat

from grading.masters import ANSWER_MARK, PLACEHOLDER, Assignment
from grading.runner import Cell
from tools.errors import UserError

MAX_FILE = 30 * 2**20  # bytes of a notebook; pictures in its outputs count
MAX_CELL = 2**20  # characters of a cell
MAX_CELLS = 1000
IGNORED = (".ipynb_checkpoints", "__MACOSX")
# What learning platforms add to the names of folders and files.
ADDED = re.compile(r"_assignsubmission_(?:file|onlinetext)_?$")


@dataclasses.dataclass(frozen=True)
class Submission:
    """A file that was handed in."""

    student: str  # what tells it from the others: a part of its path
    path: Path

    @property
    def folder(self) -> str:
        """The name of its folder of results: the student's, made safe for a file."""
        return re.sub(r"[^\w. -]", "_", self.student).strip(". ") or "_"


@dataclasses.dataclass(frozen=True)
class Content:
    """What a submission holds."""

    cells: list[Cell] = dataclasses.field(default_factory=list)
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # by question
    problem: str = ""  # why it can't be read


def find(folder: Path, assignment: str) -> list[Submission]:
    """The submissions in a folder, as downloaded from a learning platform and unpacked.

    Args:
        folder: holds a notebook for each student, or a folder for each student.
        assignment: its name; what the file's name repeats of it is left out.

    Raises:
        UserError: there is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        hint = "unpack it first" if folder.is_file() else "see SUBMISSIONS"
        raise UserError(f"{folder}: no such folder. Fix: {hint}.")
    paths = sorted(
        path
        for path in folder.rglob("*.ipynb")
        if not any(
            part in IGNORED or part.startswith(".")
            for part in path.relative_to(folder).parts
        )
    )
    if not paths:
        raise UserError(
            f"{folder}: holds no notebook (*.ipynb). "
            "Fix: name the folder with the students' files."
        )
    names = [_name(path.relative_to(folder), assignment, short=True) for path in paths]
    taken: set[str] = set()
    found: list[Submission] = []
    for path, name in zip(paths, names, strict=True):
        if names.count(name) > 1:
            name = _name(path.relative_to(folder), assignment, short=False)
        one = Submission(name, path)
        number = 2
        while one.folder.casefold() in taken:
            one = Submission(f"{name} ({number})", path)
            number += 1
        taken.add(one.folder.casefold())
        found.append(one)
    return found


def _name(path: Path, assignment: str, short: bool) -> str:
    """Whose a file is: its folder's name, or its own without the assignment's."""
    stem = path.stem
    own = re.sub(rf"[\s_-]*{re.escape(assignment)}(?:[\s_-]*\(?\d+\)?)?$", "", stem)
    own = own or stem
    if len(path.parts) == 1:
        name = own if short else stem
    else:
        name = ADDED.sub("", path.parts[0])
        if not short:
            name = f"{name} - {' - '.join([*path.parts[1:-1], stem])}"
    return name.encode(errors="replace").decode()


def read(path: Path, assignment: Assignment) -> Content:
    """What a submission holds; whatever is wrong with it is told, never raised."""
    try:
        if path.is_symlink() or not path.is_file():
            return Content(problem="this is no ordinary file")
        size = path.stat().st_size
        if size > MAX_FILE:
            return Content(
                problem=f"the file is too large: {size / 2**20:.0f} MiB, and at most "
                f"{MAX_FILE / 2**20:.0f} are read. Fix: clear the outputs."
            )
        text = path.read_text(encoding="utf-8")
        if not text.strip():
            return Content(problem="the file is empty")
        notebook = _parse(text)
        cells = [_cell(cell) for cell in notebook.cells]
    except OSError as error:
        return Content(problem=f"the file can't be read ({error.strerror})")
    except Exception as error:  # UnicodeDecodeError, RecursionError, nbformat's own
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        return Content(problem=f"this is not a notebook ({reason})")
    if len(cells) > MAX_CELLS:
        return Content(problem=f"the notebook has more than {MAX_CELLS} cells")
    for number, (_, source) in enumerate(cells, start=1):
        if len(source) > MAX_CELL:
            return Content(
                problem=f"cell {number} is longer than {MAX_CELL} characters"
            )
    code = [
        Cell(number, source)
        for number, (kind, source) in enumerate(cells, start=1)
        if kind == "code" and source.strip()
    ]
    return Content(code, written_answers(cells, assignment))


def _parse(text: str) -> nbformat.NotebookNode:
    """A notebook from its text; nbformat's complaints are not for the terminal."""
    logger = logging.getLogger("traitlets")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            return nbformat.reads(text, as_version=4)
    finally:
        logger.setLevel(level)


def _cell(cell: nbformat.NotebookNode) -> tuple[str, str]:
    """A cell's kind and source."""
    kind, source = cell["cell_type"], cell["source"]
    if not isinstance(kind, str) or not isinstance(source, str):
        raise TypeError("a cell's source is no text")
    return kind, source


def written_answers(
    cells: list[tuple[str, str]], assignment: Assignment
) -> dict[str, str]:
    """What the student wrote to the questions that a person grades.

    An answer starts at its mark, and goes on in the text cells below it up to the next
    heading or code cell.

    Args:
        cells: kind and source of each cell.
        assignment: names the questions.

    Returns:
        The answer to each of these questions; an empty text where there is none.
    """
    answers = {one.name: "" for one in assignment.questions if one.manual}
    current = ""
    for kind, source in cells:
        mark = ANSWER_MARK.search(source)
        if kind != "markdown":
            current = ""
            continue
        if mark and mark["question"] in answers:
            current = mark["question"]
            source = source.replace(mark[0], "", 1)
        elif source.lstrip().startswith("#"):
            current = ""
        if current:
            text = source.replace(PLACEHOLDER, "").strip()
            answers[current] = f"{answers[current]}\n\n{text}".strip()
    return answers
