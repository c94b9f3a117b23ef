"""With which versions a claim held, as the ledger and the chapters show it.

`make versions` writes `book/versions.json`. The ledger gets a table of the sets of
versions and marks behind each claim; a chapter gets a note in the margin beside a claim
that is broken with a set.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from tools import chapters
from tools.checks import outcomes
from tools.drift import versions
from tools.errors import UserError

LOGGER = logging.getLogger(__name__)
SECTION = "versions"  # the anchor of the table
GLYPHS = {
    outcomes.HELD: "\u2713",
    outcomes.BROKEN: "\u2717",
    outcomes.UNCHECKED: "?",
    versions.NEWER: "\u2013",
}
LEGEND = (
    f"Behind each claim below: {GLYPHS[outcomes.HELD]} held, "
    f"{GLYPHS[outcomes.BROKEN]} broken, {GLYPHS[outcomes.UNCHECKED]} not checked, "
    f"{GLYPHS[versions.NEWER]} not tried, because its chapter was not run or its "
    "sentence has been mended since."
)
NAMES = {
    "jax": "JAX",
    "keras": "Keras",
    "numpy": "NumPy",
    "openvino": "OpenVINO",
    "tensorflow": "TensorFlow",
    "torch": "PyTorch",
}


def listed(known: dict[str, str]) -> str:
    """Versions in words: `Keras 3.15.1, JAX 0.10.2`."""
    return ", ".join(f"{NAMES.get(name, name)} {x}" for name, x in known.items())


def joined(words: Iterable[str]) -> str:
    """Words as a list: `6, 10 and 12`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def known(env: BuildEnvironment) -> list[versions.Results]:
    """What is known of the sets; a bad record is a warning. The page depends on it."""
    root = Path(env.srcdir)
    env.note_dependency(str(root / versions.TABLE.record))
    try:
        return versions.results(root)
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="versions")
        return []


# The ledger


def marks(claim: chapters.Claim, found: list[versions.Results]) -> list[nodes.Node]:
    """The marks behind a claim's sentence; none where no set was ever run."""
    if not any(one.tried for one in found):
        return []
    line = nodes.inline(classes=["ledger-sets"])
    for one in found:
        outcome = one.claim(claim.sentence).outcome
        text = f"{one.row.short}\u00a0{GLYPHS[outcome]}"
        kind = f"set-{outcome.replace(' ', '-')}"
        line += [nodes.inline("", text, classes=[kind]), nodes.Text(" ")]
    return [nodes.Text(" "), line]


def count(one: versions.Results, claims: list[chapters.Claim]) -> list[int]:
    """How many of today's claims had each outcome with a set."""
    found = [one.claim(claim.sentence).outcome for claim in claims]
    return [found.count(outcome) for outcome in GLYPHS]


def used(one: versions.Results) -> str:
    """The versions that a set ran with, in words."""
    own = one.entry.get("of its time", {})
    text = f"{listed(one.versions)}; Python {one.entry['python']}"
    return f"{text} ({listed(own)} in the set itself)" if own else text


def left_out(one: versions.Results, numbers: set[int]) -> str:
    """Which chapters of the book a set's run left out, in a sentence, or nothing."""
    ran = set(one.entry.get("chapters", []))
    left = [str(number) for number in sorted(numbers - ran)]
    if not ran or not left:
        return ""
    some = f"chapter {joined(map(str, sorted(ran)))}" if len(ran) < len(left) else ""
    if some:
        return f"{one.row.title}: of {len(numbers)} chapters only {some} was run."
    return f"{one.row.title}: chapter {joined(left)} was not run."


# A chapter


def margin_note(
    claim: chapters.Claim, found: list[versions.Results], ledger: nodes.Node
) -> nodes.sidebar | None:
    """The note beside a claim that is broken with some sets; otherwise none.

    Args:
        claim: the claim.
        found: what is known of the sets.
        ledger: a link to the claim's place in the ledger.
    """
    broken = [
        f"{one.row.title} ({listed(engines(one.versions))})"
        for one in found
        if one.claim(claim.sentence).outcome == outcomes.BROKEN
    ]
    if not broken:
        return None
    text = nodes.paragraph("", f"Claim {claim.label} does not hold with ")
    text += [nodes.Text(f"{joined(broken)}: "), ledger, nodes.Text(".")]
    return nodes.sidebar("", text, classes=["margin", "versions-note"])


def engines(used: dict[str, str]) -> dict[str, str]:
    """The versions of the engines that train, by which a reader knows a set."""
    return {x: used[x] for x in ("tensorflow", "jax", "torch") if x in used}
