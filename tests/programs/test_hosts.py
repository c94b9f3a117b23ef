"""The sets of chapter 14, started as a reader would: in an empty folder, by script."""

import contextlib
import json
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

from tests.programs.engines import ENGINES, FIXED
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
ALONE = """
import json, problem
model, optimizer, state = problem.network()
model.compile(optimizer, problem.loss)
losses = []
for step in range(problem.STEPS):
    model.reset_metrics()
    losses.append(float(model.train_on_batch(*problem.examples(problem.rows(step)))))
print(json.dumps([losses, [w.tolist() for w in model.get_weights()]]))
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
def test_two_hosts_train_as_one_process(engine, tmp_path):
    folder = unpacked(engine, tmp_path / "set", OUTPUTS)
    codes, said = started(engine, folder)
    assert codes == [0, 0], said
    losses, weights = json.loads(alone(engine, folder, ALONE))
    for out, _ in said:
        assert np.allclose(json.loads(out.splitlines()[-1]), losses, rtol=1e-4)
    with np.load(folder / "checkpoint.npz") as saved:
        for number, weight in enumerate(weights):
            assert np.allclose(saved[f"arr_{number}"], weight, atol=1e-5)
    assert "12 of 12 steps" in alone(engine, folder, (HOSTS / "result.py").read_text())
    assert (folder / "model.keras").exists()


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


NEW_LAYER = {
    "hidden, last": "hidden, keras.layers.BatchNormalization(), last",
    "[generator.normal(0, 0.3, w.shape) for w in model.weights]": "model.get_weights()",
}
CLIPPING = {"momentum=0.9": "global_clipnorm=1.0"}
LORA = {
    "    optimizer =": "    hidden.enable_lora(2)\n    optimizer =",
}


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
