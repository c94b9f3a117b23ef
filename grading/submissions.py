"""The notebooks that students handed in: which there are, and what is in them."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import os
import re
import stat
import unicodedata
from pathlib import Path

from grading import text, written
from grading.assignment import Assignment
from grading.runner import Cell
from tools.model.errors import UserError

MAX_FILE = 30 * 2**20  # bytes of a notebook; pictures in its outputs count
MAX_CELL = 2**20  # characters of a code cell
MAX_CELLS = 1000
MAX_LISTED = 3  # files that the problem of a folder without a notebook names
MAX_NAME = 100  # bytes of the name of a folder of results
ENDING = re.compile(r"\.ipynb(\.txt|\.json)?$", re.I)  # browsers add what it is
IGNORED = (".ipynb_checkpoints", "__MACOSX")
# What learning platforms add to the names of folders and files.
ADDED = re.compile(r"_assignsubmission_(?:file|onlinetext)_?$")
# A picture that was pasted into a text.
DATA = re.compile(r"""(data:)[\w.+/;=-]{0,80},[^\s"'()<>]{100,}""")
# How files begin that are handed in by mistake, and what they are.
OTHERS = {b"%PDF": "a PDF", b"PK": "a zip or an office file", b"<": "a web page"}
NUMBERED = re.compile(r"Assignment \d+")  # how the book's own titles begin


class Unreadable(Exception):
    """What a file holds can't be read; the message says why."""


@dataclasses.dataclass(frozen=True)
class Person:
    """Somebody who takes the course."""

    number: str
    name: str
    mail: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.number, self.name, self.mail)))


@dataclasses.dataclass(frozen=True)
class Submission:
    """A file that was handed in."""

    student: str  # what tells it from the others: a part of its path, in one line
    path: Path
    folder: str = ""  # the name of its folder of results
    place: str = ""  # its path below the folder of submissions
    problem: str = ""  # why it can't be read, if that is known already
    person: Person | None = None  # whose it is, by the roster
    instead: str = ""  # why it does not count, if it does not


@dataclasses.dataclass(frozen=True)
class Content:
    """What a submission holds."""

    cells: list[Cell] = dataclasses.field(default_factory=list)
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # by question
    problem: str = ""  # why it can't be read
    digest: str = ""  # of all that was read, or of the problem


def find(folder: Path, assignment: str) -> list[Submission]:
    """The submissions in a folder, as downloaded from a learning platform and unpacked.

    Whatever can't be read is among them, with its problem; so are other files, folders
    that hold no notebook, and links.

    Args:
        folder: holds a notebook for each student, or a folder for each student.
        assignment: its name; what the file's name repeats of it is left out.

    Raises:
        UserError: there is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        hint = "unpack it first" if folder.is_file() else "see SUBMISSIONS"
        raise UserError(f"{folder}: no such folder. Fix: {hint}.")
    problems = _notebooks(folder)
    if Path() in problems:
        raise UserError(f"{folder}: {problems[Path()]}. Fix: see its permissions.")
    if not problems:
        raise UserError(
            f"{folder}: holds no notebook (*.ipynb). "
            "Fix: name the folder with the students' files."
        )
    problems |= _without_notebook(folder, {place.parts[0] for place in problems})
    return _named(folder, problems, assignment)


def _notebooks(folder: Path) -> dict[Path, str]:
    """Each notebook below a folder, and each folder that can't be read, with why."""
    problems = {}

    def unreadable(error: OSError) -> None:
        place = Path(error.filename).relative_to(folder)
        problems[place] = f"the folder can't be read ({error.strerror})"

    for current, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in folders + names:
            # On a Mac, `._x` is a note about the file `x`.
            if ENDING.search(name) and not name.startswith("._"):
                problems[Path(current, name).relative_to(folder)] = ""
    return problems


def _without_notebook(folder: Path, known: set[str]) -> dict[Path, str]:
    """The other files, folders and links in a folder, with why they are no notebook.

    Args:
        folder: holds the submissions.
        known: the names in it of what holds a notebook, or can't be read.
    """
    problems = {}
    for path in folder.iterdir():
        if path.name in {*known, *IGNORED} or path.name.startswith("."):
            continue
        problem = "this is no notebook (*.ipynb)"
        if path.is_symlink():
            problem = "this is a link"
        elif path.is_dir():
            names = sorted(text.file_name(one.name)[:60] for one in path.iterdir())
            more = ["..."] if len(names) > MAX_LISTED else []
            inside = ", ".join(names[:MAX_LISTED] + more) or "it is empty"
            problem = f"there is no notebook (*.ipynb) in it: {inside}"
        problems[Path(path.name)] = problem
    return problems


def _named(
    folder: Path, problems: dict[Path, str], assignment: str
) -> list[Submission]:
    """The submissions, in order of their names, which depend on nothing but the paths.

    Names that are alike get a number from their paths, and so does one that looks as if
    it had such a number: whoever comes later gets nobody's name.
    """
    names = {place: _name(place, assignment, problems[place]) for place in problems}
    alike = collections.Counter(folder_name(name).casefold() for name in names.values())
    submissions = []
    for place, name in names.items():
        own, more = folder_name(name), ""
        if alike[own.casefold()] > 1 or re.search(r" [0-9a-f]{16}$", own.casefold()):
            more = f" {hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
        submissions.append(
            Submission(
                f"{name}{more}",
                folder / place,
                f"{own}{more}",
                str(place),
                problems[place],
            )
        )
    return sorted(submissions, key=lambda one: one.student)


def _name(place: Path, assignment: str, problem: str) -> str:
    """Whose a file is: its path without what platforms and the assignment's name add.

    Args:
        place: its path below the folder of submissions.
        assignment: its name.
        problem: not empty for what is no notebook, but another file or a folder.
    """
    *folders, own = place.parts
    stem = own if problem else ENDING.sub("", own)
    stem = re.sub(rf"(?:^|[\s_-]+){re.escape(assignment)}$", "", stem)
    parts = [ADDED.sub("", part) for part in (*folders, stem)]
    return text.file_name(" - ".join(filter(None, parts)) or own).strip() or "_"


def folder_name(student: str) -> str:
    """A student's name made safe and short enough for a folder."""
    name = unicodedata.normalize("NFC", student)
    name = re.sub(r"[^\w. -]", "_", name)
    return name.encode()[:MAX_NAME].decode(errors="ignore").strip(". ") or "_"


def read(path: Path, assignment: Assignment) -> Content:
    """What a submission holds; whatever is wrong with it is told, never raised.

    The file is read once: what is graded is what the digest was made of.
    """
    data = b""
    try:
        data = _bytes(path)
        cells = _cells(data)
    except Unreadable as error:
        return unreadable(str(error), data)
    code = [
        Cell(number, source)
        for number, (kind, source, _) in enumerate(cells, start=1)
        if kind == "code" and source.strip()
    ]
    if any(len(cell.source) > MAX_CELL for cell in code):
        return unreadable(f"a code cell has more than {MAX_CELL} characters", data)
    texts = "\n".join(source for kind, source, _ in cells if kind == "markdown")
    title = re.search(r"^# (.+)", texts, re.MULTILINE)
    mine, theirs = (
        NUMBERED.match(x) for x in (assignment.title, title[1] if title else "")
    )
    if mine and theirs and mine[0] != theirs[0]:
        return unreadable(f"this is another one: {text.one_line(title[1])[:80]}", data)
    short = [(kind, DATA.sub(_shortened, source)) for kind, source, _ in cells]
    answers = {
        name: text.several_lines(answer)
        for name, answer in written.answers(short, assignment).items()
    }
    return Content(code, answers, digest=hashlib.sha256(data).hexdigest())


def unreadable(problem: str, data: bytes = b"") -> Content:
    """The content of a submission that can't be read.

    Args:
        problem: why.
        data: as much of the file as was read.
    """
    digest = hashlib.sha256(problem.encode() + data).hexdigest()
    return Content(problem=problem, digest=digest)


def read_cells(path: Path) -> list[tuple[str, str, dict]]:
    """Kind, source and all else of each cell of a submission.

    Raises:
        Unreadable: it holds no notebook.
    """
    return _cells(_bytes(path))


def _bytes(path: Path) -> bytes:
    """A file's bytes, at most one more than a notebook may have.

    A link is not followed, a pipe is not waited for, and a file that grows has an end.

    Raises:
        Unreadable: it is something else than a file, or can't be opened.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # Some devices act on being opened.
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unreadable("this is no ordinary file")
        with os.fdopen(os.open(path, flags), "rb") as file:
            return file.read(MAX_FILE + 1)
    except OSError as error:
        raise Unreadable(f"the file can't be read ({error.strerror})") from None


def _cells(data: bytes) -> list[tuple[str, str, dict]]:
    """Kind, source and all else of each cell of a notebook.

    Nothing else of the file counts, so nothing else in it can be broken. (nbformat
    would look at each of a million outputs.)

    Raises:
        Unreadable: this is no notebook, or one that is too large.
    """
    if not data.strip():
        raise Unreadable("the file is empty")
    if len(data) > MAX_FILE:
        raise Unreadable(
            f"the file is too large: at most {MAX_FILE / 2**20:.0f} MiB are read. "
            "Fix: clear the outputs"
        )
    try:
        cells = json.loads(data)["cells"]  # in UTF-8, -16 or -32
        if not isinstance(cells, list):
            raise ValueError("its cells are no list")
        if len(cells) <= MAX_CELLS:
            return [_cell(number, cell) for number, cell in enumerate(cells, start=1)]
    except Exception as error:  # UnicodeDecodeError, RecursionError, MemoryError, ...
        for begin, kind in OTHERS.items():
            if data.lstrip().startswith(begin):
                raise Unreadable(f"this is {kind}, not a notebook") from None
        missing = isinstance(error, (LookupError, TypeError))
        reason = "it has no cells" if missing else str(error)
        reason = " ".join(reason.split())[:120] or type(error).__name__
        raise Unreadable(f"this is not a notebook ({text.one_line(reason)})") from None
    raise Unreadable(f"the notebook has more than {MAX_CELLS} cells")


def _cell(number: int, cell) -> tuple[str, str, dict]:
    """A cell's kind, source and all else.

    Raises:
        ValueError: it has none.
    """
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        raise ValueError(f"cell {number} has no type")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise ValueError(f"the source of cell {number} is no text")
    return cell["cell_type"], source, cell


def _shortened(match: re.Match) -> str:
    """A pasted picture for a person to read: another picture is another text."""
    digest = hashlib.sha256(match[0].encode(errors="replace")).hexdigest()
    return f"{match[1]}...{digest[:10]}"
