"""Execute notebooks and store their outputs, with the versions they were made with."""

import argparse
import datetime
import os
import platform
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

from tools import machine
from tools.model import address, chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.notebooks import normalise, sync

# Settings of the person who runs this: a chapter sets what it needs itself.
PERSONAL = ("JAX_", "KERAS_", "PYTEST_ADDOPTS", "PYTHONPATH", "TF_", "XLA_")
# Stored outputs are those of a CPU, so they are the same on a machine with a GPU.
CPU_ONLY = {"CUDA_VISIBLE_DEVICES": "-1"}
TIMEOUT = 60  # seconds for one cell
THIS_PYTHON = {  # the kernel is the Python that runs this program
    "kernel_name": CURRENT_ENV_KERNEL_NAME,
    "kernel_spec_manager": NbvalKernelspecManager(),
}


def find(wanted: str, root: Path = ROOT) -> list[Path]:
    """The chapters of a number, or with a word in their names; all for no word.

    Raises:
        UserError: there is none.
    """
    paths = chapters.chapter_paths(root)
    word = Path(wanted).stem
    numbered = [path for path in paths if path.stem.startswith(f"{word:0>2}-")]
    if matching := numbered or [path for path in paths if word in path.stem]:
        return matching
    names = ", ".join(path.stem for path in paths)
    raise UserError(f"NB={wanted} matches no chapter. Fix: name one of: {names}.")


def execute(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Run all cells in a fresh kernel, in an empty folder, and store their outputs.

    Args:
        path: the notebook's file, for messages.
        notebook: what to run; its outputs are replaced.

    Raises:
        UserError: a cell raised, took too long or killed the kernel.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix="chapter-") as folder:
        work, keras, ipython = (Path(folder, x) for x in ("work", "keras", "ipython"))
        for made in (work, keras, ipython):
            made.mkdir()
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(PERSONAL)
        }
        environment |= {"KERAS_HOME": str(keras), "IPYTHONDIR": str(ipython)} | CPU_ONLY
        client = NotebookClient(
            notebook,
            km=AsyncKernelManager(**THIS_PYTHON),
            resources={"metadata": {"path": str(work)}},
            timeout=TIMEOUT,
            coalesce_streams=True,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            record_timing=False,
            store_widget_state=False,
        )
        with client.setup_kernel(env=environment, cleanup_kc=True):
            for index in range(len(notebook.cells)):
                _execute_cell(client, path, index)


def _execute_cell(client: NotebookClient, path: Path, index: int) -> None:
    """Run one cell; every failure is a UserError that names it."""
    cell = client.nb.cells[index]
    if cell.cell_type != "code":
        return
    place = chapters.where(path, index, cell)
    try:
        client.execute_cell(cell, index)
    except CellTimeoutError:
        reason = f"still running after {TIMEOUT} s. Fix: make the cell faster"
    except DeadKernelError:
        reason = "the kernel died. Fix: mend the cell, or give it more memory"
    except CellExecutionError as error:
        last = (str(error.evalue).strip().splitlines() or [""])[-1]
        reason = (
            f"raised {error.ename}: {last}. Fix: mend the cell, or start it "
            f"with `%%raises {error.ename}` if the chapter shows this error"
        )
    else:
        return
    raise UserError(f"{place}: {reason}.")


def provenance() -> dict:
    """What the outputs were made with: date, Python, platform, packages."""
    system = f"{platform.system()} {platform.machine()}, {machine.cores()} cores"
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "platform": system,
        "packages": machine.versions(),
    }


def refresh(path: Path, root: Path = ROOT) -> int:
    """Synchronise, execute, normalise and store one notebook.

    Returns:
        The number of its code cells.

    Raises:
        UserError: the notebook fails; its file is as it was.
    """
    notebook, _ = sync.synced_notebook(path, address.repository(root), root)
    execute(path, notebook)
    notebook.metadata.setdefault("book", {})["verified"] = provenance()
    normalise.write(path, notebook)
    return sum(cell.cell_type == "code" for cell in notebook.cells)


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Execute notebooks and store their outputs; one that fails keeps its file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("notebook", nargs="?", default="", help="a number, or a word")
    wanted = parser.parse_args(argv).notebook
    address.repository(root)  # an error there is said once, not for each notebook
    failed = 0
    for path in find(wanted, root):
        try:
            cells = refresh(path, root)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            failed += 1
        else:
            print(f"{path.name}: {cells} cells run and stored", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
