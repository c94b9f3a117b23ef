"""What programs/xla_switch.py says, beside Keras's switch and what compilers get."""

import pytest

from tests.programs.engines import ENGINES, SLOW, on

SETUP = """
import contextlib, functools, json, logging, os, pathlib, warnings
from unittest import mock
import keras, numpy as np
from keras import layers
from xla_switch import blockers, reasons_against, report
warnings.simplefilter("ignore")
engine = keras.backend.backend()
compiled = []  # what a compiler was given
if engine == "jax":
    import jax
    jax.config.update("jax_log_compiles", True)
    class Notes(logging.Handler):
        def emit(self, record):
            compiled.append(record.getMessage())
    logger = logging.getLogger("jax")
    logger.handlers, logger.propagate = [Notes()], False
elif engine == "torch":
    import torch
    def backend(graph, inputs):
        compiled.append("predict_step")
        return graph.forward
    torch.compile = functools.partial(torch.compile, backend=backend)
else:
    import tensorflow as tf
def gpu():
    "A block in which TensorFlow lists a GPU."
    if engine != "tensorflow":
        return contextlib.nullcontext()
    kinds = ("CPU", "GPU")
    devices = [tf.config.PhysicalDevice(f"{kind}:0", kind) for kind in kinds]
    def listed(kind=None):
        return [device for device in devices if kind in (None, device.device_type)]
    return mock.patch.multiple(
        tf.config, list_physical_devices=listed, list_logical_devices=listed
    )
def programs(model, rows):
    "How many programs the compiler gets from predict."
    if engine == "tensorflow":
        folder = pathlib.Path(os.environ["XLA_FLAGS"].split("=")[1])
        files = lambda: len(list(folder.glob("*before_optimizations.txt")))
    else:
        files = lambda: sum("predict_step" in line for line in compiled)
    before = files()
    model.predict(rows, verbose=0)
    return files() - before
class Lists(keras.Model):
    "A class with layers in lists and dictionaries."
    def __init__(self, layer):
        super().__init__()
        self.parts = {"first": [[layer]], "last": layers.Flatten()}
    def call(self, x):
        return self.parts["last"](self.parts["first"][0][0](x))
def planted(where):
    start, layer = keras.Input((8, 8, 3)), layers.RandomRotation(0.1)
    inner = keras.Sequential([layers.RandomFlip(), keras.Sequential([layer])])
    parts = {"nowhere": layers.RandomFlip(), "flat": layer, "nested": inner,
             "inside": layers.RandAugment()}
    if where in parts:
        return keras.Model(start, layers.Flatten()(parts[where](start)))
    if where == "wrapped":
        start = keras.Input((2, 8, 8, 3))
        return keras.Model(start, layers.TimeDistributed(layer)(start))
    model = Lists(inner)
    model.build((None, 8, 8, 3))
    return model
SHAPE = {"wrapped": (4, 2, 8, 8, 3)}
PLACES = ("nowhere", "flat", "nested", "inside", "wrapped", "in a list")
"""
AGREES = """
import ordinary
ways = {**ordinary.MODELS}
ways |= {f"form {n}": functools.partial(ordinary.form, n) for n in ordinary.FORMS}
ways |= {f"planted {n}": functools.partial(planted, n) for n in PLACES}
settings = [{}, {"jit_compile": True}, {"jit_compile": False}, {"run_eagerly": True}]
found, wrong = {}, []
for place in (contextlib.nullcontext, gpu):
    for name, make in ways.items():
        with place():
            made = make() if "planted" in name else make(2)[0]
            flags = [layer.supports_jit for layer in made._flatten_layers()]
            said = blockers(made)
            found[name] = len(said)
            if len(said) != flags.count(False):
                wrong.append([name, said])
            for chosen in settings:
                against = reasons_against(made, **chosen)
                made.compile("sgd", "mse", **chosen)
                if made.jit_compile != (not against):
                    wrong.append([name, chosen, against])
                if (report(made) == "on") != made.jit_compile:
                    wrong.append([name, chosen, report(made)])
print(json.dumps([found, wrong]))
"""
EFFECT = """
answers = {}
for where in PLACES:
    with gpu():
        model = planted(where)
        said = [report(model)]  # before compile
        model.compile(jit_compile=True if engine == "torch" else "auto")
        said.append(report(model))
    rows = np.ones(SHAPE.get(where, (4, 8, 8, 3)), "float32")
    answers[where] = [said, programs(model, rows)]
print(json.dumps(answers))
"""
OVERRULED = """
model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
model.compile(jit_compile=True)
if engine == "tensorflow":
    tf.config.run_functions_eagerly(True)
rows = np.ones((4, 4), "float32")
print(json.dumps([model.jit_compile, report(model), programs(model, rows)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_reasons_agree_with_keras_for_every_model(engine, tmp_path, tried):
    found, wrong = on(engine, SETUP + AGREES, XLA_FLAGS=f"--xla_dump_to={tmp_path}")
    assert wrong == []
    tried("xla_switch.py", engine, dict.fromkeys(found, "right"))
    assert found["transfer"] == 1 and found["planted inside"] > 1
    assert found["recurrent"] == (2 if engine == "tensorflow" else 0)  # beside a GPU
    assert found["wrapped"] == (2 if engine == "tensorflow" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_compiler_gets_programs_where_the_report_says_on(engine, tmp_path):
    answers = on(engine, SETUP + EFFECT, XLA_FLAGS=f"--xla_dump_to={tmp_path}")
    for where, ((before, after), programs) in answers.items():
        assert (after == "on") == (programs > 0) == (where == "nowhere")
        assert "does not support it" in before or where == "nowhere"


@pytest.mark.parametrize(
    ("engine", "variables"),
    [
        ("jax", {"JAX_DISABLE_JIT": "1"}),
        pytest.param("tensorflow", {}, marks=SLOW),
        pytest.param("torch", {"TORCHDYNAMO_DISABLE": "1"}, marks=SLOW),
        pytest.param("torch", {"TORCH_COMPILE_DISABLE": "1"}, marks=SLOW),
    ],
)
def test_what_overrules_keras_without_a_word_is_told(engine, variables, tmp_path):
    variables["XLA_FLAGS"] = f"--xla_dump_to={tmp_path}"
    switch, said, programs = on(engine, SETUP + OVERRULED, **variables)
    assert switch is True and said.startswith("off: ") and programs == 0
