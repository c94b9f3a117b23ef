"""Ask each card's compiler what it makes of the three models: `python -m tools.plan`.

It takes ten minutes on two cores and writes `results/compiled-plan.json`. Nothing is
written before all cases are answered.
"""

import itertools
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.machine import processor, versions
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.plan import compiler, engines, record

PACKAGES = ("jax", "jaxlib", "keras", "numpy")


def plan_all(pool: ProcessPoolExecutor, cards: dict[str, dict]) -> Iterator[dict]:
    """Each case with its answer, one model after the other."""
    groups = itertools.groupby(record.cases(cards), lambda x: record.key(x)[:3])
    for build, group in groups:
        cases = list(group)
        answers = pool.submit(compiler.plans, build, cases).result()
        for case, answer in zip(cases, answers, strict=True):
            print(*record.key(case), answer["status"], flush=True)
            yield record.complete(case, answer, cards)


@command
def main() -> None:
    """Ask for every card, and write the plan."""
    folder, names = compiler_wheels()
    if not folder.is_dir():
        words = ["install", "--no-deps", "--target", str(folder), *names]
        raise UserError(
            "XLA's compiler for NVIDIA GPUs is not here; it exists for Linux alone. "
            f"Fix: {sys.executable} -m pip {' '.join(words)}"
        )
    try:
        with engines.processes(compiler_variables(folder, ROOT), 1) as pool:
            cards = pool.submit(compiler.cards).result()
            plans = list(plan_all(pool, cards))
    except BrokenProcessPool:
        raise UserError(
            "the compiler's process ended after what is printed above. "
            "Fix: give it 16 GB of memory, and give the command again"
        ) from None
    packages = versions(PACKAGES) | dict(name.split("==") for name in names)
    origin = record.provenance("python -m tools.plan", packages)
    content = {
        "schema": 1,
        "label": "the compiler's plan",
        "provenance": {**origin, "compiled_on": processor()},
        "cards": cards,
        "plans": plans,
    }
    path = record.FOLDER / record.PLAN
    record.write(path, content)
    print(f"{len(plans)} plans are in {path}")


if __name__ == "__main__":
    raise SystemExit(main())
