"""What a chapter is: a notebook's file, number, title, claims and outputs."""

import dataclasses
import functools
import re
import warnings
from pathlib import Path

import nbformat

from tools.model.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
CLAIM = "# Claim:"
# What kind of thing a claim asserts: the tag of its cell, and in words.
KINDS = {
    "library": "how a library behaves",
    "measured": "a measurement",
    "planned": "a compiler's plan",
    "calculated": "arithmetic on given figures",
}
NAME = re.compile(r"(?P<number>\d\d)-[a-z0-9]+(-[a-z0-9]+)*\.ipynb")


@dataclasses.dataclass(frozen=True)
class Claim:
    """One asserted sentence of a chapter."""

    chapter: int  # the chapter's number, from its file name
    number: int  # 1 for the chapter's first claim
    sentence: str
    cell: int  # index of the cell in the notebook, from 0
    id: str  # the cell's, which stays when claims come and go
    kind: str  # a key of KINDS

    @property
    def label(self) -> str:
        """The short name that readers cite, such as `3.7`."""
        return f"{self.chapter}.{self.number}"

    @property
    def anchor(self) -> str:
        """The fragment of the claim's address on the site, such as `claim-03-056`."""
        return f"claim-{self.id}"


def chapter_paths(root: Path = ROOT) -> list[Path]:
    """The notebooks of all chapters, in the order of their numbers."""
    return sorted((root / "notebooks").glob("*.ipynb"))


def chapter_number(path: Path) -> int:
    """The number at the start of a chapter's file name."""
    match = NAME.fullmatch(path.name)
    if not match:
        raise UserError(
            f"{path.name}: not a chapter's name. "
            "Fix: call it NN-slug.ipynb, in lower case with hyphens."
        )
    return int(match["number"])


def read(path: Path) -> nbformat.NotebookNode:
    """Read and validate a notebook; cells that have no good id get one.

    Raises:
        UserError: the file is missing or broken.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # on cells without a good id
            notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            notebook = nbformat.v4.upgrade(notebook)
            nbformat.validate(notebook)
    except Exception as error:  # nbformat raises what a broken file leads it to
        reason = (str(error).splitlines() or [type(error).__name__])[0][:100]
        raise UserError(
            f"{path}: not a valid notebook ({reason}). "
            f"Fix: mend it, or restore it with `git checkout -- {path}`."
        ) from None
    return notebook


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def titled(cell: nbformat.NotebookNode, title: str) -> bool:
    """Whether it is a folded code cell of this title, which may follow a cell magic."""
    start = rf"(%%.*\n)?# @title {title}\b"
    return cell.cell_type == "code" and re.match(start, cell.source) is not None


def is_setup(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell is a set-up cell."""
    return titled(cell, "Set-up")


def where(path: Path, index: int, cell: nbformat.NotebookNode) -> str:
    """Name a cell in a message: file, number from 1, and how the cell begins."""
    first = (cell.source.strip().splitlines() or ["(empty)"])[0]
    return f"{path.name}, cell {index + 1} ({first[:50]!r})"


def split_claim(source: str) -> tuple[str | None, str]:
    """Split a claim cell's source into its sentence and the code that asserts it.

    The sentence stands in the first line, or in the second below a cell magic, and may
    go on in comment lines that are indented by three or more spaces.

    Returns (None, source) if the source does not start with a claim.
    """
    lines = source.splitlines()
    start = 1 if lines and lines[0].startswith("%%") else 0
    if len(lines) <= start or not lines[start].startswith(CLAIM):
        return None, source
    end = start + 1
    while end < len(lines) and re.match(r"#   +\S", lines[end]):
        end += 1
    words = [lines[start].removeprefix(CLAIM), *(x[1:] for x in lines[start + 1 : end])]
    sentence = " ".join(word.strip() for word in words)
    return sentence, "\n".join(lines[:start] + lines[end:])


def has_text_output(cell: nbformat.NotebookNode) -> bool:
    """Whether a stored output of the cell has text that can be compared."""
    return any(
        output.output_type in ("stream", "error")
        or any(kind.startswith("text/") for kind in output.get("data", {}))
        for output in cell.get("outputs", [])
    )


def is_compared(cell: nbformat.NotebookNode) -> bool:
    """Whether nbval compares the cell's stored output with a fresh one."""
    return "nbval-ignore-output" not in tags(cell)


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A chapter, read from its notebook."""

    path: Path
    notebook: nbformat.NotebookNode

    @property
    def cells(self) -> list[nbformat.NotebookNode]:
        """The notebook's cells."""
        return self.notebook.cells

    @functools.cached_property
    def number(self) -> int:
        """The number at the start of the file's name."""
        return chapter_number(self.path)

    @property
    def title(self) -> str:
        """The first heading, without the number that the site puts in front."""
        lines = self.cells[0].source.splitlines() if self.cells else []
        return next((x[2:].strip() for x in lines if x.startswith("# ")), "")

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """The chapter's claims, in order.

        Raises:
            UserError: a cell with the tag does not start with a claim.
        """
        claims: list[Claim] = []
        for index, cell in enumerate(self.cells):
            if cell.cell_type != "code" or "claim" not in tags(cell):
                continue
            sentence, _ = split_claim(cell.source)
            if sentence is None:
                raise UserError(
                    f"{where(self.path, index, cell)}: tagged `claim` but does not "
                    f"start with `{CLAIM}`. Fix: make it the first line, or drop the "
                    "tag."
                )
            kind = next((x for x in tags(cell) if x in KINDS), "library")
            place = len(claims) + 1, sentence, index, cell.id, kind
            claims.append(Claim(self.number, *place))
        return claims


@functools.lru_cache(maxsize=64)
def _chapter(path: Path, *version: int) -> Chapter:
    """The chapter in a file of this size and time."""
    return Chapter(path, read(path))


def chapter(path: Path) -> Chapter:
    """Read a chapter; a file that has not changed is read once in a process.

    Raises:
        UserError: the file is missing or broken.
    """
    known = path.stat() if path.exists() else None
    version = (known.st_mtime_ns, known.st_size) if known else ()
    return _chapter(path, *version)


def book(root: Path = ROOT) -> list[Chapter]:
    """All chapters, in the order of their numbers.

    Raises:
        UserError: a chapter is broken.
    """
    return [chapter(path) for path in chapter_paths(root)]
