"""Run the suite's models of one backend: started by test_benchmark_models.py.

    KERAS_BACKEND=jax python tests/benchmark_models.py FOLDER

writes the weights to FOLDER, if they are not there, and the losses of three steps and
the logits of a batch to FOLDER/BACKEND.npz. JAX's process does JAX and PyTorch alone,
too.
"""

import sys
from pathlib import Path

import keras
import numpy as np

from benchmarks import flops, sizes
from benchmarks.engines import keras_models
from benchmarks.engines.frameworks import framework

TINY = {
    "mlp": sizes.Mlp(inputs=20, width=16, layers=2, classes=5),
    "conv": sizes.Conv(side=8, filters=(4, 8), classes=5),
    "transformer": sizes.Transformer(
        length=12, vocabulary=11, width=8, layers=2, heads=2
    ),
}
BATCH, STEPS = 6, 3


def tree_of(name, weights):
    """Keras's list of weights as the tree of jax_models."""
    left = iter(weights)

    def dense():
        return {"kernel": next(left), "bias": next(left)}

    def norm():
        return {"scale": next(left), "shift": next(left)}

    def attention():
        kernels, biases = zip(
            *((next(left), next(left)) for _ in range(4)), strict=True
        )
        width = kernels[0].shape[0]
        flat = [kernel.reshape(width, width) for kernel in kernels]
        vectors = [bias.reshape(width) for bias in biases]
        return {
            "qkv": {"kernel": np.hstack(flat[:3]), "bias": np.hstack(vectors[:3])},
            "out": {"kernel": flat[3], "bias": vectors[3]},
        }

    def block():
        return {
            "norm1": norm(),
            **attention(),
            "norm2": norm(),
            "up": dense(),
            "down": dense(),
        }

    size = TINY[name]
    if name == "mlp":
        tree = {"dense": [dense() for _ in range(size.layers + 1)]}
    elif name == "conv":
        tree = {
            "conv": [dense() for _ in range(2 * len(size.filters))],
            "head": dense(),
        }
    else:
        tree = {
            "tokens": next(left),
            "places": next(left),
            "blocks": [block() for _ in range(size.layers)],
            "norm": norm(),
            "head": dense(),
        }
    assert next(left, None) is None
    return tree


def into_torch(name, model, tree):
    """Put the tree's weights into a module of torch_models."""
    import torch

    def put(parameter, array):
        assert parameter.shape == array.shape
        parameter.data = torch.from_numpy(np.ascontiguousarray(array)).clone()

    def layer(module, weights):
        kernel = weights.get("kernel", weights.get("scale"))
        axes = {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[kernel.ndim]
        put(module.weight, kernel.transpose(axes))
        put(module.bias, weights.get("bias", weights.get("shift")))

    if name == "transformer":
        put(model.tokens.weight, tree["tokens"])
        put(model.places, tree["places"])
        for module, block in zip(model.blocks, tree["blocks"], strict=True):
            for part, weights in block.items():
                layer(getattr(module, part), weights)
        layer(model.norm, tree["norm"])
        layer(model.head, tree["head"])
        return
    modules = [module for module in model if hasattr(module, "weight")]
    layers = tree["dense"] if name == "mlp" else [*tree["conv"], tree["head"]]
    for module, weights in zip(modules, layers, strict=True):
        layer(module, weights)


def keras_results(name, weights):
    """Losses and logits of Keras with given weights, or with its own if none are."""
    device = framework(f"keras-{keras.backend.backend()}")
    size = TINY[name]
    mode = "compiled" if keras.backend.backend() == "jax" else "eager"
    model = keras_models.prepare(size, "float32", mode)
    if weights:
        model.set_weights(weights)
    else:
        weights = model.get_weights()
        # No weight may hide behind a zero or a one.
        rng = np.random.default_rng(1)
        weights = [w + 0.1 * rng.standard_normal(w.shape) for w in weights]
        weights = [w.astype("float32") for w in weights]
        model.set_weights(weights)
    run = keras_models.inference(model, size, BATCH, device, mode)
    logits = keras.ops.convert_to_numpy(run(2))
    train = keras_models.training(model, size, BATCH)
    return weights, [train(1) for _ in range(STEPS)], logits


def torch_results(name, tree):
    """The same of PyTorch alone."""
    from benchmarks.engines import torch_models

    device, size = framework("torch"), TINY[name]
    model = torch_models.prepare(size, device)
    into_torch(name, model, tree)
    common = model, size, BATCH, device, "float32", "eager"
    logits = torch_models.inference(*common)(2).numpy()
    train = torch_models.training(*common)
    return [train(1) for _ in range(STEPS)], logits


def jax_results(name, tree):
    """The same of JAX alone."""
    from benchmarks.engines import jax_models

    size = TINY[name]
    logits = jax_models.inference(size, BATCH, "float32", tree)(2)
    train = jax_models.training(size, BATCH, "float32", tree)
    return [train(1) for _ in range(STEPS)], np.asarray(logits)


def counted_by_xla(name):
    """XLA's count of the operations of a small model's forward pass and gradients."""
    import jax

    from benchmarks.engines import jax_models

    size, batch = sizes.SIZES[name]["small"], 4
    weights = jax_models.build(size)
    inputs, labels = sizes.batch_of(size, batch)

    def loss(weights):
        return jax_models.loss_of(weights, inputs, labels, size, "float32")

    def count(function, *arguments):
        return jax.jit(function).lower(*arguments).cost_analysis()["flops"]

    forward = count(lambda w, x: jax_models.forward(w, x, size), weights, inputs)
    step = count(jax.grad(loss), weights)
    return [
        forward / flops.forward(size, batch),
        step / flops.training_step(size, batch),
    ]


def main(folder):
    """Write the results of this process's backend."""
    backend, out = keras.backend.backend(), {}
    stored = folder / "weights.npz"
    weights = dict(np.load(stored)) if stored.exists() else {}
    for name in TINY:
        mine = [weights[k] for k in sorted(weights) if k.startswith(f"{name}-")]
        mine, losses, logits = keras_results(name, mine)
        weights |= {f"{name}-{i:03}": w for i, w in enumerate(mine)}
        out[f"{name} keras-{backend} losses"] = losses
        out[f"{name} keras-{backend} logits"] = logits
        if backend == "jax":
            tree = tree_of(name, mine)
            for engine, results in (("torch", torch_results), ("jax", jax_results)):
                losses, logits = results(name, tree)
                out[f"{name} {engine} losses"] = losses
                out[f"{name} {engine} logits"] = logits
            out[f"{name} xla"] = counted_by_xla(name)
    np.savez(stored, **weights)
    np.savez(folder / f"{backend}.npz", **out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
