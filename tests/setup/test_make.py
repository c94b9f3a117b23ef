"""What `make` does: it installs once, runs every part, and says what is red."""

import os
import subprocess
import sys

import pytest

from tools.model import address
from tools.notebooks import sync

# A Python that notes what is to be installed, or what is to be run.
PYTHON = """#!/bin/sh
case "$*" in
*"uv pip install"*) echo "$@" >>calls; echo "$UV_SAYS"; exit "${UV_STATUS:-0}" ;;
*"pip install"* | *"pip config"*) exit ;;
*"exec(open("*) echo the-compiler wheel==1; exit ;;
-c*) exec REAL "$@" ;;
-m*) mkdir -p _build/html; shift; echo "$@" >>ran ;;
esac
case " $RED " in *" $1 "*) exit 1 ;; esac
"""
OUTER = ("CONSTRAINTS", "MAKE", "MFLAGS", "PIP_", "PYTEST", "PYTHON", "TESTS", "UV_")


def program(path, text):
    """Write a file that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def ready(house):
    """A house in whose environment every program only notes that it is called."""
    program(house / ".venv/bin/python", PYTHON.replace("REAL", sys.executable))
    for name in ("actionlint", "shellcheck", "zizmor"):
        program(house / ".venv/bin" / name, f"#!/bin/sh\necho {name} >>ran\n")
    (house / ".venv/share/the-compiler").mkdir(parents=True)
    (house / ".ci").mkdir()
    (house / ".github").mkdir()
    return house


def run(house, *words, **environment):
    """Run a command in a house, free of what an outer make or pip set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OUTER)}
    kept |= {"CONSTRAINTS": "constraints/latest.txt"} | environment
    return subprocess.run(words, cwd=house, env=kept, capture_output=True, text=True)


def install(house, *words, **environment):
    return run(house, "sh", "tools/install.sh", *words, **environment)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def the_error(result):
    """The one line that says what is wrong; a line may say that it is installing."""
    assert result.returncode != 0
    said = [x for x in result.stderr.splitlines() if not x.startswith("installing ")]
    assert len(said) == 1 and "Fix: " in said[0], said
    return said[0]


# Installing


def test_what_is_installed_is_not_installed_again(ready):
    install(ready, "book")
    (call,) = lines(ready / "calls")
    assert call.endswith(
        "--requirement requirements-book.txt --constraint constraints/latest.txt"
    )
    install(ready, "book")
    assert len(lines(ready / "calls")) == 1
    install(ready, "all")
    install(ready, "book", "lint", "paper")  # all is more than these
    assert len(lines(ready / "calls")) == 2
    (ready / "constraints/latest.txt").write_text("keras==3.15.1\n")
    install(ready, "book")
    assert len(lines(ready / "calls")) == 3


def test_the_newest_versions_are_those_without_constraints(ready):
    install(ready, "book")
    install(ready, "book", CONSTRAINTS="")
    assert lines(ready / "calls")[1].endswith("--requirement requirements-book.txt")
    error = the_error(install(ready, "book", CONSTRAINTS="constraints/none.txt"))
    assert "there is no file constraints/none.txt" in error


def test_a_failing_installation_is_one_line_and_tried_again(ready):
    said = "error: No solution found\n  cause: there is no version of x"
    for _ in range(2):
        error = the_error(install(ready, "book", UV_STATUS="1", UV_SAYS=said))
        assert "No solution found cause: there is no version of x" in error
    assert len(lines(ready / "calls")) == 2
    said = "error: Failed to fetch: `https://pypi.org/simple/keras/`"
    error = the_error(install(ready, "book", UV_STATUS="1", UV_SAYS=said))
    assert "the package index cannot be reached. Fix: connect to the network" in error


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_a_python_without_tensorflow_is_refused(house, tmp_path, version):
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.version_info = {version}\n"
    )
    words = f'PYTHONPATH="{tmp_path}" exec {sys.executable} "$@"'
    python = program(tmp_path / "a stub/python", f"#!/bin/sh\n{words}\n")
    error = the_error(install(house, "book", PYTHON=str(python)))
    assert "is no Python 3.11 to 3.13 with the module venv" in error
    assert not (house / ".venv").exists()


def test_a_broken_environment_is_refused(house):
    (house / ".venv").mkdir()
    assert "Fix: rm -r .venv" in the_error(install(house, "book"))


# The checks


def parts_begun(house):
    """Which modules ran, in their order."""
    return [line.split()[0] for line in lines(house / "ran")]


@pytest.mark.parametrize("red", ["", "pytest", "ruff sphinx"])
def test_a_red_part_keeps_no_other_from_running(ready, red):
    program(ready / ".venv/bin/jupyter-book", "#!/bin/sh\ntouch conf.py\n")
    result = run(ready, "make", "test", RED=red)
    ran = parts_begun(ready)
    assert [x for x in ran if x in ("pytest", "codespell_lib", "sphinx")] == [
        *("pytest", "codespell_lib", "sphinx", "pytest")
    ]
    assert "zizmor" in ran
    last = {"": "", "pytest": "red: claims tests", "ruff sphinx": "red: lint book"}
    assert result.returncode == (2 if red else 0), result.stderr
    assert last[red] in result.stderr
    assert ("all is green" in result.stdout) == (not red)


# Renaming


def test_a_new_address_reaches_all_links(ready):
    run(ready, "git", "init", "-q")
    run(ready, "git", "add", ".")
    assert "Fix: make address URL=" in run(ready, "make", "address").stderr
    assert run(ready, "make", "address", "URL=https://github.com/a/b").returncode == 0
    assert (ready / "README.md").read_text() == (
        "# Some book\n\n"
        "[code](https://github.com/a/b), [site](https://a.github.io/b/), "
        "[Keras](https://github.com/keras-team/keras)\n"
        "git clone https://github.com/a/b.git, "
        "not https://github.com/someone/some-book-two\n"
    )
    assert address.repository(ready).url == "https://github.com/a/b"
    chapter = (ready / "notebooks/05-tiny.ipynb").read_text()
    assert "(https://a.github.io/b/book/glossary.html)" in chapter
    assert sync.sync(ready, check=True) == []  # the link to Colab is right, too
