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

from tools.drift import versions
from tools.model import chapters, outcomes
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
SECTION = "versions"  # the anchor of the table
GLYPHS = {
    outcomes.HELD: "\u2713",
    outcomes.BROKEN: "\u2717",
    outcomes.UNCHECKED: "?",
    versions.NEWER: "\u2013",
}
LEGEND = (
    f"Behind a claim that was tried: {GLYPHS[outcomes.HELD]} held, "
    f"{GLYPHS[outcomes.BROKEN]} broken, {GLYPHS[outcomes.UNCHECKED]} not checked, "
    f"{GLYPHS[versions.NEWER]} not tried with this set. A claim is not tried where its "
    "chapter was not run, or where its sentence has been mended since."
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
    record = root / versions.TABLE.record
    if record.exists():  # a missing one would have the page read at each build
        env.note_dependency(str(record))
    try:
        return versions.results(root)
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="versions")
        return []


# The ledger


def marks(claim: chapters.Claim, found: list[versions.Results]) -> list[nodes.Node]:
    """The marks behind a claim's sentence; none where no set has tried it."""
    if all(one.claim(claim.sentence).outcome == versions.NEWER for one in found):
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


def about(one: versions.Results, numbers: set[int]) -> str:
    """What a set is, with which versions it ran, and what it left out, in sentences.

    Args:
        one: what is known of the set.
        numbers: of the book's chapters.
    """
    said = [one.row.about]
    if "could not run" in one.entry:
        return f"{one.row.about} It could not run: {one.entry['could not run']}."
    if not one.entry:
        return f"{one.row.about} Not run yet."
    said.append(f"Run with {listed(one.versions)} and Python {one.entry['python']}.")
    if own := one.entry.get("of its time"):
        said.append(f"The book's own version stood in for {listed(own)} of the set.")
    return " ".join([*said, left_out(set(one.entry["chapters"]), numbers)]).strip()


def left_out(ran: set[int], numbers: set[int]) -> str:
    """Which of the book's chapters a run left out, in a sentence, or nothing."""
    left = numbers - ran
    if not left:
        return ""
    few = min(ran, left, key=len)
    words = (
        f"{'Chapter' if len(few) == 1 else 'Chapters'} {joined(map(str, sorted(few)))}"
    )
    was = "was" if len(few) == 1 else "were"
    if few is left:
        return f"{words} {was} not run."
    return f"{words} {was} run so far, the other {len(left)} were not."


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
