"""Copy into chapters what stands elsewhere: snippets, addresses, lists of claims."""

import argparse
import re
from pathlib import Path

import nbformat

from tools.model import address, chapters, claims_file, files
from tools.model.chapters import ROOT, Chapter
from tools.model.errors import UserError, command
from tools.notebooks import normalise

COLAB_LINE = re.compile(r"(?m)^\*\*\[Open in Colab\]\(.*\)\*\*$")
START, END = MARKERS = ("# >>>", "# <<<")
BLOCK = re.compile(rf"(?ms)^{START} (?P<name>\S+)$(?P<body>.*?)(?:^{END}$|\Z)")
PROVED = "## What you proved"
LEAD = "Claims of this chapter, numbered as in the claims ledger"


def proved_cell(claims: list[chapters.Claim]) -> str:
    """The text of a chapter's "What you proved" cell."""
    lines = [f"- **{claim.label}** {claim.sentence}" for claim in claims]
    fold = f"<details><summary>{LEAD}: {len(claims)}</summary>"
    return "\n".join([PROVED, "", fold, "", *lines, "", "</details>"])


def insert_snippets(source: str, place: str, root: Path = ROOT) -> str:
    """Fill the blocks `# >>> snippets/x.py` ... `# <<<` of a cell with the files.

    Args:
        source: the cell's source.
        place: the cell's file and number, for messages.
        root: the folder that holds snippets/ and programs/.

    Raises:
        UserError: a snippet does not exist, or a block has no end.
    """

    def filled(block: re.Match[str]) -> str:
        name = block["name"]
        path = root / name
        if not path.is_file():
            raise UserError(
                f"{place}: there is no snippet {name}. "
                "Fix: name a file of snippets/ or programs/."
            )
        if START in block["body"] or not block[0].endswith(END):
            raise UserError(
                f"{place}: the block of {name} has no end. "
                f"Fix: write the line `{END}` below it."
            )
        text = path.read_text(encoding="utf-8").rstrip("\n")
        return f"{START} {name}\n{text}\n{END}"

    return BLOCK.sub(filled, source)


def synced(path: Path, root: Path) -> tuple[nbformat.NotebookNode, list[str]]:
    """Read a notebook and bring its copied parts up to date: sources, not outputs.

    Returns:
        The new notebook, and what was out of date, one message for each cell.
    """
    notebook = normalise.normalise(chapters.read(path))
    claims = Chapter(path, notebook).claims
    stale: list[str] = []
    for index, cell in enumerate(notebook.cells):
        place = chapters.where(path, index, cell)
        before = cell.source
        if cell.cell_type == "code":
            reason = "differs from its snippet"
            cell.source = insert_snippets(cell.source, place, root)
        elif cell.source.startswith(PROVED):
            reason = "is not the list of the chapter's claims"
            cell.source = proved_cell(claims)
        elif index == 0:
            reason = "has no correct link to Colab"
            colab = address.repository(root).colab(path)
            cell.source = _with_colab_line(cell.source, colab)
        if cell.source != before:
            stale.append(f"{place}: {reason}")
    return notebook, stale


def _with_colab_line(source: str, colab: str) -> str:
    """Correct a first cell's Colab line, or put it below the title."""
    line = f"**[Open in Colab]({colab})**"
    if COLAB_LINE.search(source):
        return COLAB_LINE.sub(lambda match: line, source, count=1)
    title, _, rest = source.partition("\n")
    return "\n\n".join(part for part in (title, line, rest.strip("\n")) if part)


def sync(root: Path = ROOT, check: bool = False) -> list[str]:
    """Bring all copies up to date, and chapters into their canonical form.

    Args:
        root: the repository's folder.
        check: only report, and leave the form to the check of the form.

    Returns:
        One message for each place that was out of date.

    Raises:
        UserError: an input is broken; nothing was written.
    """
    stale: list[str] = []
    texts: dict[Path, str] = {}
    for path in chapters.chapter_paths(root):
        notebook, reasons = synced(path, root)
        text = normalise.dumps(notebook)
        if not (reasons or check) and path.read_text(encoding="utf-8") != text:
            reasons = [f"{path.name}: is not in canonical form"]
        if reasons:
            texts[path] = text
        stale += reasons
    path, text = root / claims_file.STORED, claims_file.claims_text(root)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        stale.append(f"{path.name}: is not what the chapters' claims say")
        texts[path] = text
    for path, text in texts.items():
        if not check:
            files.write_text(path, text)
    return stale


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Copy snippets, addresses and lists of claims into the chapters."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--check", action="store_true", help="only report, change nothing"
    )
    check = parser.parse_args(argv).check
    stale = sync(root, check)
    for message in stale:
        print(f"{message}. Fix: make sync." if check else f"{message}: mended.")
    return int(check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
