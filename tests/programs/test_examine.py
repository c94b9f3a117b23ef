"""The examination: silent on healthy models, loud on planted faults, on each engine."""

import re

import pytest

from tests.programs.engines import ENGINES, first, on

START = """
import json, sys, warnings
warnings.simplefilter("ignore")
import keras, numpy as np, ordinary
from examine import examine, examine_data, first_not_finite
layers, told = keras.layers, keras.losses.SparseCategoricalCrossentropy(True)
untold = keras.losses.SparseCategoricalCrossentropy()

def asked(model, x, y, **options):
    try:
        return examine(model, x, y, **options)
    except ValueError as error:
        return [f"refused: {error}"]

generator = np.random.default_rng(0)
x, y = generator.random((64, 8, 8, 1), "float32"), generator.integers(0, 10, 64)

def built(*chain, optimizer="adam", loss=told, **options):
    model = keras.Sequential([keras.Input((8, 8, 1)), *chain])
    model.compile(optimizer, loss, **options)
    return model

def dense(*more, **options):
    hidden = layers.Dense(32, activation="relu")
    return built(layers.Flatten(), hidden, *more, layers.Dense(10), **options)

class Always(layers.Dropout):
    def call(self, inputs, training=None):
        return super().call(inputs, training=True)

@keras.saving.register_keras_serializable()
class Unheard(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat, self.first = layers.Flatten(), layers.Dense(32)
        self.head = layers.Dense(10)

    def call(self, inputs):
        inputs = self.flat(inputs)
        self.first(inputs)
        return self.head(inputs)
"""
HEALTHY = """
healthy = {}
for seed in SEEDS:
    for optimizer in OPTIMIZERS:
        for name in NAMES or [*ordinary.MODELS, *map("_".__add__, ordinary.FORMS)]:
            keras.utils.set_random_seed(seed)
            form = name.removeprefix("_")
            make = ordinary.MODELS.get(name)
            model, inputs, targets = make(16) if make else ordinary.form(form, 16)
            loss = ordinary.LOSSES.get(name, untold if make else told)
            model.compile(optimizer, loss)
            healthy[f"{name} {optimizer} {seed}"] = asked(model, inputs, targets)
"""
PLAIN = """
rates = keras.optimizers.Adam, keras.optimizers.SGD
convolution = lambda: layers.Conv2D(16, 3, padding="same", activation="relu")
head = lambda: [layers.Flatten(), layers.Dense(10)]
base = keras.Sequential([keras.Input((8, 8, 1)), convolution(), layers.Flatten()])
base.trainable = False
plain = {
    "dense": lambda **o: dense(**o),
    "six": lambda **o: built(*(convolution() for _ in range(6)), *head(), **o),
    "pooled": lambda **o: built(convolution(), layers.MaxPooling2D(), *head(), **o),
    "normed": lambda **o: built(
        layers.SpectralNormalization(layers.Conv2D(8, 3)), *head(), **o),
    "frozen": lambda **o: built(base, layers.Dense(10), **o),
    "dropped": lambda **o: dense(layers.Dropout(0.3), **o),
    "augmented": lambda **o: built(
        layers.RandomFlip(), layers.Rescaling(2.0), convolution(), *head(), **o),
    "decay": lambda **o: dense(layers.Dense(16, kernel_regularizer="l2"), **o),
}
answers = {}
for seed in SEEDS:
    for name, make in plain.items():
        for optimizer in OPTIMIZERS:
            keras.utils.set_random_seed(seed)
            kind, _, rate = optimizer.partition(" ")
            chosen = getattr(keras.optimizers, kind)(float(rate))
            answers[f"{name} {optimizer} {seed}"] = asked(make(optimizer=chosen), x, y)
keras.utils.set_random_seed(0)
inputs = {"a": x, "b": x[:, :2]}
start = {key: keras.Input(part.shape[1:], name=key) for key, part in inputs.items()}
both = layers.Concatenate()([layers.Flatten()(each) for each in start.values()])
model = keras.Model(start, layers.Dense(10)(layers.Dense(32, "relu")(both)))
model.compile("adam", keras.losses.CategoricalCrossentropy(True, label_smoothing=0.2))
one_hot = np.eye(10, dtype="float32")[y]
answers["dictionary, one-hot, smoothed"] = asked(model, inputs, one_hot)
model = built(layers.Flatten(), layers.Dense(1, activation="sigmoid"),
    loss="binary_crossentropy")
answers["two classes"] = asked(model, x, y % 2)
print(json.dumps(answers))
"""
FAULTS = """
one, ten = layers.Dense(10, activation="softmax"), generator.permutation(y)
late, stale = dense(), keras.Sequential([])
late.fit(x, y, verbose=0)
late.layers[1].trainable = False
faults = {
    "outputs": [dense(loss=untold), dense(loss="sparse_categorical_crossentropy"),
        built(layers.Flatten(), one),
        dense(layers.Dense(10, activation="relu"), loss=untold)],
    "first loss": [dense(layers.Rescaling(300.0))],
    "two predictions": [dense(Always(0.3))],
    "ten samples": [dense(layers.Rescaling(0.0))],
    "learning rate": [dense(optimizer=keras.optimizers.SGD(1e4)),
        dense(optimizer=keras.optimizers.Adam(10.0))],
    "traces": [dense(run_eagerly=True)],
}
unheard = Unheard()
unheard(x)
unheard.compile("adam", told)
dead = dense(layers.Lambda(lambda z: keras.ops.round(z)))
answers = {name: [asked(m, x, y) for m in models] for name, models in faults.items()}
answers["weights"] = [asked(unheard, x, y), asked(dead, x, y)]
answers["late"] = asked(late, x, y)
many_x, many_y = np.tile(x, (20, 1, 1, 1)), np.tile(y, 20).astype("float32")
many_x[33, 0], many_y[33] = np.nan, np.nan  # one sample of many
answers["ill data"] = [asked(dense(), np.where(x > 0.99, np.nan, x), y),
    asked(dense(), many_x, np.tile(y, 20)), asked(dense(), np.tile(x, (20, 1, 1, 1)),
    many_y)]
answers["shuffled"] = [asked(dense(), x, ten)]
print(json.dumps(answers))
"""
DATA = """
x, y = generator.random((600, 6), "float32"), np.arange(600) % 3
x[:, 0] += 3 * y
cut = lambda rows: [(x[r], y[r]) for r in np.array_split(rows, 7)]  # batches differ
rows, mixed = np.arange(600), generator.permutation(y)
first, last = rows[:450], rows[450:]

class Batches(keras.utils.PyDataset):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def __len__(self):
        return -(-len(self.rows) // 16)

    def __getitem__(self, i):
        some = self.rows[16 * i : 16 * i + 16]
        return {"a": x[some], "b": x[some, :2]}, np.eye(3)[y[some]]

def tensors(rows):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf
        return tf.data.Dataset.from_tensor_slices((x[rows], y[rows])).batch(16)
    from torch.utils.data import DataLoader, TensorDataset
    import torch
    return DataLoader(TensorDataset(*map(torch.tensor, (x[rows], y[rows]))), 16)

def data(training, validation):
    try:
        return examine_data(training, validation)
    except ValueError as error:
        return [f"refused: {error}"]

words = lambda rows: (generator.integers(0, 50, (len(rows), 9)), y[rows])
answers = {
    "healthy": [data(make(first), make(last)) for make in (cut, Batches, tensors,
        lambda r: (x[r], y[r]), lambda r: ([x[r]], y[r]), words)],
    "overlap": [data(make(first), make(rows[440:])) for make in (cut, Batches)],
    "order": [data(cut(first), type("Shuffled", (), {
        "__iter__": lambda self: iter(cut(generator.permutation(last)))})())],
    "labels": [data((x[first], mixed[first]), (x[last], mixed[last]))],
    "refused": [data((x, x[:, 0]), (x, x[:, 0])), data((x, x > 1), (x, x > 1)),
        data((x, y[:9]), (x, y))],
}
chain = built(layers.Flatten(), layers.Dense(3), optimizer="sgd")
chain(np.zeros((1, 8, 8, 1)))
small = keras.Sequential([keras.Input((6,)), layers.Dense(16, "relu"), layers.Dense(3)])
small.compile("adam", told)
answers["healthy"].append(asked(small, tensors(rows), None))
def refused(model, x, y):
    (text,) = asked(model, x, y)
    return text
answers["refused"] += [[refused(*each)] for each in (
    (small, x, x[:, 0]), (small, x, x > 1), (small, x, y + 5),
    (small, x, np.where(rows == 33, 255, y)), (small, x[:, :5], y),
    (small, x, y[:9]), (keras.Sequential([layers.Dense(3)]), x, y))]
wide = lambda *more: keras.Sequential([keras.Input((6,)), layers.Dense(4, name="first"),
    keras.Sequential([layers.Dense(4), *more], name="inner"), layers.Dense(3)])
class Logarithm(layers.Layer):
    def call(self, inputs):
        return keras.ops.log(0 * inputs)
chain = ordinary.form("subclassed")[0]
chain.chain[1] = Logarithm(name="logarithm")
broken = wide()
broken.layers[1].layers[0].kernel.assign(np.full((4, 4), np.inf))
answers["finite"] = [first_not_finite(wide(), x),
    first_not_finite(chain, np.ones((2, 8, 8, 3))),
    first_not_finite(wide(Logarithm(name="deep")), x), first_not_finite(wide(), x / 0),
    first_not_finite(broken, x)]
small.fit(x, y, verbose=0)
always = keras.Sequential([keras.Input((6,)), Always(0.5), layers.Dense(3)])
always.compile("sgd", told)
always.fit(x, y, verbose=0)
answers["unchanged"] = []
for model in (small, always):
    state = lambda: [keras.ops.convert_to_numpy(v).copy() for v in
        [*model.variables, *model.optimizer.variables]]
    before, optimizer, step = state(), model.optimizer, model.train_function
    once, again = asked(model, x, y), asked(model, x, y)
    same = all(np.array_equal(a, b) for a, b in zip(before, state()))
    same = same and (model is always or once == again)  # what is random may differ
    answers["unchanged"].append(same and optimizer is model.optimizer
        and step is model.train_function)
print(json.dumps([answers, healthy]))
"""


def run(engine, source, **variables):
    """The answers of the examination on one engine, with one thread."""
    given = "".join(f"{name} = {value!r}\n" for name, value in variables.items())
    return on(engine, START + given + source, OMP_NUM_THREADS="1")


def silent(answers):
    """The answers that name a mistake."""
    return {key: value for key, value in answers.items() if value}


def check_healthy(answers):
    """A base of random weights may be remarked on; two kinds of model are refused."""
    for key, (text, *more) in silent(answers).items():
        if key.startswith("transfer"):
            kinds = "remark", "traces"  # on JAX its augmentation is not compiled
            assert all(each.startswith(kinds) for each in [text, *more]), more
        elif key.startswith("two_inputs"):
            assert text.startswith("refused: only one output"), text
        else:
            assert key.startswith("_subclassed") and "get_config" in text, (key, text)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_ordinary_models_are_healthy(engine, tried):
    """No mistake is found in any ordinary model, with Keras's own learning rates."""
    optimizers = ["adam", "sgd"] if engine == "torch" else ["adam"]
    source = HEALTHY + "print(json.dumps(healthy))"
    found = run(engine, source, SEEDS=[0], OPTIMIZERS=optimizers, NAMES=[])
    check_healthy(found)
    seen = {key.split()[0]: texts for key, texts in found.items() if "adam" in key}
    seen = {name: (texts or ["right"])[0] for name, texts in seen.items()}
    seen = {name: re.sub(r", \d+% right", "", text) for name, text in seen.items()}
    tried("examine.py", engine, seen)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_plain_models_are_healthy(engine):
    """Neither are they at other rates: convolutions, a frozen base, wrappers."""
    rates = ["Adam 0.001", "Adam 0.01", "SGD 0.01"]
    assert not silent(run(engine, PLAIN, SEEDS=[0], OPTIMIZERS=rates))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_planted_faults_are_found(engine):
    """Each fault leads to its finding; only labels in a wrong order are overlooked."""
    answers = run(engine, FAULTS)
    assert answers.pop("shuffled") == [[]]
    late = "after fit" in str(answers.pop("late"))
    assert late == (engine != "torch")  # where a weight that is frozen late stays
    for (text,), name in zip(answers.pop("ill data"), "xxy", strict=True):
        assert text == f"data: {name} holds NaN or infinity"
    if engine == "torch":  # it runs Python in each step
        assert answers.pop("traces") == [[]]
    for kind, each in answers.items():
        for found in each:
            assert any(text.startswith(kind) for text in found), (kind, found)
    assert all("stands still" in str(found) for found in answers["weights"])


@pytest.mark.parametrize("engine", first("torch"))
def test_data_refusals_and_what_stays(engine):
    """Batches of each kind, what is refused, where NaN begins, models that stay."""
    names = ["attention", "lora", "_nested"]
    source = HEALTHY + DATA
    answers, healthy = run(engine, source, SEEDS=[0], OPTIMIZERS=["adam"], NAMES=names)
    check_healthy(healthy)
    assert not any(answers["healthy"]), answers["healthy"]
    assert all("sees 10 valid" in str(found) for found in answers["overlap"])
    for kind in ("order", "labels"):
        ((text,),) = answers[kind]
        assert text.startswith(kind)
    whys = "neither", "neither", "same number", "neither", "neither", "labels go to 7"
    whys += ("labels go to 255", "expected", "same number", "compiled")
    for (text,), why in zip(answers["refused"], whys, strict=True):
        assert text.startswith("refused: ") and why in text, text
    places = "", "logarithm", "inner/deep", "the data", "kernel"
    for place, expected in zip(answers["finite"], places, strict=True):
        assert place.endswith(expected) and bool(place) == bool(expected), place
    assert answers["unchanged"] == [True, True]
