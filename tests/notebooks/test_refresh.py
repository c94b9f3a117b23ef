"""Refreshing executes a notebook in a kernel and stores all of it, or nothing."""

import datetime
import sys

import notebook_factory as factory
import pytest

from tools.model.errors import UserError
from tools.notebooks import form, refresh


@pytest.fixture
def path(house):
    return house / "notebooks" / "05-tiny.ipynb"


def put(path, source, **metadata):
    """Store a chapter whose cell `print(1 + 1)` has another source."""
    notebook = factory.chapter()
    cell = factory.find(notebook, "print")
    cell.source = source
    cell.metadata.update(metadata)
    factory.save(path.parents[1], notebook)


def test_outputs_counts_and_versions_are_stored(house, path, capsys, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "of the user")
    put(
        path,
        "import os, pathlib, sys\n"
        "print(os.environ['QUIET'], os.environ.get('KERAS_BACKEND'))\n"
        "print(list(pathlib.Path().iterdir()), file=sys.stderr)\n"
        f"assert sys.executable == {sys.executable!r}\n"
        "assert pathlib.Path(os.environ['KERAS_HOME']).is_dir()\n"
        "1 + 2",
    )
    (house / "snippets" / "quiet_start.py").write_text(
        "import os\n\nos.environ['QUIET'] = 'from the new snippet'\n"
    )
    assert refresh.main(["05"], root=house) == 0
    assert capsys.readouterr().out == "05-tiny.ipynb: 6 cells run and stored\n"
    notebook = factory.load(path)
    cell = factory.find(notebook, "import os")
    printed, warned, result = cell.outputs
    assert printed.text == "from the new snippet None\n"
    assert warned.text == "[]\n"
    assert result.data == {"text/plain": "3"} and result.execution_count == 2
    verified = notebook.metadata.book.verified
    assert verified.date == datetime.datetime.now(datetime.UTC).date().isoformat()
    assert verified.python == ".".join(map(str, sys.version_info[:3]))
    assert verified.platform.endswith("cores")
    assert "keras" in verified.packages
    assert list(form.book_problems(house)) == []


def test_a_kernel_that_the_user_installed_is_not_used(
    house, path, tmp_path, monkeypatch
):
    kernel = tmp_path / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text('{"argv": ["/nowhere"], "display_name": "x", "language": "x"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert refresh.refresh(path, house) == 6


FAILURES = {
    "raises": (
        "raise ValueError('one\\ntwo')",
        "cell 5 (\"raise ValueError('one\\\\ntwo')\"): raised ValueError: two. Fix: ",
    ),
    "hangs": (
        "import time\ntime.sleep(60)",
        "cell 5 ('import time'): still running after 1 s. Fix: make the cell faster",
    ),
    "dies": ("import os\nos._exit(1)", "the kernel died. Fix: "),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_notebook_that_fails_keeps_its_file(
    house, path, failure, capsys, monkeypatch
):
    source, expected = FAILURES[failure]
    put(path, source)
    before = factory.snapshot(house)
    monkeypatch.setattr(refresh, "TIMEOUT", 1 if failure == "hangs" else 30)
    assert refresh.main(["05"], root=house) == 1
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("error: 05-tiny.ipynb, cell 5 (")
    assert expected in line
    assert factory.snapshot(house) == before


def test_one_that_fails_does_not_stop_the_others(house, path, capsys, monkeypatch):
    factory.save(house, factory.chapter("06-two.ipynb"), "06-two.ipynb")
    ran = []

    def execute(path, notebook):
        ran.append(path.name)
        if path.name.startswith("05"):
            raise UserError(f"{path.name}: no. Fix: yes.")

    monkeypatch.setattr(refresh, "execute", execute)
    assert refresh.main([], root=house) == 1
    assert ran == ["05-tiny.ipynb", "06-two.ipynb"]
    out, err = capsys.readouterr()
    assert err == "error: 05-tiny.ipynb: no. Fix: yes.\n"
    assert out == "06-two.ipynb: 6 cells run and stored\n"


@pytest.fixture
def three(house):
    for name in ("06-tiny-two.ipynb", "15-three.ipynb"):
        (house / "notebooks" / name).touch()
    return house


@pytest.mark.parametrize(
    "wanted, names",
    [
        ("", ["05-tiny", "06-tiny-two", "15-three"]),
        ("05", ["05-tiny"]),
        ("5", ["05-tiny"]),
        ("tiny", ["05-tiny", "06-tiny-two"]),
        ("notebooks/05-tiny.ipynb", ["05-tiny"]),
    ],
)
def test_chapters_are_found_by_number_name_or_part(three, wanted, names):
    assert [path.stem for path in refresh.find(wanted, three)] == names


def test_a_word_that_matches_none_lists_all(three):
    with pytest.raises(UserError, match=r"NB=big matches no chapter. Fix: .* 15-three"):
        refresh.find("big", three)
