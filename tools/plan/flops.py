"""Count the floating-point operations of a model's step, from its sizes alone.

Only matrix products and convolutions are counted, a multiplication and an addition as
two operations, as in Kaplan et al. 2020 (arXiv 2001.08361) and Chowdhery et al. 2022
(PaLM, arXiv 2204.02311, appendix B). Nothing is taken off for the causal mask or for
products with the zeros of a padding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from tools.plan.sizes import Conv, Mlp, Size, Transformer


class Product(NamedTuple):
    """A product of matrices in a step.

    Attributes:
        flop: its operations in the forward pass.
        gradients: for how many of its two factors the backward pass needs a gradient;
            each costs as many operations again.
    """

    flop: int
    gradients: int = 2


def matmul(m: int, k: int, n: int) -> int:
    """Operations of an (m, k) matrix times a (k, n) matrix: 2 m k n."""
    return 2 * m * k * n


def products(size: Size, batch: int) -> Iterator[Product]:
    """The products in the forward pass of a model, for a batch of samples."""
    if isinstance(size, Mlp):
        widths = [size.inputs, *[size.width] * size.layers, size.classes]
        for layer, (rows, columns) in enumerate(itertools.pairwise(widths)):
            # The data needs no gradient: the first layer has one for its weights only.
            yield Product(matmul(batch, rows, columns), 1 if layer == 0 else 2)
    elif isinstance(size, Conv):
        side, channels = size.side, 3
        for filters in size.filters:
            for _ in range(2):
                pixels = batch * side * side
                first = channels == 3
                yield Product(matmul(pixels, 9 * channels, filters), 1 if first else 2)
                channels = filters
            side //= 2
        yield Product(matmul(batch, channels, size.classes))
    elif isinstance(size, Transformer):
        tokens, width = batch * size.length, size.width
        for _ in range(size.layers):
            yield Product(
                4 * matmul(tokens, width, width)
            )  # queries, keys, values, out
            yield Product(2 * matmul(tokens, width, size.length))  # scores, mixing
            yield Product(2 * matmul(tokens, width, 4 * width))  # the two dense layers
        yield Product(matmul(tokens, width, size.vocabulary))
    else:
        raise TypeError(f"no count for {size!r}")


def forward(size: Size, batch: int) -> int:
    """Operations of one forward pass of a batch."""
    return sum(product.flop for product in products(size, batch))


def training_step(size: Size, batch: int) -> int:
    """Operations of one training step: the forward pass and the gradients.

    The optimizer's work grows with the weights and not with the batch; it is left out.
    """
    return sum(p.flop * (1 + p.gradients) for p in products(size, batch))
