"""The set-up cell of an assembled master, from those of its sources.

A set-up cell is taken apart into pieces: snippets, and statements with their comments.
A source whose questions compute with no backend brings only the pieces that they use.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import nbformat

from grading.author import masters, names
from grading.author.parts import Cells, Parts
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.notebooks import sync

TITLE = re.compile(r"# @title Set-up: *(?P<what>.*)")
SNIPPET = re.compile(r"(?m)^# >>> snippets/\S+\n# <<<$")
GAP = re.compile(r"\n{4,}")
ENGINES = {"jax", "keras", "openvino", "tensorflow", "torch"}
BACKEND = "KERAS_BACKEND"
ALWAYS = "# >>> snippets/requirements.py\n# <<<"


@dataclasses.dataclass(frozen=True)
class Piece:
    """A snippet or a statement of a set-up cell."""

    text: str
    bound: frozenset[str]
    used: frozenset[str]
    imported: frozenset[str]  # names that mean the same everywhere
    sets: tuple[tuple[str, str], ...]  # variables of the environment, and their values
    engine: bool  # it imports one, or starts a process
    first: bool  # no snippet stands above it


def merged(sources: list[tuple[Parts, Cells]], root: Path = ROOT) -> str:
    """The set-up cell for cells of several masters.

    Args:
        sources: the masters, each with its cells.
        root: the repository's folder, which has the snippets.

    Raises:
        UserError: two of them can't work in one process.
    """
    titles: list[str] = []
    pieces: list[tuple[Piece, Parts]] = []
    below: list[str] = []
    for source, cells in sources:
        what, own, after = _taken(source, cells, root)
        titles += [one for one in what if one not in titles]
        new = [(piece, source) for piece in own]
        _check(pieces, new)
        early = [one for one in new if one[0].first]
        late = [one for one in new if not one[0].first]
        before = [one for one in pieces if one[0].first]
        behind = [one for one in pieces if not one[0].first]
        pieces = _once([*before, *early, *behind, *late])
        below += [text for text in after if text not in below]
    checks = f"{masters.CHECKS}\n# <<<"
    what = ", ".join([*titles, "the checks"])
    lines = [f"# @title Set-up: {what}", *(piece.text for piece, _ in pieces)]
    return GAP.sub("\n\n\n", "\n".join([*lines, checks, *below]))


def _once(pieces: list[tuple[Piece, Parts]]) -> list[tuple[Piece, Parts]]:
    """Pieces of which none stands there twice: the first stays."""
    seen: dict[str, tuple[Piece, Parts]] = {}
    for piece, its in pieces:
        seen.setdefault(piece.text, (piece, its))
    return list(seen.values())


def _taken(
    source: Parts, cells: Cells, root: Path
) -> tuple[list[str], list[Piece], list[str]]:
    """What a source brings: words of its title, pieces, and what follows the checks."""
    above, _, after = source.set_up.partition(f"{masters.CHECKS}\n# <<<")
    title = TITLE.search(above)
    what = [one.strip() for one in title["what"].split(",")] if title else []
    what = [one for one in what if one not in ("", "the checks")]
    found = pieces(TITLE.sub("", above, count=1).strip("\n"), root)
    used = {name for cell in cells for name in names.used(cell) | names.quoted(cell)}
    needed = _closed(found, used)
    engines = {one for cell in cells for one in _packages(names.python(cell))}
    if (
        engines & ENGINES
        or any(names.process(cell) for cell in cells)
        or any(piece.engine for piece in needed)
    ):
        return what, found, [after.strip("\n")] if after.strip() else []
    kept = [one for one in found if one in needed or one.text == ALWAYS]
    plot = [one for one in what if "plot" in one] if len(kept) > 1 else []
    return plot, kept, []


def _closed(found: list[Piece], used: set[str]) -> list[Piece]:
    """The pieces that bind what is used, and what these use."""
    kept: list[Piece] = []
    for piece in reversed(found):
        if piece.bound & used:
            kept.append(piece)
            used = used | piece.used
    return kept[::-1]


def pieces(text: str, root: Path = ROOT) -> list[Piece]:
    """A set-up cell, without its title and its checks, taken apart."""
    found: list[Piece] = []
    position = 0
    for match in [*SNIPPET.finditer(text), None]:
        end = match.start() if match else len(text)
        found += _statements(text[position:end], not any(_is_snippet(p) for p in found))
        if match:
            full = sync.insert_snippets(match[0], "set-up cell", root)
            found.append(_piece(match[0], full, False))
            position = match.end()
    return found


def _is_snippet(piece: Piece) -> bool:
    return piece.text.startswith("# >>>")


def _statements(text: str, first: bool) -> list[Piece]:
    """The statements of a text, each with the comments above it."""
    lines = text.splitlines()
    found, begin = [], 0
    for node in ast.parse(text).body:
        part = "\n".join(lines[begin : node.end_lineno]).rstrip()
        gap = "\n\n\n" if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        part = part.strip("\n")
        found.append(_piece(f"{gap}{part}{gap}" if gap else part, part, first))
        begin = node.end_lineno
    return found


def _piece(text: str, code: str, first: bool) -> Piece:
    cell = nbformat.v4.new_code_cell(code)
    return Piece(
        text,
        frozenset(names.bound(cell)),
        frozenset(names.used(cell)),
        frozenset(names.imports(cell)),
        tuple(_sets(code)),
        bool(_packages(code) & ENGINES) or "StandingProcess" in code,
        first,
    )


def _packages(code: str) -> set[str]:
    """The packages that a code imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(given):
                found |= {one.name.partition(".")[0] for one in given}
            case ast.ImportFrom(str(module)):
                found.add(module.partition(".")[0])
    return found


def _sets(code: str) -> list[tuple[str, str]]:
    """The variables of the environment that a code sets, whatever they were."""
    found = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Assign(
                [ast.Subscript(ast.Attribute(attr="environ"), ast.Constant(name))],
                ast.Constant(value),
            ):
                found.append((name, value))
            case ast.Call(
                ast.Attribute(ast.Attribute(attr="environ"), "update"), keywords=given
            ):
                found += [
                    (one.arg, one.value.value)
                    for one in given
                    if isinstance(one.value, ast.Constant)
                ]
    return found


def _check(old: list[tuple[Piece, Parts]], new: list[tuple[Piece, Parts]]) -> None:
    """See that pieces of two masters can stand in one cell.

    Raises:
        UserError: they set a variable, or bind a name, differently.
    """
    for piece, source in new:
        for other, its in old:
            for name, value in piece.sets:
                before = dict(other.sets).get(name, value)
                if before != value:
                    raise UserError(_unlike(name, its, before, source, value))
            both = sorted((piece.bound - piece.imported) & other.bound)
            if both and piece.text != other.text:
                raise UserError(
                    f"{its.path.stem} and {source.path.stem}: both set-up cells define "
                    f"{both[0]}, and differently. Fix: choose questions of one of them."
                )


def _unlike(name: str, one: Parts, its: str, other: Parts, value: str) -> str:
    """What is said where two set-up cells want another environment."""
    if name == BACKEND:
        return (
            f"{one.path.stem} computes with {its} and {other.path.stem} with {value}: "
            "a process has one backend. Fix: choose questions that compute with one."
        )
    return (
        f"{one.path.stem} sets {name} to {its!r} and {other.path.stem} to {value!r}. "
        "Fix: choose questions of one of them."
    )
