"""Ask each card's compiler what it makes of the suite's models, and record it."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import compiled, machine, run
from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.machine import processor
from tools.model.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
# What the plan is made by, for its fingerprint.
PROGRAMS = (
    "benchmarks/asking.py",
    "benchmarks/compiled.py",
    "benchmarks/compiler.py",
    "benchmarks/engines/keras_models.py",
    "benchmarks/flops.py",
    "benchmarks/sizes.py",
    "snippets/compiler_wheels.py",
    "snippets/gpu_compiler.py",
)
# Seconds that a card's compiler may take for one step.
LONGEST = 1800


def wheels() -> tuple[Path, list[str]]:
    """The folder of the compiler, and what it holds.

    Raises:
        UserError: it is not there, or there is none for this system.
    """
    if sys.platform != "linux":
        raise UserError(
            "XLA's compiler for NVIDIA GPUs exists for Linux alone. Fix: on this "
            "system leave --compiler out; the plan that comes with the book stays"
        )
    try:
        folder, names = compiler_wheels()
    except importlib.metadata.PackageNotFoundError:
        raise UserError("JAX is not here. Fix: pip install jax keras") from None
    if not folder.is_dir():
        words = ["install", "--no-deps", "--target", str(folder), *names]
        raise UserError(
            "XLA's compiler for NVIDIA GPUs is not here. "
            f"Fix: {sys.executable} -m pip {' '.join(words)}"
        )
    return folder, names


def ask(request: dict, variables: dict[str, str], longest: float) -> Iterator[dict]:
    """Ask in a process of its own.

    Yields:
        An answer per case; after a case on which the process ended, no more.
    """
    worker = run.Worker(request, True, "benchmarks.compiler", variables)
    under_way = None
    try:
        for message in worker.messages(longest):
            under_way = "start" in message
            if not under_way:
                yield message["answer"]
    finally:
        ended = worker.close()
    if under_way is not False:
        yield {"status": "failed", "why": ended}


def answers(
    asked: list[dict], variables: dict[str, str]
) -> Iterator[tuple[dict, dict]]:
    """Each case with its answer.

    A process asks for the cases that follow each other with the same model and policy;
    after one on which it ended, another goes on.
    """
    for head, group in itertools.groupby(
        asked, key=lambda case: compiled.key(case)[:3]
    ):
        pending = list(group)
        while pending:
            request = {"build": head, "cases": pending}
            for done, answer in enumerate(ask(request, variables, LONGEST), 1):
                yield pending[done - 1], answer
            pending = pending[done:]


def known_cards(variables: dict[str, str]) -> tuple[dict[str, dict], dict[str, str]]:
    """What the snippet knows of the cards, and the versions that are asked.

    Raises:
        UserError: the compiler does not start.
    """
    said = next(ask({"cards": True}, variables, 300), None)
    if not said or "cards" not in said:
        why = said["why"] if said else "it said nothing"
        raise UserError(
            f"the compiler for NVIDIA GPUs does not start: {why}. Fix: remove its "
            "folder and install it again"
        )
    return said["cards"], said["versions"]


def fingerprint() -> str:
    """The start of a SHA-256 of the programs that the plan is made by."""
    digest = hashlib.sha256()
    for name in PROGRAMS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()[:12]


def header(cards: dict, versions: dict, commit: str, command: str, quick: bool) -> dict:
    """Where a plan comes from."""
    return {
        "schema": 1,
        "label": compiled.LABEL,
        "provenance": {
            "date": datetime.date.today().isoformat(),
            "commit": commit,
            "programs": fingerprint(),
            "command": command,
            "quick": quick,
            **machine.system(),
            "packages": dict(sorted(versions.items())),
            "compiled_on": processor(),
        },
        "cards": cards,
    }


def record(
    output: Path,
    commit: str,
    command: str,
    quick: bool = False,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict:
    """Ask for all cases and return the plan as it goes into a file.

    What is done is kept beside `output` after each case, as in a measurement.
    """
    folder, names = wheels()
    variables = compiler_variables(folder, ROOT)
    cards, versions = known_cards(variables)
    versions |= dict(x.split("==") for x in names)
    head = header(cards, versions, commit, command, quick)
    everything = list(compiled.cases(cards, quick))
    with contextlib.closing(
        run.Journal(output.with_suffix(".partial.jsonl"))
    ) as journal:
        journal.start(head, resume)
        done = {compiled.key(found) for found in journal.records}
        asked = [case for case in everything if compiled.key(case) not in done]
        for case, answer in answers(asked, variables):
            found = compiled.complete(case, answer, cards)
            journal.add(found)
            place = f"[{len(journal.records):3}/{len(everything)}]"
            say(f"{place} {' '.join(map(str, compiled.key(case)))}: {describe(found)}")
        order = {compiled.key(case): place for place, case in enumerate(everything)}
        plans = sorted(journal.records, key=lambda found: order[compiled.key(found)])
    return {**head, "plans": plans}


def describe(found: dict) -> str:
    """A plan in a few words."""
    if found["status"] != "planned":
        return f"{found['status']}: {found['why']}"
    launches = sum(found["launches"].values())
    return f"{found['memory']['total'] / 2**20:.1f} MiB, {launches} launches"
