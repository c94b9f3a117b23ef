"""What a model does elsewhere, beside the one that stayed at home."""

import json

import pytest

from tests.programs.engines import ENGINES, JAX_FIRST, on

SETUP = """
import functools, json, pathlib, pickle, warnings
import keras, numpy as np, ordinary
from keras import layers
from elsewhere import in_16_bits, in_float32, write_for_jax
warnings.simplefilter("ignore")
engine = keras.backend.backend()
ways = {**ordinary.MODELS}
ways |= {f"form {n}": functools.partial(ordinary.form, n) for n in ordinary.FORMS}
def rows_of(x, count):
    return keras.tree.map_structure(lambda a: a[:count], x)
def distance(model, twin, x):
    "The largest difference of their predictions of 1, 3 and 8 rows."
    flat = [keras.tree.flatten([one.predict(rows_of(x, count), verbose=0)
            for count in (1, 3, 8)]) for one in (model, twin)]
    return max(float(abs(a - b).max()) for a, b in zip(*flat))
def without_chance(model):  # engines draw other numbers
    for layer in model._flatten_layers():
        if "Dropout" in type(layer).__name__ or "Random" in type(layer).__name__:
            layer.call = lambda rows, training=False: rows
def refusal(function, *arguments):
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
"""
TWINS = """
def under(policy, make):
    keras.config.set_dtype_policy(policy)
    made = make()
    keras.config.set_dtype_policy("float32")
    return made
def deferred():
    inner = keras.Sequential([layers.Dense(8), layers.Dense(5)])
    return keras.Sequential([inner, layers.Dense(3)]), 30 * ordinary.numbers(8, 8), None
def given():
    norm = layers.Normalization(mean=100 / 3, variance=1 / 7)
    model = keras.Sequential([keras.Input((8,)), norm, layers.Dense(3)])
    return model, 30 * ordinary.numbers(8, 8), None
def adapted():
    norm, x = layers.Normalization(), 30 * ordinary.numbers(8, 8)
    norm.adapt(x[:5])
    return keras.Sequential([keras.Input((8,)), norm, layers.Dense(3)]), x, None
ways |= {"deferred": deferred, "given": given, "adapted": adapted}
found = {}
for policy in ("mixed_float16", "mixed_bfloat16"):
    for name, make in ways.items():
        model, x, _ = under(policy, make)
        twin = make()[0]
        for one in (model, twin):
            if not one.built:
                one(x)
        twin.set_weights(model.get_weights())
        if name.startswith("mixed_"):
            in_float32(twin)
        before = len(in_16_bits(model))
        if name in ("dense", "residual", "deferred"):
            model.predict(x, verbose=0)  # traced in 16 bits
        found[f"{policy} {name}"] = [before, distance(in_float32(model), twin, x)]
        assert in_16_bits(model) == []
        if name in ("residual", "transfer", "recurrent", "wrapped", "deferred"):
            model.save(FILE)
            again = keras.saving.load_model(FILE, compile=False)
            found[f"{policy} {name}"].append(distance(again, twin, x))
print(json.dumps(found))
"""
REFUSED = """
start = keras.Input((4,))
def fixed():
    hidden = keras.ops.cast(layers.Dense(4)(start), "float16")
    return keras.Model(start, layers.Dense(2)(hidden))
class Constant(layers.Layer):
    def __init__(self):
        super().__init__(dtype="mixed_float16")
        self.scale = keras.ops.ones((), "float16")
    def call(self, x):
        return x * self.scale
class Draws(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(0)
    def call(self, x):
        return x + keras.random.uniform(keras.ops.shape(x), seed=self.seed)
class Half(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.inner = layers.Dense(2, dtype="mixed_float16")
    def call(self, x):
        return self.inner(x)
pure = keras.Model(start, layers.Dense(2, dtype="float16")(start))
half = Half()
half(np.ones((1, 4), "float32"))
new = keras.Sequential([start, layers.Dense(1)])
answers = [refusal(in_float32, model) for model in
           (fixed(), keras.Model(start, Constant()(start)), pure)]
answers += [refusal(write_for_jax, model, data, "never.npz") for model, data in (
    (keras.Sequential([layers.Dense(1)]), np.ones((2, 4))),
    (new, np.ones((2, 5))), (keras.Model(start, Draws()(start)), np.ones((2, 4))))]
print(json.dumps([len(in_16_bits(in_float32(half))), answers]))
"""
WRITE = """
for name, make in ways.items():
    model, x, _ = make(8)
    write_for_jax(model, x, f"{FOLDER}/{name}.npz")
    data = [(part := rows_of(x, count), model.predict(part, verbose=0))
            for count in (1, 3, 8)]
    pathlib.Path(FOLDER, name).write_bytes(pickle.dumps(data))
print(len(ways))
"""
READ = """
import json, pathlib, pickle, sys
for name in ("keras", "tensorflow", "ordinary", "elsewhere"):
    sys.modules[name] = None  # to import it is an error
import jax, numpy as np
from jax import export, jit
found = {}
for path in pathlib.Path(FOLDER).glob("*.npz"):
    file = np.load(path)
    program = export.deserialize(bytearray(file["program"]))
    weights = [file[name] for name in file.files[1:]]
    found[path.stem] = [sorted(program.platforms), 0]
    for part, expected in pickle.loads(path.with_suffix("").read_bytes()):
        got = jit(program.call)(weights, part)
        for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected)):
            assert one.shape == other.shape
            off = float(abs(one - other).max())
            found[path.stem][1] = max(found[path.stem][1], off)
print(json.dumps(found))
"""

# An optimizer in turn, and the losses of two steps that follow where it was saved.
SAVE = """
from torch.nn.attention import SDPBackend, sdpa_kernel
def taken(model, x, y, steps):
    with sdpa_kernel(SDPBackend.MATH):
        return [np.ravel(model.train_on_batch(x, y)).tolist() for _ in range(steps)]
kinds = [getattr(keras.optimizers, kind) for kind in KINDS]
Adam = keras.optimizers.Adam
for number, (name, make) in enumerate(ordinary.MODELS.items()):
    if engine == "tensorflow" and name == "residual_channels_first":
        continue  # no gradient of such a convolution on a CPU
    model, x, y = make()
    without_chance(model)
    kind = Adam if name in ("lora", "mixed_float16") else kinds[number % len(kinds)]
    optimizer = kind(0.01, use_ema=number % 2 == 0)
    if name == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    loss = ordinary.LOSSES.get(name, "sparse_categorical_crossentropy")
    model.compile(optimizer, loss)
    taken(model, x, y, 3)
    model.save(f"{FOLDER}/{engine} {name}.keras")
    state = [float(keras.ops.sum(v)) for v in model.optimizer.variables]
    losses = taken(model, x, y, 2)
    saved = json.dumps([state, sum(losses, [])])
    pathlib.Path(FOLDER, f"{engine} {name}.json").write_text(saved)
print(0)
"""
GO_ON = """
import sys
class NoTorch:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
known = {kind: getattr(keras.optimizers, kind) for kind in KINDS}
found = {}
for path in sorted(pathlib.Path(FOLDER).glob("*.keras")):
    model = keras.saving.load_model(path, custom_objects=known)
    if path.stem.endswith("lora"):  # Keras skips its state, with a warning
        assert int(model.optimizer.iterations) == 0
        continue
    state = [float(keras.ops.sum(v)) for v in model.optimizer.variables]
    used = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    own = type(used) is getattr(keras.optimizers, type(used).__name__)
    model.jit_compile = engine == "jax"
    _, x, y = ordinary.MODELS[path.stem.split()[1]]()
    without_chance(model)
    losses = None
    if not (engine == "tensorflow" and path.stem.endswith("channels_first")):
        losses = [np.ravel(model.train_on_batch(x, y)).tolist() for _ in range(2)]
        losses = sum(losses, [])
    found[path.stem] = [state, losses, own]
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_in_float32_predicts_as_a_twin_made_in_float32(engine, tmp_path, tried):
    found = on(engine, f"FILE = {str(tmp_path / 'm.keras')!r}\n" + SETUP + TWINS)
    for name, (before, *off) in found.items():
        assert before > 0 and max(off) < 1e-6, name
    names = {name.partition(" ")[2] for name in found}
    tried("elsewhere.py", engine, dict.fromkeys(names, "right"))


@pytest.mark.parametrize("engine", JAX_FIRST)
def test_what_cannot_be_done_is_refused_with_its_reason(engine):
    left, answers = on(engine, SETUP + REFUSED)
    assert left == 0  # a constructor that fixes the policy
    reasons = [
        "has a cast to float16",
        "constant holds scale in 16 bits",
        "stores its weights in 16 bits",
    ]
    other = "KERAS_BACKEND=jax"
    drawing = "can't be written for JAX: Not equal"
    jax = ["can't be written for JAX: ", "has no weights yet", "for JAX", drawing]
    reasons += jax[1:] if engine == "jax" else [other] * 3
    assert len(answers) == len(reasons)
    for answer, reason in zip(answers, reasons, strict=True):
        assert reason in (answer or "")


@pytest.mark.slow
def test_the_file_for_jax_predicts_without_keras(tmp_path):
    folder = f"FOLDER = {str(tmp_path)!r}\n"
    count = on("jax", folder + SETUP + WRITE)
    found = on("jax", folder + READ)
    assert len(found) == count
    for name, (platforms, off) in found.items():
        assert platforms == ["cpu", "cuda"]
        assert off < (0.01 if "16" in name else 1e-5), name


@pytest.mark.slow
def test_training_goes_on_with_the_state_of_another_engine(tmp_path):
    """From PyTorch's file, without PyTorch; a file for LoRA loses the state.

    Of the 14 ordinary models each has the next of these optimizers: the nine of which
    Keras has a class for PyTorch, and two others. Attention has SGD: the gradient of
    its keys' bias is all rounding, which most others scale up. On PyTorch its kernel is
    the plain one: book/found/masked-rows-in-attention.py has the other's gradients.
    """
    kinds = "Lion RMSprop Adamax Lamb Adafactor AdamW Adagrad SGD Nadam Adam Adadelta"
    setup = f"KINDS = {kinds.split()}\nFOLDER = {str(tmp_path)!r}\n" + SETUP
    on("torch", setup + SAVE)
    for engine in ("tensorflow", "jax"):
        found = on(engine, setup + GO_ON)
        assert len(found) == 13
        for name, (state, losses, own) in found.items():
            saved, then = json.loads((tmp_path / f"{name}.json").read_text())
            assert state == pytest.approx(saved, rel=1e-4, abs=1e-5), (engine, name)
            assert losses in (None, pytest.approx(then, rel=0.01)), (engine, name)
            assert own, (engine, name)
