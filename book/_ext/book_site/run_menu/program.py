"""Write the programs that fetch a notebook and what it needs, and open it.

Each is `open_notebook.py` with the notebook's address and packages, as a script that uv
runs. The versions are those of constraints/latest.txt, which is published beside them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from book_site.run_menu import open_notebook, places
from tools.model import files
from tools.model.address import Repository
from tools.notebooks import needs

COMPILER_WHEELS = Path("snippets", "compiler_wheels.py")
SCRIPT = '''\
# /// script
# requires-python = "{python}"
# dependencies = []
# ///
"""Open {name}.ipynb in JupyterLab, with the packages that it needs:

    uv run {address}

This makes the folder {folder}, with the notebook and, in .venv,
{listed}.
A notebook that is there already stays as it is. Words behind the address go to
JupyterLab: `--no-browser`. To undo all of it, remove the folder.
"""

{source}

{compiler}if __name__ == "__main__":
    raise SystemExit(
        main(
            "{notebook}",
            "{versions}",
            [
{needs}
            ],
{given}        )
    )
'''


def script(
    repository: Repository, page: str, packages: list[str], compiler: str = ""
) -> str:
    """The program of one notebook.

    Args:
        repository: the repository that the site is built from.
        page: the notebook's path in it, without its suffix.
        packages: requirements, in the form of `pip install`.
        compiler: the source of `compiler_wheels`, for a notebook that asks GPUs' own
            compiler.
    """
    address = places.program(repository, page)
    listed = ", ".join(packages)
    return SCRIPT.format(
        address=address,
        compiler=f"COMPILER_WHEELS = '''\\\n{compiler}'''\n\n" if compiler else "",
        folder=open_notebook.FOLDER,
        given="            COMPILER_WHEELS,\n" if compiler else "",
        listed=textwrap.fill(listed, 88, break_on_hyphens=False),
        name=page.rpartition("/")[2],
        needs="\n".join(f'{" " * 16}"{package}",' for package in packages),
        notebook=f"{repository.pages}_sources/{page}.ipynb",
        python=open_notebook.PYTHON,
        source=Path(open_notebook.__file__).read_text(encoding="utf-8"),
        versions=f"{repository.pages}{places.FOLDER}/versions.txt",
    )


def write_all(
    repository: Repository, root: Path, pages: Iterable[str], out: Path
) -> None:
    """Write the programs of all pages that are notebooks, and the versions.

    Args:
        repository: the repository that the site is built from.
        root: its folder.
        pages: the notebooks' paths in it, without their suffix.
        out: the folder of the site.

    Raises:
        UserError: a requirements file or a notebook is missing or broken.
    """
    folder = out / places.FOLDER
    folder.mkdir(exist_ok=True)
    known = needs.verified(root)
    texts = {"versions.txt": (root / needs.VERSIONS).read_text(encoding="utf-8")}
    for page in pages:
        code = needs.code(root / f"{page}.ipynb")
        asks = needs.asks_compiler(code)
        compiler = (root / COMPILER_WHEELS).read_text(encoding="utf-8") if asks else ""
        packages = needs.requirements(code, known)
        name = places.program(repository, page).rpartition("/")[2]
        texts[name] = script(repository, page, packages, compiler)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        files.write_text(folder / name, text)
