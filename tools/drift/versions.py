"""Run the book's claims with older versions, and keep which held with which.

    python -m tools.drift.versions [SET ...] [--chapters 3 4] [--here torch]
    python -m tools.drift.versions --find [SET ...]

A set is one release of Keras with the engines of its time, or what Colab ships. What
its claims did goes to `book/versions.json`, which the claims ledger and the chapters'
margins show. A set is a row of a table as in `machines.py`, which does the work:
environments and logs lie below `_build/versions/`.

PyTorch's builds on the main registry bring gigabytes of CUDA, and the builds without it
stand on an index of PyTorch's own. Where that can't be reached, `--here torch` takes
the PyTorch of `.venv` in place of the set's own, and the record says so.

The versions of a set stand in `constraints/`. `--find` finds them: what pip would have
installed on the last day on which that Keras was the newest.

Exit status: 1 if a claim is broken or a set could not run.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import re
import subprocess
from pathlib import Path

from tools.drift import machines
from tools.installed import ENGINES
from tools.model import files, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.setup import uv

# What the chapters and their kernels import. Other packages bring in the rest.
READERS = (
    *("ipykernel", "jax", "keras", "kubernetes-validate", "matplotlib", "nncf"),
    *("openvino", "psutil", "pyyaml", "scikit-learn", "tensorflow", "torch"),
)
CUDA = re.compile(r"^(nvidia|cuda|triton)\b.*\n", re.M)
HEAD = """\
# Keras {release} with the engines of its time: the newest versions within the ranges of
# requirements.txt on {day}, the last day on which this Keras was the newest, for Linux
# and Python {python}. `make versions ARGS="--find {name}"` found them by the times of
# upload. Left out: CUDA's packages, which no build of PyTorch for CPUs needs.
"""


@dataclasses.dataclass(frozen=True)
class Set(machines.Row):
    """A release of Keras with the engines of its time."""

    last_day: str = ""  # on which it was the newest, as an ISO date

    @property
    def short(self) -> str:
        """The name for a mark: `3.13`."""
        return self.title.removeprefix("Keras ")


def of_its_time(release: str, last_day: str) -> Set:
    """The set of a release of Keras that is not the newest any more."""
    day = datetime.date.fromisoformat(last_day)
    return Set(
        f"keras-{release}",
        f"Keras {release}",
        f"What pip installed on {day.day} {day:%B %Y}, the last day on which "
        f"Keras {release} was the newest.",
        options=("--nbval-lax",),
        constraints=f"constraints/keras-{release}.txt",
        python="3.11",
        packages=READERS,
        release=("keras", release),
        last_day=last_day,
    )


SETS = (
    of_its_time("3.13", "2026-04-02"),
    of_its_time("3.14", "2026-06-23"),
    Set(
        "keras-3.15",
        "Keras 3.15",
        "The newest Keras, with the versions that the book is verified with.",
        options=("--nbval-lax",),
        release=("keras", "3.15"),
    ),
    Set(
        "colab",
        "Colab",
        "What Google Colab ships, from `constraints/colab.txt`.",
        options=("--nbval-lax",),
        constraints="constraints/colab.txt",
        python="3.13",
        packages=READERS,
    ),
)
TABLE = machines.Table(
    SETS,
    Path("book", "versions.json"),
    "make versions",
    "the claims ledger and beside the chapters' claims",
    keeps_parts=True,
)
HELD, BROKEN, UNCHECKED = outcomes.ALL
NEWER = "not tried"  # the chapter was not run, or the claim had other words


@dataclasses.dataclass(frozen=True)
class Tried:
    """What became of one claim with one set."""

    outcome: str  # `held`, `broken`, `not checked` or `not tried`
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Results:
    """What is known of one set, by the fingerprints of the claims' sentences."""

    row: Set
    entry: dict  # as in the record; empty if the set was never run
    tried: dict[str, Tried]

    @classmethod
    def of(cls, row: Set, entry: dict) -> Results:
        """The results in a set's entry of the record."""
        tried = {name: Tried(HELD) for name in machines.held_fingerprints(entry)}
        for claim in entry.get("not held", []):
            name = machines.fingerprint(claim["sentence"])
            tried[name] = Tried(claim["outcome"], claim["reason"])
        return cls(row, entry, tried)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the engines that it ran with."""
        return self.entry.get("versions", {})

    def claim(self, sentence: str) -> Tried:
        """What became of the claim with these words."""
        return self.tried.get(machines.fingerprint(sentence), Tried(NEWER))


def results(root: Path = ROOT) -> list[Results]:
    """What is known of each set; nothing of all of them if there is no record.

    Raises:
        UserError: the record is not what this program writes.
    """
    there = (root / TABLE.record).exists()
    known = machines.load(root, TABLE) if there else {}
    return [Results.of(row, known.get(row.name, {})) for row in SETS]


# The versions of a time


def find_versions(row: Set, root: Path) -> str:
    """The text of a set's file of versions.

    The registry has to tell when each file was uploaded, so indexes and folders that
    pip is told of beside it are not asked.

    Raises:
        UserError: no versions suit each other, or there is no network.
    """
    wanted = machines.requirements(row, root) + f"keras=={row.release[1]}.*\n"
    settings = uv.settings(uv.pip_settings(), {})
    places = ("UV_INDEX", "UV_FIND_LINKS", "UV_TORCH_BACKEND")
    environment = os.environ | {
        name: value for name, value in settings.items() if name not in places
    }
    words = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "-"]
    words += ["--exclude-newer", row.last_day, "--python-version", row.python]
    done = subprocess.run(
        [*uv.program(), *words],
        input=wanted,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[: machines.LONGEST]
        raise UserError(
            f"{row.constraints}: its versions can't be found ({said}). "
            "Fix: connect to the network"
        )
    head = HEAD.format(
        release=row.release[1], day=row.last_day, python=row.python, name=row.name
    )
    return head + CUDA.sub("", done.stdout)


def find_and_keep(rows: list[Set], root: Path) -> None:
    """Write the files with the versions of sets that have a day."""
    for row in rows:
        if row.last_day:
            files.write_text(root / row.constraints, find_versions(row, root))
            print(f"{row.constraints}: written")


# The program


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the book's claims with older versions; write book/versions.json."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.drift.versions", description=main.__doc__
    )
    names = ", ".join(row.name for row in SETS)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"some of {names}")
    parser.add_argument(
        "--chapters", nargs="+", type=int, default=(), help="run these chapters only"
    )
    parser.add_argument(
        "--here",
        nargs="+",
        choices=ENGINES,
        default=(),
        help="take these engines' versions from .venv in place of the set's own",
    )
    parser.add_argument(
        "--find", action="store_true", help="find the sets' versions, and run nothing"
    )
    options = parser.parse_args(argv)
    rows = machines.find(options.sets, TABLE)
    if options.find:
        find_and_keep(rows, root)
        return 0
    rows = [
        dataclasses.replace(row, here=tuple(options.here)) if row.constraints else row
        for row in rows
    ]
    return machines.run_rows(rows, root, tuple(options.chapters), TABLE)


if __name__ == "__main__":
    raise SystemExit(main())
