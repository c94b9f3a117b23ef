"""One step on one device and on two: ordinary models, on each engine."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.programs.engines import ENGINES, FIXED, on
from tools.model.chapters import ROOT

# What is random is switched off; batch normalisation is named, but on JAX.
RANDOM = {"residual", "residual_channels_first", "transfer", "subclassed", "masks"}
NORMS = {"residual", "residual_channels_first", "subclassed"}
NORMS |= {"mixed_float16", "mixed_bfloat16"}
SOURCE = """
import json, same_step
same_step._devices()  # before the models use one
import keras, ordinary
from keras import layers

logits = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

def said(make, loss, x, y):
    def new_model():
        model = make()[0]
        model.compile("adam", loss)
        return model
    try:
        return same_step.same_step(new_model, x, y)
    except ValueError as error:
        return None, str(error)

found = {}
for name, make in ordinary.MODELS.items():
    loss = ordinary.LOSSES.get(name, "sparse_categorical_crossentropy")
    found[name] = said(lambda: make(16), loss, *make(16)[1:])
for name in ordinary.FORMS:
    make = lambda: ordinary.form(name, 16)
    found["form " + name] = said(make, logits, *make()[1:])
# A loss that is one number for the batch: DDP halves a sum, TensorFlow doubles a mean.
x = ordinary.numbers(16, 20)
one = lambda: [keras.Sequential([keras.Input((20,)), layers.Dense(1)])]
for name, over in {"sum": keras.ops.sum, "mean": keras.ops.mean}.items():
    found[name] = said(one, lambda y, outputs: over((y - outputs) ** 2), x, x[:, :1])
def masks():  # drawn by the layer, not by its cell; a seed makes them equal twice
    keras.utils.set_random_seed(0)
    inputs, gru = keras.Input((5, 4)), layers.GRU(4, dropout=0.5)
    return [keras.Sequential([inputs, layers.Bidirectional(gru), layers.Dense(1)])]
found["masks"] = said(masks, "mse", ordinary.numbers(16, 5, 4), x[:, :1])
print(json.dumps(found))
"""
BAD = """
import json, same_step
same_step._devices()
import keras, ordinary

class Noise(keras.layers.Layer):
    def call(self, x):
        return x + keras.random.normal((20,), seed=self.draws)

    def build(self, shape):
        draw = keras.random.randint((), 0, 2**30).item()
        self.draws = keras.random.SeedGenerator(draw)

dense, x, y = ordinary.dense(9)
dense.compile("adam", "sparse_categorical_crossentropy")
def said(make, rows, text=""):
    try:
        return same_step.same_step(make, x[:rows], y[:rows])[1]
    except ValueError as error:
        return str(error)
def noisy():
    last = keras.layers.Dense(4, "softmax")
    model = keras.Sequential([keras.Input((20,)), Noise(), last])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
def still():
    model = ordinary.dense(8)[0]
    model.trainable = False
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
print(json.dumps({
    "shared": said(lambda: dense, 9), "same": said(lambda: dense, 8),
    "compiled": said(lambda: ordinary.dense(8)[0], 8), "random": said(noisy, 8),
    "still": said(still, 8),
}))
"""
ONE = """
import json, same_step, ordinary
def new_model():
    model = ordinary.dense(8)[0]
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
print(json.dumps(same_step.same_step(new_model, *ordinary.dense(8)[1:])))
"""


def on_two(engine, source):
    """What a source says on two devices; on PyTorch in two processes."""
    if engine != "torch":
        return on(engine, source, timeout=900)
    with socket.create_server(("127.0.0.1", 0)) as free:
        shared = {"MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    shared |= {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    own = [shared | {"RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(on, engine, source, 900, **each) for each in own]
    return jobs[0].result()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_ordinary_models_take_the_same_step_or_are_named(engine, tried):
    found = on_two(engine, SOURCE)
    for name, (same, said) in found.items():
        assert ("switched off" in said) == (name in RANDOM), (name, said)
        if name in NORMS and engine != "jax":
            assert not same and "without batch normalisation" in said, (name, said)
            assert said.count("the same step") == 1
        elif engine == "torch" and name == "lora":  # whose weights DDP does not see
            assert not same and "lora_kernel" in said
        elif (engine, name) in {("torch", "sum"), ("tensorflow", "mean")}:
            assert not same and " away at " in said, said
        else:
            assert same, (name, said)
    tried("same_step.py", engine, dict.fromkeys(found, "right"))


def test_what_says_nothing_is_refused():
    said = on("jax", BAD)
    assert said["shared"] == "2 devices cannot share 9 samples equally."
    assert "Two steps on one device differ" in said["random"]
    assert "no compiled model" in said["compiled"]
    assert "must make a new model" in said["same"]
    assert "changes no weight" in said["still"]


@pytest.mark.slow
def test_one_device_shares_nothing():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
    same, said = on("jax", ONE, **flags)
    assert not same and said.endswith("nothing was shared")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_readers_file(engine, tmp_path):
    def run(*words):
        command = [sys.executable, str(ROOT / "programs" / "same_step.py"), *words]
        environment = os.environ | FIXED | {"KERAS_BACKEND": engine}
        how = {"cwd": tmp_path, "env": environment, "text": True}
        return subprocess.run(command, capture_output=True, timeout=300, **how)

    mine = "import sys\nsys.path.insert(0, {!r})\nimport ordinary\n"
    mine += "model, *batch = ordinary.branches(16)\n"
    mine += "model.compile('adam', 'sparse_categorical_crossentropy')\n"
    (tmp_path / "mine.py").write_text(mine.format(str(ROOT / "programs")))
    ended = run("mine.py")
    assert ended.returncode == 0, ended.stderr
    assert "No GPU was seen" in ended.stdout and "the same step" in ended.stdout
    ended = run("nothing.py")
    assert ended.returncode == 1 and "nothing.py" in ended.stderr
