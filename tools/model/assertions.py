"""Whether code asserts something that can fail, whichever way it runs."""

import ast
from collections.abc import Iterator


def unasserted(code: str, what: str = "claim") -> Iterator[tuple[str, str]]:
    """How a claim's code could end without an assertion that ran.

    Args:
        code: the cell's code, magics and all.
        what: what messages call the cell.

    Yields:
        What is wrong, and how to fix it.

    In a notebook's own process the test run counts the assertions that ran, so a loop
    is trusted to have something to loop over; in another process nobody counts.
    """
    lines = [
        line for line in code.splitlines() if not line.lstrip().startswith(("%", "!"))
    ]
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError as error:
        yield f"not Python (line {error.lineno})", "mend it"
        return
    if any(map(says_not_checked, tree.body)):
        yield "not checked on any machine", "call not_checked below an `if` or `except`"
    if not any(map(can_fail, ast.walk(tree))):
        yield f"the {what} asserts nothing", "add an `assert` that can fail"
    elif not asserts(tree.body, loops=not code.startswith("%%")):
        yield (
            f"the {what} asserts nothing on one of its paths",
            "assert below `else`, too, or call not_checked with the reason there",
        )


def says_not_checked(part: ast.AST) -> bool:
    """Whether it is a call of `not_checked`, as a statement."""
    call = getattr(part, "value", None) if isinstance(part, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "not_checked"


def can_fail(part: ast.AST) -> bool:
    """Whether it is an assertion whose test is no constant."""
    constant = ast.Constant | ast.Tuple
    return isinstance(part, ast.Assert) and not isinstance(part.test, constant)


def asserts(body: list[ast.stmt], loops: bool) -> bool:
    """Whether statements assert, or say `not_checked`, whichever way they run.

    Args:
        body: the statements.
        loops: whether the body of a loop counts as being run.
    """
    for part in body:
        inner: list[list[ast.stmt]] = []
        if can_fail(part) or says_not_checked(part):
            return True
        if isinstance(part, ast.If):
            inner = [part.body, part.orelse]
        elif isinstance(part, ast.With) or (loops and isinstance(part, ast.For)):
            inner = [part.body]
        elif isinstance(part, ast.Try):
            # The body may stop before its assertion, in an error that is caught.
            ways = [part.body + part.orelse, *(x.body for x in part.handlers)]
            inner = [part.finalbody] if asserts(part.finalbody, loops) else ways
        if inner and all(asserts(way, loops) for way in inner):
            return True
    return False
