"""What a teacher hands out: solutions without marks, and links that lead there."""

import json
import re

import class_factory
import pytest

from grading import cli
from grading.author import masters

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


def master(folder, old: str = "", new: str = ""):
    """The small assignment as a teacher's own, outside the repository."""
    path = folder / "my-variant.md"
    text = class_factory.MINI.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def assign(path, folder, *options: str) -> int:
    return cli.main(["assign", str(path), "--to", str(folder / "out"), *options])


def code(notebook) -> list[str]:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in cells]


def test_solutions_that_are_handed_out_hold_no_marks_and_run(tmp_path):
    path = master(tmp_path, SOLUTION, PROMPTED)
    assert assign(path, tmp_path, "--solutions", str(tmp_path / "solved")) == 0
    sources = code(json.loads((tmp_path / "solved" / "my-variant.ipynb").read_text()))
    assert not MARK.search("\n".join(sources))
    names: dict = {}
    for source in sources:
        if "CHECKS" not in source and "grader.check" not in source:
            exec(source, names)
    assert (names["bytes_q3"], names["double"]) == (4, 8)
    assert names["width"].__doc__ == "Bytes of a float32."
    student = "\n".join(
        code(json.loads((tmp_path / "out/my-variant.ipynb").read_text()))
    )
    assert '"""Bytes."""' in student and "Not the docstring" not in student


def test_a_mark_that_would_be_handed_out_is_refused(tmp_path):
    odd = SOLUTION.replace("4  # SOLUTION", "4  # SOLUTION\nx = 1  # BEGIN PROMPT")
    with pytest.raises(masters.UserError, match="'# BEGIN PROMPT' is left in the sol"):
        masters.build(master(tmp_path, SOLUTION, odd))


@pytest.mark.parametrize("path", masters.master_paths(), ids=lambda path: path.stem)
def test_no_solution_of_the_book_holds_a_mark(path):
    for cell in masters.build(path).solution.cells:
        assert not MARK.search(cell.source), cell.source


# Open in Colab.

HOST = "https://colab.research.google.com"
FILE = "my-variant.ipynb"
PLACES = [
    f"{HOST}/github/me/course/blob/dev/week%201/{FILE}",
    f"{HOST}/drive/1a2B-c3_D4e5F6g7H8i9J0kLmNoPqRsTu",
]


@pytest.mark.parametrize("place", PLACES)
def test_the_link_leads_where_a_teacher_says(place, tmp_path, capsys):
    given = f"{place}?usp=sharing#scrollTo=x"
    assert assign(master(tmp_path), tmp_path, "--colab", given) == 0
    first = json.loads((tmp_path / "out" / FILE).read_text())["cells"][0]
    title, line, _ = "".join(first["source"]).split("\n\n")
    assert (title, line) == ("# Mini", f"**[Open in Colab]({place})**")
    (said,) = capsys.readouterr().out.splitlines()
    assert said.endswith(f"made from its master; Open in Colab leads to {place}.")


@pytest.mark.parametrize(
    "given",
    ["course", "https://gitlab.com/me/x", f"{PLACES[0]})**[x](y", "javascript:x"],
)
def test_a_place_that_colab_does_not_open_is_refused(given, tmp_path, capsys):
    assert assign(master(tmp_path), tmp_path, "--colab", given) == 1
    said = capsys.readouterr().err
    assert "--colab " in said and "Fix: open it there" in said
    assert not (tmp_path / "out").exists()


def test_one_address_is_no_place_for_several(tmp_path, capsys):
    to = ["--to", str(tmp_path), "--colab", PLACES[0]]
    assert cli.main(["assign", "1", "2", *to]) == 1
    assert "name its master alone" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
