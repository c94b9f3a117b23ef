"""The sets of chapter 14, started as a reader would: in an empty folder, by script."""

import contextlib
import json
import math
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.programs.engines import ENGINES, FIXED, JAX_FIRST
from tools.model import chapters

HOSTS = chapters.ROOT / "programs" / "hosts"
CHAPTER = chapters.ROOT / "notebooks" / "14-many-hosts.ipynb"
SETS = json.loads((HOSTS / "sets.json").read_text())
WORKERS = {"jax": "jax_worker.py", "tensorflow": "tf_worker.py"}
# Three outputs and a penalty: where a factor would show.
OUTPUTS = {
    "Dense(1, ": "Dense(3, kernel_regularizer='l2', ",
    "inputs.sum(axis=1, keepdims=True)": "inputs[:, :3]",
}
DROPOUT = {
    "hidden, last]": "hidden, keras.layers.Dropout(0.5), last]",
    "    hidden =": "    keras.utils.set_random_seed(0)\n    hidden =",
}
# All workers end like this in their eighth step, in the first life.
DEADLY = """
import os
calls, alive = [], examples

def examples(rows):
    calls.append(rows)
    if len(calls) == 8:
        os._exit(9)
    return alive(rows)
"""
# Two inputs and two outputs, of which one has a number for each token; an embedding,
# a recurrent layer, attention, a convolution, and a penalty.
HARD = """
tokens = generator.integers(0, 20, (EXAMPLES, 8)).astype("int32")

def examples(rows):
    return (inputs[rows], tokens[rows]), (targets[rows], tokens[rows])

def loss(y, outputs):
    many = keras.losses.sparse_categorical_crossentropy(y[1], outputs[1])
    one = keras.losses.mean_squared_error(y[0], outputs[0])
    return one[:, None] + many  # a number for each token

def network():
    keras.utils.set_random_seed(1)
    layers = keras.layers
    numbers, words = keras.Input((8,)), keras.Input((8,), dtype="int32")
    x = layers.Embedding(20, 16)(words)
    x = x + layers.MultiHeadAttention(2, 8)(x, x)
    x = layers.LSTM(16, return_sequences=True)(x)
    inner = layers.Conv1D(16, 3, padding="same"), layers.LayerNormalization()
    x = keras.Sequential(inner)(x)
    many = layers.Dense(20, "softmax", kernel_regularizer="l2")(x)
    both = layers.concatenate([numbers, layers.GlobalAveragePooling1D()(x)])
    model = keras.Model([numbers, words], [layers.Dense(1)(both), many])
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    return model, optimizer, model.variables + optimizer.variables
"""
ALONE = """
import json, keras, problem
model, optimizer, state = problem.network()
model.compute_loss = lambda x, y, outputs, *unused, **also: (
    keras.ops.mean(problem.loss(y, outputs)) + sum(model.losses))
model.compile(optimizer)
losses = []
for step in range(problem.STEPS):
    model.reset_metrics()
    losses.append(float(model.train_on_batch(*problem.examples(problem.rows(step)))))
numbers = [keras.ops.convert_to_numpy(v).tolist() for v in model.variables]
print(json.dumps([losses, numbers]))
"""


def unpacked(engine, folder, changes, more=""):
    """An engine's set in an empty folder, for one computer; its problem changed."""
    folder.mkdir()
    for name in SETS[engine]:
        shutil.copy(HOSTS / name, folder)
    problem = folder / "problem.py"
    text = problem.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    problem.write_text(text + more)
    return folder


def environment(engine):
    """A reader's environment, with one engine, on the CPU."""
    path = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    loopback = {"http_proxy": "", "https_proxy": "", "JAX_PLATFORMS": "cpu"}
    return os.environ | FIXED | loopback | {"KERAS_BACKEND": engine, "PATH": path}


def started(engine, folder, program=None):
    """Both hosts' exit codes, and what they printed last."""
    script = folder / f"start_{engine}.sh"
    text = (HOSTS / script.name).read_text()
    for host in (1, 2):
        text = text.replace(f"10.0.0.{host}:29400", f"127.0.0.1:{free_port()}")
    script.write_text(text)
    lo = ["127.0.0.1", socket.if_nameindex()[0][1]] if engine == "torch" else []
    program = program or WORKERS.get(engine, "torch_worker.py")
    jobs = [
        subprocess.Popen(
            ["bash", script.name, str(number), *lo, program],
            cwd=folder,
            env=environment(engine),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (0, 1)
    ]
    said = [job.communicate(timeout=300) for job in jobs]
    return [job.returncode for job in jobs], said


def free_port():
    while True:
        port = random.randrange(20000, 30000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def alone(engine, folder, source, *words):
    """What one process prints last, in a folder."""
    command = [sys.executable, "-c", source, *words]
    how = {"cwd": folder, "env": environment(engine), "text": True, "timeout": 300}
    return subprocess.check_output(command, **how).splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "changes, more, rounding",  # Adam makes more of it
    [
        (OUTPUTS, "", {"rtol": 1e-4, "atol": 1e-5}),
        ({}, HARD, {"rtol": 1e-3, "atol": 2e-4}),
    ],
)
def test_two_hosts_train_as_one_process(engine, changes, more, rounding, tmp_path):
    folder = unpacked(engine, tmp_path / "set", changes, more)
    codes, said = started(engine, folder)
    assert codes == [0, 0], said
    losses, weights = json.loads(alone(engine, folder, ALONE))
    for out, _ in said:
        found = json.loads(out.splitlines()[-1])
        assert np.allclose(found, losses, rtol=rounding["rtol"])
    with np.load(folder / "checkpoint.npz") as saved:
        for number, weight in enumerate(weights):
            assert np.allclose(saved[f"arr_{number}"], weight, atol=rounding["atol"])
    assert "12 of 12 steps" in alone(engine, folder, (HOSTS / "result.py").read_text())
    assert (folder / "model.keras").exists()
    (folder / "model.keras").unlink()
    (folder / "checkpoint.npz").unlink()  # no untrained model is saved
    with pytest.raises(subprocess.CalledProcessError):
        alone(engine, folder, (HOSTS / "result.py").read_text())
    assert not (folder / "model.keras").exists()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_run_with_dropout_ends_with_the_same_numbers(engine, tmp_path):
    calm = unpacked(engine, tmp_path / "calm", DROPOUT)
    assert started(engine, calm)[0] == [0, 0]
    killed = unpacked(engine, tmp_path / "killed", DROPOUT, DEADLY)
    if engine != "torch":  # torchrun starts its workers again itself
        assert 0 not in started(engine, killed)[0]
    codes, said = started(engine, killed)
    assert codes == [0, 0], said
    files = [np.load(folder / "checkpoint.npz") for folder in (calm, killed)]
    assert int(files[1]["step"]) == 12
    assert all(np.array_equal(files[0][name], files[1][name]) for name in files[0])


SHARDED = {"SHARDED = False": "SHARDED = True"}
# What a card has of each variable, and whether a host has all; then the end.
PARTS = """
import jax_worker as w, json, loop
assert not any(v.value.is_fully_addressable for v in w.state)
parts = [[v.path, v.shape, v.value.sharding.shard_shape(v.shape)] for v in w.state]
print(json.dumps([loop.train(w.train_step, w.gather, w.rank, w.state), parts]))
"""
PREDICT = """
import json, checkpoint, numpy as np, problem
model, optimizer, state = problem.network()
checkpoint.load("checkpoint.npz", state)
x, _ = problem.examples(np.arange(problem.EXAMPLES))
with np.load("predictions.npz") as there:
    pairs = zip(model.predict(x, verbose=0), [there[name] for name in there])
    print(json.dumps([float(abs(here - away).max()) for here, away in pairs]))
"""


@pytest.mark.slow
def test_a_sharded_state_is_trained_saved_loaded_and_predicted_with(tmp_path):
    def folder(name, changes):
        made = unpacked("jax", tmp_path / name, changes, HARD)
        (made / "parts.py").write_text(PARTS)
        return made

    whole, parts = folder("whole", {}), folder("parts", SHARDED)
    assert started("jax", whole)[0] == [0, 0]
    stopped = parts / "problem.py"
    text = stopped.read_text()
    stopped.write_text(text + DEADLY)
    assert 0 not in started("jax", parts, "parts.py")[0]
    stopped.write_text(text)
    codes, said = started("jax", parts, "parts.py")
    assert codes == [0, 0], said
    losses, held = json.loads(said[0][0].splitlines()[-1])
    assert len(losses) == 12
    for path, shape, part in held:  # of a weight, or of the optimizer's numbers for it
        if "kernel" in path or "embeddings" in path:
            assert math.prod(part) == math.prod(shape) / 2, path
        if "kernel" not in path:  # its features are whole
            assert part[-1:] == shape[-1:], path
    with (
        np.load(whole / "checkpoint.npz") as one,
        np.load(parts / "checkpoint.npz") as other,
    ):
        for name in one:
            assert np.allclose(one[name], other[name], atol=2e-4), name
    codes, said = started("jax", parts, "predict_jax.py")
    assert codes == [0, 0], said
    assert max(json.loads(alone("jax", parts, PREDICT))) < 1e-4


PRETRAINED = """
made_before = network

def network():
    model, optimizer, state = made_before()
    model.load_weights("pretrained.weights.h5")
    return model, optimizer, state
"""


@pytest.mark.slow
def test_pretrained_weights_arrive_in_parts(tmp_path):
    folder = unpacked("jax", tmp_path / "set", SHARDED | {"= 12": "= 0"}, HARD)
    problem = folder / "problem.py"
    text = problem.read_text()
    other = "import problem; m = problem.network()[0]; m.set_weights([w + 1 for w in "
    other += "m.get_weights()]); m.save_weights('pretrained.weights.h5'); print(1)"
    alone("jax", folder, other)
    problem.write_text(text + PRETRAINED)
    (folder / "parts.py").write_text(
        "import checkpoint, jax_worker as w, two_jax\n"
        "assert any(not v.value.is_fully_replicated for v in two_jax.model.weights)\n"
        "checkpoint.save('checkpoint.npz', 0, [], w.state, w.rank)\n"
    )
    codes, said = started("jax", folder, "parts.py")
    assert codes == [0, 0], said
    problem.write_text(text)
    same = "import json, checkpoint, problem; m, _, s = problem.network()\n"
    same += "b = m.get_weights(); checkpoint.load('checkpoint.npz', s)\n"
    same += "print(json.dumps([float(abs(x + 1 - y).max()) for x, y in "
    same += "zip(b, m.get_weights())]))"
    assert max(json.loads(alone("jax", folder, same))) < 1e-6


ORBAX = """
import json, os, sys, keras, numpy as np, problem
place = os.path.abspath("orbax")
if sys.argv[1] == "load_model":
    model = keras.saving.load_model(place)
else:
    model, optimizer, _ = problem.network()
    model.compile(optimizer, "mse")
if sys.argv[1] == "save":
    saves = keras.callbacks.OrbaxCheckpoint(place)
    data = problem.inputs, problem.targets
    model.fit(*data, batch_size=64, verbose=0, callbacks=[saves])
if sys.argv[1] == "load_weights":
    model.load_weights(place)
print(json.dumps([weight.tolist() for weight in model.get_weights()]))
"""


def test_orbax_comes_back_by_load_weights_alone(tmp_path):
    pytest.importorskip("orbax.checkpoint")  # it is in no requirements
    folder = unpacked("jax", tmp_path / "set", {})
    acts = "save", "load_weights", "load_model"
    saved, loaded, other = (json.loads(alone("jax", folder, ORBAX, a)) for a in acts)
    assert saved == loaded
    assert saved != other, "load_model of Orbax works: chapter 14 may say so"


@pytest.mark.slow
def test_a_sharded_state_on_pytorch_is_refused(tmp_path):
    codes, said = started("torch", unpacked("torch", tmp_path / "set", SHARDED))
    assert 0 not in codes and "SHARDED is for JAX" in said[0][1]


NEW_LAYER = {
    "hidden, last": "hidden, keras.layers.BatchNormalization(), last",
    "[generator.normal(0, 0.3, w.shape) for w in model.weights]": "model.get_weights()",
}
CLIPPING = {"momentum=0.9": "global_clipnorm=1.0"}
LORA = {
    "    optimizer =": "    hidden.enable_lora(2)\n    optimizer =",
}


@pytest.mark.slow
def test_moving_averages_are_the_same_on_all_ranks_before_a_save(tmp_path):
    random = "w if w.ndim == 1 else generator.normal(0, 0.3, w.shape)"
    random = f"[{random} for w in model.get_weights()]"
    layer = {old: random if "normal" in old else new for old, new in NEW_LAYER.items()}
    folder = unpacked("torch", tmp_path / "set", layer)
    codes, said = started("torch", folder)  # `agree` compares them
    assert codes == [0, 0], said
    worker = folder / "torch_worker.py"
    worker.write_text(worker.read_text().replace(", settle=settle", ""))
    (folder / "checkpoint.npz").unlink()
    codes, said = started("torch", folder)
    assert 0 not in codes and "the ranks disagree" in said[0][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine, changes, said",
    [
        ("tensorflow", NEW_LAYER, "['batch_normalization']: each worker"),
        ("tensorflow", CLIPPING, "['global_clipnorm']: each worker"),
        ("torch", LORA, "DDP does not see sequential/dense/lora_kernel_a"),
    ],
)
def test_what_each_worker_would_do_alone_is_refused(engine, changes, said, tmp_path):
    codes, told = started(engine, unpacked(engine, tmp_path / "set", changes))
    assert 0 not in codes and said in told[0][1]


def test_a_checkpoint_of_another_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HOSTS)
    import checkpoint

    path = str(tmp_path / "checkpoint.npz")
    checkpoint.save(path, 3, [0.5], [np.ones(2), np.ones(3)])
    with pytest.raises(ValueError, match="another model"):
        checkpoint.load(path, [None] * 3)


@pytest.mark.parametrize("engine", JAX_FIRST)
def test_sixteen_bits_come_back_and_no_number_replaces_nothing(engine, tmp_path):
    text = """
import checkpoint, json, keras, numpy as np
kinds = "bfloat16", "float16"
made = [keras.Variable(np.arange(3) / 3, dtype=kind) for kind in kinds]
before = [keras.ops.convert_to_numpy(v).astype("float32") for v in made]
checkpoint.save("c.npz", 1, [], made)
[v.assign([0, 0, 0]) for v in made]
checkpoint.load("c.npz", made)
after = [keras.ops.convert_to_numpy(v).astype("float32") for v in made]
found = [float(abs(a - b).max()) for a, b in zip(before, after)]
steps = keras.Variable(2, trainable=False, dtype="int32")
made[1].assign([0, np.inf, 0])
try:
    checkpoint.save("c.npz", 2, [], [steps, *made])
except ValueError as error:
    found.append("is not finite; c.npz" in str(error))
print(json.dumps([*found, checkpoint.load("c.npz", made)[0]]))
"""
    folder = unpacked(engine, tmp_path / "set", {})
    assert json.loads(alone(engine, folder, text)) == [0, 0, True, 1]


def test_each_set_holds_what_its_files_import_and_says_how_to_start():
    for engine, names in SETS.items():
        text = {name: (HOSTS / name).read_text() for name in names}
        wanted = re.findall(r"(?m)^(?:import|from) (\w+)", "\n".join(text.values()))
        ours = {path.stem for path in HOSTS.glob("*.py")}
        assert {f"{name}.py" for name in ours.intersection(wanted)} <= {*names}
        assert f"bash start_{engine}.sh" in text[f"two_{engine}.py"]
    listed = {name for names in SETS.values() for name in names}
    assert listed == {path.name for path in HOSTS.glob("*.*")} - {"sets.json"}


def test_the_chapter_shows_these_files():
    cells = chapters.read(CHAPTER).cells
    written = {}
    for cell in cells:
        if match := re.match(
            r"%%writefile (?:-a )?(\S+)\n(# @title .*\n)?", cell.source
        ):
            text = cell.source[match.end() :] + "\n"
            written[match[1]] = written.get(match[1], "") + text
    ours = {path.name: path.read_text() for path in HOSTS.glob("*.*")}
    for name in ours.keys() - {"sets.json"}:
        marks = rf"(?m)^# (>>> programs/hosts/{name}|<<<)\n"
        assert re.sub(marks, "", written[name]) == ours[name], name
    for cell in cells:
        for shown in re.findall(r"(?s)```python\n(.*?)```", cell.source):
            assert any(shown in text for text in ours.values()), shown


@pytest.mark.slow
def test_rank_0_alone_reports_while_the_loop_trains(tmp_path):
    folder = unpacked("torch", tmp_path / "set", {"LOOK_EVERY = 1": "LOOK_EVERY = 5"})
    codes, said = started("torch", folder)
    assert codes == [0, 0], said
    reports = [re.findall(r"(?m)^step (\d+): loss (\S+)$", out) for out, _ in said]
    losses = json.loads(said[0][0].splitlines()[-1])
    wanted = [(str(step), f"{losses[step - 1]:.4g}") for step in (5, 10)]
    assert sorted(reports) == [[], wanted]


FIT = """
import json, checkpoint, problem
model, optimizer, state = problem.network()
steps, _ = checkpoint.load("checkpoint.npz", state)
epochs, _ = checkpoint.load("fit.npz", state)
model.compile(loss=problem.loss)
rows = problem.order(0)[:problem.BATCH]
print(json.dumps([steps, epochs, model.evaluate(*problem.examples(rows), verbose=0)]))
"""


SEEN = """
taken, take = [], Mine.__getitem__
def noted(data, step):
    taken.extend([data.batches[step].tolist()] if data is train else [])
    return take(data, step)
Mine.__getitem__ = noted

class Seen(keras.callbacks.EarlyStopping):
    def on_epoch_begin(self, epoch, logs=None):
        taken.clear()
    def on_epoch_end(self, epoch, logs=None):
        print("seen", taken, flush=True)
        super().on_epoch_end(epoch, logs)

callbacks.append(Seen())
"""


@pytest.mark.slow
def test_fit_on_two_hosts_validates_over_both_and_takes_callbacks(tmp_path):
    folder = unpacked("jax", tmp_path / "set", {})
    program = folder / "fit_jax.py"
    text, added = program.read_text(), SEEN + "one_file.fit("
    assert text.count("one_file.fit(") == 1
    program.write_text(text.replace("one_file.fit(", added))
    codes, said = started("jax", folder, "fit_jax.py")
    assert codes == [0, 0], said
    found = [re.findall(r"val_loss: (\S+)", out) for out, _ in said]
    assert [len(losses) for losses in found] == [3, 0]
    seen = [re.findall(r"(?m)^seen (.*)$", out) for out, _ in said]
    epochs = [[json.loads(mine) for mine in both] for both in zip(*seen, strict=True)]
    sets = [{*np.ravel(both)} for both in epochs]
    assert sets[0] == sets[1] == sets[2] and len(sets[0]) == 192
    assert np.shape(epochs) == (3, 2, 3, 32)
    assert len({tuple(sorted(np.ravel(np.take(e, 0, 1)))) for e in epochs}) == 3
    steps, epochs, loss = json.loads(alone("jax", folder, FIT))
    assert (steps, epochs) == (9, 3)
    assert abs(float(found[0][-1]) - loss) < 1e-3


EMA = {"momentum=0.9": "use_ema=True"}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_averages_that_no_loop_would_use_are_refused(engine, tmp_path):
    codes, told = started(engine, unpacked(engine, tmp_path / "set", EMA))
    assert 0 not in codes and "use_ema: the loops" in told[0][1]


STUBS = """
srun() { echo "$EXPECTED_WORLD workers: srun $@"
         [ -z "$LATE" ] || kill -USR1 $$;
         until [ -e stop ] || [ -z "$LATE" ]; do command sleep 0.1; done
         echo >> lives; [ "$(wc -l < lives)" -gt "$DEATHS" ]; }
sleep() { :; }; python() { echo "python $@ on $JAX_PLATFORMS"; }
scontrol() { echo "scontrol $@"; }
source "$SLURM_SUBMIT_DIR/train_tasks.sbatch"
"""


@pytest.mark.parametrize(
    "late, deaths, starts, end, code",
    [
        ("", 0, 1, ["python ../result.py on cpu"], 0),
        ("", 3, 4, ["python ../result.py on cpu"], 0),
        ("", 4, 4, [], 1),
        ("yes", 0, 1, ["scontrol requeue 4711"], 0),
    ],
)
def test_the_job_of_one_task_for_each_gpu(late, deaths, starts, end, code, tmp_path):
    shutil.copy(HOSTS / "train_tasks.sbatch", tmp_path)
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/activate").touch()
    text = (HOSTS / "train_tasks.sbatch").read_text()
    asked = dict(re.findall(r"(?m)^#SBATCH --(\S+)=(\S+)$", text))
    assert asked["ntasks-per-node"] == asked["gpus-per-node"]
    told = {"LATE": late, "DEATHS": str(deaths), "HOME": str(tmp_path)}
    told |= {"SLURM_JOB_ID": "4711", "SLURM_SUBMIT_DIR": str(tmp_path)}
    told |= {"SLURM_JOB_NUM_NODES": asked["nodes"], "SLURM_CPUS_PER_TASK": "8"}
    told |= {"SLURM_GPUS_ON_NODE": asked["gpus-per-node"]}
    run = ["bash", "-c", STUBS]
    how = {"env": os.environ | told, "timeout": 60, "text": True}
    job = subprocess.run(run, stdout=subprocess.PIPE, **how)
    started = ["8 workers: srun --kill-on-bad-exit=1 python ../jax_worker.py"] * starts
    assert job.stdout.splitlines() == started + end
    assert job.returncode == code
