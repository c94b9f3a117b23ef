"""Zip archives that are the same, byte for byte, if their files are."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive knows
MODE = 0o644 << 16


def write(
    path: Path,
    held: Iterable[tuple[str, Path | bytes]],
    stored: Iterable[tuple[str, Path | bytes]] = (),
) -> None:
    """Write an archive; after an error there is none.

    Args:
        path: of the archive.
        held: names in the archive, each with a file or with what it holds.
        stored: the same, for what comes first and is not compressed.
    """
    part = path.with_suffix(".part")
    try:
        with zipfile.ZipFile(part, "w") as archive:
            for kind, pairs in (
                (zipfile.ZIP_STORED, stored),
                (zipfile.ZIP_DEFLATED, held),
            ):
                for name, source in pairs:
                    entry = zipfile.ZipInfo(name, TIME)
                    entry.compress_type = kind
                    entry.external_attr = MODE
                    data = source if isinstance(source, bytes) else source.read_bytes()
                    archive.writestr(entry, data, compresslevel=9)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
