"""Ask each card's compiler what it makes of the three models: `python -m tools.plan`.

It takes half an hour on two cores and writes `results/compiled-plan.json`. Nothing is
written before all cases are answered. With words such as `transformer large H100` only
the cases that have them all are asked again; each is kept with its own provenance.
"""

import itertools
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.machine import processor, versions
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.plan import compiler, engines, record

PACKAGES = ("jax", "jaxlib", "keras", "numpy")


def plan_all(
    pool: ProcessPoolExecutor, cards: dict[str, dict], words: set[str]
) -> Iterator[dict]:
    """Each case that has the words, with its answer, one model after the other."""
    wanted = (x for x in record.cases(cards) if words <= set(map(str, record.key(x))))
    groups = itertools.groupby(wanted, lambda case: record.key(case)[:3])
    for build, group in groups:
        cases = list(group)
        answers = pool.submit(compiler.plans, build, cases).result()
        for case, answer in zip(cases, answers, strict=True):
            print(*record.key(case), answer["status"], flush=True)
            yield record.complete(case, answer, cards)


@command
def main(words: list[str] | None = None) -> None:
    """Ask for every card, and write the plan; or ask again for some, and replace them.

    Raises:
        UserError: the compiler is not here, it ended, no case has the words, or the
            plan can't be read or written.
    """
    again = set(sys.argv[1:] if words is None else words)
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
            plans = list(plan_all(pool, cards, again))
    except BrokenProcessPool:
        raise UserError(
            "the compiler's process ended after what is printed above. "
            "Fix: give it 16 GB of memory, and give the command again"
        ) from None
    if not plans:
        raise UserError(f"no case has {' and '.join(again)}. Fix: see `record.CASE`")
    packages = versions(PACKAGES) | dict(name.split("==") for name in names)
    called = shlex.join(["python", "-m", "tools.plan", *sorted(again)])
    provenance = {**record.provenance(called, packages), "compiled_on": processor()}
    if again:
        content = record.replace(record.load_plan(), plans, provenance)
    else:
        content = {
            "schema": 1,
            "label": "the compiler's plan",
            "provenance": provenance,
            "cards": cards,
            "plans": plans,
        }
    path = record.FOLDER / record.PLAN
    record.write(path, content)
    print(f"{len(plans)} plans are in {path}")


if __name__ == "__main__":
    raise SystemExit(main())
