"""Copy into notebooks and prose what stands elsewhere: snippets, addresses, claims."""

from __future__ import annotations

import argparse
import copy
import re
from pathlib import Path

import nbformat

from tools.model import address, chapters, claims_file, files
from tools.model.address import Repository
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.notebooks import normalise

PROSE = ("CITATION.cff", "README.md", "CONTRIBUTING.md")
COLAB_LINE = re.compile(
    rf"(?m)^\*\*\[Open in Colab\]\({address.COLAB}/(?P<owner>[^/\s)]+)/"
    r"(?P<name>[^/\s)]+)/blob/(?P<branch>[^\s)]+)/"
    r"(?:notebooks|assignments)/[^/\s)]+\.ipynb\)\*\*$"
)
COLAB_ADDRESS = re.compile(
    rf"{address.COLAB}/(?P<owner>[^/\s)]+)/(?P<name>[^/\s)]+)"
    r"/blob/(?P<branch>[^\s)]+?)/(?:notebooks|assignments)/"
)
CITED = re.compile(r'(?m)^repository-code:\s*"?(?P<url>[^\s"#]+)')
BLOCK = re.compile(r"^# >>> (?P<name>\S+)$")
END = "# <<<"
MARKERS = ("# >>>", END)
PROVED = "## What you proved"
LEAD = "Claims of this chapter, numbered as in the claims ledger"


def colab_line(repository: Repository, path: Path) -> str:
    """The line below a chapter's title that opens the chapter in Colab."""
    return f"**[Open in Colab]({repository.colab(path)})**"


def proved_cell(found: list[chapters.Claim]) -> str:
    """The text of a chapter's "What you proved" cell."""
    lines = [f"- **{claim.label}** {claim.sentence}" for claim in found]
    fold = f"<details><summary>{LEAD}: {len(found)}</summary>"
    return "\n".join([PROVED, "", fold, "", *lines, "", "</details>"])


def insert_snippets(source: str, place: str, root: Path = ROOT) -> str:
    """Fill the blocks `# >>> snippets/x.py` ... `# <<<` of a cell with the snippets.

    Args:
        source: the cell's source.
        place: the cell's file and number, for messages.
        root: the folder that holds snippets/.

    Raises:
        UserError: a snippet does not exist, or a block has no end.
    """
    lines = source.split("\n")
    done: list[str] = []
    while lines:
        line = lines.pop(0)
        done.append(line)
        block = BLOCK.match(line)
        if not block:
            continue
        end = next((i for i, x in enumerate(lines) if BLOCK.match(x) or x == END), -1)
        if end < 0 or lines[end] != END:
            raise UserError(
                f"{place}: the block {line!r} has no end. "
                f"Fix: write the line `{END}` below it."
            )
        done += [*snippet(block["name"], place, root).split("\n"), END]
        del lines[: end + 1]
    return "\n".join(done)


def snippet(name: str, place: str, root: Path = ROOT) -> str:
    """The text of a snippet such as `snippets/quiet_start.py`."""
    known = [
        f"snippets/{path.name}" for path in sorted((root / "snippets").glob("*.py"))
    ]
    if name not in known:
        raise UserError(
            f"{place}: there is no snippet {name}. "
            f"Fix: name one of {', '.join(known) or 'none, as snippets/ is empty'}."
        )
    return (root / name).read_text(encoding="utf-8").rstrip("\n")


def readdress(text: str, old: Repository, new: Repository) -> str:
    """Change every link to a repository, its site and its notebooks on Colab."""
    for folder in ("notebooks/", "assignments/"):
        text = text.replace(old.colab_files + folder, new.colab_files + folder)
    site = (
        re.escape(old.pages)
        + r"(?=(?:assignments|book|notebooks|_static)/|index\.html|[\s)>\"'#]|$)"
    )
    text = re.sub(site, lambda match: new.pages, text)
    code = re.escape(old.url) + r"(?![\w-]|\.(?!git\b)\w)"
    return re.sub(code, lambda match: new.url, text)


def synced_notebook(
    path: Path,
    notebook: nbformat.NotebookNode,
    repository: Repository,
    root: Path = ROOT,
) -> tuple[nbformat.NotebookNode, list[str]]:
    """Bring a notebook's copied parts up to date: sources only, outputs stay.

    Returns:
        The new notebook, and what was out of date, one message for each cell.
    """
    notebook = copy.deepcopy(notebook)
    found = chapters.claims(path, notebook)
    old = _old_address(notebook)
    stale: list[str] = []
    for index, cell in enumerate(notebook.cells):
        place = chapters.where(path, index, cell)
        before = cell.source
        if cell.cell_type == "code":
            reason = "differs from its snippet"
            cell.source = insert_snippets(cell.source, place, root)
        elif cell.cell_type == "markdown":
            reason = "has another address than _config.yml"
            if old and old != repository:
                cell.source = readdress(cell.source, old, repository)
            if index == 0:
                cell.source = _with_colab_line(cell.source, repository, path)
            if cell.source.startswith(PROVED):
                reason = "is not the list of the chapter's claims"
                cell.source = proved_cell(found)
        if cell.source != before:
            stale.append(f"{place}: {reason}")
    return notebook, stale


def _old_address(notebook: nbformat.NotebookNode) -> Repository | None:
    """The address in a notebook's Colab line: it was last synchronised with that."""
    match = COLAB_LINE.search(notebook.cells[0].source) if notebook.cells else None
    return _repository(match) if match else None


def _repository(match: re.Match) -> Repository:
    """The repository of a Colab address."""
    url = f"https://github.com/{match['owner']}/{match['name']}"
    return Repository(url, match["owner"], match["name"], match["branch"])


def _with_colab_line(source: str, repository: Repository, path: Path) -> str:
    """Correct a first cell's Colab line, or put it below the title."""
    line = colab_line(repository, path)
    if COLAB_LINE.search(source):
        return COLAB_LINE.sub(lambda match: line, source, count=1)
    title, _, rest = source.partition("\n")
    if not title.startswith("# "):
        return source
    return "\n\n".join(part for part in (title, line, rest.strip("\n")) if part)


def synced_prose(root: Path, repository: Repository) -> dict[Path, str]:
    """The new texts of the prose files whose address is out of date.

    The old addresses are those of the file's own Colab links, and the one that
    CITATION.cff gives as `repository-code`.
    """
    paths = [root / name for name in PROSE if (root / name).exists()]
    paths += sorted((root / "assignments").rglob("*.md"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    cited = CITED.search(texts.get(root / "CITATION.cff", ""))
    stale: dict[Path, str] = {}
    for path, text in texts.items():
        old = {_repository(match) for match in COLAB_ADDRESS.finditer(text)}
        if cited:
            old.add(address.parse(cited["url"], repository.branch, "CITATION.cff"))
        new = text
        for one in sorted(old - {repository}, key=lambda one: one.url):
            new = readdress(new, one, repository)
        if new != text:
            stale[path] = new
    return stale


def synced_assignment(
    notebook: nbformat.NotebookNode, repository: Repository
) -> nbformat.NotebookNode:
    """Bring the addresses in a student's notebook up to date.

    Only `make assignments` makes the rest anew: that needs otter-grader, which the site
    does not need.
    """
    notebook = copy.deepcopy(notebook)
    old = _old_address(notebook)
    if old and old != repository:
        for cell in notebook.cells:
            cell.source = readdress(cell.source, old, repository)
    return notebook


def sync(root: Path = ROOT, check: bool = False) -> list[str]:
    """Bring all copies up to date.

    Args:
        root: the repository's folder.
        check: only report.

    Returns:
        One message for each place that was out of date.

    Raises:
        UserError: an input is broken; nothing was written.
    """
    repository = address.repository(root)
    stale: list[str] = []
    texts: dict[Path, str] = {}
    for path in chapters.chapter_paths(root):
        notebook, reasons = synced_notebook(path, chapters.read(path), repository, root)
        if reasons:
            stale += reasons
            texts[path] = normalise.dumps(notebook)
    for path in sorted((root / "assignments").glob("*.ipynb")):
        notebook = chapters.read(path)
        synced = synced_assignment(notebook, repository)
        if synced != notebook:
            stale.append(f"{path.name}: has another address than _config.yml")
            texts[path] = normalise.dumps(synced)
    for path, text in synced_prose(root, repository).items():
        stale.append(f"{path.name}: has another address than _config.yml")
        texts[path] = text
    claims, text = root / claims_file.STORED, claims_file.claims_text(root)
    if not claims.exists() or claims.read_text(encoding="utf-8") != text:
        stale.append(f"{claims.name}: is not what the chapters' claims say")
        texts[claims] = text
    if not check:
        for path, text in texts.items():
            files.write_text(path, text)
    return stale


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Copy snippets, addresses and lists of claims to where they are shown."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks.sync", description=main.__doc__
    )
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
