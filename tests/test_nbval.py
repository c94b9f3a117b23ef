"""The check of the notebooks turns red when it should, and says what it checked."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import notebook_factory as factory
import pytest
from nbformat import v4

from tools import chapters

ADDRESS = "0x7f00deadbeef"
FAILED_CHECK = "# Claim: one is two.\nassert 1 == 2"


def error(name, value):
    """What a cell that raised shows."""
    return v4.new_output("error", ename=name, evalue=value, traceback=[])


def printed(text, **metadata):
    """A cell that prints what is stored."""
    return factory.code(f"print({text!r})", factory.stream(f"{text}\n"), **metadata)


HEALTHY = {
    "stored output": printed("the same"),
    "claim": factory.code("# Claim: one is one.\nassert 1 == 1", tags=["claim"]),
    "empty folder": factory.code(
        "import os\nassert os.listdir() == [], os.listdir()\n"
        "open('made.txt', 'w').close()"
    ),
    "own settings": factory.code(
        "mine = [x for x in os.environ if x.startswith(('TF_', 'XLA_', 'JAX_'))]\n"
        "assert not mine and 'KERAS_BACKEND' not in os.environ\n"
        "assert os.listdir(os.environ['KERAS_HOME']) == []\n"
        "assert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'"
    ),
    "address": factory.code(
        "object()",
        v4.new_output(
            "execute_result",
            execution_count=1,
            data={"text/plain": f"<object at {ADDRESS}>"},
        ),
    ),
    "error": factory.code(
        "1 / 0",
        error("ZeroDivisionError", "division by zero"),
        tags=["raises-exception"],
    ),
    "duration": factory.code(
        "import time\nprint(time.time())",
        factory.stream("an hour\n"),
        tags=["nbval-ignore-output"],
    ),
}
SICK = {
    "changed output": factory.code("print('new')", factory.stream("old\n")),
    "output that is gone": factory.code("pass", factory.stream("old\n")),
    "output that is new": factory.code("print('new')"),
    "warning that is new": factory.code("import sys\nprint(1, file=sys.stderr)"),
    "false claim": factory.code(FAILED_CHECK, tags=["claim"]),
    "error that is gone": factory.code(
        "pass",
        error("ZeroDivisionError", "division by zero"),
        tags=["raises-exception"],
    ),
    "uncompared error that is gone": factory.code(
        "pass", tags=["raises-exception", "nbval-ignore-output"]
    ),
    "another error": factory.code(
        "[][0]",
        error("ZeroDivisionError", "division by zero"),
        tags=["raises-exception"],
    ),
    "error that is not meant": factory.code("1 / 0", tags=["nbval-ignore-output"]),
    "healthy after all": printed("the same"),
}
HANGS = {
    "before": printed("the same"),
    "endless": factory.code("import time\nprint('start')\ntime.sleep(60)"),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run of pytest over small notebooks."""

    status: int
    text: str
    root: Path
    before: dict[str, bytes]
    outcomes: dict[str, str]  # "02-sick.ipynb: false claim" -> its failure, or ""

    def line(self, start):
        """What the summary says on the line that starts with some words."""
        (found,) = re.findall(rf"(?m)^{start} +(.+)$", self.text)
        return found


def check(root, cells, *options):
    """Run the notebooks' check over notebooks made of named code cells."""
    (root / "tests").mkdir(parents=True)
    (root / "notebooks").mkdir()
    (root / "temporary").mkdir()
    for name in ("conftest.py", "pyproject.toml", "tests/sanitize.cfg"):
        shutil.copy(chapters.ROOT / name, root / name)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(chapters.ROOT / "tools", root / "tools", ignore=ignore)
    names = {}
    for number, (name, named) in enumerate(cells.items(), start=1):
        notebook = v4.new_notebook(cells=list(named.values()))
        path = factory.save(root, notebook, f"{number:02}-{name}.ipynb")
        for index, key in enumerate(named):
            names[path.name, index] = f"{name}: {key}"
    before = factory.snapshot(root / "notebooks")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    settings = ("--junit-xml=report.xml", "-p", "no:cacheprovider", "--color=no")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "notebooks", *settings, *options],
        cwd=root,
        env={
            **environment,
            "CUDA_VISIBLE_DEVICES": "0",
            "KERAS_BACKEND": "of the reader",
            "TF_XLA_FLAGS": "of the reader",
            "TMPDIR": str(root / "temporary"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    outcomes = {}
    for case in xml.etree.ElementTree.parse(root / "report.xml").iter("testcase"):
        notebook = case.attrib["classname"].removeprefix("notebooks.")
        index = int(case.attrib["name"].removeprefix("Cell "))
        failures = [child.text or child.attrib["message"] for child in case]
        outcomes[names[notebook, index]] = "".join(failures)
    text = result.stdout + result.stderr
    assert set(outcomes) == set(names.values()), text
    return Run(result.returncode, text, root, before, outcomes)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """Two healthy notebooks, run by two workers as in `make test`."""
    other = {"one": printed("1"), "two": printed("2"), "three": printed("3")}
    return check(
        tmp_path_factory.mktemp("healthy") / "house",
        {"healthy": HEALTHY, "other": other},
        *("-n", "2", "--dist", "loadscope"),
    )


@pytest.fixture(scope="module")
def sick(tmp_path_factory):
    """Notebooks in which cells must fail, run in one process."""
    return check(
        tmp_path_factory.mktemp("sick") / "house",
        {"sick": SICK, "hangs": HANGS, "healthy": HEALTHY},
        *("-n", "0", "--nbval-cell-timeout=3"),
    )


@pytest.mark.parametrize("cell", HEALTHY)
def test_a_healthy_cell_passes(healthy, sick, cell):
    assert healthy.outcomes[f"healthy: {cell}"] == "", healthy.text
    assert sick.outcomes[f"healthy: {cell}"] == "", sick.text


def test_the_summary_of_a_healthy_run(healthy):
    assert healthy.status == 0, healthy.text
    assert healthy.line("notebooks") == "2"
    assert healthy.line("cells run") == "10, 0 failed"
    assert healthy.line("outputs compared") == "6 of 7 (85 %)"
    assert healthy.line("claims that hold") == "1 of 1"
    slowest = healthy.line("slowest")
    times = re.fullmatch(r"(\S+) \d+ s, (\S+) \d+ s", slowest)
    assert times and set(times.groups()) == {"01-healthy", "02-other"}, slowest


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("changed output", ["Cell outputs differ", "old", "new"]),
        ("output that is gone", ["Cell outputs differ", "Missing output fields"]),
        ("output that is new", ["Cell outputs differ", "Unexpected output fields"]),
        ("warning that is new", ["Cell outputs differ", "stderr"]),
        ("false claim", ["# Claim: one is two.", "AssertionError"]),
        ("error that is gone", ["Cell outputs differ", "Missing output fields"]),
        ("uncompared error that is gone", ["raises nothing", "Fix: drop the tag"]),
        ("another error", ["Cell outputs differ", "IndexError"]),
        ("error that is not meant", ["ZeroDivisionError"]),
    ],
)
def test_a_sick_cell_fails_and_says_why(sick, cell, words):
    failure = sick.outcomes[f"sick: {cell}"]
    for word in words:
        assert word in failure, sick.text


def test_a_cell_that_hangs_fails_at_its_limit(sick):
    assert sick.outcomes["hangs: before"] == ""
    assert "Timeout of 3 seconds" in sick.outcomes["hangs: endless"], sick.text


def test_the_summary_of_a_sick_run(sick):
    assert sick.status == 1, sick.text
    assert sick.outcomes["sick: healthy after all"] == ""
    assert sick.line("notebooks") == "3"
    assert sick.line("cells run") == "19, 10 failed"
    assert sick.line("outputs compared") == "5 of 10 (50 %)"
    assert sick.line("claims that hold") == "1 of 2"
    assert re.match(r"02-hangs [3-9] s, ", sick.line("slowest"))


@pytest.mark.parametrize("name", ["healthy", "sick"])
def test_a_run_leaves_no_file_behind(name, request):
    run = request.getfixturevalue(name)
    assert factory.snapshot(run.root / "notebooks") == run.before
    left = [path.name for path in (run.root / "temporary").iterdir()]
    assert not [name for name in left if name.startswith("chapter-")]


# --- the book's own notebooks ------------------------------------------------------


def test_most_outputs_of_the_book_are_compared():
    outputs, ignored = 0, []
    for path in chapters.chapter_paths():
        for index, cell in enumerate(chapters.read(path).cells):
            if chapters.has_text_output(cell):
                outputs += 1
                if not chapters.is_compared(cell):
                    ignored.append(chapters.where(path, index, cell))
    share = 1 - len(ignored) / max(outputs, 1)
    assert share >= 0.8, (
        f"only {share:.0%} of {outputs} outputs are compared. Fix: print what does not "
        "vary, and drop the tag nbval-ignore-output, in some of:\n" + "\n".join(ignored)
    )


def test_no_comment_switches_a_check_off():
    """Only a tag may, because the form and the summary count tags."""
    found = [
        chapters.where(path, index, cell)
        for path in chapters.chapter_paths()
        for index, cell in enumerate(chapters.read(path).cells)
        if cell.cell_type == "code"
        and re.search(r"(?m)^\s*#+\s*(NBVAL|PYTEST_VALIDATE)_", cell.source)
    ]
    assert not found, "Fix: use a tag instead of a comment in:\n" + "\n".join(found)
