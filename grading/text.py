"""Texts of students, made fit for a terminal, a file and a page."""

from __future__ import annotations

JOINERS = "\u200c\u200d"  # Persian names and some emoji need them


def one_line(text: str) -> str:
    """A text of one line: what is not printable stands there by its escape.

    Control characters, line ends, marks that change the direction of writing, and
    surrogates (which UTF-8 can't hold) are escaped: `a\\nb`, `\\x1b`, `\\u202e`.
    """
    return "".join(
        one if one.isprintable() or one in JOINERS else _escape(one) for one in text
    )


def several_lines(text: str) -> str:
    """The same for a text that may have line ends and tabs."""
    return "".join(
        one if one.isprintable() or one in JOINERS or one in "\n\t" else _escape(one)
        for one in text.replace("\r\n", "\n")
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
