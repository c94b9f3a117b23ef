"""A folder of submissions, honest and hostile, graded in one unattended run."""

import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import class_factory
import psutil
import pytest

from tools.model.chapters import ROOT

pytestmark = class_factory.NEEDS_SANDBOX

STUDENTS = "students"  # the folder of their results
LIMITS = [
    "--cell-seconds=6",
    "--call-seconds=5",
    "--total-seconds=57",
    "--memory-gib=0.5",
    "--seed=a secret",
]


def grade(folder: Path, out: Path, *options: str) -> subprocess.CompletedProcess:
    """Run the command as a teacher would."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "grading", "grade", str(folder)),
            *(str(class_factory.MINI), "--out", str(out), *options),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )


# Two honest notebooks and an attack of each kind are always graded, the others if slow.
SMOKE = {
    *("correct", "wrong", "equal-to-all", "looks-for-hidden-tests", "writes-a-report"),
    *("ends-the-process", "loops-when-asked"),
}
CASES = [
    pytest.param(name, marks=() if name in SMOKE else pytest.mark.slow)
    for name in class_factory.ALL
]


@pytest.fixture(scope="module")
def run(request, tmp_path_factory):
    """One run over all submissions that are asked for, by two graders at a time."""
    folder = tmp_path_factory.mktemp("class")
    asked = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.module is request.module and hasattr(item, "callspec")
    }
    cases = {name: class_factory.ALL[name] for name in SMOKE | asked}
    class_factory.write_all(folder / "handed-in", cases)
    done = grade(folder / "handed-in", folder / "grades", "--jobs=2", *LIMITS)
    assert done.returncode == 0, done.stderr
    return folder / "grades", done


@pytest.fixture(scope="module")
def scores(run):
    """grades.csv, by student."""
    return class_factory.rows(run[0] / "grades.csv")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_a_submission_gets_what_its_honest_answers_deserve(name, run, scores):
    wanted = class_factory.ALL[name]
    graded = json.loads((run[0] / STUDENTS / name / "graded.json").read_text())[
        "result"
    ]
    details = json.dumps(graded, indent=1)
    assert float(scores[name]["score"]) == wanted.score, details
    said = [graded["problem"], *(cell["error"] for cell in graded["cells"])]
    assert re.search(wanted.says, "\n".join(said)), details


def test_the_maximum_comes_from_the_tests_and_the_questions(scores):
    assert {row["max_score"] for row in scores.values()} == {"10"}


def test_every_submission_has_its_report_and_its_feedback(run, scores):
    for name in scores:
        assert (run[0] / STUDENTS / name / "feedback.html").stat().st_size > 1000


def test_nothing_was_left_outside_the_sandbox(run):
    assert not Path("/tmp/owned").exists()
    for name in ("sitecustomize.py", "numpy.py", "results.json", "graded.json"):
        assert not (ROOT / name).exists()
        assert not (ROOT / "grading" / name).exists()


def test_no_worker_is_left(run):
    own = re.compile('worker.py .*"CPU": 114,')  # twice its 57 s; others run, too
    commands = (one.info["cmdline"] for one in psutil.process_iter(["cmdline"]))
    assert not [one for one in commands if own.search(" ".join(one or ()))]


def test_feedback_shows_no_hidden_test(run, scores):
    for name in scores:
        page = (run[0] / STUDENTS / name / "feedback.html").read_text()
        assert "THE-HIDDEN-MESSAGE" not in page
        assert "other inputs (" not in page
        assert "other sizes" not in page


@pytest.mark.slow
def test_feedback_escapes_what_students_wrote(run):
    page = (run[0] / STUDENTS / "markup-in-the-report" / "feedback.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7 * 7 }}" in page


@pytest.mark.slow
def test_feedback_carries_no_hidden_input(run):
    page = (run[0] / STUDENTS / "smuggles-hidden-inputs" / "feedback.html").read_text()
    assert "smuggled [3]" in page  # what the public test has shown anyway


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has one user id only")
def test_as_root_the_students_code_runs_as_a_user_who_is_nobody_else(run):
    graded = json.loads(
        (run[0] / STUDENTS / "writes-into-processes" / "graded.json").read_text()
    )
    errors = "".join(cell["error"] for cell in graded["result"]["cells"])
    user = int(re.search(r"uid (\d+)", errors)[1])
    assert user >= 70_000 and user not in {entry.pw_uid for entry in pwd.getpwall()}
