"""The program that opens a notebook at home, against the built site on this machine.

In place of uv stands a program that writes down what it is asked.
"""

import json
import os
import subprocess
import sys

import pytest
from site_browser import HTML, REPOSITORY, SITE

UV = """#!{python}
import json, pathlib, sys
with open("asked", "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
if "python" in sys.argv:
    print(json.dumps([str(pathlib.Path("compiler").absolute()), ["ptxas==1"]]))
if "--target" in sys.argv:
    pathlib.Path("compiler.part").mkdir()
"""


@pytest.fixture
def run(base, tmp_path):
    """Runs the program in an empty folder; returns its end and what uv was asked."""
    program = (HTML / "run.py").read_text(encoding="utf-8")
    assert REPOSITORY.pages in program
    (tmp_path / "run.py").write_text(program.replace(REPOSITORY.pages, base))
    uv = tmp_path / "uv"
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()

    def run(*words, **variables):
        here = {x: y for x, y in os.environ.items() if not x.startswith("UV_")}
        done = subprocess.run(
            [sys.executable, tmp_path / "run.py", *words],
            cwd=folder,
            env=here | {"UV": str(uv)} | variables,
            capture_output=True,
            text=True,
        )
        asked = folder / "asked"
        lines = asked.read_text().splitlines() if asked.exists() else []
        asked.unlink(missing_ok=True)
        return done, [json.loads(line) for line in lines]

    run.folder = folder
    return run


def test_a_chapter_is_fetched_and_opened_with_what_it_needs(run, base):
    done, asked = run("17", "--no-browser")
    assert done.returncode == 0, done.stderr
    name = "17-a-gpu-you-do-not-have.ipynb"
    fetched = (run.folder / name).read_bytes()
    assert fetched == (SITE / "notebooks" / name).read_bytes()
    opened = asked[-1]
    assert opened[-3:] == ["jupyter-lab", name, "--no-browser"]
    packages = {opened[n + 1] for n, word in enumerate(opened) if word == "--with"}
    assert {"jax", "keras", "matplotlib"} <= packages
    assert not packages & {"tensorflow", "torch"}
    assert opened[opened.index("--constraints") + 1] == f"{base}latest.txt"
    if sys.platform == "linux":  # with the compiler of NVIDIA GPUs
        assert asked[1][:3] == ["pip", "install", "--no-deps"]
        assert (run.folder / "compiler").is_dir()


def test_a_notebook_that_is_there_stays_as_it_is(run):
    path = run.folder / "6-plan-before-you-rent.ipynb"
    path.write_text('{"cells": [{"outputs": [], "source": ["import torch"]}]}')
    before = path.read_bytes()
    done, asked = run(path.stem)
    assert "stays as it is" in done.stdout
    assert path.read_bytes() == before
    assert "torch" in asked[0]


@pytest.mark.parametrize("words", [(), ("99",)])
def test_who_names_no_notebook_is_shown_all(run, words):
    done, asked = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "\n05-memory\n" in done.stderr
    assert not asked
