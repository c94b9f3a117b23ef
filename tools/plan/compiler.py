"""The process that asks the cards' compilers: it has their folder on its PYTHONPATH.

It reads a request from standard input, as JSON, and writes one line of JSON to standard
output for each case that it starts and for each that it ends.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any, TextIO

from benchmarks.worker import in_a_line, is_out_of_memory

FIGURES = ("capability", "memory", "bandwidth", "rates", "sources")


def known() -> dict:
    """The cards' figures, and the versions of what is asked."""
    import jax
    import jaxlib
    import keras
    import numpy

    from snippets import gpu_compiler

    found = {
        name: {k: v for k, v in dataclasses.asdict(card).items() if k in FIGURES}
        for name, card in gpu_compiler.CARDS.items()
    }
    modules = {"jax": jax, "jaxlib": jaxlib, "keras": keras, "numpy": numpy}
    return {
        "cards": found,
        "versions": {name: x.__version__ for name, x in modules.items()},
    }


class Planner:
    """A model, compiled for one card after the other."""

    def __init__(self, model: str, size: str, precision: str):
        from benchmarks.engines import keras_models
        from benchmarks.sizes import SIZES, Transformer
        from snippets import gpu_compiler

        self.compiler = gpu_compiler
        self.size = SIZES[model][size]
        self.tokens = isinstance(self.size, Transformer)
        self.model = keras_models.prepare(self.size, precision, "compiled")

    def data(self, batch: int) -> tuple:
        """The shapes of a batch, as `benchmarks.sizes.batch_of` makes it."""
        array, shape = self.compiler.array, (batch, *self.size.inputs_shape)
        if self.tokens:
            return array(*shape, dtype="int32"), array(*shape, dtype="int32")
        return array(*shape), array(batch, dtype="int32")

    def plan(self, card: str, batch: int) -> dict:
        """What the compiler of a card makes of a step."""
        data = self.data(batch)
        try:
            program = self.compiler.compile_step_for(card, self.model, *data)
        except self.compiler.Refused as refusal:
            return {"status": "refused", "why": str(refusal)}
        return {
            "status": "planned",
            "memory": program.plan,
            "traffic": program.traffic,
            "launches": dict(sorted(program.launches.items())),
            "operations": program.operations,
            "instructions": [x for x in program.instructions if "mma" in x],
        }


def serve(request: dict, out: TextIO) -> None:
    """Answer a request: "cards", or what to "build" and the "cases" to plan."""

    def say(**message: Any) -> None:
        print(json.dumps(message), file=out, flush=True)

    if request.get("cards"):
        say(answer=known())
        return
    planner = None
    for number, case in enumerate(request["cases"]):
        say(start=number)
        try:
            planner = planner or Planner(*request["build"])
            say(end=number, answer=planner.plan(case["card"], case["batch"]))
        except Exception as error:
            short = "the host's memory ran out: " if is_out_of_memory(error) else ""
            say(
                end=number,
                answer={"status": "failed", "why": short + in_a_line(error)},
            )
            return


if __name__ == "__main__":
    sys.modules.update(matplotlib=None, sklearn=None)  # Keras would import them
    # What the libraries print goes to standard error: the messages stay alone.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(json.load(sys.stdin), messages)
