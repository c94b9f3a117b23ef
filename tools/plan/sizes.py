"""The three models of the page: their sizes and their data."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Mlp:
    """A multilayer perceptron: hidden layers with ReLU, then one logit per class."""

    inputs: int
    width: int
    layers: int
    classes: int


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolutional net: stages of two 3 × 3 convolutions and a pooling, then a head.

    Images have `side` pixels each way and 3 channels; a stage halves the side.
    """

    side: int
    filters: tuple[int, ...]
    classes: int


@dataclasses.dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer: pre-norm blocks, causal attention, a dense pair."""

    length: int
    vocabulary: int
    width: int
    layers: int
    heads: int


Size = Mlp | Conv | Transformer

SIZES: dict[str, dict[str, Size]] = {
    "mlp": {
        "small": Mlp(inputs=784, width=1024, layers=3, classes=10),
        "large": Mlp(inputs=4096, width=8192, layers=6, classes=1000),
    },
    "conv": {
        "small": Conv(side=32, filters=(32, 64, 128), classes=10),
        "large": Conv(side=224, filters=(64, 128, 256, 512), classes=1000),
    },
    "transformer": {
        "small": Transformer(length=128, vocabulary=512, width=128, layers=2, heads=4),
        "large": Transformer(
            length=1024, vocabulary=32768, width=1024, layers=12, heads=16
        ),
    },
}
USUAL = "as compile() chooses"  # the way of a step about which nothing was said
# The samples in a batch.
BATCHES = {
    "mlp": {"small": 128, "large": 4096},
    "conv": {"small": 32, "large": 64},
    "transformer": {"small": 16, "large": 16},
}


def inputs_shape(size: Size) -> tuple[int, ...]:
    """The shape of one sample: numbers, pixels, or the tokens of a text."""
    if isinstance(size, Mlp):
        return (size.inputs,)
    if isinstance(size, Conv):
        return (size.side, size.side, 3)
    return (size.length,)


def batch_of(size: Size, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Make one batch of data.

    Returns:
        Inputs of shape (batch, *inputs_shape(size)): float32, or int32 token numbers;
        and labels: int32 of shape (batch,), or (batch, length) for a transformer.
    """
    rng = np.random.default_rng(0)
    shape = (batch, *inputs_shape(size))
    if isinstance(size, Transformer):
        tokens = rng.integers(0, size.vocabulary, shape, dtype="int32")
        return tokens, np.roll(tokens, -1, axis=1)
    inputs = rng.standard_normal(shape, dtype="float32")
    return inputs, rng.integers(0, size.classes, batch, dtype="int32")
