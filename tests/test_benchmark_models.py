"""The models that the suite compares are the same model, and its count is right."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tools.model.chapters import ROOT

ENGINES = ("keras-tensorflow", "keras-torch", "torch", "jax")
MODELS = ("mlp", "conv", "transformer")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What every engine computes with the same weights."""
    folder, found = tmp_path_factory.mktemp("models"), {}
    for backend in ("jax", "tensorflow", "torch"):
        done = subprocess.run(
            [sys.executable, "tests/benchmark_models.py", str(folder)],
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found |= np.load(folder / f"{backend}.npz")
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
def test_all_engines_compute_the_same_logits(found, model, engine):
    logits = found[f"{model} {engine} logits"]
    expected = found[f"{model} keras-jax logits"]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
def test_all_engines_learn_the_same(found, model, engine):
    losses = found[f"{model} {engine} losses"]
    expected = found[f"{model} keras-jax losses"]
    assert len(set(expected)) == 3
    # On TensorFlow the gradient of an embedding is a list of rows, and Keras's Adam
    # squares the rows of a token that occurs twice one by one, before it adds them.
    sparse = (model, engine) == ("transformer", "keras-tensorflow")
    np.testing.assert_allclose(losses, expected, rtol=5e-3 if sparse else 1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_the_count_is_that_of_xla(found, model):
    """XLA also counts elementwise operations, and no products with padded zeros."""
    forward, step = found[f"{model} xla"]
    lowest = 0.88 if model == "conv" else 1
    assert lowest <= forward < 1.1
    assert lowest <= step < 1.1
