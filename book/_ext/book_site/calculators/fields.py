"""The fields of the calculators: what is asked, in which limits, and the example."""

from __future__ import annotations

import dataclasses
from typing import Any

from book_site.calculators import numbers
from book_site.calculators.result import OPTIMIZERS


@dataclasses.dataclass(frozen=True)
class Number:
    """A field for a number.

    example: what stands there first. kind: what is counted, as `numbers.read` has it.
    low and high: the least and the largest that is taken. note: what helps to fill it.
    """

    name: str
    label: str
    example: str
    note: str = ""
    unit: str = ""
    kind: str = "number"
    low: float = 1.0
    high: float = 1e15
    whole: bool = False

    def read(self, text: str) -> tuple[Any, str]:
        """The value of what was typed, and what is wrong with it."""
        return numbers.read(text, self.kind, self.low, self.high, self.whole)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A field with a few options, by their names in links."""

    name: str
    label: str
    example: str
    options: dict[str, str]
    note: str = ""

    def read(self, text: str) -> tuple[Any, str]:
        """The option that was chosen, and what is wrong with it."""
        return text, "" if text in self.options else "Choose one of the others."


Field = Number | Choice
NUMBERS = {"float32": "float32", "tf32": "TF32", "half": "16 bits"}


def fields(figures: dict[str, Any]) -> dict[str, list[Field]]:
    """The fields of each calculator; the examples are those of the chapters.

    Args:
        figures: of cards and links.
    """
    cards = {name: name for name in figures["cards"]}
    links = {name: name for name in figures["links"]}
    nvlink, _, infiniband, _ = links
    return {
        "memory": memory(cards),
        "roofline": roofline(cards),
        "cards": eight(cards, links, nvlink),
        "price": price(cards, links, infiniband),
    }


def memory(cards: dict[str, str]) -> list[Field]:
    """The convolutions of chapter 5, with 256 photographs."""
    policies = {"float32": "float32", "mixed": "mixed precision"}
    return [
        Number("parameters", "Trainable weights", "35,683", "`model.count_params()`"),
        Choice("optimizer", "Optimizer", "adam", OPTIMIZERS),
        Choice("policy", "Policy", "float32", policies),
        Number("batch", "Batch", "256", unit="samples", high=1e9, whole=True),
        Number(
            "activations",
            "Numbers kept for a sample",
            "12,995,584",
            "the inputs of all layers, added up",
        ),
        Number(
            "layers",
            "Layers in a row",
            "17",
            "about equal; for rematerialisation",
            high=1e6,
            whole=True,
        ),
        Choice("card", "Card", "T4", cards),
        Number(
            "share",
            "Share of the card for programs",
            "75",
            "JAX takes 75 % unless told otherwise",
            "%",
            "percent",
            high=100.0,
        ),
    ]


def roofline(cards: dict[str, str]) -> list[Field]:
    """The dense layer of chapter 1 in 16 bits, and the laptop that it supposes."""
    return [
        Number(
            "operations",
            "Operations for a sample",
            "33,554,432",
            "a dense layer: 2 × inputs × outputs",
            "FLOP",
            high=1e18,
        ),
        Number(
            "bytes_sample",
            "Bytes moved for each sample",
            "16,384",
            "what it reads and writes",
            kind="bytes",
            low=0.0,
            high=1e18,
        ),
        Number(
            "bytes_fixed",
            "Bytes moved once, whatever the batch",
            "33,554,432",
            "the weights",
            kind="bytes",
            low=0.0,
            high=1e18,
        ),
        Number("batch", "Batch", "128", unit="samples", high=1e9, whole=True),
        Choice("card", "Card", "H100", cards),
        Choice("numbers", "Numbers", "half", NUMBERS),
        Number("kernels", "Kernels started", "1", "in one call", high=1e9, whole=True),
        Number(
            "pace",
            "From one kernel to the next",
            "2.7",
            "2.7 µs on a T4, in the loop of chapter 1",
            "µs",
            low=0.0,
            high=1e9,
        ),
        Number(
            "own_first",
            "Your machine, before the first sample",
            "671",
            "chapter 1's laptop reads the weights at 50 GB/s",
            "µs",
            low=0.0,
            high=1e12,
        ),
        Number(
            "own_each",
            "Your machine, for each sample",
            "168",
            "and computes 200 GFLOP/s",
            "µs",
            low=0.0,
            high=1e12,
        ),
    ]


def eight(cards: dict[str, str], links: dict[str, str], link: str) -> list[Field]:
    """The eight billion parameters of chapter 18, on eight cards."""
    policies = {"float32": "float32", "mixed": "mixed precision"}
    return [
        Number("parameters", "Trainable weights", "8,053,284,864"),
        Choice("optimizer", "Optimizer", "adam", OPTIMIZERS),
        Choice("policy", "Policy", "mixed", policies, "4 bytes travel, or 2"),
        Number(
            "batch", "Batch of all cards", "64", "", "samples", high=1e9, whole=True
        ),
        Number(
            "features",
            "Narrow features of a sample",
            "12,582,912",
            "tokens × width: 1,024 × 12,288",
        ),
        Number(
            "reduces",
            "All-reduces of features",
            "16",
            "two for each pair of products: four for a transformer's layer",
            high=1e6,
            whole=True,
        ),
        Number("cards", "Cards", "8", high=1e6, whole=True),
        Choice("card", "Card", "H100", cards),
        Choice("link", "Link", link, links),
    ]


def price(cards: dict[str, str], links: dict[str, str], link: str) -> list[Field]:
    """That model on 64 machines with one card each, and the failures of chapter 14."""
    return [
        Number(
            "operations",
            "Operations of a step",
            "3.048e15",
            "on all cards together; about 6 × weights × tokens",
            "FLOP",
            high=1e30,
        ),
        Number("batch", "Samples in a step", "65,536", "here tokens: 64 × 1,024"),
        Number("samples", "Samples in the training", "1e9", "", high=1e18),
        Choice("card", "Card", "H100", cards),
        Choice("numbers", "Numbers", "half", NUMBERS),
        Number(
            "reached",
            "Share of the peak that is reached",
            "40",
            "assumed; measure it, or look at what others reached",
            "%",
            "percent",
            low=0.01,
            high=100.0,
        ),
        Number("cards", "Cards", "64", high=1e6, whole=True),
        Number(
            "sent",
            "A card sends in a step",
            "31.7 GB",
            "from the calculator above; 0 for one card",
            kind="bytes",
            low=0.0,
            high=1e18,
        ),
        Choice("link", "Link", link, links),
        Number(
            "price",
            "Price of a card",
            "3",
            "type in your own",
            "an hour",
            low=0.0,
            high=1e9,
        ),
        Number(
            "checkpoint",
            "A checkpoint stops the training for",
            "60",
            "",
            "s",
            low=0.001,
            high=1e9,
        ),
        Number(
            "days",
            "A machine fails once in",
            "90",
            "type in what you see",
            "days",
            low=0.001,
            high=1e9,
        ),
        Number("machines", "Machines", "64", high=1e6, whole=True),
    ]
