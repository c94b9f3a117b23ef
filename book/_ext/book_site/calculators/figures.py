"""The figures of cards and links, read where the chapters have them.

The cards stand in `snippets/gpu_compiler.py`, which chapters 5, 17 and 18 carry, and
the links in a cell of chapter 18. Neither can be imported without JAX, so only what
defines the figures is run.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tools.model import chapters
from tools.model.errors import UserError

CARDS = Path("snippets", "gpu_compiler.py")
LINKS = Path("notebooks", "18-eight-gpus-you-do-not-have.ipynb")


def figures(root: Path) -> dict[str, Any]:
    """The figures that the calculators need.

    Args:
        root: the repository's folder.

    Returns:
        "cards": by name, the bytes of memory that programs see, the bandwidth in bytes
        a second and the rates in operations a second by data type. "links": by name,
        the bytes a second that a card sends in one direction, at most.

    Raises:
        UserError: a file or a definition is missing.
    """
    cards = definition(root / CARDS, source_of(root / CARDS), "CARDS")
    links = definition(root / LINKS, source_of(root / LINKS, "LINKS = "), "LINKS")
    return {
        "cards": {
            name: {
                "memory": card.memory,
                "bandwidth": card.bandwidth,
                "rates": card.rates,
            }
            for name, card in cards.items()
        },
        "links": links,
    }


def source_of(path: Path, start: str = "") -> str:
    """The source of a program, or of the notebook's cell with a line that starts so."""
    if not path.exists():
        raise UserError(f"{path.name} is missing. Fix: restore it, or mend {__name__}")
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    for cell in chapters.read(path).cells:
        if any(line.startswith(start) for line in cell.source.splitlines()):
            return cell.source
    raise UserError(f"{path.name}: no cell has {start!r}. Fix: mend {__name__}")


def definition(path: Path, source: str, name: str) -> Any:
    """The value of a name that a source defines, without running the rest of it.

    Raises:
        UserError: the source does not define the name.
    """
    defines = {
        defined: node
        for node in ast.parse(source).body
        for defined in names_defined(node)
    }
    if name not in defines:
        raise UserError(f"{path.name} has no {name}. Fix: mend {__name__}")
    needed: list[ast.stmt] = []
    pending = [name]
    while pending:
        node = defines.get(pending.pop())
        if node is not None and node not in needed:
            needed.append(node)
            pending += [x.id for x in ast.walk(node) if isinstance(x, ast.Name)]
    body = sorted(needed, key=lambda node: node.lineno)
    found: dict[str, Any] = {"__name__": path.stem}
    code = compile(ast.Module(body, []), str(path), "exec", dont_inherit=True)
    exec(code, found)
    return found[name]


def names_defined(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        return [x.id for x in node.targets if isinstance(x, ast.Name)]
    return []
