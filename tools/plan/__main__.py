"""Ask each card's compiler what it makes of the three models: `python -m tools.plan`.

It takes half an hour on two cores and writes `results/compiled-plan.json`. Nothing is
written before all cases are answered.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.machine import processor
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.plan import measure, record


def wheels() -> tuple[Path, list[str]]:
    """The folder of the compiler, and what it holds.

    Raises:
        UserError: it is not there, or there is none for this system.
    """
    if sys.platform != "linux":
        raise UserError(
            "XLA's compiler for NVIDIA GPUs exists for Linux alone. Fix: keep the plan "
            "that comes with the book"
        )
    try:
        folder, names = compiler_wheels()
    except importlib.metadata.PackageNotFoundError:
        raise UserError("JAX is not here. Fix: make lab installs it") from None
    if not folder.is_dir():
        words = ["install", "--no-deps", "--target", str(folder), *names]
        raise UserError(
            "XLA's compiler for NVIDIA GPUs is not here. "
            f"Fix: {sys.executable} -m pip {' '.join(words)}"
        )
    return folder, names


def ask(request: dict, variables: dict[str, str]) -> Iterator[dict]:
    """Ask in a process of its own.

    Yields:
        An answer for each case; fewer if the process ends before.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tools.plan.compiler"],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        yield from map(json.loads, process.stdout)


def answers(cards: dict, variables: dict[str, str]) -> Iterator[dict]:
    """Each case with its answer; one on which the process ended has failed."""
    cases = record.cases(cards)
    for build, group in itertools.groupby(cases, key=lambda x: record.key(x)[:3]):
        pending = list(group)
        while pending:
            case = pending[0]
            for answer in ask({"build": build, "cases": [*pending]}, variables):
                yield record.complete(pending.pop(0), answer, cards)
            if pending and pending[0] is case:  # it ended before it answered anything
                yield {**case, "status": "failed", "why": "the process ended"}
                pending.pop(0)


@command
def main() -> int:
    """Ask for every card, and write the plan."""
    folder, names = wheels()
    variables = compiler_variables(folder, ROOT)
    known = next(ask({}, variables), None)
    if known is None:
        raise UserError(
            "the compiler for NVIDIA GPUs does not start. Fix: remove its folder "
            f"{folder} and install it again"
        )
    cards, packages = known["cards"], known["versions"]
    packages |= dict(name.split("==") for name in names)
    plans = []
    for plan in answers(cards, variables):
        plans.append(plan)
        print(*record.key(plan), plan["status"], flush=True)
    content = {
        "schema": 1,
        "label": record.LABEL,
        "provenance": {
            "date": datetime.date.today().isoformat(),
            "commit": measure.commit(),
            "command": "python -m tools.plan",
            **measure.system(),
            "packages": dict(sorted(packages.items())),
            "compiled_on": processor(),
        },
        "cards": cards,
        "plans": plans,
    }
    path = record.FOLDER / record.PLAN
    files.write_text(path, json.dumps(content, indent=1) + "\n")
    print(f"{len(plans)} plans are in {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
