"""How pytest runs a notebook's cells, and the three outcomes of a claim.

nbval runs them and compares what they print. Here each notebook gets a kernel in an
empty folder, a cell that stops its kernel stops its notebook alone, and a claim *held*
only if an assertion ran in its cell. The outcomes are properties of the test cases, so
that the summary, the XML of a run and what reads it agree.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import nbval.kernel
import nbval.plugin
import pytest
from jupyter_client.manager import KernelManager

from tools.checks import processes
from tools.model import chapters, outcomes
from tools.notebooks import refresh

RUN = "BOOK_TEST_RUN"  # the variable that marks the processes of a run's kernels
PATIENCE = "PROCESS_TIME_LIMIT_FACTOR=4"  # times what a reader's process may take
ANSWER = 300  # seconds for a question to a kernel, on a slow machine too
STARTS = 3  # of a kernel: its ports are found free, and bound a moment later
STARTUP = Path(__file__).with_name("count_assertions.py").read_text(encoding="utf-8")


class KernelDied(Exception):
    """The kernel ended before it answered."""


class Kernel(nbval.plugin.RunningKernel):
    """A kernel in an empty folder: a chapter needs no repository around it."""

    python = ""  # the interpreter, or nothing for the one that runs the tests
    variables: dict[str, str] = {}  # noqa: RUF012 (set once, before any kernel)

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float) -> None:
        self.folder = tempfile.TemporaryDirectory(
            prefix="chapter-", ignore_cleanup_errors=True
        )
        self.mark = f"{os.environ.get(RUN, '')}/{uuid.uuid4().hex}"
        try:
            for attempt in range(STARTS):
                try:
                    self._start(startup_timeout)
                    break
                except RuntimeError:  # died: another process was given its port first
                    if attempt == STARTS - 1:
                        raise
                    self.kc.stop_channels()
                    self.km.shutdown_kernel(now=True)
            self._ensure_iopub_up()
            self._answer(STARTUP)
        except BaseException:
            self.stop()
            raise

    def _start(self, timeout: float) -> None:
        """Start the kernel and wait until it answers.

        Raises:
            RuntimeError: it died, or it did not answer in time.
        """
        kernels = refresh.ThisPython(python=self.python)
        self.km = KernelManager(kernel_spec_manager=kernels)
        self.km.start_kernel(
            cwd=self.folder.name,
            env={**os.environ, **self.variables, RUN: self.mark},
            stderr=subprocess.DEVNULL,
        )
        self.kc = self.km.client()
        self.kc.start_channels()
        self.kc.wait_for_ready(timeout=timeout)

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait for the reply to a message.

        Raises:
            queue.Empty: it did not come within `timeout` seconds.
            KernelDied: the kernel ended.
        """
        end = time.monotonic() + (timeout or 0)
        while True:
            left = end - time.monotonic()
            step = 1.0 if timeout is None else max(0.0, min(1.0, left))
            try:
                return super().await_reply(msg_id, timeout=step)
            except Empty:
                if not self.is_alive():
                    raise KernelDied from None
                if timeout is not None and left <= step:
                    raise

    def assertions_ran(self) -> int:
        """How many assertions have passed since the kernel started."""
        reply = self._answer("", n="__assertion_passed__.count")
        return int(reply["user_expressions"]["n"]["data"]["text/plain"])

    def _answer(self, source: str, **expressions: str) -> dict:
        """Run code that shows nothing; what the kernel replies."""
        message = self.kc.execute(source, silent=True, user_expressions=expressions)
        end = time.monotonic() + ANSWER
        while True:
            reply = self.kc.get_shell_msg(timeout=max(0.1, end - time.monotonic()))
            if reply["parent_header"].get("msg_id") == message:
                self.await_idle(message, timeout=ANSWER)
                return reply["content"]

    def stop(self) -> None:
        """Stop the kernel and all that its cells started, and remove its folder."""
        if hasattr(self, "kc"):
            self.kc.stop_channels()
        if hasattr(self, "km"):
            if self.km.has_kernel:
                self.km.shutdown_kernel(now=True)
            del self.km
        processes.kill_marked(RUN, self.mark)
        self.folder.cleanup()


class Notebook(nbval.plugin.IPyNbFile):
    """A notebook whose cells run one after the other, until one stops the kernel."""

    stopped = ""  # why no further cell runs

    def stop(self, number: int, reason: str) -> None:
        """End the kernel for a reason that lies in a code cell (from 0)."""
        self.stopped = f"{reason} in code cell {number}"
        if self.kernel.is_alive():
            self.kernel.stop()

    def teardown(self) -> None:
        """Stop the kernel, if it runs, and remove its folder."""
        if self.kernel is not None:
            self.kernel.stop()


class Cell(nbval.plugin.IPyNbCell):
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
            nbval.plugin.NbCellError: it failed.
            pytest.skip.Exception: its claim was not checked, or its notebook
                had stopped.
        """
        if self.parent.stopped:
            pytest.skip(f"not run: {self.parent.stopped}")
        kernel = self.parent.kernel
        before = kernel.assertions_ran() if self.is_claim else 0
        try:
            super().runtest()
        except KernelDied:
            self.parent.stop(self.cell_num, "the kernel died")
            self.raise_cell_error("The kernel died")
        except nbval.plugin.NbCellError:
            if self.parent.timed_out:
                self.parent.stop(self.cell_num, "the time limit was passed")
            raise
        if self.left_out:
            pytest.skip("; ".join(outcomes.reasons(self.test_outputs)))
        raised = any(output.output_type == "error" for output in self.test_outputs)
        if self.options["check_exception"] and not raised:
            self.raise_cell_error(
                "Tagged raises-exception and raises nothing. "
                "Fix: drop the tag, or mend what the chapter says about the error."
            )
        if self.is_claim:
            self.judge(kernel.assertions_ran() - before)

    @property
    def left_out(self) -> bool:
        """Whether the cell did nothing but say what this machine lacks for it."""
        said = outcomes.reasons(self.test_outputs)
        return bool(said) and not outcomes.without_remarks(self.test_outputs)

    def judge(self, assertions: int) -> None:
        """Decide whether the claim of a cell that raised nothing was checked."""
        why = outcomes.reasons(self.test_outputs)
        if why:
            pytest.skip("; ".join(why))
        # What runs in another process can't be counted: the form's check sees to that.
        if not assertions and not self.cell.source.startswith("%%"):
            self.raise_cell_error(
                "No assertion ran. Fix: assert the claim on every path, "
                "or call not_checked with the reason."
            )

    def compare_outputs(self, test, ref, skip_compare=None) -> bool:
        """Compare outputs, without the remarks that depend on the machine."""
        if self.left_out:
            return True
        test, ref = map(outcomes.without_remarks, (test, ref))
        return super().compare_outputs(test, ref, skip_compare)

    def repr_failure(self, excinfo: pytest.ExceptionInfo) -> str:
        """What a failure says; an error outside of the cell with its kind."""
        if isinstance(excinfo.value, nbval.plugin.NbCellError):
            return super().repr_failure(excinfo)
        return f"{excinfo.typename}: {excinfo.value}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Iterator[None]:
    """Note what became of a cell, for the summary and for the XML of the run."""
    if isinstance(item, Cell):
        if call.when == "setup":
            item.user_properties += described(item)
        if call.excinfo is not None or call.when == "call":
            item.user_properties += judged(item, call.excinfo)
    return (yield)


def described(item: Cell) -> list[tuple[str, str]]:
    """Which cell it is, and the label of its claim if it asserts one."""
    path = Path(item.fspath)
    cells = item.parent.nb.cells
    code = [i for i, cell in enumerate(cells) if cell.cell_type == "code"]
    index = code[item.cell_num]
    found = [
        ("notebook", path.relative_to(item.config.rootpath).as_posix()),
        ("cell", str(index)),
    ]
    if item.is_claim:
        before = (cells[i] for i in code[: item.cell_num + 1])
        number = sum("claim" in chapters.tags(cell) for cell in before)
        found.append(("claim", f"{chapters.chapter_number(path)}.{number}"))
    return found


def judged(item: Cell, error: pytest.ExceptionInfo | None) -> list[tuple[str, str]]:
    """How a cell ended: `held`, `broken` or `not checked`, and the reason."""
    if any(name == "outcome" for name, _ in item.user_properties):
        return []
    if error is None:
        return [("outcome", outcomes.HELD), ("reason", "")]
    if error.errisinstance(pytest.skip.Exception):
        return [("outcome", outcomes.UNCHECKED), ("reason", error.value.msg)]
    reason = outcomes.last_words(item.repr_failure(error))
    return [("outcome", outcomes.BROKEN), ("reason", reason)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options with which another machine's kernels are run."""
    group = parser.getgroup("book", "The book's notebooks")
    group.addoption(
        "--kernel-python", default="", help="interpreter of the notebooks' kernels"
    )
    group.addoption(
        "--kernel-env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="variable that the kernels get",
    )


def making(old: type[pytest.Item], new: type[pytest.Item]) -> classmethod:
    """A `from_parent` of nbval's class `old` that makes our class `new`."""

    def from_parent(cls: type[pytest.Item], parent: pytest.Item, **settings):
        made = new if cls is old else cls
        return super(old, made).from_parent(parent, **settings)

    return classmethod(from_parent)


def pytest_configure(config: pytest.Config) -> None:
    """Have nbval use these classes, and end all kernels when the run ends."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(nbval.plugin, "RunningKernel", Kernel)
    for old, new in (
        (nbval.plugin.IPyNbFile, Notebook),
        (nbval.plugin.IPyNbCell, Cell),
    ):
        patch.setattr(old, "from_parent", making(old, new))
    # A process of a chapter that is slow on a busy machine is not wrong.
    variables = [text.partition("=") for text in (PATIENCE, *config.option.kernel_env)]
    if not all(name and equals for name, equals, _ in variables):
        raise pytest.UsageError("--kernel-env needs NAME=VALUE")
    patch.setattr(Kernel, "python", config.option.kernel_python)
    patch.setattr(Kernel, "variables", {name: value for name, _, value in variables})
    if not hasattr(config, "workerinput"):
        mark = uuid.uuid4().hex
        patch.setenv(RUN, mark)
        config.add_cleanup(lambda: processes.kill_marked(RUN, f"{mark}/"))
