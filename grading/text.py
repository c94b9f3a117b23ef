"""Texts of students, made fit for a terminal, a file and a page."""

from __future__ import annotations

import os
import re
import unicodedata

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
JOINERS = "\u200c\u200d"  # Persian names and some emoji need them


def one_line(text: str) -> str:
    """A text of one line: what is not printable stands there by its escape.

    Control characters, line ends, marks that change the direction of writing, and
    surrogates (which UTF-8 can't hold) are escaped: `a\\nb`, `\\x1b`, `\\u202e`.
    """
    return "".join(one if _is_harmless(one) else _escape(one) for one in text)


def several_lines(text: str) -> str:
    """The same for a text that may have line ends and tabs; it loses its colours."""
    return "".join(
        one if _is_harmless(one) or one in "\n\t" else _escape(one)
        for one in COLOUR.sub("", text).replace("\r\n", "\n")
    )


def everywhere(data):
    """Data as JSON has them, with all texts in them made fit."""
    if isinstance(data, str):
        return several_lines(data)
    if isinstance(data, list):
        return [everywhere(one) for one in data]
    if isinstance(data, dict):
        return {key: everywhere(one) for key, one in data.items()}
    return data


def file_name(name: str) -> str:
    """A file's name in one line; bytes that are no UTF-8 stand there as `\\xfc`."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _is_harmless(character: str) -> bool:
    """Whether a character is printable, or a space of some width."""
    return (
        character.isprintable()
        or character in JOINERS
        or unicodedata.category(character) == "Zs"
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
