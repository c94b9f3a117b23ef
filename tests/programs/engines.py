"""Run a source with one engine, as a reader who has downloaded the programs would."""

import json
import os
import subprocess
import sys

import pytest

from tools.model.chapters import ROOT

ENGINES = ("tensorflow", "jax", "torch")
SLOW = pytest.mark.slow


def first(engine: str) -> list:
    """The engines: this one is tried in each run, the others among the slow tests."""
    others = (one for one in ENGINES if one != engine)
    return [engine, *(pytest.param(one, marks=SLOW) for one in others)]


JAX_FIRST = first("jax")  # it starts soonest
FIXED = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def on(engine: str, source: str, timeout: float = 800, **variables: str) -> object:
    """What a source, run beside the programs, printed last, read as JSON.

    Raises:
        AssertionError: the process failed; the message holds the end of its errors.
    """
    environment = os.environ | FIXED | {"KERAS_BACKEND": engine} | variables
    path = [str(ROOT / "programs"), variables.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    run = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert run.returncode == 0, run.stdout[-500:] + run.stderr[-2500:]
    return json.loads(run.stdout.splitlines()[-1])
