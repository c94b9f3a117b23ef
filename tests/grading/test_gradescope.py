"""The autograder for Gradescope, in a container like Gradescope's."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import class_factory
import pytest

from grading import cli, sandbox
from grading.reports import gradescope

pytestmark = [class_factory.NEEDS_SANDBOX, pytest.mark.slow]
AS_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="Gradescope's container runs as root",
)

HERE = ("correct", "edited-checks", "pickle", "looks-for-hidden-tests")
HERE += ("protocol-forged-value", "becomes-root")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("zip") / "autograder.zip"
    arguments = ["zip", str(class_factory.MINI), "--out", str(path), "--seed=s"]
    assert cli.main(arguments) == 0
    return path


def test_the_zip_has_what_gradescope_asks_for(archive):
    with zipfile.ZipFile(archive) as content:
        names = content.namelist()
        assert {"setup.sh", "run_autograder", "requirements.txt"} <= set(names)
        assert content.getinfo("run_autograder").external_attr >> 16 == 0o755
        needs = content.read("requirements.txt").decode().splitlines()
    assert any(line.startswith("tensorflow>=") for line in needs)
    assert any(line.startswith("otter-grader>=") for line in needs)
    assert not any("__pycache__" in name for name in names)


def test_elsewhere_it_runs_nothing(tmp_path, capsys):
    assert gradescope.main(tmp_path) == 1
    assert "not Gradescope's container" in capsys.readouterr().err


def run_in_container(archive: Path, folder: Path, text: str) -> dict:
    """Grade a submission where root has no more than a container gives it."""
    base = folder / "autograder"
    for name in ("source", "results", "submission"):
        (base / name).mkdir(parents=True)
    with zipfile.ZipFile(archive) as content:
        content.extractall(base / "source")
    (base / "submission" / "any name.ipynb").write_text(text)
    handed_over = []

    def data(content: bytes) -> str:
        handed_over.append(os.memfd_create("data"))
        os.write(handed_over[-1], content)
        os.lseek(handed_over[-1], 0, os.SEEK_SET)
        return str(handed_over[-1])

    options = sandbox._files(sandbox.Limits(), data)
    options = options[: options.index("--remount-ro")]
    capabilities = []
    for one in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL"):
        capabilities += ["--cap-add", f"CAP_{one}"]
    done = subprocess.run(
        [
            *(sandbox.find(), "--unshare-pid", "--unshare-net", *options),
            *("--bind", base, "/autograder", "--cap-drop", "ALL", *capabilities),
            *("--chdir", "/autograder/source", "--clearenv"),
            *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp"),
            *("--setenv", "SECRET", "harness"),
            *("--", sys.executable, "-m", "grading.reports.gradescope"),
        ],
        capture_output=True,
        text=True,
        cwd="/",
        timeout=120,
        pass_fds=handed_over,
    )
    for descriptor in handed_over:
        os.close(descriptor)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads((base / "results" / "results.json").read_text())


@AS_ROOT
@pytest.mark.parametrize("name", HERE)
def test_the_score_is_that_of_the_sandbox(archive, tmp_path, name):
    wanted = class_factory.ALL[name]
    results = run_in_container(archive, tmp_path, wanted.text)
    assert results["score"] == wanted.score, json.dumps(results, indent=1)
    assert sum(test["max_score"] for test in results["tests"]) == class_factory.FULL


@AS_ROOT
def test_the_students_code_reads_nothing_of_the_autograders(archive, tmp_path):
    spy = (
        "import os, pathlib\nfound = []\n"
        "for path in ('/autograder/source/assignment.json', '/autograder/submission',\n"
        "             '/autograder/results/results.json', '/proc/1/environ'):\n"
        "    try:\n"
        "        found.append(os.listdir(path) if os.path.isdir(path) else "
        "open(path).read())\n"
        "    except OSError: pass\n"
        "try: open('/autograder/results/results.json', 'w').write('{}')\n"
        "except OSError: pass\n"
        "safe = not found and 'SECRET' not in os.environ and os.getuid()\n"
        "bytes_q3 = 4 if safe else 5"
    )
    text = class_factory.case(spy).text
    assert run_in_container(archive, tmp_path, text)["score"] == 5


@AS_ROOT
def test_what_a_lost_worker_started_ends_with_it(archive, tmp_path):
    """Else it would see the next one start, and could disturb it."""
    stays = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.closerange(3, 100)\n"
        "    time.sleep(1000)\n"
        "time.sleep(0.1)\n"
        "os._exit(1)"
    )
    looks = (
        "import os\n"
        "own = [p for p in filter(str.isdigit, os.listdir('/proc'))\n"
        "       if os.stat(f'/proc/{p}').st_uid == os.getuid()]\n"
        "bytes_q3 = 4 if own == [str(os.getpid())] else 5"
    )
    text = class_factory.case(stays, looks).text
    assert run_in_container(archive, tmp_path, text)["score"] == 5
