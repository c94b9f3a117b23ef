"""Put what became of the claims in a run of the tests into `book/versions.json`.

    python -m tools.versions NAME

NAME is a set of `constraints/sets.yml`. `make versions SET=NAME` runs the claims with
its versions and then this program, which takes the run's report. A run of some chapters
replaces what is known of these, if the others were run with the same versions.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from tools.model import claims_file, files, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.versions import record

LONGEST = 300  # characters of a reason that are kept
FOLDERS = re.compile(r"(?<![\w./:])(/[\w.+@-]+){2,}/")  # of the machine that ran it
PIN = re.compile(r"^([\w.-]+)==([^\s;+]+)", re.MULTILINE)


def of_report(report: dict[str, Any], pins: dict[str, str]) -> dict[str, Any]:
    """What the record says of a run.

    Args:
        report: a run's `claims.json`.
        pins: the set's own versions.
    """
    versions = {name: x.partition("+")[0] for name, x in report["versions"].items()}
    replaced = {x: pins[x] for x in versions if pins.get(x, versions[x]) != versions[x]}
    held: dict[str, list[str]] = {}
    for claim in report["claims"]:
        names = held.setdefault(claim["label"].partition(".")[0], [])
        if claim["outcome"] == outcomes.HELD:
            names.append(record.fingerprint(claim["sentence"]))
    return {
        "date": report["date"],
        "python": report["python"],
        "versions": versions,
        "replaced": replaced,
        "held": {chapter: " ".join(names) for chapter, names in held.items()},
        "not_held": [
            {name: claim[name] for name in ("id", "sentence", "outcome")}
            | {"reason": FOLDERS.sub(".../", claim["reason"])[:LONGEST]}
            for claim in report["claims"]
            if claim["outcome"] != outcomes.HELD
        ],
    }


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What the record says after another run; of chapters that did not run, as before.

    Raises:
        UserError: these were run with other versions.
    """
    left = old.get("held", {}).keys() - new["held"].keys()
    if not left:
        return new
    if any(old[name] != new[name] for name in ("python", "versions")):
        raise UserError(
            f"{record.RECORD}: chapters {', '.join(sorted(left, key=int))} were run "
            "with other versions. Fix: run all chapters"
        )
    held = {x: old["held"][x] for x in left} | new["held"]
    kept = [x for x in old["not_held"] if str(int(x["id"][:2])) in left]
    return new | {
        "date": min(old["date"], new["date"]),
        "held": {x: held[x] for x in sorted(held, key=int)},
        "not_held": sorted(kept + new["not_held"], key=lambda x: x["id"][:2]),
    }


def keep(name: str, root: Path = ROOT) -> dict[str, Any]:
    """Put the last run's report into the record, as the run of a set.

    Raises:
        UserError: there is no such set, or the run was not one of it.
    """
    sets = {one.name: one for one in record.sets(root)}
    if name not in sets:
        raise UserError(f"there is no set {name!r}. Fix: name one of {', '.join(sets)}")
    report = files.read_json(root / claims_file.REPORT, "make test")
    pins = dict(PIN.findall((root / f"constraints/{name}.txt").read_text("utf-8")))
    run = of_report(report, pins)
    python = sets[name].python
    if python and not run["python"].startswith(f"{python}."):
        raise UserError(
            f"the run's Python is {run['python']}, that of {name} is {python}. "
            f"Fix: make versions SET={name} PYTHON=python{python}"
        )
    runs = {one.name: one.run for one in sets.values() if one.run}
    runs[name] = merged(runs.get(name, {}), run)
    record.save({x: runs[x] for x in sets if x in runs}, root)
    return run


@command
def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Record the last run of the claims as that of a set of versions."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("set", help=f"a name in {record.SETS}")
    run = keep(parser.parse_args(arguments).set, root)
    broken = [x for x in run["not_held"] if x["outcome"] == outcomes.BROKEN]
    for claim in broken:
        print(f"broken {claim['id']}: {claim['reason']}", file=sys.stderr)
    print(f"{record.RECORD}: {len(run['held'])} chapters, {len(broken)} claims broken")
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
