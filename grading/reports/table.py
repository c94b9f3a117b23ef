"""Tables as spreadsheets read and write them; no text in one becomes a formula."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from pathlib import Path

from tools.model.errors import UserError

DELIMITERS = ",;\t"
# A spreadsheet computes a field that starts with one of these signs. Where a field
# starts depends on what it takes for a separator.
SIGN = re.compile(
    r"""(?P<before>\A[,;:|\s"]*|(?<![,;:|\s"])[,;:|\s"]+)"""
    r"(?P<marks>'*)(?P<sign>[=+\-@＝＋－＠])(?=(?P<after> ?))"
)
SEPARATOR = re.compile(r'[,;:|]|[^\S ]| "')
csv.field_size_limit(2**31 - 1)  # an answer may be longer than csv's usual limit


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table."""

    line: int  # where it starts in the file, from 1
    fields: dict[str, str]  # by the names of the columns


@dataclasses.dataclass(frozen=True)
class Table:
    """What a file holds."""

    names: list[str]  # of the columns; `column 8` where the file has none
    rows: list[Row]
    data: bytes  # the file's, as they were read


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula, with whatever separator.

    An apostrophe stands before each sign that could start one: `'=1+1`, `a; '-b`.
    """
    return SIGN.sub(lambda match: _marked(match, f"'{match['marks']}"), text)


def typed(text: str) -> str:
    """The text that `harmless` made harmless; one that a person typed stays."""
    return SIGN.sub(lambda match: _marked(match, match["marks"][1:]), text)


def _marked(match: re.Match, marks: str) -> str:
    """A sign with these apostrophes before it, if a field could start with it.

    It could at the start of the text, after a separator, and after a space unless
    another one follows: `a - b` and `x = 1` stay as they are.
    """
    before = match["before"]
    starts = match.start() == 0 or SEPARATOR.search(before)
    if not starts and (" " not in before or match["after"]):
        marks = match["marks"]
    return f"{before}{marks}{match['sign']}"


def dumps(rows: list[list[object]]) -> str:
    """Rows as comma-separated values, with the mark that tells Excel that it is UTF-8.

    Args:
        rows: the names first; texts are made harmless.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([harmless(x) if isinstance(x, str) else x for x in row])
    return "\ufeff" + text.getvalue()


def read(path: Path) -> Table:
    """A table, with commas, semicolons or tabs; empty rows are left out.

    Raises:
        UserError: the table is broken; the message names the line.
    """
    data = _bytes(path)
    records = _records(path, _text(path, data))
    if not records:
        raise UserError(f"{path}: empty. Fix: restore it, or remove it.")
    header = enumerate(records[0][1], start=1)
    names = [name.strip() or f"column {number}" for number, name in header]
    for name in names:
        if names.count(name) > 1:
            raise UserError(
                f"{path}, line 1: two columns {name}. Fix: rename or remove one."
            )
    rows = []
    for line, fields in records[1:]:
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(names):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields, and the first line has "
                f"{len(names)}. Fix: put a text that holds a separator or a line's end "
                "into double quotes, and write the missing fields."
            )
        rows.append(Row(line, dict(zip(names, fields, strict=True))))
    return Table(names, rows, data)


def _bytes(path: Path) -> bytes:
    """A table's bytes.

    Raises:
        UserError: it is no file, or can't be read.
    """
    if not path.is_file():
        raise UserError(f"{path}: this is no ordinary file. Fix: remove it.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: can't be read ({error.strerror}). Fix: see its permissions."
        ) from None


def _text(path: Path, data: bytes) -> str:
    """A table's text.

    Raises:
        UserError: it is not in UTF-8.
    """
    fix = "Fix: save it as CSV UTF-8 in the spreadsheet."
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not in UTF-8. {fix}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(f"{path}, line {line}: a zero byte. {fix}")
    return text


def _records(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """The line on which each record starts, and its fields.

    Raises:
        UserError: a quote is in the wrong place.
    """
    header = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=header.count)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    records = []
    while True:
        line = reader.line_num + 1
        try:
            records.append((line, next(reader)))
        except StopIteration:
            return records
        except csv.Error as error:
            raise UserError(
                f"{path}, line {line}: a double quote is missing or in the wrong place "
                f"({error}). Fix: put one before and one after the text; one inside "
                "the text is written twice."
            ) from None
