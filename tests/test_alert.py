"""The weekly check's alert: a claim that is false turns it red and is named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import alert
from tools.chapters import ROOT

SETUP = new_code_cell("# @title Set-up: numbers\none = 1", execution_count=1)


def claim(sentence, code):
    source = f"# Claim: {sentence}\n{code}"
    return new_code_cell(source, execution_count=1, metadata={"tags": ["claim"]})


def run(root, cells, *options):
    """Write a chapter, run it with nbval and return its JUnit XML."""
    notebook = new_notebook(cells=[new_markdown_cell("# A chapter"), *cells])
    (root / "notebooks").mkdir()
    nbformat.write(notebook, root / "notebooks" / "07-a-chapter.ipynb")
    (root / "pytest.ini").write_text("[pytest]\nxfail_strict = true\n")
    results = root / "junit.xml"
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"]
    command += [f"--junitxml={results}", "-p", "no:cacheprovider", *options]
    subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=60)
    return results


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A chapter with one fault of each kind."""
    printed = new_code_cell("print('new')", execution_count=1)
    printed.outputs = [new_output("stream", name="stdout", text="old\n")]
    cells = [
        SETUP,
        claim("One is\n#   two.", "assert one == 2, f'one is {one} `@all`'"),
        claim("One is one.", "assert one == 1"),
        printed,
        new_code_cell("import time; time.sleep(60)", execution_count=1),
        claim("Nobody knows.", "assert one == 1"),
    ]
    root = tmp_path_factory.mktemp("broken")
    return run(root, cells, "--nbval-cell-timeout=2")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A chapter whose claims hold."""
    cells = [SETUP, claim("One is one.", "assert one == 1")]
    return run(tmp_path_factory.mktemp("healthy"), cells)


def test_a_false_claim_turns_the_alert_red_and_is_named(broken):
    text = alert.report({"newest": broken}, broken.parent)
    claims, _, rest = text.partition("**Claims that were not checked**")
    assert "red in 1 of 1 variants" in claims
    assert "## newest" in claims
    assert (
        "- **7.1** One is two. (07-a-chapter.ipynb, cell 3): "
        "`AssertionError: one is 1 '@all'`\n"
    ) in claims
    assert "7.2" not in text, "a claim that holds is reported"
    not_checked, _, others = rest.partition("**Other cells that failed**")
    assert "- **7.3** Nobody knows." in not_checked
    assert "cell 5 (\"print('new')\")`: `stored output differs: 'old" in others
    assert "Timeout of 2 seconds" in others


def test_no_alert_when_all_claims_hold(healthy):
    assert alert.report({"latest": healthy}, healthy.parent) is None


def test_in_lax_mode_only_what_is_asserted_counts(tmp_path):
    printed = new_code_cell("print('new')", execution_count=1)
    printed.outputs = [new_output("stream", name="stdout", text="old\n")]
    cells = [SETUP, printed, claim("One is two.", "assert one == 2")]
    text = alert.report({"colab": run(tmp_path, cells, "--nbval-lax")}, tmp_path)
    assert "**7.1** One is two." in text
    assert "stored output" not in text


def test_green_variants_are_told_apart(healthy):
    missing = healthy.parent / "none" / "junit.xml"
    text = alert.report({"latest": healthy, "newest": missing}, healthy.parent)
    assert "red in 1 of 2" in text
    assert "## latest" not in text
    assert "Green: latest." in text


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
    results = tmp_path / "junit.xml"
    if xml is not None:
        results.write_text(xml)
    assert message in alert.report({"newest": results}, healthy.parent)


def test_a_run_that_fails_with_no_failed_test_is_red(healthy, tmp_path):
    results = tmp_path / "junit.xml"
    results.write_bytes(healthy.read_bytes())
    (tmp_path / "outcome.txt").write_text("success\n")
    assert alert.report({"latest": results}, healthy.parent) is None
    (tmp_path / "outcome.txt").write_text("failure\n")
    text = alert.report({"latest": results}, healthy.parent)
    assert "All tests passed, but `make test` ended with `failure`" in text


def test_versions_and_other_checks_are_reported(tmp_path):
    (tmp_path / "junit.xml").write_text(
        '<s><testcase classname="tests.test_site" name="test_links">'
        '<failure message="m">E   AssertionError: 404\n</failure></testcase>'
        '<testcase classname="" name="notebooks.x.ipynb">'
        '<error message="collection failure">bad JSON</error></testcase></s>'
    )
    (tmp_path / "versions.txt").write_text(
        "Python 3.13.1\nabsl-py==2.5.1\nkeras==3.16.0\ntensorflow==2.22.0\n"
    )
    text = alert.report({"newest": tmp_path / "junit.xml"}, tmp_path)
    assert "With Python 3.13.1, tensorflow 2.22.0, keras 3.16.0." in text
    assert "- `tests.test_site::test_links`: `E AssertionError: 404`" in text
    assert "- `notebooks.x.ipynb`: `bad JSON`" in text


def test_a_long_list_is_cut():
    lines = [f"- {number}" for number in range(alert.MOST + 5)]
    assert alert.listed("T", lines)[-2] == "- … and 5 more"
    assert len(alert.quote("x" * 5000)) < 400


def test_exit_status(tmp_path, monkeypatch, capsys):
    missing = f"newest={tmp_path / 'junit.xml'}"
    assert alert.main(["report", missing]) == 1
    assert "no test results" in capsys.readouterr().out
    for wrong in ([], ["newest"], ["=x"], [missing, missing]):
        with pytest.raises(SystemExit) as exit:
            alert.main(["report", *wrong])
        assert exit.value.code == 2
    assert "named twice" in capsys.readouterr().err
    monkeypatch.setattr(alert, "report", lambda variants: None)
    assert alert.main(["report", missing]) == 0


# The two scripts of the alert's job, run as they stand in weekly.yml.


def script(name):
    workflow = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())
    steps = workflow["jobs"]["alert"]["steps"]
    return next(step["run"] for step in steps if step.get("name") == name)


def bash(text, folder, **environment):
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "RUN": "https://run", **environment},
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
    done = bash(
        script("Open, update or close the issue"),
        tmp_path,
        STATUS=status,
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    )
    assert done.returncode == int(status), done.stderr
    made = log.read_text().splitlines()
    assert len(made) == len(calls), made
    for line, call in zip(made, calls, strict=True):
        assert call in line


@pytest.mark.parametrize(
    ("bootstrap", "message"),
    [
        ("exit 0", "no test results: the run ended before its tests"),
        ("echo no network; exit 3", "could not even write its report"),
    ],
    ids=["no results", "no tools"],
)
def test_the_report_step_is_red_without_results(tmp_path, bootstrap, message):
    write_program(tmp_path / "tools" / "bootstrap.sh", bootstrap)
    python = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"'
    write_program(tmp_path / ".venv" / "bin" / "python", python)
    output, summary = tmp_path / "output", tmp_path / "summary"
    done = bash(
        script("Write the report"),
        tmp_path,
        GITHUB_OUTPUT=str(output),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"status=[1-9]\d*\n", output.read_text())
    text = Path(tmp_path, "issue.md").read_text()
    assert message in text
    assert text.endswith("\nThe logs: https://run\n")
    assert summary.read_text() == text
