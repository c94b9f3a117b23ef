"""Would a GPU help this model with this batch? A card's least time against this CPU.

Use: `verdict(model, batch, card="T4")`, with Keras on TensorFlow, JAX or PyTorch, on a
CPU; or `python verdict.py yourmodel.py T4`: the file defines `model` and `batch`.
It does not know launches, the bus, and products that fill a card badly, so its gain is
a ceiling (Winograd's convolutions may beat it). It looks at predictions, not at `fit`.
With a mask, TensorFlow and PyTorch run one step of an LSTM more than JAX; all count.
"""

import collections
import itertools
import math
import re
import runpy
import sys
import time

try:
    import keras
    import numpy as np
except ImportError as error:
    raise SystemExit(f"verdict.py needs Keras and an engine: {error}") from None

# FLOP/s of dense products, the highest figure: in float32 (TF32 where there is one) and
# in 16 bits; bytes/s. T4, L4, A100 80 GB: NVIDIA's data sheets; H100: openxla/xla on
# GitHub, xla/backends/gpu/target_config/specs; RTX 4090: NVIDIA's Ada white paper; RTX
# 3060: 28 multiprocessors at 1.777 GHz, with the rates of NVIDIA's GA102 white paper.
Card = collections.namedtuple("Card", "float32 half bandwidth")
CARDS = {
    "T4": Card(8.1e12, 65e12, 320e9),
    "L4": Card(60e12, 121e12, 300e9),
    "A100": Card(156e12, 312e12, 2039e9),
    "H100": Card(494.7e12, 989.4e12, 3352e9),
    "RTX 3060": Card(12.7e12, 51e12, 360e9),
    "RTX 4090": Card(82.6e12, 330.3e12, 1008e9),
}
PEAKS = {"float32": "float32", "float16": "half", "bfloat16": "half"}
HIDDEN = re.compile(  # with products inside that are not counted here
    "ffi_call|pallas_call|ragged_dot.*|shard_map|rnn.*|lstm|gru|.*(cud|mkld|miop)nn_rnn"
    "|mkldnn_rnn.*|_(flash|efficient)_attention.*|mv|v?dot|addmv|addbmm|Cudnn.*"
    "|XlaCall.*|Sparse.*Mul|__inference.*|.*PartitionedCall"
    "|_?linalg_(?!vector_norm|cross).*|_?fft.*|.*FFT.*|geqrf|householder_.*|qr|Qr"
    "|[sS]vd|[lL]u|eigh?|.*Eig.*|[cC]holesky.*|triangular_solve|Matrix.*(Solve|Inverse)"
)
BY_INDEX = {"gather", "embedding", "index_select", "index"}
BY_INDEX |= {"GatherV2", "ResourceGather", "GatherNd"}
FIX = "Try another engine (KERAS_BACKEND), or use_cudnn=False in LSTM and GRU"
Product = collections.namedtuple("Product", "dtype flop bytes")
FIELDS = "flop bytes floor estimate call sample here gain sentence"
Verdict = collections.namedtuple("Verdict", FIELDS)


class Work(keras.StatelessScope):
    """What a call does; a scope in which nothing of the model changes.

    products: one Product for each. picked: shape of an array that was read by index,
    numbers read. read: the weights that were asked for. refusal: what can't be counted.
    """

    def __init__(self):
        super().__init__()
        self.products, self.picked, self.read, self.refusal = [], [], {}, None

    def get_current_value(self, variable):
        """Keras asks for the value of a weight: note it."""
        self.read[id(variable)] = variable
        return super().get_current_value(variable)

    def refuse(self, cause, layer=None):
        """Remember the first cause and its layer."""
        layer = layer or getattr(_layer(), "name", "the model")
        self.refusal = self.refusal or f"{layer}: {cause}. {FIX}."

    def note(self, kind, flop, operands, result, times=1, layer=None):
        """Note an operation, and its operations if it is a product."""
        if flop is not None:
            dtype = _name(operands[0].dtype)
            if dtype not in PEAKS:
                self.refuse(
                    f"a product in {dtype}, and not in float32 or 16 bits", layer
                )
            size = sum(_size(x) for x in [*operands, result])
            self.products.append(Product(dtype, flop * times, size * times))
        elif HIDDEN.fullmatch(kind):
            self.refuse(f"{kind} hides its products", layer)
        elif kind in BY_INDEX:
            self.picked.append((tuple(operands[0].shape), math.prod(result.shape)))


def _name(dtype):
    return getattr(dtype, "name", str(dtype).removeprefix("torch."))


def _width(dtype):
    bits = re.search(r"\d+", _name(dtype))
    return int(bits[0]) // 8 if bits else 1


def _size(array):
    return math.prod(array.shape) * _width(array.dtype)


def _layer():
    """The layer that is being called."""
    frame = sys._getframe(1)
    while frame and not isinstance(frame.f_locals.get("self"), keras.Layer):
        frame = frame.f_back
    return frame and frame.f_locals["self"]


def _on_torch(model, batch, work):
    """Each operation that PyTorch runs, by the formulas of its FlopCounterMode."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    formula = flop_registry[aten._scaled_dot_product_flash_attention]
    on_cpu = {aten._scaled_dot_product_flash_attention_for_cpu: formula}

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result, kind = function(*args, **(kwargs or {})), function._overloadpacket
            formula = {**flop_registry, **on_cpu}.get(kind)
            flop = formula and formula(*args, **(kwargs or {}), out_val=result)
            arrays = [x for x in args if isinstance(x, torch.Tensor)]
            if flop and getattr(_layer(), "compute_dtype", "") == "float16":
                arrays = [x.to("meta").half() for x in arrays]  # float32 on a CPU alone
            if arrays:
                first = result[0] if isinstance(result, (tuple, list)) else result
                work.note(kind.__name__, flop, arrays, first)
            return result

    with work, torch.no_grad(), Counter():
        return model(batch, training=False)


def _tensorflow_flop(kind, its, shapes, size):
    if kind.startswith(("MatMul", "BatchMatMul")):
        turned = its.get("transpose_a") or its.get("adj_x")
        return 2 * size * shapes[0][-2 if turned else -1]
    if kind.startswith(("Conv2DBackpropInput", "Conv3DBackpropInput")):  # transposed
        return 2 * math.prod(shapes[2]) * math.prod(shapes[1]) // shapes[1][-1]
    if kind in ("Conv2D", "Conv3D"):
        return 2 * size * math.prod(shapes[1][:-1])
    if kind == "DepthwiseConv2dNative":
        return 2 * size * math.prod(shapes[1][:2])
    if kind == "Einsum" and len(shapes) == 2:
        (terms, kept), sizes = its["equation"].split("->"), {}
        for term, shape in zip(terms.split(","), shapes):
            left, _, right = term.partition("...")
            sizes |= dict(zip(left, shape)) | dict(zip(right[::-1], shape[::-1]))
        return 2 * size * math.prod(sizes[x] for x in sizes if x not in kept)
    return None


def _on_tensorflow(model, batch, work):
    """Each operation that runs eagerly, loops step by step, if its result is used."""
    import tensorflow as tf
    from tensorflow.python.framework import op_callbacks

    steps = []  # identities of the results and of the operands, and what was noted

    def note(kind, operands, attributes, results, op_name=None, graph=None):
        if graph is None and operands and results:
            work.products, work.picked = [], []
            its = [x.decode() if isinstance(x, bytes) else x for x in attributes or ()]
            kind = kind.decode() if isinstance(kind, bytes) else kind
            shapes, size = [x.shape for x in operands], math.prod(results[0].shape)
            flop = _tensorflow_flop(kind, dict(zip(its[::2], its[1::2])), shapes, size)
            work.note(kind, flop, operands[-2:] if flop else operands, results[0])
            ids = [{x._id for x in tensors} for tensors in (results, operands)]
            steps.append((*ids, work.products, work.picked))

    eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    op_callbacks.add_op_callback(note)
    try:
        with work:
            outputs = model(batch, training=False)
    finally:
        op_callbacks.remove_op_callback(note)
        tf.config.run_functions_eagerly(eager)
    work.products, work.picked = [], []
    needed = {x._id for x in keras.tree.flatten(outputs)}
    for results, operands, products, picked in reversed(steps):
        if results & needed:  # without the step by which Keras learns an RNN's shape
            needed |= operands
            work.products += products
            work.picked += picked
    return outputs


def _jax_flop(name, its, shapes, size):
    if name == "dot_general":
        return (
            2 * size * math.prod(shapes[0][x] for x in its["dimension_numbers"][0][0])
        )
    if name == "conv_general_dilated":
        axes, kernel = its["dimension_numbers"], math.prod(shapes[1])
        if any(x > 1 for x in its["lhs_dilation"]):  # transposed
            return 2 * math.prod(shapes[0]) * kernel // shapes[0][axes.lhs_spec[1]]
        return 2 * size * kernel // shapes[1][axes.rhs_spec[0]]
    return None


def _on_jax(model, batch, work):
    """Each operation of the traced program, those of a scan as often as it runs."""
    import jax

    def call(inputs):
        with work:
            return model(inputs, training=False)

    def walk(program, times, outer):
        for step in program.eqns:
            name, its = step.primitive.name, step.params
            layer = str(step.source_info.name_stack) or outer
            arrays, result = [x.aval for x in step.invars], step.outvars[0].aval
            shapes, size = [x.shape for x in arrays], math.prod(result.shape)
            flop = _jax_flop(name, its, shapes, size)
            work.note(name, flop, arrays, result, times, layer)
            before = len(work.products)
            for inner in jax.tree.leaves(list(its.values())):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    walk(inner, times * (its["length"] if name == "scan" else 1), layer)
            if name in ("while", "cond") and len(work.products) > before:
                work.refuse(f"the data says how often products run ({name})", layer)

    program, outputs = jax.make_jaxpr(call, return_shape=True)(batch)
    walk(program.jaxpr, 1, "the model")
    return outputs


ENGINES = {"tensorflow": _on_tensorflow, "jax": _on_jax, "torch": _on_torch}


def count(model, batch):
    """Count a prediction: matrix products and convolutions, and the bytes at least.

    Returns:
        A list of Product, and the bytes of inputs, outputs and weights that are read,
        each once, as wide as their layers compute; of a table that is read by index no
        more rows than there are different numbers in the inputs.

    Raises:
        ValueError: something can't be counted; its layer is named.
    """
    work, engine = Work(), keras.backend.backend()
    if engine not in ENGINES:
        raise ValueError(f"{engine} is not known here. Count on {', '.join(ENGINES)}.")
    given = keras.tree.map_structure(keras.ops.convert_to_tensor, batch)
    outputs = ENGINES[engine](model, given, work)
    if work.refusal:
        raise ValueError(work.refusal)
    width, inputs = {}, [np.asarray(x) for x in keras.tree.flatten(batch)]
    for layer in model._flatten_layers():  # inner layers come after outer ones
        for weight in layer._trainable_variables + layer._non_trainable_variables:
            width[id(weight)] = _width(layer.compute_dtype)
    narrow = min([4, *width.values()])
    data = sum(x.size * min(_width(x.dtype), narrow) for x in inputs)
    data += sum(_size(x) for x in keras.tree.flatten(outputs))
    different = sum(len(np.unique(x)) for x in inputs) if work.picked else 0
    picked = collections.Counter()
    for shape, size in work.picked:
        picked[shape] += min(size, different * math.prod(shape[1:]))
    for weight in work.read.values():
        shape, size, own = tuple(weight.shape), math.prod(weight.shape), weight.dtype
        if shape in picked:
            size = min(size, picked[shape])
            picked[shape] -= size
        data += size * min(_width(own), width.get(id(weight), 8))
    return work.products, data


def _best_seconds(calls, rounds=9, budget=4.0):
    """The best time of each of several calls, which take turns, after a first call."""
    for call in calls:
        call()
    samples, end = [], time.perf_counter() + budget
    while len(samples) < 2 or (len(samples) < rounds and time.perf_counter() < end):
        clock = [time.perf_counter()]
        for call in calls:
            call()
            clock.append(time.perf_counter())
        samples.append([b - a for a, b in itertools.pairwise(clock)])
    return [min(column) for column in zip(*samples)]


def verdict(model, batch, card="T4"):
    """Print whether a card would help a prediction, with the times that say so.

    Args:
        model: a Keras model.
        batch: its inputs as `predict_on_batch` takes them: an array, a list or a dict.
        card: a name in CARDS, or a Card with your own figures.

    Returns:
        Verdict: times in seconds. `floor` is the larger of flop over peak and bytes
        over bandwidth (the roofline, doi.org/10.1145/1498765.1498785); `estimate` holds
        if each product reads its operands and writes its result; `call` (a tiny model),
        `sample` and `here` are measured; `gain` is at most so many times, or None.

    Raises:
        ValueError: no such card, no Keras model, a batch that does not fit.
    """
    if not isinstance(card, Card) and card not in CARDS:
        raise ValueError(f"no card {card!r}. Choose from {', '.join(CARDS)}, or a Card")
    if not isinstance(model, keras.Model):
        raise ValueError(f"a {type(model).__name__} is no Keras model")
    name, its = ("your card", card) if isinstance(card, Card) else (card, CARDS[card])
    tiny = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    one = keras.tree.map_structure(lambda x: x[:1], batch)
    rivals = (tiny, np.ones((4, 4))), (model, one), (model, batch)
    try:
        calls = [lambda m=m, x=x: m.predict_on_batch(x) for m, x in rivals]
        call, sample, here = _best_seconds(calls)
    except Exception as error:
        shapes = ", ".join(str(np.shape(x)) for x in keras.tree.flatten(batch))
        raise ValueError(f"the model does not take {shapes}: {error}") from error
    products, data = count(model, batch)
    flop, moved = sum(x.flop for x in products), data / its.bandwidth
    busy = [x.flop / getattr(its, PEAKS[x.dtype]) for x in products]
    moves = [x.bytes / its.bandwidth for x in products]
    floor, estimate = max(sum(busy), moved), sum(map(max, busy, moves))
    estimate = max(floor, estimate)
    gain, sentence = _sentence(model, name, call, here, floor)
    print(f"here {_ms(here)}; a single sample {_ms(sample)}; a tiny model {_ms(call)}")
    cause = "memory" if moved > sum(busy) else "arithmetic"
    print(
        f"{name}: {flop:,} operations, {data:,} bytes: {_ms(floor)} at least ({cause});"
    )
    print(f"  {_ms(estimate)} if each product reads and writes all that it works on")
    print(sentence)
    return Verdict(flop, data, floor, estimate, call, sample, here, gain, sentence)


def _ms(seconds):
    return f"{1e3 * seconds:.3g} ms"


def _sentence(model, name, call, here, floor):
    """The gain at most, and what it means, in time."""
    weights = [weight.value for weight in model.weights] or [keras.ops.zeros(1)]
    device = str(weights[0].device)
    if "cpu" not in device.lower():
        return None, f"No gain is given: this ran on a GPU already ({device})."
    gain, least = here / (call + floor), _ms(call + floor)
    if here < 2 * call:
        part = f"{_ms(min(call, here))} of {_ms(here)}"
        said = "are the call, which no card shortens. Put more samples into each call."
        return gain, f"Stay on the CPU: {part} {said}"
    if gain < 2:
        return gain, f"Stay on the CPU: with the call {name} takes {least} at least."
    said = f"with the call {name} takes {least} at least"
    return (
        gain,
        f"A GPU is worth a try: {said}, so the gain is at most {gain:.1f} times.",
    )


def main():
    """Give the verdict on the model and the batch that a file defines."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        found = runpy.run_path(sys.argv[1])
        batch = found["batch"]  # a pair has targets, too
        batch = batch[0] if isinstance(batch, tuple) else batch
        verdict(found["model"], batch, *sys.argv[2:3])
    except FileNotFoundError as error:
        sys.exit(f"there is no file {error.filename}")
    except KeyError as error:
        sys.exit(f"{sys.argv[1]} defines no {error}")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
