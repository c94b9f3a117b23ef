"""With which versions a claim held, as the ledger and the chapters show it.

`make versions` writes `book/versions.json`. The ledger gets a table of the sets of
versions and marks behind each claim; a chapter gets a note in the margin beside a claim
that is broken with a set.
"""

from pathlib import Path

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from book_site.words import joined
from tools.model import outcomes
from tools.model.chapters import Claim
from tools.model.errors import UserError
from tools.versions import record
from tools.versions.record import VersionSet

LOGGER = logging.getLogger(__name__)
GLYPHS = {
    outcomes.HELD: "\u2713",
    outcomes.BROKEN: "\u2717",
    outcomes.UNCHECKED: "?",
    record.NOT_TRIED: "\u2013",
}
LEGEND = (
    f"Behind a claim that was tried: {GLYPHS[outcomes.HELD]} held, "
    f"{GLYPHS[outcomes.BROKEN]} broken, {GLYPHS[outcomes.UNCHECKED]} not checked, "
    f"{GLYPHS[record.NOT_TRIED]} not tried with this set. A claim is not tried "
    "where its chapter was not run, or where its sentence has been mended since."
)
NAMES = {
    "jax": "JAX",
    "keras": "Keras",
    "numpy": "NumPy",
    "openvino": "OpenVINO",
    "tensorflow": "TensorFlow",
    "torch": "PyTorch",
}
TRAINING = ("tensorflow", "jax", "torch")  # the engines by which a reader knows a set


def listed(versions: dict[str, str]) -> str:
    """Versions in words: `Keras 3.15.1, JAX 0.10.2`."""
    return ", ".join(f"{NAMES.get(name, name)} {x}" for name, x in versions.items())


def known_sets(env: BuildEnvironment) -> list[VersionSet]:
    """The sets; a bad record is a warning. The page that is read depends on it."""
    root = Path(env.srcdir)
    for path in (record.SETS, record.RECORD):
        env.note_dependency(str(root / path))
    try:
        return record.sets(root)
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="versions")
        return []


def marks(claim: Claim, sets: list[VersionSet]) -> list[nodes.Node]:
    """The marks behind a claim's sentence; none where no set has tried it."""
    found = [(one.title, one.tried(claim.sentence).outcome) for one in sets]
    if all(outcome == record.NOT_TRIED for _, outcome in found):
        return []
    line = nodes.inline(classes=["ledger-sets"])
    for title, outcome in found:
        text = f"{title.removeprefix('Keras ')}\u00a0{GLYPHS[outcome]}"
        kind = f"set-{outcome.replace(' ', '-')}"
        line += [nodes.inline("", text, classes=[kind]), nodes.Text(" ")]
    return [nodes.Text(" "), line]


def count(one: VersionSet, claims: list[Claim]) -> list[int]:
    """How many of today's claims had each outcome with a set."""
    found = [one.tried(claim.sentence).outcome for claim in claims]
    return [found.count(outcome) for outcome in GLYPHS]


def about(one: VersionSet, numbers: set[int]) -> str:
    """What a set is, with which versions it ran, and what it left out, in sentences.

    Args:
        one: the set.
        numbers: of the book's chapters.
    """
    if not one.run:
        return f"{one.about} Not run yet."
    used, own = listed(one.run["versions"]), listed(one.run["replaced"])
    said = f"{one.about} Run with {used} and Python {one.run['python']}."
    if own:
        said += f" The book's own version stood in for {own} of the set."
    left = sorted(numbers - set(map(int, one.run["held"])))
    if left:
        words = "Chapter {} was" if len(left) == 1 else "Chapters {} were"
        said += f" {words.format(joined(map(str, left)))} not run."
    return said


def margin_note(
    claim: Claim, sets: list[VersionSet], ledger: nodes.Node
) -> nodes.sidebar | None:
    """The note beside a claim that is broken with some sets; otherwise none.

    Args:
        claim: the claim.
        sets: what is known of the versions.
        ledger: a link to the claim's place in the ledger.
    """
    broken = []
    for one in sets:
        if one.tried(claim.sentence).outcome == outcomes.BROKEN:
            engines = {x: v for x, v in one.run["versions"].items() if x in TRAINING}
            broken.append(f"{one.title} ({listed(engines)})")
    if not broken:
        return None
    text = nodes.paragraph("", f"Claim {claim.label} does not hold with ")
    text += [nodes.Text(f"{joined(broken)}: "), ledger, nodes.Text(".")]
    return nodes.sidebar("", text, classes=["margin", "versions-note"])
