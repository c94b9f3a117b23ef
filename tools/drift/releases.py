"""Releases of the book: the file that each leaves, and what changed between two.

    python -m tools.drift.releases NAME [--again]

NAME is a month, `2026.11`, or a version, `1.2.0`; the release's tag is `vNAME`. Its
file, `book/releases/NAME.json`, is the site's `claims.json` of that day, see
`claims.py`, with `release`, `date` and `commit`, at which the claims were tested. The
page *What changed* and the feed are made from these files alone, without git.

It refuses where the tests of this commit have not seen every claim, where one is broken
or a file was changed, and where the name is taken. `--again` makes the newest release
anew, as long as it has no tag. At the end it prints the commands that publish it.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import re
from pathlib import Path

from tools.drift import claims, versions
from tools.model import address, files, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

VALID = re.compile(r"\d{4}\.(0[1-9]|1[0-2])|\d+\.\d+\.\d+")
REPORT = Path("_build", "reports", claims.NAME)
OWN = ""  # the name of the book's own run, beside those of `make versions`


# What changed


@dataclasses.dataclass(frozen=True)
class Turn:
    """A claim whose outcome differs between two releases, in one set of versions."""

    claim: dict  # as in the newer release
    where: str  # the set's name, or OWN
    before: str  # the outcomes
    after: str
    reason: str  # of the newer one


@dataclasses.dataclass(frozen=True)
class Changes:
    """What differs between two states of the book's claims."""

    new: list[dict]
    gone: list[dict]
    reworded: list[tuple[dict, dict]]  # before and after
    turned: list[Turn]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(x) for x in (self.new, self.gone, self.reworded, self.turned))

    def summary(self) -> str:
        """How many of each kind, in words."""
        kinds = ("new", self.new), ("gone", self.gone), ("reworded", self.reworded)
        said = [f"{len(found)} {kind}" for kind, found in kinds]
        return ", ".join([*said, f"{len(self.turned)} with another outcome"])


def tried(claim: dict) -> dict[str, tuple[str, str]]:
    """The outcome and the reason of a claim in each set of versions."""
    found = {OWN: (claim["outcome"], claim.get("reason", ""))}
    for name, one in claim["with"].items():
        found[name] = (one["outcome"], one["reason"])
    return found


def turns(before: dict, after: dict) -> list[Turn]:
    """Where a claim's outcome differs.

    A set that only one of the two states tried counts if the claim broke with it: that
    is news, whereas a claim that holds with one more set is not.
    """
    old, new = tried(before), tried(after)
    found = []
    for name, (outcome, reason) in new.items():
        was, _ = old.get(name, (versions.NEWER, ""))
        news = was != versions.NEWER or outcome == outcomes.BROKEN
        if was != outcome and news:
            found.append(Turn(after, name, was, outcome, reason))
    return found


def compare(old: dict, new: dict) -> Changes:
    """What differs between the claims of two files."""
    before = {claim["id"]: claim for claim in old["claims"]}
    after = {claim["id"]: claim for claim in new["claims"]}
    both = [(before[x], after[x]) for x in after if x in before]
    return Changes(
        [claim for x, claim in after.items() if x not in before],
        [claim for x, claim in before.items() if x not in after],
        [(one, two) for one, two in both if one["sentence"] != two["sentence"]],
        [turn for one, two in both for turn in turns(one, two)],
    )


# A new release


def content(name: str, commit: str, root: Path = ROOT) -> dict:
    """What the file of a release that is made now holds.

    Args:
        name: of the release.
        commit: at which its claims were tested, or nothing.
        root: the repository's folder.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = {"about": "Written by `make release`. Edit nothing.", "release": name}
    return about | {"date": today, "commit": commit} | claims.stored(root)


def check_tests(root: Path) -> str:
    """The commit of the files, at which the tests have seen every claim hold.

    Raises:
        UserError: they have not.
    """
    changed = claims.git(root, "status", "--porcelain")
    if changed:
        raise UserError(
            f"files were changed ({', '.join(x[3:] for x in changed.splitlines()[:3])})"
            ". Fix: commit them, then make test"
        )
    commit = claims.git(root, "rev-parse", "HEAD")
    try:
        report = json.loads((root / REPORT).read_text(encoding="utf-8"))
        seen = {claim["cell"]: claim for claim in report["claims"]}
        at = report["commit"]
    except FileNotFoundError:
        raise UserError(f"{REPORT}: no such file. Fix: make test") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{REPORT}: not what make test writes. Fix: make test"
        ) from None
    if at != commit:
        raise UserError(
            f"{REPORT}: of another commit, or files were changed. Fix: make test"
        )
    now = claims.stored(root)["claims"]
    unseen = [claim["label"] for claim in now if claim["cell"] not in seen]
    if unseen:
        raise UserError(
            f"{REPORT}: {len(unseen)} claims were not tested, {unseen[0]} first. "
            "Fix: make test, without TESTS"
        )
    broken = [x["label"] for x in seen.values() if x["outcome"] == outcomes.BROKEN]
    if broken:
        raise UserError(f"broken: claim {', '.join(broken)}. Fix: mend the chapters")
    return commit


def check_name(name: str, again: bool, root: Path) -> None:
    """See that a release can have this name.

    Raises:
        UserError: it can't.
    """
    if not VALID.fullmatch(name):
        raise UserError(f"{name!r} is no name. Fix: NAME=2026.11, or NAME=1.2.0")
    if claims.git(root, "tag", "--list", f"v{name}"):
        raise UserError(f"the tag v{name} exists. Fix: choose another NAME")
    known = [one["release"] for one in claims.releases(root)]
    if name in known and not (again and name == known[-1]):
        fix = "ARGS=--again makes it anew" if name == known[-1] else "choose another"
        raise UserError(f"{claims.RELEASES / name}.json exists. Fix: {fix}")


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the file of a release; print how to publish it."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.drift.releases", description=main.__doc__
    )
    parser.add_argument("name", metavar="NAME", help="such as 2026.11")
    parser.add_argument(
        "--again", action="store_true", help="make the newest release anew"
    )
    given = parser.parse_args(argv)
    check_name(given.name, given.again, root)
    commit = check_tests(root)
    path = root / claims.RELEASES / f"{given.name}.json"
    made = content(given.name, commit, root)
    known = [one for one in claims.releases(root) if one["release"] != given.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, claims.text(made))
    said = f"{len(made['claims'])} claims"
    if known:
        said += f"; since {known[-1]['release']}: {compare(known[-1], made).summary()}"
    branch = address.repository(root).branch
    print(f"{path.relative_to(root)}: {said}. To publish it:")
    print(f"  git add {path.relative_to(root)}")
    print(f"  git commit -m 'site: Release {given.name}'")
    print(f"  git tag -a v{given.name} -m 'Release {given.name}'")
    print(f"  git push --atomic origin {branch} v{given.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
