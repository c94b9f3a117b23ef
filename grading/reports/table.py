"""Tables as spreadsheets read and write them; no text in one becomes a formula."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from tools.model.errors import UserError

DELIMITERS = ",;\t"
# A spreadsheet computes a field that starts with one of these signs, and where a field
# starts depends on what it takes for a separator. Source: OWASP, "CSV Injection".
# Each run of signs is tried once, from its first: an answer is all that somebody wants.
SIGN = re.compile(
    r"""(\A[\s"]*+|(?<![\s",;:|])(?=[^\S\t\r\n]*[,;:|\t\r\n"])[\s",;:|]++)"""
    r"""('*)([=+\-@＝＋－＠])"""
)
csv.field_size_limit(2**31 - 1)  # an answer may be longer than csv's usual limit


def harmless(text: str) -> str:
    """A text that no spreadsheet computes: with an apostrophe before each such sign."""
    return SIGN.sub(r"\1'\2\3", text)


def typed(text: str) -> str:
    """The text that `harmless` was given; one that a person typed stays."""
    return SIGN.sub(lambda match: f"{match[1]}{match[2][1:]}{match[3]}", text)


def dumps(rows: list[list[object]]) -> str:
    """Rows as comma-separated values, with the mark that tells Excel that it is UTF-8.

    Args:
        rows: the names first; texts are made harmless.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        writer.writerow([harmless(x) if isinstance(x, str) else x for x in row])
    return "\ufeff" + text.getvalue()


def read(path: Path, needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table, with commas, semicolons or tabs.

    Args:
        path: the table; empty rows in it are left out.
        needed: columns that it must have.

    Returns:
        The line on which each row starts, and its fields by the columns' lower-case
        names.

    Raises:
        UserError: the table is broken; the message names the line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(
            f"{path}: not in UTF-8. Fix: save it as CSV UTF-8 in the spreadsheet."
        ) from None
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    lines = io.StringIO(text, newline="")
    reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
    rows, line = [], 1
    try:
        names = [name.strip().casefold() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        line = reader.line_num + 1
        for fields in reader:
            if None in fields or None in fields.values():
                raise csv.Error("another number of fields than columns")
            if any(field.strip() for field in fields.values()):
                values = {name: typed(field) for name, field in fields.items()}
                rows.append((line, values))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: a double quote is missing or in the wrong place, or "
            f"a field is missing ({error}). Fix: put quotes around the text."
        ) from None
    if missing := [name for name in needed if name not in names]:
        raise UserError(
            f"{path}, line 1: no column {', '.join(missing)}. "
            f"Fix: the first line names the columns {', '.join(needed)}."
        )
    return rows
