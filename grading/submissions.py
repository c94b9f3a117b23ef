"""The notebooks that students handed in: which there are, and what is in them."""

from __future__ import annotations

import collections
import dataclasses
import gc
import hashlib
import json
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from grading import text, written
from grading.assignment import Assignment
from grading.runner import Cell
from tools.model.errors import UserError

MAX_FILE = 30 * 2**20  # bytes of a notebook; pictures in its outputs count
MAX_CELL = 2**20  # characters of a code cell
MAX_CELLS = 1000
MAX_LISTED = 3  # files that the problem of a folder without a notebook names
MAX_FOLDER = 110  # bytes of a folder's name, without the number of a second one
ENDING = ".ipynb"
IGNORED = (".ipynb_checkpoints", "__MACOSX")
# What learning platforms add to the names of folders and files.
ADDED = re.compile(r"_assignsubmission_(?:file|onlinetext)_?$")
# What Windows takes for a device.
RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
# A picture that was pasted into a text.
DATA = re.compile(r"""(data:)[\w.+/;=-]{0,80},[^\s"'()<>]{100,}""")


class NotOrdinary(Exception):
    """A folder, a link, a pipe, a device: nothing that holds a notebook."""


@dataclasses.dataclass(frozen=True)
class Submission:
    """A file that was handed in."""

    student: str  # what tells it from the others: a part of its path, in one line
    path: Path
    folder: str = ""  # the name of its folder of results
    place: str = ""  # its path below the folder of submissions
    problem: str = ""  # why it can't be read, if that is known already


@dataclasses.dataclass(frozen=True)
class Content:
    """What a submission holds."""

    cells: list[Cell] = dataclasses.field(default_factory=list)
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # by question
    problem: str = ""  # why it can't be read
    digest: str = ""  # of all that was read, or of the problem


def find(
    folder: Path,
    assignment: str,
    known: dict[str, str] | None = None,
    kept: dict[str, str] | None = None,
) -> list[Submission]:
    """The submissions in a folder, as downloaded from a learning platform and unpacked.

    Whatever can't be read is among them, with its problem; so are other files, folders
    that hold no notebook, and links.

    Args:
        folder: holds a notebook for each student, or a folder for each student.
        assignment: its name; what the file's name repeats of it is left out.
        known: the students of an earlier run, by their files' paths below the folder;
            they keep their names, whoever comes later.
        kept: the names of their folders of results, in the same way. Without them, two
            parts of a folder could take the same one.

    Raises:
        UserError: there is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        hint = "unpack it first" if folder.is_file() else "see SUBMISSIONS"
        raise UserError(f"{folder}: no such folder. Fix: {hint}.")
    problems = {path.relative_to(folder): said for path, said in _walk(folder)}
    if Path() in problems:
        raise UserError(f"{folder}: {problems[Path()]}. Fix: see its permissions.")
    if not problems:
        raise UserError(
            f"{folder}: holds no notebook (*.ipynb). "
            "Fix: name the folder with the students' files."
        )
    problems |= _without_notebook(folder, {place.parts[0] for place in problems})
    places = sorted(problems)
    students = _students(places, assignment, known or {}, problems)
    folders = _folders(students, kept or {})
    return [
        Submission(name, folder / place, folders[place], str(place), problems[place])
        for place, name in sorted(students)
    ]


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each notebook below a folder, and each folder that can't be read, with why.

    Links are not followed. (os.walk would end at a folder nested a thousand deep.)
    """
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(current) as entries:
                inside = [
                    (Path(one.path), one.is_dir(follow_symlinks=False))
                    for one in entries
                    if not _ignored(one.name, top=current == folder)
                ]
        except OSError as error:
            yield current, f"the folder can't be read ({error.strerror})"
            continue
        for path, is_folder in inside:
            if path.name.lower().endswith(ENDING):
                yield path, ""
            if is_folder:
                waiting.append(path)


def _ignored(name: str, top: bool) -> bool:
    """Whether a file or folder is none of a student's: most hidden ones are not.

    Args:
        name: of the file or folder.
        top: it lies right in the folder of submissions, where a hidden notebook can be
            all that a student handed in; `._x` is a Mac's note about the file `x`.
    """
    if name in IGNORED or not name.startswith("."):
        return name in IGNORED
    if not name.removesuffix(ENDING).strip("."):
        return False
    notebook = name.lower().endswith(ENDING) and not name.startswith("._")
    return not (top and notebook)


def _without_notebook(folder: Path, found: set[str]) -> dict[Path, str]:
    """The other files, folders and links, in which no notebook was found, with why.

    Args:
        folder: holds the submissions.
        found: the names in it of what holds a notebook, or can't be read.
    """
    problems = {}
    with os.scandir(folder) as entries:
        for one in entries:
            if one.name in found or _ignored(one.name, top=True):
                continue
            if one.is_symlink():
                problems[Path(one.name)] = "this is a link"
            elif one.is_file():
                problems[Path(one.name)] = f"this is no notebook (*{ENDING})"
            elif one.is_dir():
                inside = _listed(Path(one.path))
                said = f"there is no notebook (*{ENDING}) in it: {inside}"
                problems[Path(one.name)] = said
    return problems


def _listed(folder: Path) -> str:
    """Some of what a folder holds, for a message."""
    try:
        names = sorted(text.file_name(one.name)[:60] for one in folder.iterdir())
    except OSError as error:
        return f"it can't be read ({error.strerror})"
    more = ["..."] if len(names) > MAX_LISTED else []
    return ", ".join(names[:MAX_LISTED] + more) or "it is empty"


def _students(
    places: list[Path], assignment: str, known: dict[str, str], problems: dict
) -> list[tuple[Path, str]]:
    """Whose each file is: those known from an earlier run first."""

    def name(place: Path, short: bool) -> str:
        return _name(place, assignment, short, is_folder=bool(problems[place]))

    shorts = {place: name(place, short=True) for place in places}
    files = collections.Counter(_same(short) for short in shorts.values())
    taken: set[str] = set()
    found = [
        (place, _free(known[str(place)], taken))
        for place in places
        if str(place) in known
    ]
    for place, short in shorts.items():
        if str(place) not in known:
            alone = files[_same(short)] == 1 and _same(short) not in taken
            wanted = short if alone else name(place, short=False)
            found.append((place, _free(wanted, taken)))
    return found


def _folders(students: list[tuple[Path, str]], kept: dict[str, str]) -> dict[Path, str]:
    """The folder of each student's results: first those that an earlier run made."""
    taken: set[str] = set()
    folders = {}
    for place, name in sorted(students):
        own, folder = kept.get(str(place), ""), folder_name(name)
        if own == folder or re.fullmatch(rf"{re.escape(folder)} \(\d+\)", own):
            folders[place] = _free(own, taken)
    for place, name in sorted(students):
        if place not in folders:
            folders[place] = _free(folder_name(name), taken)
    return folders


def _name(place: Path, assignment: str, short: bool, is_folder: bool) -> str:
    """Whose a file is: its folder's name, or its own without the assignment's."""
    stem = place.name if is_folder else place.stem
    own = re.sub(rf"[\s_-]*{re.escape(assignment)}(?:[\s_-]*\(?\d+\)?)?$", "", stem)
    if len(place.parts) == 1 and not is_folder:
        name = own if short and own else stem
    else:
        name = ADDED.sub("", place.parts[0])
        if not short and len(place.parts) > 1:
            name = f"{name} - {' - '.join([*place.parts[1:-1], stem])}"
    return text.file_name(name).strip() or "_"


def _same(name: str) -> str:
    """What is equal for names that a person, or a file system, may take for one."""
    return unicodedata.normalize("NFKC", name).casefold()


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken already; then it is taken."""
    free, number = name, 2
    while _same(free) in taken:
        free = f"{name} ({number})"
        number += 1
    taken.add(_same(free))
    return free


def folder_name(student: str) -> str:
    """A student's name made safe for a folder, on any file system."""
    name = unicodedata.normalize("NFC", student)
    name = re.sub(r"[^\w. -]", "_", name).strip(". ") or "_"
    if RESERVED.fullmatch(name):
        name = f"_{name}"
    if len(name.encode()) <= MAX_FOLDER:
        return name
    digest = hashlib.sha256(student.encode()).hexdigest()[:8]
    start = name.encode()[: MAX_FOLDER - 9].decode(errors="ignore").strip(". ")
    return f"{start}-{digest}"


def read(path: Path, assignment: Assignment) -> Content:
    """What a submission holds; whatever is wrong with it is told, never raised.

    The file is read once: what is graded is what the digest was made of.
    """
    data = b""
    try:
        data = _bytes(path)
        problem, cells = _problem(data), []
        if not problem:
            cells = _cells(data)
            if len(cells) > MAX_CELLS:
                problem = f"the notebook has more than {MAX_CELLS} cells"
    except NotOrdinary:
        problem = "this is no ordinary file"
    except OSError as error:
        problem = f"the file can't be read ({error.strerror})"
    except Exception as error:  # UnicodeDecodeError, RecursionError, MemoryError, ...
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        problem = f"this is not a notebook ({text.one_line(reason)})"
    if problem:
        return unreadable(problem, data)
    code = [
        Cell(number, _short_enough(source))
        for number, (kind, source) in enumerate(cells, start=1)
        if kind == "code" and source.strip()
    ]
    short = [(kind, DATA.sub(_shortened, source)) for kind, source in cells]
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


def _bytes(path: Path) -> bytes:
    """A file's bytes, at most one more than a notebook may have.

    A link is not followed, a pipe is not waited for, and a file that grows has an end.

    Raises:
        NotOrdinary: it is something else than a file.
        OSError: it can't be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):  # some devices act on being opened
        raise NotOrdinary
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotOrdinary
        return file.read(MAX_FILE + 1)


def _problem(data: bytes) -> str:
    """What keeps a file from being parsed; an empty text if nothing does."""
    if not data.strip():
        return "the file is empty"
    if len(data) > MAX_FILE:
        return (
            f"the file is too large: at most {MAX_FILE / 2**20:.0f} MiB are read. "
            "Fix: clear the outputs"
        )
    return ""


def _short_enough(source: str) -> str:
    """A code cell's source; of one that is too long, code that says so."""
    if len(source) <= MAX_CELL:
        return source
    said = f"this cell is longer than {MAX_CELL} characters, so it was left out"
    return f'raise ValueError("{said}")'


def _shortened(match: re.Match) -> str:
    """A pasted picture for a person to read: another picture is another text."""
    digest = hashlib.sha256(match[0].encode(errors="replace")).hexdigest()
    return f"{match[1]}...{digest[:10]}"


def _cells(data: bytes) -> list[tuple[str, str]]:
    """Kind and source of each cell of a notebook, in nbformat 4, 3 or 2.

    Nothing else of the file counts, so nothing else in it can be broken. (nbformat
    would look at each of a million outputs.)

    Raises:
        Exception: of many kinds, if this is no notebook.
    """
    cells = _raw_cells(data)
    return [_cell(number, cell) for number, cell in enumerate(cells, start=1)]


def whole_cells(path: Path) -> list[tuple[str, str, dict]]:
    """Kind, source and all else of each cell of a submission that could be read.

    Raises:
        Exception: of many kinds, if it can't be read any more.
    """
    data = _bytes(path)
    if problem := _problem(data):
        raise ValueError(problem)
    cells = _raw_cells(data)[:MAX_CELLS]
    return [(*_cell(number, one), one) for number, one in enumerate(cells, start=1)]


def _raw_cells(data: bytes) -> list:
    """The cells of a notebook, of which nothing is known.

    Raises:
        Exception: of many kinds, if this is no notebook.
    """
    notebook = _parse(data)
    if not isinstance(notebook, dict) or not {"cells", "worksheets"} & notebook.keys():
        raise ValueError("it has no cells")
    if "cells" in notebook:
        cells = notebook["cells"]
    else:  # before nbformat 4
        cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    if not isinstance(cells, list):
        raise ValueError("its cells are no list")
    return cells


def _parse(data: bytes):
    """The value that a JSON text stands for: UTF-8, -16 or -32, with a mark or without.

    Python's search for garbage would take most of the time of a deep one.
    """
    gc.disable()
    try:
        return json.loads(data)
    finally:
        gc.enable()


def _cell(number: int, cell) -> tuple[str, str]:
    """A cell's kind and source."""
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        raise ValueError(f"cell {number} has no type")
    source = cell.get("source", cell.get("input"))  # `input` before nbformat 4
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise ValueError(f"the source of cell {number} is no text")
    return cell["cell_type"], source
