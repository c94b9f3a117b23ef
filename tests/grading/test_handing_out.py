"""What a teacher hands out: solutions without marks, and links that lead there."""

import json
import re

import class_factory

from grading import cli

SOLUTION = """```{code-cell}
bytes_q3 = 4  # SOLUTION
```"""
PROMPTED = '''```{code-cell}
def width():
    """Bytes of a float32."""
    # BEGIN SOLUTION NO PROMPT
    """Not the docstring."""
    return 4
    # END SOLUTION
    """ # BEGIN PROMPT
    """Bytes."""
    ...
    """  # END PROMPT


bytes_q3 = width()  # SOLUTION
double = 2 * bytes_q3  # SOLUTION NO PROMPT
```'''
MARK = re.compile(r"(BEGIN|END) (SOLUTION|PROMPT|TEST|QUESTION)|# ?SOLUTION")


def code(notebook) -> list[str]:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in cells]


def test_solutions_that_are_handed_out_hold_no_marks_and_run(tmp_path):
    text = class_factory.MINI.read_text()
    assert SOLUTION in text
    path = tmp_path / "my-variant.md"  # a teacher's own, outside the repository
    path.write_text(text.replace(SOLUTION, PROMPTED))
    folders = ["--to", str(tmp_path / "out"), "--solutions", str(tmp_path / "solved")]
    assert cli.main(["assign", str(path), *folders]) == 0
    sources = code(json.loads((tmp_path / "solved" / "my-variant.ipynb").read_text()))
    assert not MARK.search("\n".join(sources))
    names: dict = {}
    for source in sources:
        if "CHECKS" not in source and not source.startswith("check("):
            exec(source, names)
    assert (names["bytes_q3"], names["double"]) == (4, 8)
    assert names["width"].__doc__ == "Bytes of a float32."
    student = "\n".join(
        code(json.loads((tmp_path / "out/my-variant.ipynb").read_text()))
    )
    assert '"""Bytes."""' in student and "Not the docstring" not in student
