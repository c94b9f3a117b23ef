"""The check of the notebooks turns red when it should, and says what it checked."""

import dataclasses
import datetime
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

import notebook_factory as factory
import psutil
import pytest
from nbformat import v4

from tools.model import chapters, claims_file, files, outcomes

UNCHECKED = "# Claim: xpus count.\nxpus = 0\nif xpus:\n    assert xpus > 0\nelse:\n    "
OPTIONS = ("--junit-xml=report.xml", "--color=no", "-p", "no:cacheprovider")


def printed(text):
    """A cell that prints what is stored."""
    return factory.code(f"print({text!r})", factory.stream(f"{text}\n"))


def claim(source, *stored):
    """A claim's cell, with stored outputs."""
    return factory.code(source, *stored, tags=["claim"])


SETUP = factory.code((chapters.ROOT / "snippets/outcome.py").read_text())
HEALTHY = {
    "set-up": SETUP,
    "stored output": printed("the same"),
    "claim": claim("# Claim: one is one.\nassert 1 == 1"),
    "claim in another process": claim(
        "%%capture\n# Claim: three is three.\nassert 3 == 3"
    ),
    "claim that prints, without its subject": claim(
        f"{UNCHECKED}not_checked('no XPU')\nprint('two')", factory.stream("two\n")
    ),
    "measured less elsewhere": factory.code(
        "print('a')", factory.stream("Measured less: 1 of 9 samples\na\n")
    ),
    "empty folder": factory.code("import os\nassert not os.listdir()\nopen('x', 'w')"),
    "own settings": factory.code(
        "assert not [x for x in os.environ if x.startswith(('TF_', 'XLA_', 'KERAS_B'))]"
        "\nassert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'"
    ),
}
HEALTHY["empty folder"].source += ".close()"
SICK = {
    "set-up": SETUP,
    "changed output": factory.code("print('new')", factory.stream("old\n")),
    "warning that is new": factory.code("import sys\nprint(1, file=sys.stderr)"),
    "false claim": claim("# Claim: one is two.\nassert 1 == 2"),
    "claim with nothing to loop over": claim(
        "# Claim: all are zero.\nfor x in []:\n    assert x == 0"
    ),
    "claim that prints anew and is not checked": claim(
        f"{UNCHECKED}not_checked('no XPU')\nprint('new')", factory.stream("old\n")
    ),
    "error that is not meant": factory.code("1 / 0", tags=["nbval-ignore-output"]),
    "healthy after all": printed("the same"),
}
DEAF = {  # a kernel that can't be interrupted, and a process that it started
    "a process": factory.code(
        "import os, signal, subprocess\n"
        "_ = subprocess.Popen(['sleep', '1234'], start_new_session=True)"
    ),
    "deaf": factory.code(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    signal.pause()"
    ),
    "claim after it": claim("# Claim: one is one.\nassert 1 == 1"),
}
DIES = {
    "dies": factory.code("import os\nos._exit(3)"),
    "claim after it": claim("# Claim: one is one.\nassert 1 == 1"),
}


def start(root, notebooks, *options):
    """Start the check of notebooks made of named code cells."""
    for name in ("tests", "notebooks", "temporary", "kernels/python3"):
        (root / name).mkdir(parents=True)
    for name in ("conftest.py", "pyproject.toml", "tests/sanitize.cfg"):
        shutil.copy(chapters.ROOT / name, root / name)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(chapters.ROOT / "tools", root / "tools", ignore=ignore)
    for number, (name, cells) in enumerate(notebooks.items(), start=1):
        notebook = v4.new_notebook(cells=list(cells.values()))
        factory.save(root, notebook, f"{number:02}-{name}.ipynb")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"KERAS_BACKEND": "the reader's", "TF_XLA_FLAGS": "the reader's"}
    environment |= {"TMPDIR": str(root / "temporary"), "JUPYTER_PATH": str(root)}
    kernel = '{"argv": ["/nowhere"], "display_name": "the reader\'s", "language": "x"}'
    (root / "kernels/python3/kernel.json").write_text(kernel)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "notebooks", *OPTIONS, *options],
        cwd=root,
        env=environment,
        stdout=(root / "output").open("w"),  # nobody reads a pipe while it runs
        stderr=subprocess.STDOUT,
    )


def left_behind(root):
    """The processes of kernels, and their folders, that a run has left."""
    folders = [path.name for path in (root / "temporary").glob("chapter-*")]
    return folders + [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline", "environ"])
        if (process.info["environ"] or {}).get("TMPDIR") == str(root / "temporary")
    ]


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run of pytest over small notebooks."""

    status: int
    text: str
    root: Path
    outcomes: dict[str, str]  # "sick: false claim" -> its outcome
    reasons: dict[str, str]  # the same -> why it is broken or was not checked
    failures: dict[str, str]  # the same -> all that pytest says of its failure


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four notebooks, run by two workers as in `make test`."""
    root = tmp_path_factory.mktemp("notebooks") / "house"
    notebooks = {"sick": SICK, "deaf": DEAF, "dies": DIES, "healthy": HEALTHY}
    options = ("-n", "2", "--dist", "loadscope", "--nbval-cell-timeout=3")
    process = start(root, notebooks, *options)
    status = process.wait(timeout=400)
    run = Run(status, (root / "output").read_text(), root, {}, {}, {})
    for case in xml.etree.ElementTree.parse(root / "report.xml").iter("testcase"):
        known = {x.attrib["name"]: x.attrib["value"] for x in case.iter("property")}
        notebook = Path(known["notebook"]).stem[3:]
        cell = list(notebooks[notebook])[int(known["cell"])]
        assert ("claim" in known) == ("claim" in cell), cell
        name = f"{notebook}: {cell}"
        run.outcomes[name], run.reasons[name] = known["outcome"], known["reason"]
        run.failures[name] = "".join(x.text or "" for x in case if x.tag == "failure")
    return run


@pytest.mark.parametrize("cell", HEALTHY)
def test_a_healthy_cell_is_not_red(run, cell):
    expected = "not checked" if "without its subject" in cell else "held"
    assert run.outcomes[f"healthy: {cell}"] == expected, run.text


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("changed output", ["Cell outputs differ", "old", "new"]),
        ("warning that is new", ["Cell outputs differ", "stderr"]),
        ("false claim", ["# Claim: one is two.", "AssertionError"]),
        ("claim with nothing to loop over", ["No assertion ran. Fix: assert"]),
        ("claim that prints anew and is not checked", ["Cell outputs differ", "new"]),
        ("error that is not meant", ["ZeroDivisionError"]),
    ],
)
def test_a_sick_cell_fails_and_says_why(run, cell, words):
    assert run.outcomes[f"sick: {cell}"] == "broken"
    for word in words:
        assert word in run.failures[f"sick: {cell}"], run.text
    assert run.outcomes["sick: healthy after all"] == "held"


@pytest.mark.parametrize(
    ("cell", "reason", "later"),
    [
        ("deaf: deaf", "Timeout of 3 seconds", "the time limit was passed"),
        ("dies: dies", "The kernel died", "the kernel died"),
    ],
)
def test_what_stops_a_kernel_costs_its_own_notebook_only(run, cell, reason, later):
    notebook = cell.partition(": ")[0]
    assert run.reasons[cell].startswith(reason), run.text
    assert run.reasons[f"{notebook}: claim after it"].startswith(f"not run: {later} in")
    assert run.outcomes[f"{notebook}: claim after it"] == "not checked"


def test_the_run_is_red_with_a_summary_and_leaves_nothing(run):
    assert run.status == 1, run.text
    assert re.search(r"(?m)^claims +2 held, 3 broken, 3 not checked$", run.text)
    assert re.search(r"(?m)^failed .*dies\.ipynb, cell 1 .*: The kernel died", run.text)
    assert re.search(r"(?m)^broken +1\.1 01-sick\.ipynb, cell .*Error", run.text)
    assert re.search(r"(?m)^slowest +\d\d-[a-z]+ \d+ s, \d\d-", run.text)
    report = files.read_json(run.root / claims_file.REPORT, "")
    assert {"date", "python", "versions"} < report.keys()
    claims = {claim["sentence"]: claim for claim in report["claims"]}
    assert claims["one is two."]["outcome"] == "broken"
    assert claims["one is two."]["reason"].startswith("AssertionError")
    assert left_behind(run.root) == []


def test_a_notebook_is_stored_if_none_of_its_cells_fails(tmp_path):
    root = tmp_path / "house"
    new = {"new": factory.code("print('new')\n1 + 2", factory.stream("old\n"))}
    lacks = "claim with nothing to loop over"
    notebooks = {"good": HEALTHY | new, "bad": new | {lacks: SICK[lacks]}}
    process = start(root, notebooks, "--store")
    bad = root / "notebooks/02-bad.ipynb"
    before = bad.read_bytes()
    assert process.wait(timeout=200) == 1
    assert "2.1 02-bad.ipynb, cell 2" in (root / "output").read_text()
    assert bad.read_bytes() == before
    good = factory.load(root / "notebooks/01-good.ipynb")
    printed, result = good.cells[-1].outputs
    assert (printed.text, result.data) == ("new\n", {"text/plain": "3"})
    assert result.execution_count == good.cells[-1].execution_count == len(good.cells)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    assert good.metadata.book.verified.date == today
    assert "keras" in good.metadata.book.verified.packages


@pytest.mark.slow
def test_an_interrupted_run_leaves_no_kernel(tmp_path):
    process = start(tmp_path / "house", {"deaf": DEAF}, "-n", "1")
    deadline = time.monotonic() + 200
    while not any("1234" in x for x in left_behind(tmp_path / "house")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.5)
    process.terminate()
    process.wait(timeout=60)
    while left_behind(tmp_path / "house") and time.monotonic() < deadline:
        time.sleep(0.5)  # its worker may end later
    assert left_behind(tmp_path / "house") == []


# --- the book's own notebooks ------------------------------------------------------


def test_most_outputs_of_the_book_are_compared():
    cells = [x for c in chapters.book() for x in c.cells if chapters.has_text_output(x)]
    share = sum(map(chapters.is_compared, cells)) / len(cells)
    assert share >= 0.8, f"only {share:.0%}. Fix: print what does not vary"


def test_no_comment_switches_a_check_off():
    """Only a tag may, because the form and the summary count tags."""
    for chapter in chapters.book():
        for cell in chapter.cells:
            assert not re.search(r"(?m)^\s*#+ *(NBVAL|PYTEST_VALIDATE)_", cell.source)


def test_few_claims_of_the_book_were_not_checked_when_they_were_stored():
    """At most one in fifty: `not_checked` is no easy way out."""
    claims = [(c, claim) for c in chapters.book() for claim in c.claims]
    unchecked = [x for c, x in claims if outcomes.reasons(c.cells[x.cell].outputs)]
    assert len(unchecked) <= len(claims) / 50, unchecked
