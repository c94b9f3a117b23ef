"""Weights cut over eight devices: the step of one device, and what is refused."""

import pytest

from tests.programs.engines import on

EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
STEPS = """
import json, keras, ordinary, same_step
from shard_by_shape import ShardByShape
def taken(make, loss):
    def new_model():
        made.append(make()[0])
        made[-1].compile("sgd", loss)
        return made[-1]
    made, data = [], make()[1:]
    one = same_step._step(new_model, *data)
    many = same_step._step(new_model, *data, ShardByShape(least=2).scope, one.start)
    kernels = [w for w in made[1].weights if "kernel" in w.name]
    kernels = [w for w in kernels if any(size % 8 == 0 for size in w.shape)]
    whole = [w.path for w in kernels if w.value.sharding.is_fully_replicated]
    apart = float(same_step._apart(one, many)[0])
    return apart, one.in_16_bits, many.rows, len(kernels), whole
found = {}
for name, make in ordinary.MODELS.items():
    usual = "sparse_categorical_crossentropy"
    found[name] = taken(lambda: make(16), ordinary.LOSSES.get(name, usual))
for name in ordinary.FORMS:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    found["form " + name] = taken(lambda: ordinary.form(name, 16), loss)
print(json.dumps(found))
"""
WHERE = """
import json, keras
from shard_by_shape import ShardByShape, refuse_whole

class Words(keras.layers.Layer):
    def build(self, shape):
        self.places = self.add_weight((1, 24, 64), name="places")
        self.token = self.add_weight((1, 1, 64), name="class_token")
    def call(self, x):
        return x + self.places + self.token

def model(least, cards=None):
    cards = cards and keras.distribution.list_devices()[:cards]
    with ShardByShape(cards, least).scope():
        table, dense = keras.layers.Embedding(40, 64, name="kernel"), keras.layers.Dense
        layers = [table, Words(), dense(16, name="embeddings"), dense(5)]
        return keras.Sequential([keras.Input((24,)), *layers])

def said(*asked):
    try:
        return refuse_whole(*asked)
    except ValueError as error:
        return str(error)

held = lambda made: [w.value.sharding.shard_shape(w.shape) for w in made.weights]
refused = [said(model(64), 65), said(model(64), 64)]
refused += [said(keras.Sequential()), said(model(2, 1), 2000)]
print(json.dumps([held(model(64)), held(model(1000, 3)), *refused]))
"""


def test_no_table_is_cut_along_its_features_whatever_the_names():
    eight, three, right, small, empty, alone = on("jax", WHERE, **EIGHT)
    assert eight[:3] == [[5, 64], [1, 3, 64], [1, 1, 64]]  # a table, places, a token
    assert eight[3:] == [[8, 16], [16], [2, 5], [5]]
    assert three[:2] == [[40, 64], [1, 8, 64]] and three[3] == [64, 16]
    assert right is None and "no weights yet" in empty
    assert small.startswith("1 of 5 large") and "class_token (1, 1, 64)" in small
    assert alone.endswith("/kernel/embeddings (40, 64)")


@pytest.mark.slow
def test_ordinary_models_take_the_step_of_one_device(tried):
    found = on("jax", STEPS, timeout=900, **EIGHT)
    for name, (apart, in_16_bits, rows, kernels, whole) in found.items():
        assert apart < (0.2 if in_16_bits else 1e-4), (name, apart)
        assert rows == 2 and kernels and not whole, (name, rows, whole)
    tried("shard_by_shape.py", "jax", dict.fromkeys(found, "right"))
