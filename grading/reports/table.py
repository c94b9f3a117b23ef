"""Tables as spreadsheets read and write them; no text in one becomes a formula."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from pathlib import Path

from tools.model.errors import UserError

DELIMITERS = ",;\t"
# A spreadsheet computes a field that starts with one of these signs, and where a field
# starts depends on what it takes for a separator. Source: OWASP, "CSV Injection".
SIGN = re.compile(r"""(\A[\s"]*|[,;:|\t\r\n"][\s"]*)('*)([=+\-@＝＋－＠])""")
csv.field_size_limit(2**31 - 1)  # an answer may be longer than csv's usual limit


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table."""

    line: int  # where it starts in the file, from 1
    fields: dict[str, str]  # by the names of the columns


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


def read(path: Path, needed: tuple[str, ...]) -> list[Row]:
    """The rows of a table, with commas, semicolons or tabs, by lower-case names.

    Args:
        path: the table; empty rows in it are left out.
        needed: columns that it must have.

    Raises:
        UserError: the table is broken; the message names the line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(
            f"{path}: not in UTF-8. Fix: save it as CSV UTF-8 in the spreadsheet."
        ) from None
    header = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, names, line = [], [], 1
    try:
        for fields in reader:
            if not names:
                names = [name.strip().casefold() for name in fields]
            elif any(field.strip() for field in fields):
                if len(fields) != len(names):
                    raise csv.Error(f"{len(fields)} fields, and {len(names)} columns")
                values = map(typed, fields)
                rows.append(Row(line, dict(zip(names, values, strict=True))))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: a double quote is missing or in the wrong place, or "
            f"a field is missing ({error}). Fix: put quotes around the text."
        ) from None
    missing = [name for name in needed if names.count(name) != 1]
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(missing)}, or two. "
            f"Fix: the first line names the columns {', '.join(needed)}."
        )
    return rows
