"""The names that a cell of a master binds, and those that it uses."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import symtable
from collections.abc import Iterator

import nbformat

MAGIC = re.compile(r"\A%%.*$", re.MULTILINE)
LINE_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)
GIVEN = {*dir(builtins), "get_ipython", "display", "__name__", "__file__"}
# What the set-up cell imports for the checks, and what it calls their reader.
CHECKS = {"importlib", "pathlib", "subprocess", "sys", "tempfile", "otter", "grader"}


def process(cell: nbformat.NotebookNode) -> str:
    """The magic in a cell's first line, which says where it runs; "" for here."""
    match = MAGIC.match(cell.source) if cell.cell_type == "code" else None
    return match[0].strip() if match else ""


def python(cell: nbformat.NotebookNode) -> str:
    """The Python of a code cell, without magics; "" if it is none."""
    return _parsed(cell)[0]


def _parsed(cell: nbformat.NotebookNode) -> tuple[str, ast.Module]:
    """The Python of a cell, and its tree, which nobody changes."""
    return _parse(cell.source if cell.cell_type == "code" else "")


@functools.lru_cache(maxsize=2000)  # a master is looked through again and again
def _parse(source: str) -> tuple[str, ast.Module]:
    text = LINE_MAGIC.sub("pass", MAGIC.sub("", source))
    try:
        return text, ast.parse(text)
    except SyntaxError:
        return "", ast.parse("")


def is_test(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is a test: it uses names by `env["name"]` alone."""
    return cell.cell_type == "code" and "# END TEST CONFIG" in cell.source


def bound(cell: nbformat.NotebookNode) -> set[str]:
    """The names that a cell binds for the cells below it."""
    if is_test(cell):
        return set()
    table = symtable.symtable(python(cell), "cell", "exec")
    return {
        one.get_name()
        for one in table.get_symbols()
        if one.is_assigned() or one.is_imported()
    }


def used(cell: nbformat.NotebookNode) -> set[str]:
    """The names that a cell uses and does not bind itself; of a test, those of env."""
    if is_test(cell):
        return set(_asked(cell))
    found = set()
    for table in _tables(symtable.symtable(python(cell), "cell", "exec")):
        for one in table.get_symbols():
            outside = one.is_global() or table.get_type() == "module"
            if outside and one.is_referenced():
                found.add(one.get_name())
    return found - bound(cell) - GIVEN


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def _asked(cell: nbformat.NotebookNode) -> Iterator[str]:
    """The names that a test asks the student's notebook for: `env["name"]`."""
    for node in ast.walk(_parsed(cell)[1]):
        match node:
            case ast.Subscript(ast.Name("env"), ast.Constant(str() as name)):
                if name not in GIVEN:
                    yield name


def quoted(cell: nbformat.NotebookNode) -> set[str]:
    """The texts in a cell that could be names: so names in another process are told."""
    return {
        node.value
        for node in ast.walk(_parsed(cell)[1])
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.isidentifier()
    }


def imports(cell: nbformat.NotebookNode) -> dict[str, str]:
    """The names that a cell imports, with the line that does."""
    found = {}
    for node in _parsed(cell)[1].body if not is_test(cell) else ():
        if isinstance(node, ast.Import | ast.ImportFrom):
            for one in node.names:
                name = (one.asname or one.name).partition(".")[0]
                alone = type(node)(**{**vars(node), "names": [one]})
                found[name] = ast.unparse(alone)
    return found
