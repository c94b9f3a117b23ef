"""The commands: what `make` does with good and with bad input."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import notebook_factory as factory
import pytest

from tools.model.chapters import ROOT
from tools.site import build, serve
from tools.site.serve import __main__ as serving

FAKE_PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m tools.setup.uv" ]; then
    echo "$@" >>.venv/uv-calls
    echo "$UV_SAYS"
    exit "${UV_STATUS:-0}"
fi
case $VENV_VERSION$2 in 3*version_info*) echo "$VENV_VERSION" && exit ;; esac
exec PYTHON "$@"
"""
# The name of the process above it, and its arguments.
ITS_ARGUMENTS = (
    "import psutil, sys\nprint(psutil.Process().parent().name(), *sys.argv[1:])"
)
OUTER = ("MAKE", "MFLAGS", "PYTHON", "PYTEST", "NB", "PORT", "TASK", "TESTS")
OUTER += ("PIP_", "UV_")


def script(path, text):
    """Write an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def ready(house):
    """A house whose .venv is this Python, and whose uv only notes how it is called."""
    script(house / ".venv/bin/python", FAKE_PYTHON.replace("PYTHON", sys.executable, 1))
    return house


def run(house, *words, **environment):
    """Run a command in a house, free of what an outer make or pip set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OUTER)}
    return subprocess.run(
        words, cwd=house, env=kept | environment, capture_output=True, text=True
    )


def make(house, *words, **environment):
    """Run make in a house."""
    return run(house, "make", *words, **environment)


def the_error(result):
    """The one line that says what is wrong; make itself adds its own `make: ***`."""
    assert result.returncode != 0
    lines = (result.stdout + result.stderr).splitlines()
    lines = [x for x in lines if not re.match(r"make(\[\d\])?: |installing ", x)]
    assert len(lines) == 1, lines
    assert "Fix: " in lines[0]
    return lines[0]


def test_help_is_the_default_and_lists_all_targets(house):
    result = make(house)
    assert result.returncode == 0
    listed = re.findall(r"(?m)^make (\w+) ", result.stdout)
    phony = re.search(r"(?m)^\.PHONY: (.*)$", (house / "Makefile").read_text())
    assert listed == phony[1].split()
    assert not (house / ".venv").exists()


# Python


def stub_python(house, version, modules="exit 0"):
    """A Python of some version, which knows nothing else."""
    return script(
        house / "a stub" / "python",
        "#!/bin/sh\n"
        f"case $2 in *version_info*) echo {version} ;; *) {modules} ;; esac\n",
    )


@pytest.mark.parametrize("target", ["book", "test", "serve", "lab", "refresh"])
@pytest.mark.parametrize("version", ["3.9", "3.10", "3.14"])
def test_a_python_without_tensorflow_is_refused(house, target, version):
    python = stub_python(house, version)
    before = factory.snapshot(house)
    assert the_error(make(house, target, f"PYTHON={python}")) == (
        f"error: Python {version} found; TensorFlow has wheels for 3.11 to 3.13. "
        "Fix: install Python 3.13, or name one of these: "
        f"make PYTHON=/path/to/python3.13 {target}"
    )
    assert factory.snapshot(house) == before
    assert not (house / ".venv").exists() and not (house / "_build").exists()


def test_a_python_that_cannot_make_a_venv_is_refused(house):
    python = stub_python(house, "3.12", "exit 1")
    line = the_error(make(house, "book", f"PYTHON={python}"))
    assert line.startswith("error: Python 3.12 found, without the venv module. Fix: ")
    assert not (house / ".venv").exists()


def test_a_python_that_does_not_run_is_refused(house):
    line = the_error(make(house, "book", "PYTHON=/nowhere/python"))
    assert line.startswith("error: PYTHON=/nowhere/python does not run. Fix: ")


def test_a_venv_that_cannot_be_made_leaves_nothing(house):
    python = stub_python(
        house, "3.12", '[ "$1" = -c ] || { mkdir .venv; echo full disk; exit 1; }'
    )
    line = the_error(make(house, "book", f"PYTHON={python}"))
    assert "cannot make .venv (full disk). Fix: see _build/install.log" in line
    assert not (house / ".venv").exists()


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_a_venv_of_another_python_is_refused_and_stays(ready, version):
    line = the_error(make(ready, "book", VENV_VERSION=version))
    assert line.startswith(f"error: .venv has Python {version}; TensorFlow has wheels")
    assert "Fix: rm -r .venv, then make PYTHON=" in line
    assert (ready / ".venv/bin/python").exists()


def test_a_broken_venv_is_refused(house):
    (house / ".venv").mkdir()
    line = the_error(make(house, "book"))
    assert line.startswith("error: the virtual environment .venv is broken. Fix: rm -r")


# Installing


def test_no_network_is_one_line_and_leaves_nothing(house):
    (house / "requirements-book.txt").write_text("jupyter-book\n")
    before = factory.snapshot(house)
    python = Path(sys.base_prefix) / "bin" / "python3"
    result = make(
        house,
        "book",
        f"PYTHON={python}",
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_RETRIES="1",
        PIP_NO_CACHE_DIR="1",
    )
    line = the_error(result)
    start = "error: the package index cannot be reached. Fix: connect to the network"
    assert line.startswith(start)
    assert "_build/install.log" in line
    assert factory.snapshot(house) == before
    assert not (house / ".venv").exists()


def uv_calls(house):
    """How uv was called so far."""
    calls = house / ".venv/uv-calls"
    return calls.read_text().splitlines() if calls.exists() else []


def bootstrap(house, *words, **environment):
    """Run the bootstrap alone."""
    return run(house, "sh", "tools/setup/bootstrap.sh", *words, **environment)


def test_what_is_installed_is_not_installed_again(ready):
    assert bootstrap(ready, "book").returncode == 0
    (call,) = uv_calls(ready)
    assert call.endswith(
        "--requirement requirements-book.txt --constraint constraints/latest.txt"
    )
    bootstrap(ready, "book")
    assert len(uv_calls(ready)) == 1
    bootstrap(ready, "lint")
    assert uv_calls(ready)[1].endswith(
        "--requirement requirements-book.txt --requirement requirements-lint.txt "
        "--constraint constraints/latest.txt"
    )
    bootstrap(ready, "all")
    assert uv_calls(ready)[2].endswith(
        "--requirement requirements.txt --requirement requirements-test.txt "
        "--constraint constraints/latest.txt"
    )
    for what in ("all", "lint", "book"):
        bootstrap(ready, what)
        assert len(uv_calls(ready)) == 3
    (ready / "constraints/latest.txt").write_text("keras==3.15.1\n")
    bootstrap(ready, "book")
    assert len(uv_calls(ready)) == 4
    bootstrap(ready, "all")
    assert len(uv_calls(ready)) == 5


@pytest.mark.parametrize(
    ("constraints", "end"),
    [
        ("", "--requirement requirements-book.txt"),
        ("constraints/colab.txt", "--constraint constraints/colab.txt"),
    ],
    ids=["newest", "colab"],
)
def test_other_versions_are_installed_anew(ready, constraints, end):
    (ready / "constraints/colab.txt").write_text("keras==3.13.2\n")
    bootstrap(ready, "book")
    assert bootstrap(ready, "book", CONSTRAINTS=constraints).returncode == 0
    assert len(uv_calls(ready)) == 2
    assert uv_calls(ready)[1].endswith(end)


def test_a_missing_file_of_versions_is_one_line(ready):
    line = the_error(bootstrap(ready, "book", CONSTRAINTS="constraints/none.txt"))
    assert "constraints/none.txt is missing" in line


def test_all_includes_the_book(ready):
    bootstrap(ready, "all")
    bootstrap(ready, "book")
    assert len(uv_calls(ready)) == 1


def test_a_failing_installation_is_one_line_and_tried_again(ready):
    said = "error: No solution found\n  cause: there is no version of x"
    for _ in range(2):
        line = the_error(bootstrap(ready, "book", UV_STATUS="1", UV_SAYS=said))
        assert "error: No solution found cause: there is no version of x" in line
    assert len(uv_calls(ready)) == 2
    assert not (ready / ".venv/.installed-book").exists()


@pytest.mark.parametrize(
    "name", ["requirements-book.txt", "requirements-test.txt", "constraints/latest.txt"]
)
def test_a_missing_list_of_packages_is_one_line(ready, name):
    (ready / name).unlink()
    line = the_error(bootstrap(ready, "all"))
    assert line == f"error: {name} is missing. Fix: git checkout -- {name}"


def test_another_word_is_an_error(ready):
    assert "cannot install 'books'" in the_error(bootstrap(ready, "books"))


# The site


def test_a_chapter_missing_from_the_contents_stops_the_build(ready):
    (ready / "_toc.yml").write_text("format: jb-book\nroot: book/welcome\n")
    line = the_error(make(ready, "book"))
    assert line.startswith("05-tiny.ipynb: not in _toc.yml. Fix: add ")
    assert not (ready / "_build/html").exists()


def test_an_entry_without_a_chapter_stops_the_build(ready):
    (ready / "notebooks/05-tiny.ipynb").unlink()
    line = the_error(make(ready, "book"))
    assert line.startswith("_toc.yml: there is no file notebooks/05-tiny. Fix: ")


def test_a_set_up_cell_that_differs_stops_the_build(ready):
    (ready / "snippets/quiet_start.py").write_text("other = 1\n")
    line = the_error(make(ready, "book"))
    assert line.endswith("differs from its snippet. Fix: make sync.")
    result = make(ready, "sync")
    assert result.returncode == 0 and "mended" in result.stdout


def test_an_address_that_is_not_on_github_stops_the_build(ready):
    config = ready / "_config.yml"
    config.write_text(config.read_text().replace("github.com", "example.org"))
    before = factory.snapshot(ready)
    line = the_error(make(ready, "book"))
    assert line.startswith("error: _config.yml, repository: url: 'https://example.org/")
    assert factory.snapshot(ready) == before


@pytest.mark.parametrize("ends", [1, KeyboardInterrupt])
def test_a_build_that_fails_is_removed(ready, monkeypatch, ends):
    def jupyter_book(root, *options):
        (root / "_build/html").mkdir(parents=True)
        if ends == 1:
            return ends
        raise ends

    monkeypatch.setattr(build, "jupyter_book", jupyter_book)
    assert build.main(ready) != 0
    assert not (ready / "_build").exists()


def test_a_build_that_fails_leaves_the_reports_of_the_checks(ready, monkeypatch):
    (ready / "_build/reports").mkdir(parents=True)
    (ready / "_build/html").mkdir()
    monkeypatch.setattr(build, "jupyter_book", lambda *_: 1)
    assert build.main(ready) == 1
    assert [path.name for path in (ready / "_build").iterdir()] == ["reports"]


def test_a_build_may_begin_anew(ready, monkeypatch):
    old = ready / "_build/html/removed-page.html"
    old.parent.mkdir(parents=True)
    old.touch()
    monkeypatch.setattr(build, "jupyter_book", lambda *_: 0)
    assert build.main(ready) == 0
    assert old.exists()
    assert build.main(ready, anew=True) == 0
    assert not old.exists()


def test_a_broken_page_turns_the_build_red_and_removes_it(ready):
    (ready / "book/welcome.md").write_text("# Welcome\n\n{ref}`nowhere`\n")
    result = make(ready, "book")
    assert result.returncode != 0
    assert "welcome.md:3: WARNING: undefined label: 'nowhere'" in result.stderr
    assert "the book is built" not in result.stdout
    assert not (ready / "_build").exists()


# Notebooks


@pytest.mark.parametrize(
    "word, problem",
    [("07", "matches no chapter"), ("tiny", "matches several chapters")],
)
def test_refresh_wants_one_chapter(ready, word, problem):
    two = ready / "notebooks/06-tiny-two.ipynb"
    shutil.copy(ready / "notebooks/05-tiny.ipynb", two)
    before = factory.snapshot(ready)
    line = the_error(make(ready, "refresh", f"NB={word}"))
    assert line == (
        f"error: NB={word} {problem}. Fix: name one of: 05-tiny, 06-tiny-two."
    )
    assert factory.snapshot(ready) == before


def test_refresh_of_a_cell_that_raises(ready):
    notebook = factory.chapter()
    factory.find(notebook, "print").source = "1 / 0"
    factory.save(ready, notebook)
    before = factory.snapshot(ready)
    line = the_error(make(ready, "refresh", "NB=05"))
    assert line.startswith(
        "error: 05-tiny.ipynb, cell 5 ('1 / 0'): "
        "raised ZeroDivisionError: division by zero. Fix: "
    )
    assert factory.snapshot(ready) == before


def test_a_notebook_that_is_not_json(ready):
    (ready / "notebooks/05-tiny.ipynb").write_text('{"cells": [')
    before = factory.snapshot(ready)
    line = the_error(make(ready, "book"))
    assert "05-tiny.ipynb: not valid JSON" in line
    assert factory.snapshot(ready) == before


# Serving


def test_a_taken_port_is_one_line(ready):
    with socket.socket() as taken:
        taken.bind((serving.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = the_error(make(ready, "serve", f"PORT={port}"))
    assert line == f"error: port {port} is taken. Fix: make serve PORT={port + 1}"


@pytest.mark.parametrize("word", ["x", "80", "70000", "-1"])
def test_what_is_no_port_is_one_line(ready, word, capsys):
    assert serving.main([word]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: PORT={word} is no port. Fix: ")


def test_the_settings_for_serving_are_those_of_the_book():
    names = {}
    conf = Path(serve.__file__).with_name("conf.py")
    exec(conf.read_text(), {"__file__": str(conf)}, names)
    assert names["SETTINGS"]["external_toc_path"] == str(ROOT / "_toc.yml")


# Tests and grading


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], "--tests notebooks tests --"),
        (["TESTS=tests/test_form.py"], "--tests tests/test_form.py --"),
        (
            ["TESTS=tests/a.py tests/b.py", "PYTEST_ARGS=-x -k 'one two'"],
            "--tests tests/a.py tests/b.py -- -x -k one two",
        ),
    ],
    ids=["all", "one", "two"],
)
def test_what_pytest_runs_can_be_chosen(ready, words, arguments):
    script(ready / "tools/checks/__main__.py", ITS_ARGUMENTS)
    result = make(ready, "test", *words)
    assert result.stdout == f"make {arguments}\n", result.stderr


@pytest.mark.parametrize("target", ["test", "lint"])
def test_the_checks_install_what_they_need_once(ready, target):
    script(ready / "tools/checks/__main__.py", ITS_ARGUMENTS)
    assert make(ready, target).returncode == 0
    assert len(uv_calls(ready)) == 1


def test_lint_is_a_part_of_the_checks(ready):
    script(ready / "tools/checks/__main__.py", ITS_ARGUMENTS)
    assert make(ready, "lint").stdout == "make --part lint\n"


def test_a_red_check_turns_make_red(ready):
    script(ready / "tools/checks/__main__.py", "raise SystemExit(1)")
    assert make(ready, "test").returncode != 0


def test_no_shell_stands_between_make_and_the_grader(ready):
    script(ready / "grading/__main__.py", ITS_ARGUMENTS)
    result = make(ready, "grade", "SUBMISSIONS=in", "ASSIGNMENT=1", 'ARGS=--seed "a b"')
    assert result.stdout == "make grade in 1 --seed a b\n", result.stderr


# What CI calls. Only root can become another user, so these tests run it among programs
# that take the place of those it needs for that.

CI_PROGRAMS = {
    "id": 'echo "$ID"',
    "apt-get": 'echo apt-get "$@" >>"$LOG"',
    "useradd": 'echo "${!#}" >"$USERS/name" && mkdir "$USERS/home"',
    "userdel": 'echo userdel "${@:1:$#-1}" >>"$LOG"',
    "find": 'echo find "$@" >>"$LOG"',
    "getent": 'echo "$2:x:1001:1001::$USERS/home:/bin/sh"',
    "chown": 'test "$*" = "-R $(cat "$USERS/name"): $USERS/home"; touch "$USERS/owned"',
    "make": 'echo make "$@" in "$PWD" >>"$LOG"; exit "$STATUS"',
    "runuser": """
test "$1 $2 $3 $4" = "-u $(cat "$USERS/name") -- env" && shift 4
while [[ $1 = *=* ]]; do export "$1"; shift; done
echo "$@" in "$PWD" with "$HOME" "$USER" "$PIP_FIND_LINKS" "${XDG_CACHE_HOME-}" >>"$LOG"
test -e "$USERS/owned"
test ! -e .venv
mkdir -p .venv/bin
cat >.venv/bin/python <<'END'
#!/bin/sh
echo python "$@" in "$PWD" with "$HOME" >>"$LOG"
exit "$STATUS_AS_ROOT"
END
chmod +x .venv/bin/python
exit "$STATUS"
""",
}


@pytest.fixture
def ci(house, tmp_path):
    """Calls .ci/run; what it returns gets `log`, what the other programs were told."""
    shutil.copytree(ROOT / ".ci", house / ".ci")
    script(house / ".venv/bin/python", "#!/bin/sh\nexit 1\n")
    script(house / "tests/test_grading.py", "")
    script(house / "tests/test_gradescope.py", "")
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    (house / ".gitignore").write_text(".venv/\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *who, *words], cwd=house, check=True)
    (house / "README.md").write_text("changed")
    (house / "_config.yml").unlink()
    for name, text in CI_PROGRAMS.items():
        script(tmp_path / "programs" / name, f"#!/usr/bin/env bash\nset -eu\n{text}\n")
    log, users = tmp_path / "log", tmp_path / "users"
    users.mkdir()

    def call(**environment):
        settings = {"ID": "0", "STATUS": "0", "STATUS_AS_ROOT": "0", "HOME": "/of/root"}
        settings |= {"LOG": str(log), "USERS": str(users), "PIP_FIND_LINKS": "/wheels"}
        settings["PATH"] = f"{tmp_path / 'programs'}:{os.environ['PATH']}"
        settings["XDG_CACHE_HOME"] = "/of/root/cache"
        settings["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
        result = run(house, ".ci/run", **settings | environment)
        result.log = log.read_text().splitlines()
        result.log = [line for line in result.log if not line.startswith("apt-get")]
        result.user = users / "name"
        result.home = users / "home"
        return result

    return call


@pytest.mark.parametrize("status", [0, 2])
def test_ci_is_make_test_to_an_ordinary_user(ci, house, status):
    result = ci(ID="1000", STATUS=str(status))
    assert result.returncode == status
    assert result.log == [f"make test in {house}"]
    assert not result.home.exists()


def test_ci_as_root_makes_a_user_and_runs_the_grader_again(ci):
    result = ci()
    user, home, copy = (
        result.user.read_text().strip(),
        result.home,
        result.home / "book",
    )
    assert result.returncode == 0, result.stderr
    assert result.log == [
        f"make test in {copy} with {home} {user} /wheels ",
        "python -m pytest -n 2 --dist loadscope tests/test_gradescope.py "
        f"tests/test_grading.py in {copy} with /of/root",
        f"find /tmp -maxdepth 1 -user {user} -exec rm -rf {{}} +",
        "userdel --force --remove",
    ]


def test_ci_as_root_tests_the_commits_and_the_changes(ci):
    copy = ci().home / "book"
    git = ["git", "-C", str(copy)]
    subject = subprocess.check_output([*git, "log", "--format=%s"], text=True)
    changes = subprocess.check_output([*git, "status", "--short"], text=True)
    assert (subject, changes) == ("first\n", " M README.md\n D _config.yml\n")
    assert (copy / "README.md").read_text() == "changed"


@pytest.mark.parametrize(
    ("statuses", "status", "runs"),
    [({"STATUS": "2"}, 2, 1), ({"STATUS_AS_ROOT": "1"}, 1, 2)],
    ids=["as a user", "as root"],
)
def test_ci_fails_with_its_first_failing_part_and_keeps_the_copy(
    ci, statuses, status, runs
):
    result = ci(**statuses)
    assert result.returncode == status
    assert len(result.log) == runs + 1
    assert result.log[-1] == "userdel --force"
    assert f"in {result.home}/book, which stays if one fails" in result.stderr


def test_ci_says_what_it_lacks(ci, house, tmp_path):
    for name in ("bash", "dirname"):
        (tmp_path / "few" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "few" / name).symlink_to(shutil.which(name))
    script(tmp_path / "few" / "id", "#!/bin/sh\necho 0\n")
    line = the_error(run(house, "bash", ".ci/run", PATH=str(tmp_path / "few")))
    assert line.startswith("error: there is no useradd here. Fix: ")
