"""Ask the cards' compilers, in a process of its own for each model."""

import dataclasses

CARDS = ("T4", "L4", "A100 40 GB", "A100 80 GB", "H100", "H200", "B200")
FIGURES = ("capability", "memory", "limit", "bandwidth", "rates", "sources")


def cards() -> dict[str, dict]:
    """The figures of each card, and what JAX lets a program have of its memory."""
    from programs.plan import card_named, limit_of

    known = {name: dataclasses.asdict(card_named(name)) for name in CARDS}
    for name, card in known.items():
        card["capability"] = list(card["capability"])  # as JSON has it
        card["limit"] = limit_of(name)
    return {name: {x: card[x] for x in FIGURES} for name, card in known.items()}


def plans(build: tuple[str, str, str], cases: list[dict]) -> list[dict]:
    """What the compilers of the cards make of a model's training step.

    Args:
        build: the model's name, its size and its dtype policy.
        cases: the card of each, and the batch, which is the same in all.

    Returns:
        For each case `status` ("planned" or "refused") with the plan, or with `why`.
    """
    from programs.plan import Refused, compile_step_for
    from tools.plan import models
    from tools.plan.sizes import SIZES, batch_of

    name, size, policy = build
    model = models.prepare(SIZES[name][size], policy, jit_compile=True)
    batch = batch_of(SIZES[name][size], cases[0]["batch"])
    answers = []
    for case in cases:
        try:
            program = compile_step_for(case["card"], model, *batch)
        except Refused as refusal:
            answers.append({"status": "refused", "why": str(refusal)})
        else:
            answers.append(
                {
                    "status": "planned",
                    "memory": program.plan,
                    "traffic": program.traffic,
                    "flop": program.arithmetic,
                    "launches": dict(sorted(program.launches.items())),
                    "operations": program.operations,
                    "instructions": [x for x in program.instructions if "mma" in x],
                }
            )
    return answers
