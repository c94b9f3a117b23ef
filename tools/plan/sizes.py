"""The three models of the page: their sizes, their data, and their operations.

Only matrix products and convolutions are counted, a multiplication and an addition as
two operations, as in Kaplan et al. 2020 (arXiv 2001.08361) and Chowdhery et al. 2022
(PaLM, arXiv 2204.02311, appendix B). Nothing is taken off for the causal mask or for
products with the zeros of a padding.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np


@dataclasses.dataclass(frozen=True)
class Mlp:
    """A multilayer perceptron: hidden layers with ReLU, then one logit per class."""

    inputs: int
    width: int
    layers: int
    classes: int

    @property
    def inputs_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return (self.inputs,)

    def products(self) -> Iterator[int]:
        """Operations of each layer's product in the forward pass of a sample."""
        widths = [self.inputs, *[self.width] * self.layers, self.classes]
        for rows, columns in itertools.pairwise(widths):
            yield 2 * rows * columns


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolutional net: stages of two 3 × 3 convolutions and a pooling, then a head.

    Images have `side` pixels each way and 3 channels; a stage halves the side.
    """

    side: int
    filters: tuple[int, ...]
    classes: int

    @property
    def inputs_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return (self.side, self.side, 3)

    def products(self) -> Iterator[int]:
        """Operations of each layer's product in the forward pass of a sample."""
        side, channels = self.side, 3
        for filters in self.filters:
            for inputs in (channels, filters):
                yield 2 * side * side * 9 * inputs * filters
            channels = filters
            side //= 2
        yield 2 * channels * self.classes


@dataclasses.dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer: pre-norm blocks, causal attention, a dense pair."""

    length: int
    vocabulary: int
    width: int
    layers: int
    heads: int

    @property
    def inputs_shape(self) -> tuple[int, ...]:
        """The shape of one sample: token numbers."""
        return (self.length,)

    def products(self) -> Iterator[int]:
        """Operations of the products of a sample: a lookup of tokens is none."""
        projections = 4 * self.width * self.width  # queries, keys, values, out
        attention = 2 * self.width * self.length  # scores, mixing
        dense = 2 * self.width * 4 * self.width
        block = projections + attention + dense
        yield 2 * self.length * self.layers * block
        yield 2 * self.length * self.width * self.vocabulary


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
# The samples in a batch.
BATCHES = {
    "mlp": {"small": 128, "large": 4096},
    "conv": {"small": 32, "large": 64},
    "transformer": {"small": 16, "large": 16},
}


def training_step(size: Size, batch: int) -> int:
    """Operations of one training step: the forward pass and the gradients.

    A gradient costs as many operations again, for each of a product's two factors. The
    data needs none, so a first layer that computes on data has one for its weights
    only. The optimizer's work grows with the weights and not with the batch; it is left
    out.
    """
    products = list(size.products())
    data = 0 if isinstance(size, Transformer) else products[0]
    return batch * (3 * sum(products) - data)


def batch_of(size: Size, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Make one batch of data.

    Returns:
        Inputs of shape (batch, *size.inputs_shape): float32, or int32 token numbers;
        and labels: int32 of shape (batch,), or (batch, length) for a transformer.
    """
    rng = np.random.default_rng(0)
    shape = (batch, *size.inputs_shape)
    if isinstance(size, Transformer):
        tokens = rng.integers(0, size.vocabulary, shape, dtype="int32")
        return tokens, np.roll(tokens, -1, axis=1)
    inputs = rng.standard_normal(shape, dtype="float32")
    return inputs, rng.integers(0, size.classes, batch, dtype="int32")
