"""The process that asks the cards' compilers: it has their folder on its PYTHONPATH.

It reads a request from standard input, as JSON: the `build` of a model (its name, size
and policy) and `cases` to plan. To standard output it writes a line of JSON for each
case. Without a `build` it tells the cards and the versions of what is asked.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any, TextIO

FIGURES = ("capability", "memory", "bandwidth", "rates", "sources")


def known() -> dict:
    """The cards' figures, and the versions of what is asked."""
    import jax
    import jaxlib
    import keras
    import numpy

    from snippets import gpu_compiler

    cards = {
        name: {k: v for k, v in dataclasses.asdict(card).items() if k in FIGURES}
        for name, card in gpu_compiler.CARDS.items()
    }
    modules = {"jax": jax, "jaxlib": jaxlib, "keras": keras, "numpy": numpy}
    return {
        "cards": cards,
        "versions": {name: x.__version__ for name, x in modules.items()},
    }


def plans(build: list[str], cases: list[dict]) -> Any:
    """What the compilers of the cards make of a training step, case by case.

    Yields:
        `status` ("planned", "refused" or "failed") with the plan, or with `why`.
    """
    from snippets import gpu_compiler
    from tools.plan import models
    from tools.plan.sizes import SIZES, Transformer

    name, size, policy = build
    its = SIZES[name][size]
    model = models.prepare(its, policy, jit_compile=True)
    array = gpu_compiler.array
    for case in cases:
        shape = case["batch"], *its.inputs_shape
        if isinstance(its, Transformer):
            data = array(*shape, dtype="int32"), array(*shape, dtype="int32")
        else:
            data = array(*shape), array(case["batch"], dtype="int32")
        try:
            program = gpu_compiler.compile_step_for(case["card"], model, *data)
        except gpu_compiler.Refused as refusal:
            yield {"status": "refused", "why": str(refusal)}
            continue
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            yield {"status": "failed", "why": f"{type(error).__name__}: {first}"}
            continue
        yield {
            "status": "planned",
            "memory": program.plan,
            "traffic": program.traffic,
            "launches": dict(sorted(program.launches.items())),
            "operations": program.operations,
            "instructions": [x for x in program.instructions if "mma" in x],
        }


def serve(request: dict, out: TextIO) -> None:
    """Answer a request."""
    answers = plans(**request) if request else [known()]
    for answer in answers:
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    sys.modules.update(matplotlib=None, sklearn=None)  # Keras would import them
    # What the libraries print goes to standard error: the answers stay alone.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(json.load(sys.stdin), replies)
