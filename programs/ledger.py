"""Count the bytes of one training step of a Keras model, by kind and at its peak.

Use: `python ledger.py yourmodel.py --batch 32`; the file defines `model`, built and
compiled, and `batch`, (inputs, targets) as arrays. Or `from ledger import ledger,
report` and `report(ledger(model, x, y, batch=32))`; import it before TensorFlow.
It does not know your GPU: it runs small steps where the weights are (tried on a CPU
alone, where 16-bit kernels may compute in 32, and where JAX has no flash attention
and undoes rematerialisation).
A kernel's room to work in (cuDNN's), CUDA's own memory and an allocator's fragments
come on top. `plan.py` asks a GPU's compiler.
"""

import argparse
import contextlib
import gc
import math
import os
import runpy
import sys
import tempfile
from itertools import accumulate
from pathlib import Path
from unittest import mock

# TensorFlow then counts a CPU's memory, with the allocator that it has for a GPU.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")

import keras
import numpy as np

ENGINE = keras.backend.backend()
EAGER, GRAPH, XLA = "operation by operation", "as a graph", "with XLA"
ENGINES = "tensorflow", "torch", "jax"
# What two runs differ by, as a share: the order of a graph's operations is not fixed.
MARGIN = {EAGER: 0.1, GRAPH: 0.4, XLA: 0.1}
MOST_COMPILED = 256  # rows of a compiled step that is run here
SIGNS = {"MemoryAllocation": 1, "MemoryDeallocation": -1}
NOISE = 2**15  # bytes: what is rounded up, and kernels' own room


def ledger(model, x, y, batch, most=64):
    """The bytes of a training step for a batch of so many rows.

    Args:
        model: built and compiled. Its values are the same afterwards.
        x, y: arrays, or lists or dictionaries of arrays, rows first. If they have
            fewer rows than are run, these are repeated.
        batch: the rows of the step that is asked for.
        most: the rows of the largest step that is run here. (JAX runs none; the step
            that TensorFlow compiles runs with all rows, at most 256.)

    Returns:
        A dictionary: `kinds`, bytes by kind (activations: what is alive between
        forward and backward pass); `peaks`, for each way to run the step, low and
        high in bytes, or a text that says why it does not run; `lower` and `upper`
        of all ways. A peak is the largest of several sums of constant bytes and
        bytes in proportion to the rows. So it is not below the line through two
        smaller batches, and it grows at most as the batch does: low and high.

    Raises:
        ValueError: there is no step, or its memory is no such sum.
    """
    x, y = _checked(model, x, y, batch)
    with _ready(model, x, y) as step:
        kinds = {
            "weights, trainable": _size(model.trainable_variables),
            "weights, frozen": _size(model.non_trainable_variables),
            "gradients": _size(model.trainable_variables),
            "optimizer": _size(model.optimizer.variables),
            "metrics": _size(model.metrics_variables),
            "batch": batch * _size(keras.tree.flatten(_rows((x, y), 1))),
        }
        fixed, peaks = sum(kinds.values()) - kinds["gradients"], {}
        if ENGINE == "jax":
            kinds["activations"], peak = _asked(model, step, x, y, batch)
            peaks[XLA] = fixed + peak, fixed + peak
        else:
            sizes = x, y, batch, most, fixed
            forward = _forward(model)
            kinds["activations"], _ = _bounds(model, forward, EAGER, *sizes, kept=True)
            for way, run in _ways(step, x, y).items():
                try:
                    if way == XLA:  # it takes other algorithms for other sizes
                        bounds = _exactly(model, run, x, y, batch)
                    else:
                        bounds = _bounds(model, run, way, *sizes)
                    peaks[way] = tuple(fixed + each for each in bounds)
                except Exception as error:
                    if way != XLA:  # not every operation has a kernel of XLA
                        raise ValueError(f"{way}: {_first(error)}") from error
                    peaks[way] = f"none: {_first(error)}"
    lows, highs = zip(*(found for found in peaks.values() if found[0] != "n"))
    bounds = {"lower": min(lows), "upper": max(highs)}
    return {"rows": batch, "kinds": kinds, "peaks": peaks} | bounds


def fields(model, x, y):
    """What the calculator "What will it take?" asks for, by the names of its fields."""
    few, more = (ledger(model, x, y, rows, 8)["kinds"] for rows in (4, 8))
    half = any("16" in layer.compute_dtype for layer in model._flatten_layers())
    kept = (more["activations"] - few["activations"]) // 4
    return {
        "Trainable weights": sum(math.prod(w.shape) for w in model.trainable_weights),
        "Frozen weights": sum(math.prod(w.shape) for w in model.non_trainable_weights),
        "Numbers kept for a sample": kept // (2 if half else 4),
    }


def report(result):
    """Print a ledger, in MiB."""
    print(f"a step of {result['rows']} rows, in MiB")
    for name, size in result["kinds"].items():
        print(f"  {name:24}{size / 2**20:10.2f}")
    print("in use at the peak of the step")
    for way, found in result["peaks"].items():
        numbers = [f"{each / 2**20:.2f}" for each in found if found[0] != "n"]
        print(f"  {way:24}{' to '.join(dict.fromkeys(numbers)) or found:>10}")


def _size(values):
    return sum(keras.ops.convert_to_numpy(value).nbytes for value in values)


def _first(error):
    if type(error) is ValueError and isinstance(error.__cause__, Exception):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:150] if lines else ''}"


def _checked(model, x, y, batch):
    """The data as arrays, in the types that `fit` makes of them."""
    if ENGINE not in ENGINES:
        raise ValueError(f"{ENGINE} does not train; choose from {', '.join(ENGINES)}")
    if not all(layer.built for layer in model._flatten_layers()):
        raise ValueError("the model has no weights yet: call it once, model(x[:1])")
    if getattr(model, "optimizer", None) is None:
        raise ValueError("the model has no optimizer: call model.compile(...) first")
    others = [x.name for x in model._flatten_layers() if not x.supports_jit]
    if ENGINE == "jax" and (model.run_eagerly or not model.jit_compile):
        reason = ", ".join(others) or "as it was told to in compile"
        raise ValueError(f"JAX counts compiled steps, and Keras has none: {reason}")
    if not model.trainable_variables:
        raise ValueError("all weights are frozen: there is nothing to train")
    if batch != int(batch) or batch < 1:
        raise ValueError(f"a batch has one row or more, not {batch}")
    x, y = keras.tree.map_structure(_array, (x, y))
    lengths = {len(array) for array in keras.tree.flatten((x, y))}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"x and y need the same number of rows, not {lengths}")
    return x, y


def _array(values):
    array = np.asarray(values) if hasattr(values, "shape") else None
    if array is None or array.dtype.kind not in "fiub" or not array.ndim:
        kind = type(values).__name__ if array is None else f"array of {array.dtype}"
        raise ValueError(f"x and y are made of arrays of numbers; this is one {kind}")
    return array.astype(keras.config.floatx()) if array.dtype.kind == "f" else array


def _rows(data, rows):
    """So many rows as tensors, repeated where the data has fewer."""
    return keras.tree.map_structure(
        lambda a: keras.ops.convert_to_tensor(a[np.arange(rows) % len(a)]), data
    )


@contextlib.contextmanager
def _ready(model, x, y):
    """The model's step with a copy of its optimizer; all values are put back."""
    try:
        config = model.optimizer.get_config()
        if "initial_scale" in config:
            config["initial_scale"] = 1.0  # a step that overflows would be left out
        optimizer = type(model.optimizer).from_config(config)
        optimizer.build(model.trainable_variables)
    except Exception as error:
        raise ValueError(f"no copy of the optimizer: {_first(error)}") from error
    inner, train_step = (
        getattr(optimizer, "inner_optimizer", optimizer),
        model.train_step,
    )

    def step(*data):
        if ENGINE != "jax":  # the last of accumulated pieces; JAX plans for each
            inner._iterations.assign((inner.gradient_accumulation_steps or 1) - 1)
        return train_step(*data)

    with (
        mock.patch.object(model, "optimizer", optimizer),
        contextlib.ExitStack() as end,
    ):
        for v in model.variables:
            end.callback(v.assign, np.array(keras.ops.convert_to_numpy(v)))
        if ENGINE == "torch":
            import torch

            end.enter_context(torch.random.fork_rng())
            for v in model.trainable_variables:
                end.callback(setattr, v.value, "grad", v.value.grad)
        try:
            model._symbolic_build(data_batch=_rows((x, y), 2))
        except Exception as error:
            raise ValueError(f"the data does not fit: {_first(error)}") from error
        for v in model.metrics_variables:
            end.callback(v.assign, np.array(keras.ops.convert_to_numpy(v)))
        yield step


def _forward(model):
    """Forward pass and loss of a batch, with what the backward pass needs alive."""
    tape = contextlib.nullcontext
    if ENGINE == "tensorflow":
        from tensorflow import GradientTape as tape

    def run(data):
        x, y = data
        with tape() as kept:
            outputs = model(x, training=True)
            loss = model.compute_loss(x=x, y=y, y_pred=outputs, training=True)
        return kept, outputs, loss

    return run


def _ways(step, x, y):
    """The step as a function of a batch, for each way to run it."""
    if ENGINE == "torch":
        return {EAGER: step}
    import tensorflow as tf

    any_rows = keras.tree.map_structure(
        lambda a: tf.TensorSpec((None, *a.shape[1:]), a.dtype), _rows((x, y), 1)
    )
    options = {"autograph": False, "input_signature": [any_rows]}
    compiled = tf.function(step, jit_compile=True, **options)
    return {EAGER: step, GRAPH: tf.function(step, **options), XLA: compiled}


def _asked(model, step, x, y, batch):
    """What JAX keeps for the backward pass, and what its compiled step adds."""
    import jax

    def shape(value, *rows):
        return jax.ShapeDtypeStruct((*rows, *value.shape[len(rows) :]), value.dtype)

    def kept(state, data):
        def loss(trainable):
            given = trainable, state[1], state[3], *data, None
            options = {"training": True, "optimizer_variables": state[2]}
            return model.compute_loss_and_updates(*given, **options)

        _, backward, _ = jax.vjp(loss, state[0], has_aux=True)
        given = {id(leaf) for leaf in jax.tree.leaves((state, data))}
        leaves = {id(leaf): leaf for leaf in jax.tree.leaves(backward)}
        return [leaf for key, leaf in leaves.items() if key not in given]

    parts = model.trainable_variables, model.non_trainable_variables
    parts += model.optimizer.variables, model.metrics_variables
    state = tuple([shape(v.value) for v in part] for part in parts)
    data = keras.tree.map_structure(lambda a: shape(a, batch), _rows((x, y), 1))
    try:
        activations = jax.eval_shape(kept, state, data)
        program = jax.jit(step, donate_argnums=0).lower(state, data).compile()
    except Exception as error:
        raise ValueError(f"{XLA}: {_first(error)}") from error
    if not jax.tree.leaves(activations):
        raise ValueError("nothing is kept: is the model compiled with a loss?")
    plan = program.memory_analysis()
    new = plan.output_size_in_bytes - plan.alias_size_in_bytes
    kept = sum(leaf.size * leaf.dtype.itemsize for leaf in activations)
    return kept, plan.temp_size_in_bytes + new


def _exactly(model, run, x, y, batch):
    """The same for a step that is compiled: it is run with all rows."""
    if batch > MOST_COMPILED:
        raise ValueError(f"run here up to {MOST_COMPILED} rows; Keras on JAX asks XLA")
    last = _measured(model, run, _rows((x, y), batch))[1]
    room = MARGIN[XLA] * last + NOISE
    return max(0, last - room), last + room


def _bounds(model, run, way, x, y, batch, most, fixed, kept=False):
    """Low and high of the bytes that a step adds, from 2, 4, 8, ... rows or its own."""
    found, rows, share = {}, 2 if batch > 8 else batch, MARGIN[way]
    while True:
        found[rows] = last = _measured(model, run, _rows((x, y), rows))[not kept]
        room = share * last + NOISE
        if rows == batch:
            return (
                (last, last)
                if kept
                else (round(max(0, last - room)), round(last + room))
            )
        if rows >= 8:
            early, middle = found[rows // 4], found[rows // 2]
            line = last + (last - early) / (0.75 * rows) * (batch - rows)
            high, regular = last * batch / rows, 3 * middle - 2 * early - room < last
            regular = regular and last < 2 * middle + room
            near = fixed + high <= 1.1 * (fixed + line)
            if regular and (near or 2 * rows > most):
                high = (high + NOISE * batch / rows) * (1 + share)
                low = line if kept else max(0, line * (1 - share) - NOISE)
                return round(low), round(high)
            if 2 * rows > most:
                raise ValueError(f"bytes are no sum that grows with the rows: {found}")
        rows = min(2 * rows, batch)


def _measured(model, run, data):
    """The bytes that a call leaves alive with its result, and adds at its peak."""
    run(data)  # traces, compiles, leaves gradients
    gc.collect()
    if ENGINE == "torch":
        from torch.profiler import profile

        grads = [v.value.grad for v in model.trainable_variables]
        there = sum(grad.nbytes for grad in grads if grad is not None)
        del grads
        with profile(profile_memory=True) as profiled:
            result = run(data)  # alive until the profile ends
        del result
        events = profiled.profiler.kineto_results.events()
        events = [event for event in events if event.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        sizes = [event.nbytes() for event in events]
    else:
        there, device = 0, model.trainable_variables[0].value.device
        sizes = _traced(run, data, device.split("/device:")[-1])
    sums = [*accumulate(sizes, initial=0)]
    return sums[-1], max(sums) + there


def _traced(run, data, device):
    """The bytes that TensorFlow takes and gives back in a call, one after the other.

    As asked for: its counter knows larger blocks. What a kernel takes to work in hangs
    on the number of a CPU's threads, and is left out.
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=0)
        with tf.profiler.experimental.Profile(folder, options):
            result = run(data)  # alive until the trace ends
        file = next(Path(folder).rglob("*.xplane.pb"))
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    events = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                if sign := SIGNS.get(plane.event_metadata[event.metadata_id].name):
                    time = line.timestamp_ns * 1000 + event.offset_ps
                    events.append((time, sign, plane.stat_metadata, event.stats))
    allocator = "bfc_cpu" if device == "CPU:0" else device.replace(":", "_") + "_"
    sizes, rooms = [], set()
    for _, sign, names, stats in sorted(events, key=lambda event: event[0]):
        found = {names[stat.metadata_id].name: stat for stat in stats}
        if not names[found["allocator_name"].ref_value].name.startswith(allocator):
            continue
        address, region = found["addr"].int64_value, found.get("region_type")
        if sign > 0 and region and names[region.ref_value].name == "temp":
            rooms.add(address)
        elif address in rooms:
            rooms.remove(address)
        else:
            size = -(-found["requested_bytes"].int64_value // 256) * 256
            sizes.append(sign * size)
    if not sizes:
        raise ValueError("TensorFlow counts no memory: import ledger before TensorFlow")
    del result
    return sizes


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="defines `model`, compiled, and `batch`: (x, y)")
    parser.add_argument("--batch", type=int, help="rows; as in the file if left out")
    arguments = parser.parse_args()
    try:
        names = runpy.run_path(arguments.file)
        if missing := {"model", "batch"} - set(names):
            raise ValueError(f"{arguments.file} defines no {' and no '.join(missing)}")
        x, y = names["batch"]
        rows = arguments.batch or len(keras.tree.flatten(x)[0])
        report(ledger(names["model"], x, y, rows))
    except (ValueError, OSError) as error:
        sys.exit(f"ledger.py: {_first(error)}")


if __name__ == "__main__":
    main()
