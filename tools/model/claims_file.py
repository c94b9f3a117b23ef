"""The file `claims.json`: what became of each claim, one claim a line.

`book/claims.json` holds what the notebooks' stored outputs say; `make sync` writes it,
so that `git diff v1 v2 -- book/claims.json` shows which claims changed. A run of the
tests writes `_build/reports/claims.json` with the same lines, and above them the `date`
of the run, its `python` and the `versions` of the engines.

A line has the claim's `id` (the notebook's name and the cell's), its `label`, its
`page` below the site's address, its `sentence`, its `outcome` (`held`, `broken` or
`not checked`) and the `reason`.
"""

import json
from pathlib import Path
from typing import Any

from tools.model import outcomes
from tools.model.chapters import ROOT, Chapter, Claim, book

STORED = Path("book", "claims.json")
REPORT = Path("_build", "reports", "claims.json")


def line(chapter: Chapter, claim: Claim, outcome: str, reason: str) -> dict[str, str]:
    """What the file says of a claim."""
    name = chapter.path.stem
    return {
        "id": f"{name}/{chapter.cells[claim.cell].id}",
        "label": claim.label,
        "page": f"notebooks/{name}.html#{claim.anchor}",
        "sentence": claim.sentence,
        "outcome": outcome,
        "reason": reason,
    }


def why_not_checked(chapter: Chapter, claim: Claim) -> str:
    """The reason in a claim's stored output, or nothing if the claim held."""
    if "verified" not in chapter.notebook.metadata.get("book", {}):
        return "the chapter has not been run yet"
    return "; ".join(outcomes.reasons(chapter.cells[claim.cell].outputs))


def text(lines: list[dict[str, str]], **head: Any) -> str:
    """The file's text.

    Args:
        lines: what `line` says of the claims.
        head: what stands above them.
    """
    fields = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},\n"
        for name, value in head.items()
    ]
    claims = ",\n".join(json.dumps(claim, ensure_ascii=False) for claim in lines)
    return "{\n" + "".join(fields) + f'"claims": [\n{claims}\n]\n}}\n'


def claims_text(root: Path = ROOT) -> str:
    """The text of `book/claims.json`.

    Raises:
        UserError: a chapter is broken.
    """
    lines = []
    for chapter in book(root):
        for claim in chapter.claims:
            reason = why_not_checked(chapter, claim)
            outcome = outcomes.UNCHECKED if reason else outcomes.HELD
            lines.append(line(chapter, claim, outcome, reason))
    return text(lines)
