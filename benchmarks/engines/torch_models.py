"""The same models as a user of PyTorch alone writes them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from benchmarks.engines.frameworks import Framework
from benchmarks.sizes import Conv, Mlp, Size, Transformer, batch_of
from snippets.waiting import wait_for


class Block(nn.Module):
    """A pre-norm block of a transformer: causal attention, then two dense layers."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """Map (batch, length, width) to the same shape."""
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A decoder-only transformer that maps (batch, length) tokens to logits."""

    def __init__(self, size: Transformer):
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.places = nn.Parameter(0.05 * torch.randn(size.length, size.width))
        blocks = [Block(size.width, size.heads) for _ in range(size.layers)]
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary)

    def forward(self, x):
        """Map (batch, length) to (batch, length, vocabulary)."""
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places)))


def build(size: Size) -> nn.Module:
    """The model of a size on the CPU; images are (batch, 3, side, side)."""
    if isinstance(size, Transformer):
        return Decoder(size)
    parts: list[nn.Module] = []
    if isinstance(size, Mlp):
        width = size.inputs
        for _ in range(size.layers):
            parts += [nn.Linear(width, size.width), nn.ReLU()]
            width = size.width
    else:
        width = 3
        for filters in size.filters:
            for _ in range(2):
                parts += [nn.Conv2d(width, filters, 3, padding=1), nn.ReLU()]
                width = filters
            parts.append(nn.MaxPool2d(2))
        parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(width, size.classes))


def data_of(size: Size, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch in PyTorch's layout, in the host's memory; labels in int64."""
    inputs, labels = batch_of(size, batch)
    if isinstance(size, Conv):
        inputs = inputs.transpose(0, 3, 1, 2).copy()
    return torch.from_numpy(inputs), torch.from_numpy(labels).long()


def loss_of(logits, labels):
    """The mean cross-entropy of (..., classes) logits, in float32."""
    flat = logits.float().reshape(-1, logits.shape[-1])
    return functional.cross_entropy(flat, labels.reshape(-1))


def autocast(framework: Framework, precision: str):
    """The context in which PyTorch computes in 16 bits, or none."""
    if precision in ("float32", "tf32"):
        return contextlib.nullcontext()
    dtype = getattr(torch, precision.removeprefix("mixed_"))
    return torch.autocast(framework.device.type, dtype)


def prepare(size: Size, framework: Framework) -> nn.Module:
    """The model of a size on the device."""
    torch.manual_seed(0)
    return build(size).to(framework.device)


def training(
    model, size: Size, batch: int, framework: Framework, precision: str, mode: str
) -> Callable[[int], float]:
    """A function that trains for some steps with Adam and returns the last loss."""
    inputs, labels = data_of(size, batch)
    device = framework.device
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-7)
    forward = framework.transform(model, mode)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "mixed_float16")

    def run(steps):
        for _ in range(steps):
            with autocast(framework, precision):
                loss = loss_of(forward(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss.item()

    return run


def inference(
    model, size: Size, batch: int, framework: Framework, precision: str, mode: str
) -> Callable[[int], object]:
    """A function that runs some forward passes and returns the last logits."""
    inputs, _ = data_of(size, batch)
    forward = framework.transform(model, mode)

    def run(steps):
        with torch.no_grad(), autocast(framework, precision):
            for _ in range(steps):
                logits = forward(inputs.to(framework.device))
            return wait_for(logits)

    return run
