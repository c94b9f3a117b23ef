"""What a calculator says, and what several of them take from the chapters."""

from __future__ import annotations

import dataclasses
from typing import Any

Values = dict[str, Any]
# Bytes that an optimizer remembers for each weight (chapter 5).
REMEMBERED = {"adam": 8.0, "momentum": 4.0, "sgd": 0.0}
OPTIMIZERS = {
    "adam": "Adam",
    "momentum": "Lion, or SGD with momentum",
    "sgd": "plain SGD",
}
RATES = {"float32": "float32", "tf32": "tf32", "half": "float16"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A number: what it is, how much, how it comes about; mark: "good", "bad" or ""."""

    name: str
    value: str
    how: str
    mark: str = ""


@dataclasses.dataclass(frozen=True)
class Result:
    """What a calculator says.

    verdict: the answer in a sentence or two. groups: titles and their rows. problem:
    the field that does not suit the others, and why; then there is nothing else.
    """

    verdict: str = ""
    groups: list[tuple[str, list[Row]]] = dataclasses.field(default_factory=list)
    problem: tuple[str, str] | None = None
