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
import psutil
import pytest
from nbformat import v4

from tools.model import chapters, outcomes

ADDRESS = "0x7f00deadbeef"
FAILED_CHECK = "# Claim: one is two.\nassert 1 == 2"
UNCHECKED = "# Claim: xpus count.\nxpus = 0\nif xpus:\n    assert xpus > 0\nelse:\n    "


def error(name, value):
    """What a cell that raised shows."""
    return v4.new_output("error", ename=name, evalue=value, traceback=[])


def printed(text, **metadata):
    """A cell that prints what is stored."""
    return factory.code(f"print({text!r})", factory.stream(f"{text}\n"), **metadata)


def claim(source, *stored):
    """A claim's cell, with stored outputs."""
    return factory.code(source, *stored, tags=["claim"])


HEALTHY = {
    "set-up": factory.code((chapters.ROOT / "snippets/outcome.py").read_text()),
    "stored output": printed("the same"),
    "claim": claim("# Claim: one is one.\nassert 1 == 1"),
    "claim in a function": claim(
        "# Claim: two is two.\ndef same(a, b):\n    assert a == b\nsame(2, 2)"
    ),
    "claim in another process": claim(
        "%%capture\n# Claim: three is three.\nassert 3 == 3"
    ),
    "claim without its subject": claim(f"{UNCHECKED}not_checked('no XPU\\n is here')"),
    "claim that prints, without its subject": claim(
        f"{UNCHECKED}not_checked('no XPU')\nprint('two')", factory.stream("two\n")
    ),
    "claim that was not checked when it was stored": claim(
        "# Claim: four is four.\nassert 4 == 4",
        factory.stream("Not checked: no XPU is here\n"),
    ),
    "measured less": printed("Measured less: 1 of 9 samples"),
    "measured less elsewhere": factory.code(
        "print('a')", factory.stream("Measured less: 1 of 9 samples\na\n")
    ),
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
    "cell without its subject": factory.code(
        "print('Not checked: no compiler')", factory.stream("31 kernels\n")
    ),
    "error without its subject": factory.code(
        "print('Not checked: no compiler')",
        error("ValueError", "no card"),
        tags=["raises-exception"],
    ),
}
SICK = {
    "set-up": HEALTHY["set-up"],
    "changed output": factory.code("print('new')", factory.stream("old\n")),
    "output that is gone": factory.code("pass", factory.stream("old\n")),
    "output that is new": factory.code("print('new')"),
    "warning that is new": factory.code("import sys\nprint(1, file=sys.stderr)"),
    "false claim": claim(FAILED_CHECK),
    "claim with nothing to loop over": claim(
        "# Claim: all are zero.\nfor x in []:\n    assert x == 0"
    ),
    "claim without a reason": claim(f"{UNCHECKED}not_checked()"),
    "not checked where nothing is asserted": factory.code(
        "print('Not checked: me'); print('new')"
    ),
    "claim that prints anew and is not checked": claim(
        f"{UNCHECKED}not_checked('no XPU')\nprint('new')", factory.stream("old\n")
    ),
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
    "claim after it": claim("# Claim: one is one.\nassert 1 == 1"),
}
DEAF = {  # a kernel that can't be interrupted, and a process that it started
    "a process": factory.code(
        "import os, signal, subprocess\n"
        "sleep = ['sleep', '1234']\n"
        "_ = subprocess.Popen(sleep, start_new_session=True)"
    ),
    "deaf": factory.code(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass"
    ),
    "after it": printed("never"),
}
DIES = {
    "alive": printed("alive"),
    "dies": factory.code("import os\nos._exit(3)"),
    "claim after it": claim("# Claim: one is one.\nassert 1 == 1"),
    "cell after it": printed("never"),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run of pytest over small notebooks."""

    status: int
    text: str
    root: Path
    before: dict[str, bytes]
    outcomes: dict[str, str]  # "sick: false claim" -> its outcome
    reasons: dict[str, str]  # the same -> why it is broken or was not checked
    failures: dict[str, str]  # the same -> all that pytest says of its failure

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
    outcomes, reasons, failures = {}, {}, {}
    for case in xml.etree.ElementTree.parse(root / "report.xml").iter("testcase"):
        known = {x.attrib["name"]: x.attrib["value"] for x in case.iter("property")}
        name = names[Path(known["notebook"]).name, int(known["cell"])]
        outcomes[name], reasons[name] = known["outcome"], known["reason"]
        failures[name] = "".join(x.text or "" for x in case if x.tag == "failure")
        assert ("claim" in known) == ("claim" in name.split()), name
    text = result.stdout + result.stderr
    assert set(outcomes) == set(names.values()), text
    return Run(result.returncode, text, root, before, outcomes, reasons, failures)


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
        {"sick": SICK, "hangs": HANGS, "deaf": DEAF, "dies": DIES, "healthy": HEALTHY},
        *("-n", "0", "--nbval-cell-timeout=3"),
    )


@pytest.mark.parametrize("cell", HEALTHY)
def test_a_healthy_cell_is_not_red(healthy, sick, cell):
    expected = "not checked" if "without its subject" in cell else "held"
    assert healthy.outcomes[f"healthy: {cell}"] == expected, healthy.text
    assert sick.outcomes[f"healthy: {cell}"] == expected, sick.text


def test_the_summary_of_a_healthy_run(healthy):
    assert healthy.status == 0, healthy.text
    assert healthy.line("notebooks") == "2"
    assert healthy.line("cells run") == "20, 0 failed"
    assert healthy.line("outputs compared") == "12 of 13 (92 %)"
    assert healthy.line("claims") == "4 held, 0 broken, 2 not checked"
    assert re.findall(r"(?m)^not checked +(.+)$", healthy.text) == [
        "1.4 01-healthy.ipynb, cell 6 ('# Claim: xpus count.'): no XPU is here",
        "1.5 01-healthy.ipynb, cell 7 ('# Claim: xpus count.'): no XPU",
    ]
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
        ("claim with nothing to loop over", ["No assertion ran. Fix: assert"]),
        ("claim without a reason", ["ValueError", "not_checked needs a reason"]),
        ("not checked where nothing is asserted", ["Cell outputs differ", "new"]),
        ("claim that prints anew and is not checked", ["Cell outputs differ", "new"]),
        ("error that is gone", ["Cell outputs differ", "Missing output fields"]),
        ("uncompared error that is gone", ["raises nothing", "Fix: drop the tag"]),
        ("another error", ["Cell outputs differ", "IndexError"]),
        ("error that is not meant", ["ZeroDivisionError"]),
    ],
)
def test_a_sick_cell_fails_and_says_why(sick, cell, words):
    assert sick.outcomes[f"sick: {cell}"] == "broken"
    for word in words:
        assert word in sick.failures[f"sick: {cell}"], sick.text


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("hangs: endless", "Timeout of 3 seconds exceeded executing cell"),
        ("deaf: deaf", "Timeout of 3 seconds exceeded while executing cell."),
        ("dies: dies", "The kernel died"),
    ],
)
def test_what_stops_a_kernel_is_one_line_that_names_the_cell(sick, cell, reason):
    assert sick.reasons[cell].startswith(reason), sick.text
    name, _, _ = cell.partition(": ")
    assert re.search(rf"(?m)^failed .*{name}\.ipynb, cell \d .*: {reason}", sick.text)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("hangs: claim after it", "not run: the time limit was passed in code cell 1"),
        ("deaf: after it", "not run: the time limit was passed in code cell 1"),
        ("dies: claim after it", "not run: the kernel died in code cell 1"),
        ("dies: cell after it", "not run: the kernel died in code cell 1"),
    ],
)
def test_what_comes_after_it_is_not_checked(sick, cell, reason):
    assert sick.outcomes[cell] == "not checked"
    assert sick.reasons[cell] == reason


def test_the_summary_of_a_sick_run(sick):
    assert sick.status == 1, sick.text
    assert sick.outcomes["sick: healthy after all"] == "held"
    assert sick.line("notebooks") == "5"
    assert sick.line("cells run") == "38, 16 failed, 4 not run"
    assert sick.line("claims") == "4 held, 4 broken, 4 not checked"
    broken = re.findall(r"(?m)^broken +(.+)$", sick.text)
    assert len(broken) == 4
    assert (
        "1.1 01-sick.ipynb, cell 6 ('# Claim: one is two.'): "
        "AssertionError: assert 1 == 2"
    ) in broken


@pytest.mark.parametrize("name", ["healthy", "sick"])
def test_a_run_leaves_no_file_and_no_process_behind(name, request):
    run = request.getfixturevalue(name)
    assert factory.snapshot(run.root / "notebooks") == run.before
    left = [path.name for path in (run.root / "temporary").iterdir()]
    assert not [name for name in left if name.startswith("chapter-")]
    for process in psutil.process_iter(["cmdline", "environ"]):
        here = (process.info["environ"] or {}).get("TMPDIR")
        assert here != str(run.root / "temporary"), process.info["cmdline"]


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


def test_few_claims_of_the_book_were_not_checked_when_they_were_stored():
    """At most one in fifty: `not_checked` is no easy way out."""
    unchecked, claims = [], 0
    for path in chapters.chapter_paths():
        notebook = chapters.read(path)
        for claim in chapters.claims(path, notebook):
            claims += 1
            if outcomes.reasons(notebook.cells[claim.cell].outputs):
                unchecked.append(f"{claim.label} {claim.sentence}")
    assert len(unchecked) <= claims / 50, "\n".join(unchecked)
