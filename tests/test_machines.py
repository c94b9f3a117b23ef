"""Claims under other machines: what a row says, what is kept, and what is ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from xml.sax.saxutils import quoteattr

import notebook_factory as factory
import psutil
import pytest
from book_site import claims_ledger, machines_table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from tools.drift import machines
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

NAME = "notebooks/05-tiny.ipynb"
SECOND = factory.code("# Claim: two is two.\nassert 2 == 2", tags=["claim"])
LAST = factory.code("# Claim: nobody knows.\nassert True", tags=["claim"])


@pytest.fixture
def book(tmp_path):
    """A chapter with three claims (cells 5 to 7); nothing is known of the rows."""
    notebook = factory.chapter()
    notebook.cells[6:6] = [SECOND, LAST]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book").mkdir()
    factory.save(tmp_path, notebook)
    machines.save({}, tmp_path)
    return tmp_path


def results(root, *cells):
    """The XML of a run in which cells had these outcomes and reasons."""
    cases = []
    for cell, outcome, reason in cells:
        known = {"notebook": NAME, "cell": str(cell), "outcome": outcome}
        known["reason"] = reason
        each = (
            f"<property name='{k}' value={quoteattr(v)}/>" for k, v in known.items()
        )
        cases.append(f"<testcase><properties>{''.join(each)}</properties></testcase>")
    path = root / "junit.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return path


def entry(root, *cells):
    """What the table says of a row whose cells ended like this."""
    path = root / NAME
    row = machines.provenance(machines.ROWS[0], {"keras": "3.15.1"})
    row |= {"python": "3.11.7", "seconds": 90, "chapters": [5]}
    return row | machines.read_results(results(root, *cells), [path], root)


def run(root, row="busy", **changes):
    """Run one row, with some functions replaced."""
    with pytest.MonkeyPatch.context() as patch:
        for name, function in changes.items():
            patch.setattr(machines, name, function)
        return machines.main([row], root)


def refuse(*_):
    raise UserError("qemu is missing. Fix: get it")


# What a run says


def test_each_claim_of_a_run_has_an_outcome(book):
    found = entry(
        book, (4, "broken", "KeyError: 'x'"), (5, "held", ""), (6, "broken", "f")
    )
    assert found["counts"] == {"held": 1, "broken": 1, "not checked": 1}
    assert found["held"] == {"5": f"1:{machines.fingerprint('one and one make two.')}"}
    assert [(x["label"], x["outcome"], x["reason"]) for x in found["not held"]] == [
        ("5.2", "broken", "f"),
        ("5.3", "not checked", "its cell was not run"),
    ]
    assert found["not held"][0]["sentence"] == "two is two."
    assert found["failed cells"] == [
        {"cell": "05-tiny.ipynb, cell 5 ('print(1 + 1)')", "reason": "KeyError: 'x'"}
    ]
    assert found["cells"] == 3


def test_a_run_without_results_is_refused(book):
    with pytest.raises(UserError, match="left no results"):
        machines.read_results(book / "none.xml", [], book)


def test_a_reason_names_no_folder_of_this_machine(book):
    text = f"OSError:\n {book}/a.py and /srv/someone/secret/b.py"
    assert machines.one_line(text, book) == "OSError: a.py and .../b.py"
    device = "/job:localhost/replica:0/task:0/device:GPU:0 and 1/2 of A/B/C"
    assert machines.one_line(device, book) == device
    assert len(machines.one_line("x" * 1000, book)) < 400


# What is kept


def test_a_claim_is_known_by_its_sentence(book):
    machines.save({"as-is": entry(book, (5, "held", ""))}, book)
    assert machines.held_anywhere(book) == {"5.1": ["as-is"], "5.2": [], "5.3": []}
    notebook = chapters.read(book / NAME)
    notebook.cells.insert(5, notebook.cells.pop(6))  # the second claim goes first
    factory.save(book, notebook)
    assert machines.held_anywhere(book) == {"5.1": [], "5.2": ["as-is"], "5.3": []}
    notebook.cells[6].source = "# Claim: one and one make three.\nassert 1 + 1 == 2"
    factory.save(book, notebook)
    assert machines.held_anywhere(book)["5.2"] == []


@pytest.mark.parametrize(
    "text",
    [None, "{", "[]", "{}", '{"rows": []}', '{"rows": {"busy": {}}}'],
)
def test_a_damaged_record_names_its_fix(book, text):
    path = book / machines.RECORD
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=r"book/machines.json: .* Fix: "):
        machines.load(book)


def test_a_row_without_a_field_is_named(book):
    found = entry(book, (5, "held", ""))
    del found["counts"], found["seconds"]
    machines.save({"busy": found}, book)
    with pytest.raises(UserError, match="the row 'busy' lacks counts, seconds"):
        machines.load(book)


def test_the_record_of_this_book_is_whole():
    assert set(machines.load(ROOT)) <= {row.name for row in machines.ROWS}


def test_a_failure_replaces_no_older_results(book, capsys):
    assert run(book, run=refuse) == 1
    assert (
        "busy: could not run: qemu is missing. Fix: get it" in capsys.readouterr().out
    )
    assert machines.load(book)["busy"]["could not run"]
    found = entry(book, *((cell, "held", "") for cell in (5, 6, 7)))
    assert run(book, run=lambda *_: found) == 0
    assert run(book, run=refuse) == 1
    assert machines.load(book) == {"busy": found}


def test_a_broken_claim_is_red_and_other_rows_stay(book, capsys):
    machines.save({"as-is": entry(book, (5, "held", ""))}, book)
    assert run(book, run=lambda *_: entry(book, (5, "broken", "assert 1 > 2"))) == 1
    assert set(machines.load(book)) == {"as-is", "busy"}
    said = capsys.readouterr().out
    assert "  broken 5.1 one and one make two. (assert 1 > 2)" in said


def test_a_trial_writes_nothing(book, monkeypatch):
    found = entry(book, (5, "held", ""))
    monkeypatch.setattr(machines, "run", lambda *_: found)
    machines.main(["busy", "--chapters", "5"], book)
    assert machines.load(book) == {}


def test_a_chapter_that_is_run_again_replaces_what_is_told_of_it(book, monkeypatch):
    old = entry(book, (5, "broken", "assert 1 > 2"))
    other = {
        "label": "4.2",
        "sentence": "Two.",
        "outcome": "not checked",
        "reason": "x",
    }
    old["not held"].insert(0, other)
    old["failed cells"] = [{"cell": "04-a.ipynb, cell 1", "reason": "it died"}]
    old["held"] = {"4": "1:0a1b2c3d"}
    machines.save({"busy": old | {"date": "2026-01-31", "chapters": [4, 5]}}, book)
    found = entry(book, (5, "held", ""))
    monkeypatch.setattr(machines, "run", lambda *_: found)
    assert machines.main(["busy", "--chapters", "5"], book) == 0
    row = machines.load(book)["busy"]
    assert row["held"] == {"4": "1:0a1b2c3d", "5": found["held"]["5"]}
    assert row["not held"] == [other, *found["not held"]]
    assert row["counts"] == {"held": 2, "broken": 0, "not checked": 3}
    assert row["failed cells"] == old["failed cells"]
    assert (row["date"], row["chapters"]) == ("2026-01-31", [4, 5])
    monkeypatch.setattr(machines, "run", lambda *_: found | {"processor": "another"})
    machines.main(["busy", "--chapters", "5"], book)
    assert machines.load(book)["busy"] == row


def test_an_interrupted_run_keeps_what_is_finished(book, capsys):
    found = entry(book, (5, "held", ""))

    def second_is_interrupted(row, *_):
        if row.name != "as-is":
            raise KeyboardInterrupt
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines, "run", second_is_interrupted)
        assert machines.main([], book) == 130
    assert machines.load(book) == {"as-is": found}


def test_an_unknown_row_is_named(book, capsys):
    assert machines.main(["haswel"], book) == 1
    said = capsys.readouterr().err
    assert "no row haswel. Fix: name some of as-is, one-core" in said


# Versions


def test_beyond_the_ranges_no_engine_has_an_upper_bound():
    rows = {row.newest: row for row in machines.ROWS}
    within = machines.requirements(rows["within"], ROOT).splitlines()
    beyond = machines.requirements(rows["beyond"], ROOT).splitlines()
    changed = [
        (old, new) for old, new in zip(within, beyond, strict=True) if old != new
    ]
    assert len(changed) == sum(
        "<" in x for x in within if x.startswith(machines.ENGINES)
    )
    assert all(new == old.partition(",")[0] for old, new in changed)
    assert not any(x.startswith("-r") for x in within)
    assert any(x.startswith("scikit-learn") and "<" in x for x in beyond)


def test_a_variant_of_an_engine_takes_its_place_in_requirements_and_pins(tmp_path):
    row = row_named("no-cuda")
    wanted = machines.requirements(row, ROOT).splitlines()
    assert [x for x in wanted if x.startswith("tensorflow")] == [
        "tensorflow-cpu>=2.20,<2.22"
    ]
    (tmp_path / "constraints").mkdir()
    pins = "tensorflow==2.21.0\ntensorflow-text==1.0\nkeras==3.15.1\n"
    (tmp_path / row.constraints).write_text(pins)
    known = machines.constraints(row, machines.Session(tmp_path)).read_text()
    assert known == pins.replace("tensorflow==", "tensorflow-cpu==")
    assert machines.as_row_one(machines.read_pins(ROOT / row.constraints)) is not None
    assert machines.as_row_one({"tensorflow-cpu": "2.21.0"}) is None


def test_the_same_engines_are_not_run_twice(tmp_path, monkeypatch):
    versions = {"keras": "3.15.1", "torch": "2.13.0", "narwhals": "2.28.0"}
    monkeypatch.setattr(
        machines,
        "installed",
        lambda names=machines.ENGINES: {x: versions[x] for x in names if x in versions},
    )
    pins = tmp_path / "pins.txt"
    pins.write_text("keras==3.15.1\ntorch==2.13.0+cpu\nnarwhals==2.29.0\n")
    assert machines.as_row_one(machines.read_pins(pins)) == {
        "same as": "as-is",
        "other versions": {"narwhals": "2.29.0"},
    }
    assert machines.as_row_one({"keras": "3.16.0", "torch": "2.13.0"}) is None


def test_the_label_of_a_build_is_no_difference(monkeypatch):
    labelled = {"torch": "2.13.0+cpu"}.__getitem__
    monkeypatch.setattr(machines.versions.importlib.metadata, "version", labelled)
    assert machines.installed(["torch"]) == {"torch": "2.13.0"}


# Processes


def alive(mark):
    """The processes that carry a mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(machines.MARK) == mark:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


STRAY = (
    "import subprocess, sys\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
    " start_new_session=True)\n"
)


def test_what_a_run_leaves_behind_is_ended(tmp_path):
    session = machines.Session(tmp_path)
    log = tmp_path / "log"
    assert session.call([sys.executable, "-c", f"{STRAY}print('done')"], log) == 0
    assert log.read_text() == "done\n"
    assert alive(session.mark) == []


@pytest.fixture
def marked():
    """A mark for a program's processes; those that a failure leaves are ended."""
    mark = uuid.uuid4().hex
    yield mark
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_ends_all_it_started(book, marked, number):
    program = f"""
import sys
from pathlib import Path
from tools.drift import machines
root = Path(sys.argv[1])
def run(row, *_):
    session = machines.Session(root)
    session.mark = {marked!r}
    with machines.busy(1):
        session.call([sys.executable, "-c", {STRAY + "input()"!r}.replace(
            "input()", "import time; print('up', flush=True); time.sleep(600)")],
            root / "log")
machines.run = run
raise SystemExit(machines.main(["busy"], root))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(book)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        log = book / "log"
        end = time.monotonic() + 60
        while not (log.exists() and "up" in log.read_text()):
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        loops = [x.pid for x in psutil.Process(child.pid).children()]
        assert len(loops) == 2 and len(alive(marked)) == 2
        child.send_signal(number)
        said = child.communicate(timeout=60)[1]
    finally:
        child.kill()
        child.wait()
    assert said == "interrupted: rows that were finished are kept\n"
    assert child.returncode == 130
    assert alive(marked) == []
    assert not any(psutil.pid_exists(pid) for pid in loops)


def test_a_busy_loop_ends_with_its_program():
    program = "import os, sys; from tools.drift.machines import *\nwith busy(1):\n"
    program += " import psutil; print(psutil.Process().children()[0].pid, flush=True)\n"
    program += " os._exit(0)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    with contextlib.suppress(psutil.NoSuchProcess):
        loop = psutil.Process(int(done.stdout))
        try:
            loop.wait(timeout=20)
        except psutil.TimeoutExpired:
            loop.kill()
            raise


# Other machines


def row_named(name):
    return next(row for row in machines.ROWS if row.name == name)


def test_the_command_of_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: name)
    paths = [tmp_path / NAME]
    one = machines.pytest_command(
        row_named("one-core"), paths, tmp_path / "x.xml", tmp_path / "python", tmp_path
    )
    assert one[:2] == ["taskset", "-c"] and one[2] in os.sched_getaffinity(0)
    assert one[one.index("-n") + 1] == 1 and one[-1].as_posix() == NAME
    other = machines.pytest_command(
        row_named("no-onednn"), paths, tmp_path / "x.xml", tmp_path / "p", tmp_path
    )
    assert "--kernel-env=TF_ENABLE_ONEDNN_OPTS=0" in other
    assert f"--kernel-python={tmp_path}/p" in other


def test_without_a_compiler_the_fix_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    session = machines.Session(tmp_path)
    with pytest.raises(UserError, match="Fix: apt-get install gcc"):
        machines.older_processor(session, tmp_path / "log")


def test_a_folder_that_cannot_be_preloaded_is_refused(tmp_path):
    session = machines.Session(tmp_path / "a folder")
    with pytest.raises(UserError, match="Fix: move the book to a folder without"):
        machines.older_processor(session, tmp_path / "a folder" / "log")


def features():
    """What this processor has, as far as Linux says."""
    path = Path("/proc/cpuinfo")
    return set(path.read_text().split()) if path.exists() else set()


needs_hiding = pytest.mark.skipif(
    not {"cpuid_fault", "avx512f"} <= features() or not shutil.which("cc"),
    reason="a processor with AVX-512 that can hide it, and cc",
)


@pytest.fixture
def hidden(tmp_path):
    """The environment of a program that sees an older processor."""
    variable = machines.older_processor(machines.Session(tmp_path), tmp_path / "log")
    name, _, value = variable.partition("=")
    return {**os.environ, name: value}


def python(environment, source):
    """Run Python's code."""
    return subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True
    )


@needs_hiding
def test_a_program_its_threads_and_children_see_an_older_processor(hidden):
    show = "from numpy._core._multiarray_umath import __cpu_features__ as f\n"
    show += "print(f['FMA3'], f['AVX2'], f['AVX512F'], f['AVX512_SPR'])"
    ask = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show!r}])"
    thread = (
        "import faulthandler, signal, threading; faulthandler.enable()\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())\n"
        f"threading.Thread(target=exec, args=[{show!r}]).start()"
    )
    for source in (show, ask, thread):
        done = python(hidden, source)
        assert (done.stdout, done.stderr) == ("True True False False\n", "")


@needs_hiding
def test_with_features_hidden_a_program_still_gets_its_own_faults(hidden):
    crash = "import ctypes; ctypes.string_at(0)"
    done = python(hidden, crash)
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
    done = python(hidden, f"import faulthandler; faulthandler.enable(); {crash}")
    assert done.returncode == -signal.SIGSEGV and "Segmentation fault" in done.stderr
    sent = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV); print('on')"
    assert python(hidden, sent).returncode == -signal.SIGSEGV
    caught = "import signal; signal.signal(signal.SIGSEGV, lambda *_: print('mine'))\n"
    assert python(hidden, f"{caught}{sent}").stdout == "mine\non\n"


@needs_hiding
def test_features_that_stay_visible_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(machines, "MASK", tmp_path / "nothing.c")
    session = machines.Session(tmp_path)
    with pytest.raises(UserError, match=r"nothing\.c does not compile"):
        machines.older_processor(session, tmp_path / "log")
    machines.MASK.write_text("int nothing;")
    with pytest.raises(UserError, match="can't be hidden from programs here"):
        machines.older_processor(session, tmp_path / "log")


# The page


def build(root):
    """Build a site of one page with the table; the page and the warnings."""
    (root / "index.rst").write_text("Machines\n========\n\n.. machines-table::\n")
    warnings = root / "warnings"
    with warnings.open("w") as out, docutils_namespace():
        app = Sphinx(
            root,
            None,
            root / "out",
            root / "trees",
            "dummy",
            confoverrides={"extensions": ["book_site.machines_table"]},
            status=None,
            warning=out,
            freshenv=True,
        )
        app.build()
    return app.env.get_doctree("index"), warnings.read_text()


def test_the_page_has_a_row_and_a_section_for_each_machine(book, monkeypatch):
    claim = chapters.claims(book / NAME)[1]
    known = claims_ledger.Entry("index", 5, chapters.read(book / NAME), [claim])
    monkeypatch.setattr(machines_table, "entries", lambda env: [known])
    link = nodes.inline("", "a link")
    monkeypatch.setattr(machines_table, "link", lambda *_: link.deepcopy())
    found = entry(
        book, (5, "broken", "KeyError: 'x'"), (6, "not checked", "it is `busy`")
    )
    same = {x: found[x] for x in ("date", "processor", "python", "versions")}
    rows = {"as-is": found, "newest": same | {"same as": "as-is"}}
    rows["colab"] = {"date": "2026-11-22", "could not run": "no room. Fix: make some"}
    machines.save(rows, book)
    page, warnings = build(book)
    assert warnings == ""
    lines = [
        [cell.astext() for cell in row.findall(nodes.entry)]
        for row in page.findall(nodes.row)
    ]
    assert [line[0] for line in lines[1:]] == [row.title for row in machines.ROWS]
    told = dict(zip([row.name for row in machines.ROWS], lines[1:], strict=True))
    assert told["as-is"][3:] == ["0", "1", "2"]
    assert told["one-core"][3:] == ["not run yet"]
    assert told["colab"][2:] == ["22\u00a0Nov\u00a02026", "could not run"]
    assert told["newest"][3:] == ["as in the first row"]
    first = next(x for x in page.findall(nodes.section) if "machine-as-is" in x["ids"])
    text = first.astext()
    assert (
        "5.1 (worded otherwise by now) One and one make two.\n\nKeyError: 'x'" in text
    )
    assert "a link Two is two.\n\nWhy: It is busy" in text
    assert "no room. Fix: make some" in page.astext()


def test_a_missing_record_is_a_warning_with_its_fix(book):
    (book / machines.RECORD).unlink()
    page, warnings = build(book)
    assert "book/machines.json: no such file. Fix: make machines" in warnings
    assert not list(page.findall(nodes.table))


def test_the_record_is_written_for_people_too(book):
    text = (book / machines.RECORD).read_text()
    assert json.loads(text)["about"].startswith("Written by `make machines`")
