"""The weekly check's alert: a claim that is false turns it red and is named."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.drift import alert
from tools.model.chapters import ROOT

SETUP = new_code_cell("# @title Set-up: numbers\none = 1", execution_count=1)


def claim(sentence, code):
    source = f"# Claim: {sentence}\n{code}"
    return new_code_cell(source, execution_count=1, metadata={"tags": ["claim"]})


def run(root, cells, *options):
    """Write a chapter, run it as `make test` does, and return the folder of reports."""
    notebook = new_notebook(cells=[new_markdown_cell("# A chapter"), *cells])
    (root / "notebooks").mkdir()
    nbformat.write(notebook, root / "notebooks" / "07-a-chapter.ipynb")
    (root / "pytest.ini").write_text("[pytest]\nxfail_strict = true\n")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"]
    command += [
        "-p",
        "tools.checks.cells",
        "-p",
        "no:cacheprovider",
        "--junitxml=claims.xml",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*command, *options],
        cwd=root,
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return root


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A chapter with one fault of each kind."""
    printed = new_code_cell("print('new')", execution_count=1)
    printed.outputs = [new_output("stream", name="stdout", text="old\n")]
    cells = [
        SETUP,
        claim("One is\n#   two.", "assert one == 2, f'one is {one} `@all`'"),
        claim("One is one.", "assert one == 1"),
        claim("XPUs count.", "print('Not checked: no XPU is here')"),
        printed,
        new_code_cell("import time; time.sleep(60)", execution_count=1),
        claim("Nobody knows.", "assert one == 1"),
    ]
    root = tmp_path_factory.mktemp("broken")
    return run(root, cells, "--nbval-cell-timeout=2")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A chapter whose claims hold, apart from one that could not be checked."""
    cells = [
        SETUP,
        claim("One is one.", "assert one == 1"),
        claim("XPUs count.", "print('Not checked: no XPU is here')"),
    ]
    return run(tmp_path_factory.mktemp("healthy"), cells)


@pytest.fixture
def variant(healthy, tmp_path):
    """A folder with the reports of a healthy run, to be changed."""
    folder = tmp_path / "variant"
    folder.mkdir()
    shutil.copy(healthy / "claims.xml", folder)
    return folder


def report(folder, book, name="newest"):
    return alert.report({name: folder}, book)


def test_a_false_claim_turns_the_alert_red_and_is_named(broken):
    text, red = report(broken, broken)
    assert red
    claims, _, rest = text.partition("**Claims that were not checked**")
    assert "red in 1 of 1 variants" in claims
    assert "## newest\n\nClaims: 1 held, 1 broken, 2 not checked." in claims
    assert (
        "- **7.1** One is two. (07-a-chapter.ipynb, cell 3): "
        "`AssertionError: one is 1 '@all'`\n"
    ) in claims
    assert "7.2" not in text, "a claim that holds is reported"
    assert (
        "- **7.3** XPUs count. (07-a-chapter.ipynb, cell 5): `no XPU is here`" in rest
    )
    stopped = "`not run: the time limit was passed in code cell 5`"
    assert f"- **7.4** Nobody knows. (07-a-chapter.ipynb, cell 8): {stopped}" in rest
    assert "cell 6 (\"print('new')\")`: `stored output differs: 'old" in claims
    assert "Timeout of 2 seconds" in claims


def test_the_report_is_not_red_when_all_that_was_checked_holds(healthy):
    text, red = report(healthy, healthy)
    assert not red
    assert "## newest: green\n\nClaims: 1 held, 0 broken, 1 not checked." in text
    assert (
        "- **7.2** XPUs count. (07-a-chapter.ipynb, cell 4): `no XPU is here`" in text
    )


def test_in_lax_mode_only_what_is_asserted_counts(tmp_path):
    printed = new_code_cell("print('new')", execution_count=1)
    printed.outputs = [new_output("stream", name="stdout", text="old\n")]
    cells = [SETUP, printed, claim("One is two.", "assert one == 2")]
    text, red = report(run(tmp_path, cells, "--nbval-lax"), tmp_path)
    assert red and "**7.1** One is two." in text
    assert "stored output" not in text


def test_green_variants_are_told_apart(healthy):
    folders = {"latest": healthy, "newest": healthy / "none"}
    text, red = alert.report(folders, healthy)
    assert red and "red in 1 of 2" in text
    assert "## newest\n\n" in text and "## latest: green\n" in text


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (None, "no test results: the run ended before its tests"),
        ("", "can't be read"),
        ("<testsuites><testsuite>", "can't be read"),
        ("<testsuites/>", "no test ran"),
        ('<s><testcase classname="tests.test_x" name="y"/></s>', "**7.1** One is one."),
    ],
    ids=["missing", "empty", "cut", "no test", "no notebook"],
)
def test_results_that_prove_nothing_are_never_green(healthy, tmp_path, xml, message):
    if xml is not None:
        (tmp_path / "claims.xml").write_text(xml)
    text, red = report(tmp_path, healthy)
    assert red and message in text


def test_a_run_that_fails_with_no_failed_test_is_red(healthy, variant):
    (variant / "outcome.txt").write_text("success\n")
    assert not report(variant, healthy)[1]
    (variant / "outcome.txt").write_text("failure\n")
    text, red = report(variant, healthy)
    assert red
    assert "All tests passed, but `make test` ended with `failure`" in text


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ('{"claims": {"outcome": "passed"}, "tests": {"outcome": "passed"}}', None),
        ('{"lint": {"outcome": "failed", "said": "a `new` word"}}', "'new' word`"),
        ('{"site": {"outcome": "could not run"}}', "- site: could not run"),
        ("{", "`parts.json` can't be read"),
        ("[]", "`parts.json` can't be read"),
        ('{"site": 3}', "`parts.json` can't be read"),
    ],
)
def test_parts_of_the_run_are_reported(healthy, variant, parts, said):
    (variant / "parts.json").write_text(parts)
    text, red = report(variant, healthy)
    assert red == (said is not None)
    assert said is None or said in text


def test_versions_and_other_checks_are_reported(tmp_path):
    (tmp_path / "claims.xml").write_text(
        '<s><testcase classname="" name="notebooks.x.ipynb">'
        '<error message="collection failure">bad JSON</error></testcase></s>'
    )
    (tmp_path / "tests.xml").write_text(
        '<s><testcase classname="tests.test_site" name="test_links">'
        '<failure message="m">E   AssertionError: 404\n</failure></testcase></s>'
    )
    (tmp_path / "versions.txt").write_text(
        "Python 3.13.1\nabsl-py==2.5.1\nkeras==3.16.0\ntensorflow==2.22.0\n"
    )
    text, red = report(tmp_path, tmp_path)
    assert red
    assert "With Python 3.13.1, tensorflow 2.22.0, keras 3.16.0." in text
    assert "- `tests.test_site::test_links`: `E AssertionError: 404`" in text
    assert "- `notebooks.x.ipynb`: `bad JSON`" in text
    (tmp_path / "tests.xml").write_text("<s>")
    assert "- tests: the test results can't be read" in report(tmp_path, tmp_path)[0]


def test_a_long_list_is_cut():
    lines = [f"- {number}" for number in range(alert.MOST + 5)]
    assert alert.listed("T", lines)[-2] == "- … and 5 more"
    assert len(alert.quote("x" * 5000)) < 400


def test_exit_status(tmp_path, monkeypatch, capsys):
    missing = f"newest={tmp_path}"
    assert alert.main(["report", missing]) == 1
    assert "no test results" in capsys.readouterr().out
    for wrong in ([], ["newest"], ["=x"], [missing, missing]):
        with pytest.raises(SystemExit) as exit:
            alert.main(["report", *wrong])
        assert exit.value.code == 2
    assert "named twice" in capsys.readouterr().err
    monkeypatch.setattr(alert, "report", lambda variants: ("all is well\n", False))
    assert alert.main(["report", missing]) == 0
    assert capsys.readouterr().out == "all is well\n"


# The scripts of the weekly run's last jobs. Their `gh` only notes how it is called.


def script(name, folder, **environment):
    """Run a script of the workflows' in a folder, among its programs in `bin`."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", ROOT / ".github" / "scripts" / name],
        cwd=folder,
        env={**os.environ, "RUN": "https://run", "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("status", "open_issue", "calls"),
    [
        ("1", "", ["list", "label create drift", "issue create --label drift"]),
        ("1", "12", ["list", "issue edit 12", "issue comment 12"]),
        ("0", "12", ["list", "issue close 12"]),
        ("0", "", ["list"]),
    ],
    ids=["open", "update", "close", "nothing"],
)
def test_there_is_one_issue_and_it_follows_the_claims(
    tmp_path, status, open_issue, calls
):
    log = tmp_path / "log"
    write_program(
        tmp_path / "bin" / "gh",
        f'echo "$*" >> "{log}"; [ "$2" != list ] || echo "{open_issue}"',
    )
    done = script("issue.sh", tmp_path, STATUS=status)
    assert done.returncode == int(status), done.stderr
    made = log.read_text().splitlines()
    assert len(made) == len(calls), made
    for line, call in zip(made, calls, strict=True):
        assert call in line


@pytest.fixture
def write_report(tmp_path):
    """Runs report.sh; what it returns gets `status` and the `text` of the issue."""
    python = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"'
    write_program(tmp_path / ".venv" / "bin" / "python", python)
    output, summary = tmp_path / "output", tmp_path / "summary"

    def call(bootstrap="exit 0", kept_on="success"):
        write_program(tmp_path / "tools/setup/bootstrap.sh", bootstrap)
        done = script(
            "report.sh",
            tmp_path,
            KEPT_ON=kept_on,
            GITHUB_OUTPUT=str(output),
            GITHUB_STEP_SUMMARY=str(summary),
        )
        assert done.returncode == 0, done.stderr
        done.status = int(re.fullmatch(r"status=(\d+)\n", output.read_text())[1])
        done.text = (tmp_path / "issue.md").read_text()
        assert summary.read_text() == done.text
        return done

    return call


@pytest.mark.parametrize(
    ("bootstrap", "message"),
    [
        ("exit 0", "## colab"),
        ("echo no network; exit 3", "could not even write its report"),
    ],
    ids=["no results", "no tools"],
)
def test_the_report_is_red_without_results(write_report, bootstrap, message):
    done = write_report(bootstrap)
    assert done.status != 0
    assert message in done.text
    assert "schedule" not in done.text
    assert done.text.endswith("\nThe logs: https://run\n")


@pytest.mark.parametrize("kept_on", ["failure", "skipped", "cancelled"])
def test_a_schedule_that_may_end_is_reported_even_where_all_is_well(
    write_report, tmp_path, kept_on
):
    write_program(tmp_path / ".venv" / "bin" / "python", "exit 0")
    assert write_report().status == 0
    (tmp_path / "output").unlink()
    (tmp_path / "summary").unlink()
    done = write_report(kept_on=kept_on)
    assert done.status == 1
    assert f"could not keep its schedule on ({kept_on})" in done.text
    assert done.text.endswith("\nThe logs: https://run\n")


@pytest.mark.parametrize("status", [0, 1])
def test_the_schedule_is_kept_on(tmp_path, status):
    log, summary = tmp_path / "log", tmp_path / "summary"
    write_program(tmp_path / "bin" / "gh", f'echo "$*" >>"{log}"; exit {status}')
    settings = {
        "GITHUB_REPOSITORY": "someone/some-book",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    done = script("keep-on.sh", tmp_path, **settings)
    assert done.returncode == status
    assert log.read_text() == (
        "api --method PUT repos/someone/some-book/actions/workflows/weekly.yml/enable\n"
    )
    said = summary.read_text() if status == 0 else done.stdout
    assert ("is kept on" in said) == (status == 0)
    assert ("::error::" in said) == (status == 1)
