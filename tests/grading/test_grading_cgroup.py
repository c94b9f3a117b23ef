"""Where the kernel's control groups can be used, they bound what a worker takes."""

import json
import subprocess
import sys

import class_factory
import pytest

from grading import cgroup
from tools.model.chapters import ROOT

pytestmark = class_factory.NEEDS_SANDBOX

# Runs in a scope of systemd's, as `make grade` does: it starts itself again there.
PROGRAM = """
import json, os, sys
from grading import cgroup, sandbox
from grading.session import Session, WorkerLost

try:
    groups = cgroup.acquire(["-c", *sys.orig_argv[2:]])
except cgroup.Unavailable as reason:
    sys.exit(json.dumps({"unavailable": str(reason)}))

limits = sandbox.Limits(memory_bytes=2**30, cell_seconds=200, processes=60)
told = {"controllers": groups.controllers}


def tried(name, source, **bounds):
    session = Session(limits, groups=groups)
    path = session.group.path
    for bound, value in bounds.items():
        session.group.set(bound.replace("_", ".", 1), value)
    try:
        error = session.run(source, 100)
        told[name] = error["message"] if error else ""
    except WorkerLost as lost:
        told[name] = str(lost)
    told[name + ", by the kernel"] = session.group.ran_out()
    told[name + ", members"] = len((path / "cgroup.procs").read_text().split())
    session.close()
    told[name + ", left"] = path.exists()


tried("honest", "raise ValueError('end')")
tried("memory", "x = bytearray(2**29)", memory_max=2**27)
tried("files", "open('/dev/shm/x', 'wb').write(bytes(2**28))", memory_max=2**27)
tried("forks", "import os, time\\nfor n in range(40):\\n"
      "    if os.fork() == 0: time.sleep(99)", pids_max=20)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told():
    """What the program says, or why it can't be run here."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    if done.returncode and done.stderr.startswith('{"unavailable'):
        pytest.skip(json.loads(done.stderr)["unavailable"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_a_worker_lives_in_a_group_that_is_removed_after_it(told):
    assert {"memory", "pids"} <= set(told["controllers"])
    assert told["honest"] == "end"
    assert told["honest, members"] >= 4  # the bubblewraps, the warden and the worker
    assert not any(told[f"{name}, left"] for name in ("honest", "memory", "forks"))


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_the_kernel_ends_a_worker_that_takes_too_much_memory(told, kind):
    assert told[kind] == "it used more than 1 GiB of memory"
    assert told[f"{kind}, by the kernel"] is True
    assert told["honest, by the kernel"] is False


def test_the_kernel_bounds_the_processes(told):
    assert "Resource temporarily unavailable" in told["forks"]


def test_without_groups_of_version_2_the_reason_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "OWN", tmp_path / "cgroup")
    for text in ("1:cpu:/\n0::/\n", "", "1:name=systemd:/\n"):
        (tmp_path / "cgroup").write_text(text)
        with pytest.raises(cgroup.Unavailable, match="without version 2"):
            cgroup.acquire([])
