"""The file `claims.json`: each claim, what became of it, with which versions, and when.

It is made in two ways. The site publishes what the notebooks' stored outputs say, which
needs no run of the tests; `make test` writes what its own run says, beside its reports.
Both have the same fields:

- `format`: 1; `source`: which of the two it is; `commit`: that the tests ran at, if no
  file had been changed; `release`: the name of the release, if it is one's file.
- `sets`: what `make versions` ran, by name: `title`, `date`, `python`, `versions`.
- `claims`, one a line: `id`, which stays although number, sentence or chapter change;
  `cell`, its notebook and cell; `chapter` and `label`, its numbers; `page`, its address
  below the site's; `sentence`; `outcome`: `held`, `broken` or `not checked`, and the
  `reason`; `date`, `python` and `versions` of the run; `last_held`, the newest run in
  which it held: the same three, and `on` which machine or with which set, or null if it
  never did; `with`: `outcome` and `reason` by the sets' names, of those that tried it.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from tools.drift import identity, machines, versions
from tools.model import chapters, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError

NAME = "claims.json"
FORMAT = 1
STORED = "the outputs stored in the notebooks"
TESTED = "a run of the tests"
RELEASES = Path("book", "releases")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run says of a claim."""

    outcome: str
    reason: str = ""


def releases(root: Path = ROOT) -> list[dict]:
    """The content of the releases' files, the oldest first.

    Raises:
        UserError: a file is not what `make release` writes.
    """
    found = []
    for path in (root / RELEASES).glob("*.json"):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = content["format"] == FORMAT and content["release"] == path.stem
            datetime.date.fromisoformat(content["date"])
            for claim in content["claims"]:
                known &= {"id", "cell", "sentence", "outcome", "with"} <= set(claim)
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        if not known:
            name = path.relative_to(root)
            raise UserError(
                f"{name}: not what make release writes. Fix: git checkout -- {name}"
            )
        found.append(content)
    return sorted(found, key=lambda x: (x["date"], order(x["release"])))


def order(name: str) -> list[int]:
    """What puts the names of releases in order: `2026.2` before `2026.11`."""
    return [int(part) for part in name.split(".") if part.isdigit()]


# The runs


@dataclasses.dataclass(frozen=True)
class Run:
    """When, and with which versions, claims were checked."""

    date: str
    python: str
    versions: dict[str, str]

    def fields(self) -> dict:
        """As in the file."""
        return dataclasses.asdict(self)


def stored_run(notebook: nbformat.NotebookNode) -> Run | None:
    """The run whose outputs a notebook holds, or nothing if it was never verified."""
    known = notebook.metadata.get("book", {}).get("verified")
    if not known:
        return None
    packages = {k: x.partition("+")[0] for k, x in known.get("packages", {}).items()}
    return Run(known["date"], known["python"], packages)


def this_run() -> Run:
    """A run that ends now, with what is installed here."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Run(today, platform.python_version(), machines.installed())


def stored_outcome(cell: nbformat.NotebookNode) -> Outcome:
    """What a claim's stored output says."""
    why = "; ".join(outcomes.reasons(cell.outputs))
    return Outcome(outcomes.UNCHECKED, why) if why else Outcome(outcomes.HELD)


class Book:
    """All claims of the book, and what other machines and versions say of them."""

    def __init__(self, root: Path = ROOT) -> None:
        """Read the records.

        Raises:
            UserError: a record can't be read.
        """
        self.root = root
        self.sets = versions.results(root)
        there = (root / machines.RECORD).exists()
        self.elsewhere = machines.load(root) if there else {}
        self.fingerprints = {
            name: machines.held_fingerprints(entry)
            for name, entry in self.elsewhere.items()
        }

    def claim(
        self,
        path: Path,
        claim: chapters.Claim,
        cell: nbformat.NotebookNode,
        outcome: Outcome,
        run: Run,
    ) -> dict:
        """What the file says of a claim, all but its `id`."""
        page = path.relative_to(self.root).with_suffix(".html").as_posix()
        tried = {x.row.name: x.claim(claim.sentence) for x in self.sets}
        return {
            "id": "",
            "cell": identity.natural(path.stem, cell.id),
            "chapter": claim.chapter,
            "label": claim.label,
            "page": f"{page}#{claim.anchor}",
            "sentence": claim.sentence,
            "outcome": outcome.outcome,
            "reason": machines.one_line(outcome.reason, self.root),
            **run.fields(),
            "last_held": self.last_held(claim, outcome, run),
            "with": {
                name: dataclasses.asdict(one)
                for name, one in tried.items()
                if one.outcome != versions.NEWER
            },
        }

    def last_held(
        self, claim: chapters.Claim, outcome: Outcome, run: Run
    ) -> dict | None:
        """The last run in which the claim held, of all that are known."""
        found = []
        if outcome.outcome == outcomes.HELD:
            found.append(run.fields() | {"on": "the run itself"})
        name = machines.fingerprint(claim.sentence)
        found += [
            {x: entry[x] for x in ("date", "python", "versions")} | {"on": row}
            for row, entry in self.elsewhere.items()
            if name in self.fingerprints[row]
        ]
        found += [
            {x: one.entry[x] for x in ("date", "python", "versions")}
            | {"on": one.row.name}
            for one in self.sets
            if one.claim(claim.sentence).outcome == outcomes.HELD
        ]
        return max(found, key=lambda x: x["date"], default=None)  # the first of equals

    def content(self, source: str, found: list[dict]) -> dict[str, Any]:
        """The file's content; the claims get the names that they have in releases."""
        known = releases(self.root)
        newest = known[-1]["claims"] if known else []
        used = {claim["id"] for one in known for claim in one["claims"]}
        identity.name(found, newest, used)
        return {
            "format": FORMAT,
            "source": source,
            "sets": {
                x.row.name: {"title": x.row.title}
                | {key: x.entry[key] for key in ("date", "python", "versions")}
                for x in self.sets
                if x.versions
            },
            "claims": found,
        }


def stored(root: Path = ROOT, paths: Iterable[Path] | None = None) -> dict[str, Any]:
    """What the notebooks' stored outputs say of the claims.

    Args:
        root: the repository's folder.
        paths: the chapters; nothing means all.

    Raises:
        UserError: a chapter or a record can't be read.
    """
    book, found = Book(root), []
    for path in chapters.chapter_paths(root) if paths is None else paths:
        notebook = chapters.read(path)
        run = stored_run(notebook)
        for claim in chapters.claims(path, notebook) if run else ():
            cell = notebook.cells[claim.cell]
            found.append(book.claim(path, claim, cell, stored_outcome(cell), run))
    return book.content(STORED, found)


def tested(
    ran: dict[tuple[str, int], Outcome], commit: str, root: Path = ROOT
) -> dict[str, Any]:
    """What a run of the tests says of the claims that it came to.

    Args:
        ran: what became of the cells, by notebook (its path from the root) and index.
        commit: that it ran at, or nothing if that can't be told.
        root: the repository's folder.

    Raises:
        UserError: a chapter or a record can't be read.
    """
    book, found, run = Book(root), [], this_run()
    for path in chapters.chapter_paths(root):
        name = path.relative_to(root).as_posix()
        if not any(notebook == name for notebook, _ in ran):
            continue
        notebook = chapters.read(path)
        for claim in chapters.claims(path, notebook):
            if (name, claim.cell) in ran:
                outcome, cell = ran[name, claim.cell], notebook.cells[claim.cell]
                found.append(book.claim(path, claim, cell, outcome, run))
    return book.content(TESTED, found) | {"commit": commit}


def text(content: dict[str, Any]) -> str:
    """The file's text: one claim a line, so that a difference shows which changed."""
    rest = {key: value for key, value in content.items() if key != "claims"}
    head = json.dumps(rest, indent=1, ensure_ascii=False).removesuffix("\n}")
    lines = [json.dumps(claim, ensure_ascii=False) for claim in content["claims"]]
    return f'{head},\n "claims": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def clean_commit(root: Path = ROOT) -> str:
    """The commit of the files; nothing if one was changed, or there is no git."""
    try:
        changed = git(root, "status", "--porcelain")
        return "" if changed else git(root, "rev-parse", "HEAD")
    except UserError:
        return ""


def git(root: Path, *words: str) -> str:
    """What git prints.

    Raises:
        UserError: it fails, or there is none.
    """
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise UserError("git is missing. Fix: apt-get install git") from None
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        raise UserError(f"git {words[0]}: {said}. Fix: run it in a clone") from None
    return done.stdout.strip()
