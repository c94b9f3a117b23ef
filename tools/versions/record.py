"""The record `book/versions.json`: with which versions each claim held.

`constraints/sets.yml` says which sets of versions there are. The record has for each
set that was run the `date`, the `python` and the `versions` of the engines; in
`replaced` the set's own versions of what was installed in another version; in `held`,
by the chapter's number, the fingerprints of the sentences that held; and in `not_held`
the other claims, each with its `id`, `sentence`, `outcome` and `reason`. A claim is
known by its sentence: one whose words were mended since has not been tried.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

import yaml

from tools.model import files, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError

SETS = Path("constraints", "sets.yml")
RECORD = Path("book", "versions.json")
ABOUT = "Written by `make versions`. Edit nothing."
NOT_TRIED = "not tried"


@dataclasses.dataclass(frozen=True)
class Tried:
    """What became of a claim with a set of versions."""

    outcome: str  # `held`, `broken`, `not checked` or `not tried`
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class VersionSet:
    """A set of versions, and what the claims did with it."""

    name: str  # of its file in constraints/, without the suffix
    title: str  # for a reader
    about: str  # what it is, in a sentence
    run: dict  # what the record says of it; empty if it was never run
    python: str = ""  # such as 3.13, if the versions are made for one Python

    def tried(self, sentence: str) -> Tried:
        """What became of the claim with this sentence."""
        name = fingerprint(sentence)
        if any(name in held.split() for held in self.run.get("held", {}).values()):
            return Tried(outcomes.HELD)
        for claim in self.run.get("not_held", []):
            if fingerprint(claim["sentence"]) == name:
                return Tried(claim["outcome"], claim["reason"])
        return Tried(NOT_TRIED)


def fingerprint(sentence: str) -> str:
    """A short name of a sentence."""
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:8]


def sets(root: Path = ROOT) -> list[VersionSet]:
    """The sets, in the order of their file.

    Raises:
        UserError: the file or the record is broken.
    """
    known = load(root)
    try:
        described = yaml.safe_load((root / SETS).read_text(encoding="utf-8"))
        return [
            VersionSet(name, run=known.get(name, {}), **fields)
            for name, fields in described.items()
        ]
    except (OSError, yaml.YAMLError, AttributeError, TypeError) as error:
        raise UserError(
            f"{SETS}: not a list of sets ({' '.join(str(error).split())}). "
            "Fix: give each a title and about"
        ) from None


def load(root: Path = ROOT) -> dict[str, dict]:
    """What the record says of each set; nothing if there is no record."""
    path = root / RECORD
    if not path.exists():
        return {}
    return files.read_json(path, f"git checkout -- {RECORD}")["sets"]


def save(runs: dict[str, dict], root: Path = ROOT) -> None:
    """Write what is known of each set."""
    content = {"about": ABOUT, "sets": runs}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    files.write_text(root / RECORD, f"{text}\n")
