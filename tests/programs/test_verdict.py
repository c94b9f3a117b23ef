"""The verdict counts what runs: over forms of a network, kinds of model and engines."""

import functools
import itertools

import pytest

from tests.programs.engines import ENGINES, JAX_FIRST, on

START = """
import json, keras, numpy as np, ordinary, verdict
from keras import layers

def counted(model, batch):
    products, data = verdict.count(model, batch)
    return [sum(each.flop for each in products), data]

def refused(model, batch):
    try:
        verdict.verdict(model, batch)
    except ValueError as error:
        return str(error)
"""
ALL = """
answers = {name: counted(*make()[:2]) for name, make in ordinary.MODELS.items()}
answers |= {"form " + x: counted(*ordinary.form(x)[:2]) for x in ordinary.FORMS}
start = keras.Input((5, 8, 8))
for name, layer in {
    "turned": layers.Conv2DTranspose(7, 3, 2, padding="same"),
    "grouped": layers.Conv2D(6, 3, groups=2, dilation_rate=2),
    "apart": layers.SeparableConv2D(6, 3),
    "flat": layers.Conv1D(4, 2, strides=2),
}.items():
    shape = {"flat": (9, 4)}.get(name, (8, 8, 4))
    answers[name] = counted(keras.Sequential([layer]), np.ones((2, *shape), "float32"))
base = keras.applications.MobileNetV2((96, 96, 3), 0.35, weights=None)
batch = np.ones((2, 96, 96, 3), "float32")
answers["flat base"] = counted(base, batch)
answers["nested base"] = counted(keras.Sequential([base]), batch)
print(json.dumps(answers))
"""


@functools.cache
def answers(engine):
    return on(engine, START + ALL)


def dense(rows, *sizes):
    return sum(2 * rows * a * b for a, b in itertools.pairwise(sizes))


def recurrent(steps, gates, rows, inputs, units):
    return steps * gates * 2 * rows * (inputs + units) * units


BY_HAND = {  # operations, for eight rows
    "dense": dense(8, 20, 32, 16, 4),
    "branches": 2 * dense(8, 20, 24) + dense(8, 44, 4),
    "subclassed": dense(8, 20, 32, 32, 24, 16, 4),
    "recurrent": recurrent(10, 4, 8, 16, 12)
    + recurrent(10, 3, 8, 12, 8)
    + dense(8, 20, 4),
    "wrapped": dense(8 * 6, 10, 12) + 2 * recurrent(6, 4, 8, 12, 8) + dense(8, 16, 4),
    "attention": 2 * (4 * dense(96, 16, 16) + 2 * dense(8 * 2 * 12, 8, 12))
    + 2 * dense(96, 16, 32, 16)
    + dense(8, 16, 4),
    "shared": 2 * dense(8, 20, 16) + dense(8, 32, 4),
    "two_inputs": dense(8 * 36, 27, 4) + dense(8, 5, 8) + 2 * dense(8, 152, 2),
    "mixed_float16": dense(8 * 64, 27, 8)
    + dense(8 * 16, 72, 16)
    + dense(8, 256, 16, 4),
    "form flat": dense(8 * 64, 27, 6) + dense(8 * 64, 54, 6) + dense(8, 384, 4),
    "turned": dense(2 * 64, 4, 7 * 9),
    "grouped": dense(2 * 16, 18, 6),
    "apart": dense(2 * 36 * 4, 9, 1) + dense(2 * 36, 4, 6),
    "flat": dense(2 * 4, 8, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_each_ordinary_model_is_counted_to_the_operation(engine, tried):
    found = answers(engine)
    assert {name: found[name][0] for name in BY_HAND} == BY_HAND
    assert found["mixed_bfloat16"] == found["mixed_float16"]
    assert found["residual"] == found["residual_channels_first"]
    tried("verdict.py", engine, dict.fromkeys(found, "right"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_flat_nested_functional_and_subclassed_forms_are_one(engine):
    found = answers(engine)
    forms = [value for name, value in found.items() if name.startswith("form")]
    assert len(forms) == 4 and all(form == forms[0] for form in forms)
    assert found["nested base"] == found["flat base"]
    assert found["flat base"][0] > 30e6


@pytest.mark.slow
def test_the_engines_agree_on_operations_and_bytes():
    assert answers("tensorflow") == answers("jax") == answers("torch")


SMALL = """
table = keras.Sequential([layers.Embedding(1_000_000, 256), layers.Dense(4)])
words = np.random.default_rng(0).integers(0, 1_000_000, (64, 200), "int32")
same = np.zeros((64, 200), "int32")
table(words[:1])
print(json.dumps([verdict.verdict(table, words), verdict.count(table, same)[1]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_table_only_the_rows_that_can_be_read_count(engine):
    (flop, data, floor, *_, gain, _), one_row = on(engine, START + SMALL)
    outputs = 4 * (64 * 200 * 4 + 256 * 4 + 4)
    assert flop == dense(64 * 200, 256, 4)
    assert 0.98 * 12_800 * 1024 < data - 4 * 12_800 - outputs <= 12_800 * 1024
    assert one_row - 4 * 12_800 - outputs == 1024
    assert floor < 1e-4 and gain > 0.5


REFUSALS = """
wide = layers.Dense(4, dtype="float64", name="wide")
model = keras.Sequential([keras.Input((4,)), wide])
rows = np.ones((2, 4), "float32")
said = [refused(model, rows), refused(model, np.ones((2, 5))), refused("model", rows)]
said += [refused(keras.Sequential([layers.Dense(4)]), {"a": rows})]
whole = keras.Sequential([keras.Input((4,)), layers.Dense(4, name="whole")])
whole.quantize("int8")
said += [refused(whole, rows)]

class Loop(keras.layers.Layer):
    def call(self, x):
        square = keras.ops.ones((4, 4))
        small = lambda x: keras.ops.sum(x) < 1000
        return keras.ops.while_loop(small, lambda x: (x @ square,), (x,))[0]

said += [refused(keras.Sequential([keras.Input((4,)), Loop(name="loop")]), rows)]

class Hidden(keras.layers.Layer):
    def __init__(self, kind):
        super().__init__(name=kind)

    def call(self, x):
        if self.name == "svd":
            return keras.ops.svd(x, compute_uv=False)
        return keras.ops.rfft(x)[0] if self.name == "rfft" else keras.ops.solve(x, x)

square = np.eye(4, dtype="float32")[None]
hidden = [keras.Sequential([Hidden(kind)]) for kind in ("svd", "rfft", "solve")]
said += [[refused(model, square) for model in hidden]]
print(json.dumps(said))
"""


@pytest.mark.parametrize("engine", JAX_FIRST)
def test_what_cannot_be_counted_is_refused_by_name(engine):
    wide, shape, kind, mapping, whole, loop, hidden = on(engine, START + REFUSALS)
    if engine == "tensorflow":  # the others multiply in float32 here
        assert "wide: a product in float64" in wide
    assert "does not take (2, 5)" in shape and "a str is no Keras model" in kind
    assert mapping
    assert "whole" in whole and "int" in whole
    assert (loop is None) == (engine != "jax") and "(while)" in (loop or "(while)")
    assert all(text and "hides its products" in text for text in hidden)
