"""The plan of a step on a card that is not there: its numbers, and the command."""

import subprocess
import sys

import pytest

from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tests.programs.engines import SLOW, on
from tools.model.chapters import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the compiler's wheels are for Linux"
)
SOURCE = """
import json, sys
sys.modules["tensorflow"] = None
import jax, numpy as np, ordinary, plan

def size(values):
    return sum(np.dtype(str(v.dtype)).itemsize * int(np.prod(v.shape)) for v in values)

def shapes(data):
    return jax.tree.map(plan._shape, data)

def planned(model, x, y, compile=plan.compile_step_for, **options):
    batch = shapes((x, y))
    try:
        needs = compile("T4", model, *batch, **options).plan
    except ValueError as refusal:
        return {"refused": str(refusal)}
    parts = model.variables + model.optimizer.variables + model.metrics_variables
    parts = {id(part): part for part in parts}.values()
    return {**needs, "real": size(parts), "batch": size(jax.tree.leaves(batch))}
"""
VARIABLES = compiler_variables(compiler_wheels()[0])


@pytest.mark.slow
def test_the_state_of_each_ordinary_model_is_counted_to_the_byte(tried):
    rest = """
answers = {}
for name, make in ordinary.MODELS.items():
    model, x, y = make(rows=8)
    loss = ordinary.LOSSES.get(name, "sparse_categorical_crossentropy")
    model.compile("adam", loss, metrics=None)
    answers[name] = planned(model, x, y)
for name in ordinary.FORMS:
    model, x, y = ordinary.form(name)
    model.compile("adam", "sparse_categorical_crossentropy")
    answers["form " + name] = planned(model, x, y)
print(json.dumps(answers))
"""
    answers = on("jax", SOURCE + rest, **VARIABLES)
    refused = {name for name, answer in answers.items() if "refused" in answer}
    assert refused == {"recurrent", "wrapped", "transfer"}
    assert "random_rotation" in answers["transfer"]["refused"]
    assert "use_cudnn=False" in answers["recurrent"]["refused"]
    for name in answers.keys() - refused:
        plan = answers[name]
        assert plan["state"] + plan["inputs"] == plan["real"] + plan["batch"], name
        assert plan["temporaries"] > 0, name
    seen = {name: plan.get("refused", "right") for name, plan in answers.items()}
    tried("plan.py", "jax", seen)
    forms = [plan["total"] for name, plan in answers.items() if "form" in name]
    assert len(forms) == 4 and len(set(forms)) == 1


@pytest.mark.slow
def test_eight_cards_hold_an_eighth_of_what_can_be_divided():
    rest = """
model, x, y = ordinary.residual(rows=16)
model.compile("adam", "sparse_categorical_crossentropy")
sharded = plan.compile_sharded_for
answers = [planned(model, x, y, sharded, layout=kind) for kind in ("data", "fsdp")]
shapes = [v.shape for v in model.variables + model.optimizer.variables]
divided = sum(int(np.prod(s)) for s in shapes if any(n % 8 == 0 for n in s))
print(json.dumps([*answers, 4 * divided]))
"""
    whole, parts, divided = on("jax", SOURCE + rest, **VARIABLES)
    assert whole["state"] == whole["real"]
    assert parts["state"] == whole["real"] - divided * 7 // 8
    assert whole["inputs"] * 8 == whole["batch"]


MODEL = """
import keras, numpy as np
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4)])
model.compile("adam", "mse")
batch = np.zeros((16, 6)), np.zeros((16, 4))
"""
UNCOMPILED, NO_BATCH, WRONG = (
    MODEL.replace("model.compile", "#"),
    MODEL.replace("batch", "data"),
    MODEL.replace("(16, 6)", "(16, 7)"),
)


@pytest.fixture
def command(tmp_path):
    """Run plan.py as a reader would: downloaded, on a file."""
    text = (ROOT / "programs/plan.py").read_text()
    (tmp_path / "plan.py").write_text(text)

    def run(source, *words, name="mine.py"):
        if source is not None:
            (tmp_path / name).write_text(source)
        command = [sys.executable, "plan.py", name, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--card", "T4", "--card", "RTX 5090", "--memory", "1e-7"], "does not fit"),
        pytest.param(
            ["--card", "H100", "--batch", "64", "--predict"], "fits", marks=SLOW
        ),
    ],
)
def test_the_command_says_for_each_card_whether_the_step_fits(command, words, said):
    code, printed, errors = command(MODEL, *words)
    assert (code, errors) == (0, "")
    rows = printed.splitlines()[1:]
    assert len(rows) == words.count("--card")
    assert all(row.endswith(f"  {said}") for row in rows)


@pytest.mark.parametrize(
    ("source", "words", "said"),
    [
        pytest.param(None, [], "there is no file mine.py", marks=SLOW),
        pytest.param("x = 1", [], "no `model` that is a Keras model", marks=SLOW),
        pytest.param(UNCOMPILED, [], "no `model` that is a Keras model", marks=SLOW),
        pytest.param(NO_BATCH, [], "defines no `batch`, a tuple", marks=SLOW),
        (WRONG, [], "does not take a batch of (16, 7)"),
        pytest.param(WRONG, ["--predict"], "take a batch of (16, 7)", marks=SLOW),
        pytest.param(MODEL, ["--cards", "5"], "can't be shared by 5 cards", marks=SLOW),
    ],
)
def test_bad_input_is_told_in_a_sentence(command, source, words, said):
    code, _, errors = command(source, "--card", "T4", *words)
    assert code == 1 and said in errors and "Traceback" not in errors
