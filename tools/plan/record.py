"""The records: what the compilers plan for each card, and what was measured.

For a plan no card is needed: XLA compiles for it here (chapter 17). It can't know
times, so none is stored but a bound: no step is faster than the roofline lets it be.
"""

import datetime
import itertools
import json
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.model import files
from tools.model.errors import UserError
from tools.plan.sizes import BATCHES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("results")
PLAN = "compiled-plan.json"  # the one file there that is of no device
# Whose rate bounds the products of a policy, the fastest first.
RATES = {
    "float32": ("tf32", "float32"),
    "mixed_float16": ("float16",),
    "mixed_bfloat16": ("bfloat16",),
}
CASE = ("model", "size", "precision", "batch", "card")


def suitable(card: dict) -> str:
    """The 16-bit policy of a card: bfloat16 where it computes in it, from 8.0 on."""
    return "mixed_bfloat16" if card["capability"] >= [8, 0] else "mixed_float16"


def precisions(card: dict) -> list[str]:
    """The policies that are asked of a card: a T4 shows what bfloat16 would be, too."""
    return list(dict.fromkeys(["float32", suitable(card), "mixed_bfloat16"]))


def cases(cards: dict[str, dict]) -> Iterator[dict]:
    """What is asked of the compilers: models, sizes, policies, cards.

    The large models come in each policy, the small ones in the suitable one. The cases
    of one model and policy follow each other, so that it is built once.
    """
    for size in ("large", "small"):
        for model, precision in itertools.product(BATCHES, RATES):
            for name, card in cards.items():
                asked = [suitable(card)] if size == "small" else precisions(card)
                if precision in asked:
                    yield {
                        "model": model,
                        "size": size,
                        "precision": precision,
                        "batch": BATCHES[model][size],
                        "card": name,
                    }


def key(case: dict) -> tuple:
    """What tells a case from the others."""
    return tuple(case[name] for name in CASE)


def bound(
    card: dict, precision: str, flop: int, traffic: int
) -> tuple[float | None, str]:
    """The least seconds that a step takes on a card, and what binds it.

    The roofline of Williams, Waterman and Patterson (doi:10.1145/1498765.1498785) with
    the makers' rates: the larger of the operations of matrix products and convolutions
    over the rate of the fastest units for the policy, and the bytes that must cross the
    memory bus over its bandwidth.

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
    least, binds = bound(card, case["precision"], answer["flop"], answer["traffic"])
    return {
        **case,
        **answer,
        "fits": answer["memory"]["total"] <= card["limit"],
        "least_s": least,
        "binds": binds,
    }


def output(*words: str) -> str:
    """What a program prints; nothing if it is not there or fails."""
    if shutil.which(words[0]) is None:
        return ""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def provenance(called: str, packages: dict[str, str], commit: str = "") -> dict:
    """What a record needs to be worth something later.

    Args:
        called: the command that makes the record.
        packages: the versions of those that it is about.
        commit: what is checked out, where there is no git to ask. Of a clone in which
            files differ from it, "+changes" is kept as well.

    Raises:
        UserError: there is no repository and no commit is given.
    """
    if not commit:
        commit = output("git", "rev-parse", "HEAD")
        programs = ("snippets", "tools", ":!tools/plan/results")
        if output("git", "status", "--porcelain", "--", *programs):
            commit += "+changes"
    if not commit:
        raise UserError(
            "no commit is known here, and a record without one is worthless later. "
            "Fix: run in a clone with git, or give --commit SHA"
        )
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "command": called,
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "packages": packages,
    }


def write(path: Path, content: dict) -> None:
    """Write a file of results in one step: without it the old one is still there."""
    files.write_text(path, json.dumps(content, indent=1) + "\n")


def parse(path: Path, schema: str, again: str) -> dict:
    """Read a file of results, which `again` makes, and hold it against its schema.

    Raises:
        UserError: it can't be read or breaks the schema; names the file and the place.
    """
    import jsonschema  # a machine that only measures may lack it

    fix = f"make it again with `{again}`, and edit nothing in it"
    content = files.read_json(path, fix)
    rules = json.loads(Path(__file__).with_name(schema).read_text(encoding="utf-8"))
    for error in jsonschema.Draft202012Validator(rules).iter_errors(content):
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise UserError(f"{path.name}: at {place}: {error.message[:200]}. Fix: {fix}")
    return content


def load_plan(folder: Path = FOLDER) -> dict:
    """Read the compiler's plan.

    Raises:
        UserError: it can't be read, is invalid or has no provenance.
    """
    return parse(folder / PLAN, "schema-compiled.json", "make measure ARGS=--compiler")


def load_devices(folder: Path = FOLDER) -> list[dict]:
    """What was measured on each device, CPUs last, by name.

    Raises:
        UserError: a file can't be read, is invalid or has no provenance.
    """
    paths = [path for path in sorted(folder.glob("*.json")) if path.name != PLAN]
    records = [parse(path, "schema-measured.json", "make measure") for path in paths]
    return sorted(
        records, key=lambda x: (x["device"]["kind"] == "cpu", x["device"]["name"])
    )
