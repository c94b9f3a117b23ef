"""Dates and lists in the words of a sentence."""

import datetime
from collections.abc import Iterable


def date_in_words(iso: str) -> str:
    """A date such as `21 November 2026`; of a month or a year, what is known of it.

    Args:
        iso: `2026-11-21`, `2026-11` or `2026`.

    Raises:
        ValueError: it is no such date.
    """
    known = [int(part) for part in iso.split("-")]
    date = datetime.date(*[*known, 1, 1][:3])
    words = [str(date.day), f"{date:%B}", str(date.year)]
    return " ".join(words[3 - len(known) :])


def joined(words: Iterable[str]) -> str:
    """Words as a list: `6, 10 and 12`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
