"""Which claim of today is which claim of a release, although sentences get mended.

A claim's number changes when one is put before it, and its sentence when it is said
better. Its cell keeps its identifier, which a notebook's format provides for that, as
long as nobody writes the cell anew. So a claim is found again, in this order:

1. the same sentence, in the same cell if there are several;
2. the same cell, with a sentence that is somewhat alike;
3. another cell of the chapter, with a sentence that is much alike.

How alike two sentences are is the mean of difflib's ratios of their letters and of
their words. The bounds are what separated mended sentences from other claims in this
book's own history, where 134 sentences were mended in their cells: those of the same
claim had 0.25 or more, those of another one 0.20 or less. What is not found is a claim
that is new, or one that is gone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

SAME_CELL = 0.24  # the least for a mended sentence in its cell
OTHER_CELL = 0.65  # and in another cell of the chapter


def natural(chapter: str, cell: str) -> str:
    """The name of a claim that is in no release yet.

    Args:
        chapter: the notebook's name without its suffix, such as `05-memory`.
        cell: the identifier of the claim's cell.
    """
    return f"{chapter}/{cell}"


def alike(one: str, other: str) -> float:
    """How alike two sentences are, from 0 to 1."""
    pairs = (one, other), (one.split(), other.split())
    ratios = [difflib.SequenceMatcher(None, *x, autojunk=False).ratio() for x in pairs]
    return sum(ratios) / 2


def _words(claim: dict) -> str:
    return " ".join(claim["sentence"].split())


def _chapter(claim: dict) -> str:
    return claim["cell"].partition("/")[0]


def matches(old: Sequence[dict], new: Sequence[dict]) -> dict[int, int]:
    """Which of the old claims each of the new ones is, by their places in the lists.

    Args:
        old: claims with `cell`, as `natural` names it, and `sentence`.
        new: the same.
    """
    found: dict[int, int] = {}
    left = set(range(len(old)))

    def pair(candidates: Iterable[tuple[float, int, int]]) -> None:
        for _, i, j in sorted(candidates, key=lambda x: (-x[0], x[1], x[2])):
            if i not in found and j in left:
                found[i] = j
                left.remove(j)

    def unmatched() -> list[int]:
        return [i for i in range(len(new)) if i not in found]

    places: dict[str, list[int]] = {}
    for j, claim in enumerate(old):
        places.setdefault(_words(claim), []).append(j)
    pair(
        (float(new[i]["cell"] == old[j]["cell"]), i, j)
        for i in unmatched()
        for j in places.get(_words(new[i]), [])
    )
    cells = {claim["cell"]: j for j, claim in enumerate(old)}
    kept = [(i, cells[new[i]["cell"]]) for i in unmatched() if new[i]["cell"] in cells]
    pair(
        (ratio, i, j)
        for i, j in kept
        if (ratio := alike(_words(old[j]), _words(new[i]))) >= SAME_CELL
    )
    pair(
        (ratio, i, j)
        for i in unmatched()
        for j in left
        if _chapter(old[j]) == _chapter(new[i])
        and (ratio := alike(_words(old[j]), _words(new[i]))) >= OTHER_CELL
    )
    return found


def name(claims: list[dict], released: Sequence[dict], used: Iterable[str]) -> None:
    """Give each claim its `id`: that of the release's claim that it is, or a new one.

    Args:
        claims: claims with `cell` and `sentence`; they get an `id`.
        released: the claims of the newest release, with their `id`.
        used: the names of the claims of all releases; none means another claim.
    """
    known = matches(released, claims)
    taken = {*used, *(claim["id"] for claim in released)}
    for i, claim in enumerate(claims):
        if i in known:
            claim["id"] = released[known[i]]["id"]
            continue
        candidate, number = claim["cell"], 1
        while candidate in taken:
            number += 1
            candidate = f"{claim['cell']}-{number}"
        claim["id"] = candidate
        taken.add(candidate)
