"""The programs of the page What this book found in the libraries."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "book"
PROGRAMS = sorted((BOOK / "found").glob("*.py"))
ERRORS = {
    "dropout-in-remat-on-jax": "UnexpectedTracerError",
    "backup-cut-off": "OSError",
    "model-in-a-block-of-cpu-0": "ValueError",
    "predict-that-loses-the-weights": "TypeError",
    "lstm-that-openvino-exports": "RuntimeError",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_defect_is_still_there(program, tmp_path):
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode, (
        f"a release has mended {program.stem}. Thank it: move its entry in "
        "book/found-in-the-libraries.md to Mended, and delete the program"
    )
    error = ERRORS.get(program.stem, "AssertionError")
    assert re.search(rf"^([\w.]+\.)?{error}\b", done.stderr, re.MULTILINE), done.stderr


def test_every_program_stands_on_the_page():
    page = (BOOK / "found-in-the-libraries.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"literalinclude\} found/(.+)\n", page))
    assert shown
    assert {path.name for path in PROGRAMS} == shown
