"""Is a step on all devices the step of one device? Asked of your own model.

Use: `KERAS_BACKEND=jax python same_step.py model.py`, or `tensorflow`, or `torch`. The
file defines `model`, compiled, and `batch`: (inputs, targets), as arrays. Without a
file a small model is tried; from Python: `same_step(new_model, x, y)`.
It does not know your optimizer (it puts in SGD), so no clipping and no overflow; nor a
short last batch, a training loop of your own, or `ModelParallel`.
"""

import contextlib
import functools
import os
import runpy
import socket
import subprocess
import sys
import types

import keras
import numpy as np
from keras import tree

ENGINE = keras.backend.backend()
RATES = "rate", "dropout", "recurrent_dropout", "stddev"


@functools.cache  # TensorFlow takes one strategy in a process
def _devices():
    """The names of all devices, and a function that makes their common scope."""
    if ENGINE == "jax":
        import jax

        if "device_count" not in os.environ.get("XLA_FLAGS", ""):
            with contextlib.suppress(RuntimeError):  # too late: a device was used
                jax.config.update("jax_num_cpu_devices", 2)
        parallel = keras.distribution.DataParallel
        return keras.distribution.list_devices(), lambda: parallel().scope()
    if ENGINE == "tensorflow":
        import tensorflow as tf

        kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
        if kind == "CPU":
            cpu = tf.config.list_physical_devices("CPU")[0]
            halves = [tf.config.LogicalDeviceConfiguration()] * 2
            with contextlib.suppress(RuntimeError, ValueError):  # too late
                tf.config.set_logical_device_configuration(cpu, halves)
        names = [device.name[8:] for device in tf.config.list_logical_devices(kind)]
        return names, tf.distribute.MirroredStrategy(names).scope
    if ENGINE != "torch" or "RANK" not in os.environ:
        raise ValueError(f"Keras runs on {ENGINE}. Start the file same_step.py itself.")
    import torch

    group, cards = torch.distributed, torch.cuda.is_available()
    if cards:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if not group.is_initialized():
        group.init_process_group("nccl" if cards else "gloo")
    names = [f"cuda:{n}" if cards else "cpu" for n in range(group.get_world_size())]
    return names, contextlib.nullcontext


def _steady(model, frozen):
    """Switch off what is random, and batch normalisation if frozen; their names."""
    random, norms = [], []
    for layer in model._flatten_layers():
        norm = isinstance(layer, keras.layers.BatchNormalization)
        if norm and layer.trainable and not layer.synchronized and ENGINE != "jax":
            norms.append(layer.name)
            layer.trainable = not frozen
        masks = isinstance(layer, keras.layers.RNN) and getattr(layer, "dropout", 0)
        if (layer._seed_generators or masks) and layer._call_has_training_arg:
            if {getattr(layer, name, None) for name in RATES} - {None} != {0}:
                random.append(layer.name)
            layer.call = _untrained(layer.call)
    return random, norms


def _untrained(call):
    return lambda *inputs, training=None, **more: call(*inputs, training=False, **more)


def _noted(call, rows):
    """A model's call that lets JAX note how many rows of its input a device gets."""
    import jax

    def noted(*inputs, **more):
        x = tree.flatten(inputs)[0]
        add = lambda cut: rows.append(cut.shard_shape(x.shape)[0])  # noqa: E731
        if isinstance(x, jax.core.Tracer):
            jax.debug.inspect_array_sharding(x, callback=add)
        elif hasattr(x, "sharding"):
            add(x.sharding)
        return call(*inputs, **more)

    return noted


def _torch_step(model, x, y, shared):
    """A step on PyTorch: DDP gives all ranks the mean of their gradients."""
    import torch

    group, data = torch.distributed, [x, y]
    group.broadcast_object_list(data)  # a batch may be random
    mine = slice(group.get_rank(), None, group.get_world_size())
    mine = mine if shared else slice(None)
    x, y = tree.map_structure(lambda a: keras.ops.convert_to_tensor(a[mine]), data)
    called = torch.nn.parallel.DistributedDataParallel(model) if shared else model
    loss = model.compute_loss(x, y, called(x, training=True), training=True)
    model.optimizer.scale_loss(loss).backward()
    weights = model.trainable_variables
    model.optimizer.apply([weight.value.grad for weight in weights], weights)


def _step(new_model, x, y, scope=None, start=None, frozen=False):
    """Take one step of SGD, in a scope if one is given; what it did."""
    rows = []
    with scope() if scope else contextlib.nullcontext():
        model = new_model()
        if not isinstance(model, keras.Model) or not model.compiled:
            raise ValueError("There is no compiled model. Fix: call `model.compile`.")
        if hasattr(model, "same_step_taken"):
            again = "make a new model in each call, and so must a file (not import it)"
            raise ValueError(f"`new_model` must {again}.")
        model.same_step_taken = True
        if not model.built:
            model(tree.map_structure(lambda a: a[:8], x))
        model.set_weights(start or model.get_weights())
        random, norms = _steady(model, frozen)
        sgd, weights = keras.optimizers.SGD(1.0), model._compile_loss._user_loss_weights
        if isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
            sgd = keras.optimizers.LossScaleOptimizer(sgd, initial_scale=2**8)
        model.compile(sgd, model.loss, weights)
        before = model.get_weights()
        if ENGINE == "jax":
            model.call = _noted(model.call, rows)
        if ENGINE == "torch":
            _torch_step(model, x, y, shared=bool(scope))
        else:
            model.fit(x, y, batch_size=len(tree.flatten(x)[0]), verbose=0)
    value = model.weights[0].value
    kind = {"tensorflow": "values", "jax": "addressable_shards"}.get(ENGINE, "")
    held = getattr(value, kind, [value])
    return types.SimpleNamespace(
        start=before,
        change=[after - old for after, old in zip(model.get_weights(), before)],
        paths=[weight.path for weight in model.weights],
        copies=len(held),
        rows=rows[-1] if rows else None,
        random=random,
        norms=norms,
        in_16_bits=any("16" in x.compute_dtype for x in model._flatten_layers()),
    )


def _apart(one, other):
    """The largest distance of a weight's two changes, relative, and its path."""
    sizes = [np.linalg.norm(change) for change in one.change]
    # Smaller changes are mostly rounding, as that of a bias before a normalisation.
    least = np.linalg.norm(sizes) / (5 if one.in_16_bits else 100)
    if not 0 < least < np.inf:
        raise ValueError("The step on one device changes no weight, or is not finite.")
    changes = zip(one.change, other.change, sizes, one.paths)
    each = [(np.linalg.norm(a - b) / max(n, least), path) for a, b, n, path in changes]
    return max(each, key=lambda pair: (not pair[0] < np.inf, pair[0]))


def same_step(new_model, x, y):
    """Take a step on one device and on all, from the same weights, and compare.

    Args:
        new_model: a function without arguments that makes and compiles a model, anew
            in each call. Its loss is taken; its optimizer becomes SGD at a rate of 1.
        x: one batch of inputs: an array, or a list or dictionary of arrays.
        y: its targets.

    Returns:
        Whether it is the same step; and the sentence that says so.

    Raises:
        ValueError: the comparison would say nothing; the message says why.
    """
    names, scope = _devices()
    count, samples = len(names), len(tree.flatten(x)[0])
    if samples % count:
        raise ValueError(f"{count} devices cannot share {samples} samples equally.")
    one = _step(new_model, x, y)
    limit = 0.2 if one.in_16_bits else 0.01  # rounding; TF32
    if one.copies > 1:
        raise ValueError("The model is distributed already. Leave that to same_step.")
    if _apart(one, _step(new_model, x, y, None, one.start))[0] > limit:
        raise ValueError("Two steps on one device differ: `call` of a layer is random.")
    many = _step(new_model, x, y, scope, one.start)
    copies = count if ENGINE == "torch" else many.copies
    far, path = _apart(one, many)
    same = bool(far < limit)
    verdict = "the same step" if same else f"{far:.2g} away at {path}"
    if ENGINE == "jax" and not many.rows:
        raise ValueError("JAX did not say which device got which rows of the batch.")
    if count == 1 or copies != count or (many.rows or 0) * count not in (0, samples):
        same, verdict = False, "nothing was shared"
    elif not same and one.norms:
        calm = [_step(new_model, x, y, each, one.start, True) for each in (None, scope)]
        if _apart(*calm)[0] < limit:
            verdict += f"; without batch normalisation ({', '.join(one.norms)}), which "
            verdict += "sees each device's own samples, the same step"
    if one.random:
        verdict += f" (switched off, as random: {', '.join(one.random)})"
    seen = "" if "cpu" not in names[0].lower() else "No GPU was seen, so this says "
    seen += "nothing of your GPUs:\n" if seen else ""
    return same, f"{seen}{names}: {copies} copies of a weight, {verdict}"


def _small():
    layers = [keras.layers.Dense(16, "relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(960, 8)).astype("float32")
    return {"model": model, "batch": (x, np.tanh(x.sum(axis=1, keepdims=True)))}


def _ranks():
    """Start this program as one process for each card, or as two; the worst status."""
    import torch

    count = torch.cuda.device_count() or 2
    with socket.create_server(("127.0.0.1", 0)) as free:
        shared = {"MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(count)}
    jobs = []
    for rank in map(str, range(count)):
        own = {"MASTER_ADDR": "127.0.0.1", "RANK": rank, "LOCAL_RANK": rank}
        own |= (
            {"KERAS_TORCH_DEVICE": f"cuda:{rank}"} if torch.cuda.is_available() else {}
        )
        silent = {} if rank == "0" else {"stderr": subprocess.DEVNULL}
        command = [sys.executable, __file__, *sys.argv[1:]]
        jobs.append(subprocess.Popen(command, env=os.environ | shared | own, **silent))
    return max(job.wait() for job in jobs)


def main():
    """Examine the model of a file; exit with 0 if it takes the same step."""
    if ENGINE == "torch" and "RANK" not in os.environ:
        sys.exit(_ranks())
    try:
        _devices()  # before the file uses one
        read = (lambda: runpy.run_path(sys.argv[1])) if sys.argv[1:] else _small
        made = [read()]  # the first model takes the step on one device
        new_model = lambda: (made.pop() if made else read())["model"]  # noqa: E731
        same, text = same_step(new_model, *made[0]["batch"])
    except (KeyError, OSError, ValueError) as error:
        sys.exit(f"same_step.py: {error}")
    if os.environ.get("RANK", "0") != "0":
        sys.exit()  # the first process has the weights that all others take
    print(text)
    sys.exit(not same)


if __name__ == "__main__":
    main()
