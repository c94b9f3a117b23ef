"""The same models as a user of JAX alone writes them: functions of their weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.sizes import Conv, Mlp, Size, batch_of


def dense(rng: np.random.Generator, rows: int, columns: int) -> dict:
    """The weights of a dense layer, drawn as Glorot and Bengio (2010) do."""
    limit = np.sqrt(6 / (rows + columns))
    kernel = rng.uniform(-limit, limit, (rows, columns)).astype("float32")
    return {"kernel": kernel, "bias": np.zeros(columns, "float32")}


def norm(width: int) -> dict:
    """The weights of a layer normalisation."""
    return {"scale": np.ones(width, "float32"), "shift": np.zeros(width, "float32")}


def build(size: Size) -> dict:
    """The weights of the model of a size, as NumPy arrays."""
    rng = np.random.default_rng(0)
    if isinstance(size, Mlp):
        widths = [size.inputs, *[size.width] * size.layers, size.classes]
        return {"dense": [dense(rng, *pair) for pair in itertools.pairwise(widths)]}
    if isinstance(size, Conv):
        channels, convolutions = 3, []
        for filters in (f for f in size.filters for _ in range(2)):
            weights = dense(rng, 9 * channels, filters)
            weights["kernel"] = weights["kernel"].reshape(3, 3, channels, filters)
            convolutions.append(weights)
            channels = filters
        return {"conv": convolutions, "head": dense(rng, channels, size.classes)}
    width = size.width
    return {
        "tokens": 0.05 * rng.standard_normal((size.vocabulary, width), "float32"),
        "places": 0.05 * rng.standard_normal((size.length, width), "float32"),
        "blocks": [
            {
                "norm1": norm(width),
                "qkv": dense(rng, width, 3 * width),
                "out": dense(rng, width, width),
                "norm2": norm(width),
                "up": dense(rng, width, 4 * width),
                "down": dense(rng, 4 * width, width),
            }
            for _ in range(size.layers)
        ],
        "norm": norm(width),
        "head": dense(rng, width, size.vocabulary),
    }


def linear(weights, x):
    """A dense layer on the last axis."""
    return x @ weights["kernel"] + weights["bias"]


def normalise(weights, x):
    """Layer normalisation on the last axis, its statistics in float32."""
    wide = x.astype("float32")
    mean = wide.mean(-1, keepdims=True)
    variance = jnp.square(wide - mean).mean(-1, keepdims=True)
    wide = (wide - mean) * jax.lax.rsqrt(variance + 1e-5)
    return wide.astype(x.dtype) * weights["scale"] + weights["shift"]


def attend(weights, x, heads: int):
    """Causal self-attention of (batch, length, width)."""
    batch, length, width = x.shape
    qkv = linear(weights["qkv"], x).reshape(batch, length, 3, heads, -1)
    mixed = jax.nn.dot_product_attention(
        qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True
    )
    return linear(weights["out"], mixed.reshape(batch, length, width))


def forward(weights, x, size: Size):
    """The logits of a batch."""
    if isinstance(size, Mlp):
        *hidden, last = weights["dense"]
        for layer in hidden:
            x = jax.nn.relu(linear(layer, x))
        return linear(last, x)
    if isinstance(size, Conv):
        for number, layer in enumerate(weights["conv"]):
            x = jax.lax.conv_general_dilated(
                x,
                layer["kernel"],
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            x = jax.nn.relu(x + layer["bias"])
            if number % 2:
                window = (1, 2, 2, 1)
                x = jax.lax.reduce_window(
                    x, -jnp.inf, jax.lax.max, window, window, "VALID"
                )
        return linear(weights["head"], x.mean((1, 2)))
    x = weights["tokens"][x] + weights["places"]
    for block in weights["blocks"]:
        x = x + attend(block, normalise(block["norm1"], x), size.heads)
        y = jax.nn.gelu(
            linear(block["up"], normalise(block["norm2"], x)), approximate=False
        )
        x = x + linear(block["down"], y)
    return linear(weights["head"], normalise(weights["norm"], x))


def narrow(tree, precision: str):
    """The floating-point arrays of a tree in the type that a precision computes in."""
    if precision in ("float32", "tf32"):
        return tree
    dtype = precision.removeprefix("mixed_")
    return jax.tree.map(
        lambda a: a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree
    )


def loss_of(weights, inputs, labels, size: Size, precision: str):
    """The mean cross-entropy, in float32."""
    weights, inputs = narrow((weights, inputs), precision)
    logits = jax.nn.log_softmax(forward(weights, inputs, size).astype("float32"))
    return -jnp.take_along_axis(logits, labels[..., None], axis=-1).mean()


def adam(gradients, weights, state, rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-7):
    """One step of Adam (Kingma and Ba 2015, arXiv 1412.6980, the end of section 2)."""
    count, first, second = state
    count = count + 1
    blend = jax.tree.map
    first = blend(lambda m, g: beta1 * m + (1 - beta1) * g, first, gradients)
    second = blend(lambda v, g: beta2 * v + (1 - beta2) * g * g, second, gradients)
    rate = rate * jnp.sqrt(1 - beta2**count) / (1 - beta1**count)
    weights = blend(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + epsilon), weights, first, second
    )
    return weights, (count, first, second)


def training(
    size: Size, batch: int, precision: str, weights=None
) -> Callable[[int], float]:
    """A function that trains for some steps with Adam and returns the last loss.

    For "mixed_float16" the loss is multiplied by a fixed 2¹⁰ and the gradients divided.
    """
    scale = 1024.0 if precision == "mixed_float16" else 1.0

    def scaled_loss(*arguments):
        return scale * loss_of(*arguments, size, precision)

    @jax.jit
    def step(weights, state, inputs, labels):
        loss, gradients = jax.value_and_grad(scaled_loss)(weights, inputs, labels)
        gradients = jax.tree.map(lambda g: g / scale, gradients)
        return *adam(gradients, weights, state), loss / scale

    inputs, labels = batch_of(size, batch)
    weights = jax.device_put(weights or build(size))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (jnp.zeros(()), zeros, zeros)

    def run(steps):
        nonlocal weights, state
        for _ in range(steps):
            batch = jnp.asarray(inputs), jnp.asarray(labels)
            weights, state, loss = step(weights, state, *batch)
        return float(loss)

    return run


def inference(
    size: Size, batch: int, precision: str, weights=None
) -> Callable[[int], object]:
    """A function that runs some forward passes and returns the last logits."""
    step = jax.jit(
        lambda weights, x: forward(*narrow((weights, x), precision), size).astype(
            "float32"
        )
    )
    weights = jax.device_put(weights or build(size))
    inputs, _ = batch_of(size, batch)

    def run(steps):
        for _ in range(steps):
            logits = step(weights, jnp.asarray(inputs))
        return logits.block_until_ready()

    return run
