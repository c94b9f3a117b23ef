"""How pytest runs a notebook's cells, and the three outcomes of a claim.

nbval runs the cells and compares what they print. Here each notebook gets a kernel in
an empty folder, a cell that stops its kernel stops its notebook alone, and a claim
*held* only if an assertion ran in its cell. The outcomes are properties of the test
cases, so that the summary, the XML of a run and what reads it agree.

With `--store`, which `make refresh` gives, nothing is compared: what the cells print is
stored in the notebook, with the versions it was made with, if none of them failed.
"""

import contextlib
import datetime
import os
import platform
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import nbformat
import psutil
import pytest
from jupyter_client.manager import KernelManager
from nbclient.exceptions import DeadKernelError
from nbval.kernel import (
    CURRENT_ENV_KERNEL_NAME,
    NbvalKernelspecManager,
    RunningKernel,
)
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from tools import machine
from tools.model import chapters, outcomes
from tools.notebooks import normalise

RUN = "BOOK_TEST_RUN"  # the variable that marks the processes of a run's kernels
# A process of a chapter that is slow on a busy machine is not wrong: it gets four times
# the seconds that it has at a reader's.
PATIENCE = {"PROCESS_TIME_LIMIT_FACTOR": "4"}
COUNTER = Path(__file__).with_name("count_assertions.py")


def kill_marked(mark: str) -> None:
    """Kill all processes of kernels whose mark begins so, whoever started them."""
    killed = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            if process.environ().get(RUN, "").startswith(mark):
                process.kill()
                killed.append(process)
    psutil.wait_procs(killed, timeout=5)


class Kernel(RunningKernel):
    """A kernel in an empty folder: a chapter needs no repository around it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(
            prefix="chapter-", ignore_cleanup_errors=True
        )
        self.mark = f"{os.environ.get(RUN, '')}/{uuid.uuid4().hex}"
        connection = str(Path(self.folder.name, "kernel.json"))
        # A port that is free may be another's a moment later. A socket is a file,
        # whose path may have 104 characters.
        self.km = KernelManager(
            kernel_name=CURRENT_ENV_KERNEL_NAME,  # the Python that runs this program
            kernel_spec_manager=NbvalKernelspecManager(),
            connection_file=connection,
            transport="ipc" if len(connection) < 95 else "tcp",
        )

    def start(self, timeout: float) -> None:
        """Start the kernel and wait until it answers."""
        work = Path(self.folder.name, "work")
        work.mkdir()
        self.km.start_kernel(
            cwd=str(work),
            env={**os.environ, **PATIENCE, RUN: self.mark},
            extra_arguments=[f"--IPKernelApp.exec_files={COUNTER}"],
            stderr=subprocess.DEVNULL,
        )
        self.kc = self.km.client()
        self.kc.start_channels()
        self.kc.wait_for_ready(timeout=timeout)
        self._ensure_iopub_up()

    def execute_cell_input(self, source: str, allow_stdin: bool | None = None) -> str:
        """Run a cell, and ask how many assertions have passed; the message's id."""
        return self.kc.execute(
            source,
            store_history=False,
            allow_stdin=allow_stdin,
            stop_on_error=False,
            user_expressions={"passed": "__assertion_passed__.count"},
        )

    def await_reply(self, msg_id: str, timeout: float) -> None:
        """Wait for the reply to a message.

        Raises:
            queue.Empty: it did not come within `timeout` seconds.
            DeadKernelError: the kernel ended.
        """
        end = time.monotonic() + timeout
        while (seconds_left := end - time.monotonic()) > 0:
            try:
                message = self.kc.get_shell_msg(timeout=min(1.0, seconds_left))
            except Empty:
                if not self.is_alive():
                    raise DeadKernelError from None
            else:
                if message["parent_header"].get("msg_id") == msg_id:
                    self.reply = message["content"]
                    return
        raise Empty

    def assertions_passed(self) -> int:
        """How many assertions passed in the last cell, which raised nothing."""
        answer = self.reply["user_expressions"]["passed"]
        return int(answer["data"]["text/plain"])

    def stop(self) -> None:
        """Stop the kernel and all that its cells started, and remove its folder."""
        if hasattr(self, "kc"):
            self.kc.stop_channels()
        if self.km.has_kernel:
            self.km.shutdown_kernel(now=True)
        kill_marked(self.mark)
        self.folder.cleanup()


class Notebook(IPyNbFile):
    """A notebook whose cells run one after the other, until one stops the kernel."""

    stopped = ""  # why no further cell runs

    def collect(self) -> Iterator[IPyNbCell]:
        """The code cells."""
        for cell in super().collect():
            yield Cell.from_parent(
                self,
                name=cell.name,
                cell_num=cell.cell_num,
                cell=cell.cell,
                options=cell.options,
            )

    def code(self) -> list[nbformat.NotebookNode]:
        """The notebook's code cells."""
        return [cell for cell in self.nb.cells if cell.cell_type == "code"]

    def setup(self) -> None:
        """Start the kernel, and read what may differ between two runs."""
        if self.config.option.store:
            for cell in self.code():  # one without a count is not compared
                cell.outputs, cell.execution_count = [], None
        self.kernel = Kernel()
        self.kernel.start(self.config.option.nbval_kernel_startup_timeout)
        self.setup_sanitize_files()

    def teardown(self) -> None:
        """Stop the kernel, if it runs, and store a notebook in which nothing failed."""
        self.kernel.stop()
        if self.config.option.store and all(x.execution_count for x in self.code()):
            self.nb.metadata["book"] = {"verified": provenance()}
            normalise.write(self.path, self.nb)


def provenance() -> dict:
    """What the outputs were made with: date, Python, platform, packages."""
    system = f"{platform.system()} {platform.machine()}, {machine.cores()} cores"
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "platform": system,
        "packages": machine.versions(),
    }


class Cell(IPyNbCell):
    """A code cell: it runs, it prints what is stored, and a claim's assertion ran."""

    def setup(self) -> None:
        """Nothing: nbval would expect cells to fail once one has run too long."""

    @property
    def is_claim(self) -> bool:
        """Whether the cell asserts a claim."""
        return "claim" in chapters.tags(self.cell)

    def runtest(self) -> None:
        """Run the cell.

        Raises:
            NbCellError: it failed.
            pytest.skip.Exception: its claim was not checked, or its notebook
                had stopped.
        """
        if self.parent.stopped:
            pytest.skip(f"not run: {self.parent.stopped}")
        try:
            super().runtest()
        except DeadKernelError:
            self.parent.stopped = f"the kernel died in code cell {self.cell_num}"
            self.raise_cell_error("The kernel died")
        except NbCellError:
            if self.parent.timed_out:
                reason = f"the time limit was passed in code cell {self.cell_num}"
                self.parent.stopped = reason
            raise
        not_checked = self.judge()
        if self.config.option.store:
            self.cell.outputs = nbformat.from_dict(self.test_outputs)
            self.cell.execution_count = 1  # as the first; then they are numbered
        if not_checked:
            pytest.skip(not_checked)

    def judge(self) -> str:
        """Decide whether a cell that ran to its end did what it is tagged for.

        Returns:
            Why that could not be checked, or nothing.
        """
        reasons = outcomes.reasons(self.test_outputs)
        if reasons and (self.is_claim or self.left_out):
            return "; ".join(reasons)
        # What runs in another process can't be counted: the form's check sees to that.
        counted = self.is_claim and not self.cell.source.startswith("%%")
        if counted and not self.parent.kernel.assertions_passed():
            self.raise_cell_error(
                "No assertion ran. Fix: assert the claim on every path, "
                "or call not_checked with the reason."
            )
        return ""

    @property
    def left_out(self) -> bool:
        """Whether the cell did nothing but say what this machine lacks for it."""
        reasons = outcomes.reasons(self.test_outputs)
        return bool(reasons) and not outcomes.without_remarks(self.test_outputs)

    def compare_outputs(self, test, ref, skip_compare=None) -> bool:
        """Compare outputs, without the remarks that depend on the machine."""
        if self.left_out:
            return True
        test, ref = map(outcomes.without_remarks, (test, ref))
        return super().compare_outputs(test, ref, skip_compare)

    def description(self) -> list[tuple[str, str]]:
        """Which cell it is, and the label of its claim if it asserts one."""
        cells = self.parent.nb.cells
        index = next(i for i, cell in enumerate(cells) if cell is self.cell)
        path = self.path.relative_to(self.config.rootpath).as_posix()
        properties = [("notebook", path), ("cell", str(index))]
        if self.is_claim:
            claims = sum("claim" in chapters.tags(x) for x in cells[: index + 1])
            label = f"{chapters.chapter_number(self.path)}.{claims}"
            properties.append(("claim", label))
        return properties

    def outcome(self, error: pytest.ExceptionInfo | None) -> list[tuple[str, str]]:
        """How the cell ended: `held`, `broken` or `not checked`, and the reason."""
        if error is None:
            return [("outcome", outcomes.HELD), ("reason", "")]
        if error.errisinstance(pytest.skip.Exception):
            return [("outcome", outcomes.UNCHECKED), ("reason", error.value.msg)]
        reason = outcomes.last_words(self.repr_failure(error))
        return [("outcome", outcomes.BROKEN), ("reason", reason)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Iterator[None]:
    """Note what became of a cell, for the summary and for the XML of the run."""
    if isinstance(item, Cell):
        if call.when == "setup":
            item.user_properties += item.description()
        known = "outcome" in dict(item.user_properties)
        if not known and (call.excinfo is not None or call.when == "call"):
            item.user_properties += item.outcome(call.excinfo)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
    """Have nbval's notebooks be ours."""
    return [
        Notebook.from_parent(parent, path=file_path)
        if isinstance(collector, IPyNbFile)
        else collector
        for collector in (yield)
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--store`."""
    parser.addoption("--store", action="store_true", help="store what the cells print")


def pytest_configure(config: pytest.Config) -> None:
    """End all kernels when the run ends, by Ctrl-C or by a signal, too."""
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist: its controller does it for all
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    mark = uuid.uuid4().hex
    patch.setenv(RUN, mark)
    config.add_cleanup(lambda: kill_marked(f"{mark}/"))
