"""The autograder for Gradescope: the same grader, in a container of Gradescope's.

There each submission has a throw-away container of its own, in which bubblewrap can
make no namespaces. So the container keeps students apart, and inside it the student's
code runs as a user of its own that can read neither the tests nor the report, and write
no file but its own. The network is not cut off; see the page "How grading is kept
honest".

The layout is that of Gradescope's autograder specifications:
https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import nbformat
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grading import runner, sandbox, submissions
from grading.assignment import Assignment, Question
from grading.author import masters
from grading.batch import PACKAGES, Graded
from grading.reports import pages
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

BASE = Path("/autograder")
PYTHON = "/opt/grading/bin/python"
DATA = "assignment.json"
SETTLE = 0.5  # seconds in which harm done on the sly shows
SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the autograder's image.
set -euo pipefail
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y \
    libseccomp2 python3 python3-pip util-linux
export UV_PYTHON_INSTALL_DIR=/opt/python
python3 -m pip install uv || python3 -m pip install --break-system-packages uv
uv venv --python 3.12 /opt/grading
uv pip install --python /opt/grading/bin/python -r /autograder/source/requirements.txt
chmod -R a+rX /opt/grading /opt/python
"""
RUN = f"""#!/bin/sh
export HOME="${{HOME:-/root}}"
cd /autograder/source && exec {PYTHON} -m grading.reports.gradescope
"""
GRADER = ("jupytext", "matplotlib", "otter-grader")


def requirements(root: Path = ROOT) -> str:
    """The lines of the requirements files that the autograder needs."""
    lines = []
    for name in ("requirements-book.txt", "requirements.txt"):
        for line in (root / name).read_text(encoding="utf-8").splitlines():
            text = line.partition("#")[0].strip()
            if text and not text.startswith("-"):
                requirement = Requirement(text)
                if canonicalize_name(requirement.name) in PACKAGES + GRADER:
                    lines.append(text)
    found = {canonicalize_name(Requirement(line).name) for line in lines}
    missing = {*PACKAGES, *GRADER} - found
    if missing:
        raise UserError(
            f"requirements.txt: {', '.join(sorted(missing))} is not in it, and the "
            "autograder needs it. Fix: git checkout -- requirements.txt"
        )
    return "\n".join([*sorted(lines), "ipython", "nbformat", ""])


def pack(assignment: Assignment, seed: str, path: Path, root: Path = ROOT) -> None:
    """Write the zip that Gradescope takes: hidden tests and the secret are in it.

    Args:
        assignment: what to grade.
        seed: the secret of the hidden inputs.
        path: the zip to write.
        root: the repository's folder.
    """
    data = {
        "name": assignment.name,
        "title": assignment.title,
        "questions": [dataclasses.asdict(one) for one in assignment.questions],
        "tests": assignment.tests,
        "seed": seed,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN)):
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        archive.writestr("requirements.txt", requirements(root))
        archive.writestr(DATA, json.dumps(data, indent=1))
        for folder in ("grading", "tools"):
            for file in sorted((root / folder).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(root))


def read_assignment(path: Path) -> tuple[Assignment, str]:
    """The assignment that `pack` wrote, and its secret."""
    data = json.loads(path.read_text(encoding="utf-8"))
    empty = nbformat.v4.new_notebook()
    questions = [Question.from_json(one) for one in data["questions"]]
    assignment = Assignment(
        data["name"], data["title"], questions, empty, empty, data["tests"], {}
    )
    return assignment, data["seed"]


class Container:
    """The place of a worker in the container: another user, with no namespace.

    It stands for a Sandbox, as far as a container allows.

    Args:
        folder: holds the worker's files; everybody can read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = sandbox.another_user()
        self.process: subprocess.Popen | None = None

    def start(self, program: list[str], descriptors: list[int], output: int) -> None:
        """See Sandbox.start."""
        user = str(self.user)
        home = Path(tempfile.mkdtemp(prefix="student-", dir=self.folder.parent))
        os.chown(home, self.user, self.user)
        variables = {**sandbox.environment(), "HOME": str(home), "TMPDIR": str(home)}
        variables["MPLCONFIGDIR"] = str(home)
        drop = [str(shutil.which("setpriv")), "--reuid", user, "--regid", user]
        drop += ["--clear-groups", "--inh-caps=-all", "--no-new-privs"]
        inside = [
            one.replace(f"{sandbox.INSIDE}/", f"{self.folder}/") for one in program
        ]
        self.process = subprocess.Popen(
            [*drop, *inside],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=descriptors,
            cwd=home,
            env=variables,
        )

    def go(self) -> None:
        """See Sandbox.go."""
        self._tell(signal.SIGCONT)

    def stop(self) -> None:
        """See Sandbox.stop."""
        self._tell(signal.SIGSTOP)

    def settle(self) -> None:
        """See Sandbox.settle; here nobody sees whether something happens."""
        time.sleep(SETTLE)

    def why(self) -> str:
        """See Sandbox.why; the container's limits say nothing."""
        return ""

    def end(self) -> None:
        """End the worker and all that it has started."""
        self._tell(signal.SIGKILL)
        if self.process:
            self.process.kill()
            self.process.wait()

    def _tell(self, number: int) -> None:
        """Send a signal to all processes of the user: one call, by that user."""
        if child := os.fork():
            os.waitpid(child, 0)
            return
        try:
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)
            os.kill(-1, number)
        finally:
            os._exit(0)


def grade(base: Path) -> dict:
    """Grade the submission in the container.

    Args:
        base: the folder that Gradescope calls /autograder.

    Returns:
        What belongs into results.json.

    Raises:
        UserError: this is no container of Gradescope's; nothing was run.
    """
    if os.geteuid() != 0 or not (base / "submission").is_dir():
        raise UserError(
            f"{base}: this is not Gradescope's container, run as root. "
            "Fix: to grade elsewhere, use `make grade`, which has a sandbox."
        )
    for name in ("source", "results", "submission"):
        (base / name).chmod(0o700)  # tests, report and other files are root's alone
    assignment, seed = read_assignment(base / "source" / DATA)
    found = sorted((base / "submission").rglob("*.ipynb"))
    if len(found) != 1:
        problem = f"{len(found)} notebooks were handed in; one is wanted"
        content = submissions.Content(problem=problem)
    else:
        content = submissions.read(found[0], assignment)
    path = found[0] if found else base / "submission"
    submission = submissions.Submission("submission", path)
    if content.problem:
        result = runner.empty_result(assignment, content.problem)
    else:
        with tempfile.TemporaryDirectory(prefix="grading-") as top:
            Path(top).chmod(0o755)
            folder = Path(top, "worker")
            folder.mkdir()
            for name, inside in sandbox.WORKER.items():
                shutil.copy(sandbox.OWN / name, folder / inside)
            limits = sandbox.Limits()
            grading = runner.Grading(
                assignment,
                content.cells,
                limits,
                place=lambda limits, join: Container(folder),
            )
            result = grading.grade(seed)
    graded = Graded(submission, result, content.answers, True)
    return pages.gradescope(graded, {}, automatic(assignment))


def automatic(assignment: Assignment) -> float:
    """The points that are to be had here: Gradescope adds those of the core by hand."""
    return sum(one.points for one in assignment.core if not one.manual)


def add_zip(commands) -> None:
    """The command `zip`."""
    parser = commands.add_parser(
        "zip",
        help="pack the autograder that Gradescope takes",
        description="Pack the autograder that Gradescope takes. The zip holds the "
        "hidden tests and the secret: it is for teachers.",
    )
    parser.add_argument(
        "assignment", help="its number or name, or the path of your own master"
    )
    parser.add_argument("--out", type=Path, help="the zip to write")
    parser.add_argument("--seed", help="a secret, any text (default: drawn)")
    parser.set_defaults(run=make_zip)


def make_zip(options: argparse.Namespace) -> int:
    """Pack the autograder."""
    assignment = masters.build(masters.find_master(options.assignment))
    out = options.out or Path("grades", f"{assignment.name}-gradescope.zip")
    pack(assignment, options.seed or secrets.token_hex(16), out)
    print(f"{out}: upload it to Gradescope as the autograder of a new assignment.")
    return 0


@command
def main(base: Path | None = None) -> int:
    """Grade in Gradescope's container; a report is written whatever happens."""
    base = base or Path(os.environ.get("AUTOGRADER", BASE))
    try:
        results = grade(base)
    except UserError:
        raise
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        message = "The autograder failed. Please tell your teacher."
        results = {"score": 0, "output": message, "tests": []}
    files.write_text(base / "results" / "results.json", json.dumps(results) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
