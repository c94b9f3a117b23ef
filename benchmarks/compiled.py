"""The compiler's plan: what each card's own compiler makes of the models' steps.

No card is needed: XLA compiles for it here (chapter 17). It can't know times, so none
is stored but a bound: no step is faster than the roofline lets it be.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import flops, machine, results, run
from benchmarks.sizes import BATCHES, SIZES
from snippets.compiler_wheels import compiler_wheels
from tools.errors import UserError
from tools.processor import processor

ROOT = Path(__file__).resolve().parents[1]
PATH = results.FOLDER / results.NO_DEVICE
SCHEMA = Path(__file__).with_name("compiled-schema.json")
LABEL = "the compiler's plan"
AGAIN = "make measure ARGS=--compiler"
# What the plan is made by, for its fingerprint.
PROGRAMS = (
    "benchmarks/compiled.py",
    "benchmarks/compiler.py",
    "benchmarks/engines/keras_models.py",
    "benchmarks/flops.py",
    "benchmarks/sizes.py",
    "snippets/gpu_compiler.py",
)
# Seconds that a card's compiler may take for one step.
LONGEST = 1800
# Whose rate bounds the products of a policy, the fastest first.
RATES = {
    "float32": ("tf32", "float32"),
    "mixed_float16": ("float16",),
    "mixed_bfloat16": ("bfloat16",),
}
CASE = ("model", "size", "precision", "batch", "card")


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


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process that asks the compiler: only it sees the folder."""
    return {
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu,cuda",
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


# --- what is asked -------------------------------------------------------------------


def suitable(card: dict) -> str:
    """The 16-bit policy that the suite takes on a card."""
    return run.Machine("gpu", tuple(card["capability"])).mixed


def precisions(card: dict) -> list[str]:
    """The policies that are asked of a card: a T4 shows what bfloat16 would be, too."""
    return list(dict.fromkeys(["float32", suitable(card), "mixed_bfloat16"]))


def cases(cards: dict[str, dict], quick: bool = False) -> Iterator[dict]:
    """What is asked of the compilers: the suite's models, sizes, batches, policies.

    Each has the middle batch of the measurements; the large models come in each policy,
    the small ones in the suitable one. The cases of one model and policy follow each
    other, so that it is built once.

    Args:
        cards: what is known of each card, by name.
        quick: the small models only.
    """
    for size in ("small",) if quick else ("large", "small"):
        for model, precision in itertools.product(BATCHES, RATES):
            for name, card in cards.items():
                asked = [suitable(card)] if size == "small" else precisions(card)
                if precision in asked:
                    yield {
                        "model": model,
                        "size": size,
                        "precision": precision,
                        "batch": BATCHES[model][size][1],
                        "card": name,
                    }


def key(case: dict) -> tuple:
    """What tells a case from the others."""
    return tuple(case[name] for name in CASE)


# --- the bound -----------------------------------------------------------------------


def bound(
    card: dict, precision: str, flop: int, traffic: int
) -> tuple[float | None, str]:
    """The least seconds that a step takes on a card, and what binds it.

    The roofline of Williams, Waterman and Patterson (doi:10.1145/1498765.1498785) with
    the makers' rates: the larger of the products' operations over the rate of the
    fastest units for the policy, and the bytes that must cross the memory bus over its
    bandwidth.

    Returns:
        The seconds and "arithmetic" or "memory"; None if no rate of the card is known
        for the policy's numbers.
    """
    rates = [card["rates"][x] for x in RATES[precision] if x in card["rates"]]
    if not rates:
        return None, "unknown"
    sides = {"arithmetic": flop / rates[0], "memory": traffic / card["bandwidth"]}
    binds = max(sides, key=sides.get)
    return float(f"{sides[binds]:.5g}"), binds


def complete(case: dict, answer: dict, cards: dict[str, dict]) -> dict:
    """A case with the compiler's answer, and what follows from it."""
    if answer["status"] != "planned":
        return {**case, **answer}
    card = cards[case["card"]]
    flop = flops.training_step(SIZES[case["model"]][case["size"]], case["batch"])
    least, binds = bound(card, case["precision"], flop, answer["traffic"])
    return {
        **case,
        **answer,
        "fits": answer["memory"]["total"] <= card["memory"],
        "flop": flop,
        "least_s": least,
        "binds": binds,
    }


# --- asking --------------------------------------------------------------------------


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
    for head, group in itertools.groupby(asked, key=lambda case: key(case)[:3]):
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
        "label": LABEL,
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
    variables = environment(folder)
    cards, versions = known_cards(variables)
    versions |= dict(x.split("==") for x in names)
    head = header(cards, versions, commit, command, quick)
    everything = list(cases(cards, quick))
    with contextlib.closing(
        run.Journal(output.with_suffix(".partial.jsonl"))
    ) as journal:
        journal.start(head, resume)
        done = {key(found) for found in journal.records}
        asked = [case for case in everything if key(case) not in done]
        for case, answer in answers(asked, variables):
            journal.add(complete(case, answer, cards))
            say(
                f"[{len(journal.records):3}/{len(everything)}] "
                f"{' '.join(map(str, key(case)))}: {describe(journal.records[-1])}"
            )
        order = {key(case): place for place, case in enumerate(everything)}
        plans = sorted(journal.records, key=lambda found: order[key(found)])
    return {**head, "plans": plans}


def describe(found: dict) -> str:
    """A plan in a few words."""
    if found["status"] != "planned":
        return f"{found['status']}: {found['why']}"
    launches = sum(found["launches"].values())
    return f"{found['memory']['total'] / 2**20:.1f} MiB, {launches} launches"


# --- files ---------------------------------------------------------------------------


def check(plan: dict, name: str = PATH.name) -> None:
    """Check a plan against the schema, its sums and its bounds.

    Raises:
        UserError: something is missing or wrong; names the file and the place in it.
    """
    import jsonschema  # nbformat brings it; a machine that only measures may lack it

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(plan), key=lambda e: list(e.absolute_path))
    problems = (
        ("/".join(map(str, e.absolute_path)) or "the top", e.message[:200])
        for e in errors
    )
    for place, problem in problems if errors else _wrong_sums(plan):
        raise UserError(
            f"{name}: at {place}: {problem}. Fix: ask again with `{AGAIN}`, and edit "
            "nothing in the file"
        )


def _wrong_sums(plan: dict) -> Iterator[tuple[str, str]]:
    """What the schema can't see: cases twice, sums and bounds that do not follow."""
    seen = set()
    for number, found in enumerate(plan["plans"]):
        place = f"plans/{number}"
        if key(found) in seen:
            yield place, f"{key(found)} stands there twice"
        seen.add(key(found))
        if found["card"] not in plan["cards"]:
            yield place, f"no card {found['card']!r} among cards"
        elif found["status"] == "planned":
            *parts, total = found["memory"].values()
            if sum(parts) != total:
                yield place, "the parts of the memory are not its total"
            case = {name: found[name] for name in CASE}
            if complete(case, found, plan["cards"]) != found:
                yield place, "fits, flop or the bound do not follow from the rest"


def load(path: Path = PATH) -> dict:
    """Read a plan and check it.

    Raises:
        UserError: it can't be read, is invalid or has no provenance.
    """
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path.name}: can't be read: {error}. Fix: ask again with `{AGAIN}`"
        ) from None
    check(plan, path.name)
    return plan
