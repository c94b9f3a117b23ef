"""What a check that failed has seen: the call that it made, and what it compared.

A hidden check says in words what it looks at. With the values beside them, a student
who has failed can make the same call and find out why. That is shown after the
deadline alone, because it tells the inputs.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import reprlib
from collections.abc import Iterator

import numpy as np

LONG = 200  # characters of a text that is no value, but a program
PLAIN = (bool, int, float, complex, str, list, tuple, dict, set, type(None))


class Short(reprlib.Repr):
    """Writes values as a reader needs them: numbers rounded, long ones cut."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxstring, self.maxother = 80, 80

    def repr_float(self, value: float, level: int) -> str:
        """A number with six digits."""
        return f"{value:.6g}"

    def repr1(self, value: object, level: int) -> str:
        """An array with its shape, a function by its kind, all else as it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            numbers = super().repr1(value.ravel()[:9].tolist(), level)
            return numbers if value.ndim == 1 else f"{numbers} of shape {value.shape}"
        if callable(value) and not hasattr(value, "_kind"):  # which a Remote has
            return "a function of the check"
        return super().repr1(value, level)


def short(value: object) -> str:
    """A value in a few words."""
    if _is_program(value):
        return "a program"
    try:
        return Short().repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a very long number"


def call(path: str, arguments: list, named: dict) -> str:
    """How a call is written."""
    words = [short(one) for one in arguments]
    words += [f"{name}={short(one)}" for name, one in named.items()]
    return f"{path}({', '.join(words)})"


def remember(name: str, source: str) -> None:
    """Let the lines of a test file be found by its name, as those of a module are."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def comparison(error: BaseException, folder: str) -> str:
    """What the assertion that failed has compared, with the values of its names.

    Args:
        error: what it has raised.
        folder: how the names of test files start.
    """
    trace, frame, line = error.__traceback__, None, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(folder):
            frame, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    if frame is None:
        return ""
    tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno:
            values = dict(_values(node.test, frame.f_locals))
            told = [f"{name} = {value}" for name, value in values.items()]
            asked = ast.unparse(node.test)[:LONG]
            return f"{asked}, where {'; '.join(told)}" if told else asked
    return ""


def _values(node: ast.AST, names: dict) -> Iterator[tuple[str, str]]:
    """The plain values of names in an expression, and of items of such names."""
    keys, inner = [], node
    while isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
        keys.insert(0, inner.slice.value)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        for child in ast.iter_child_nodes(node):
            yield from _values(child, names)
        return
    value = names.get(inner.id, names)  # a name of another scope is not shown
    for key in keys:  # never an item of a Remote: that would ask the worker
        with contextlib.suppress(LookupError, TypeError):
            value = value[key] if isinstance(value, PLAIN) else names
    if value is not names and isinstance(value, (*PLAIN, np.ndarray, np.generic)):
        yield ast.unparse(node), short(value)


def _is_program(value: object) -> bool:
    return isinstance(value, str) and len(value) > LONG
