"""How pytest runs the notebooks: each in an empty folder, with a summary at the end."""

from __future__ import annotations

import collections
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbval.plugin
import pytest

from tools import chapters, refresh


class EmptyFolderKernel(nbval.plugin.RunningKernel):
    """A kernel in an empty folder: a chapter needs no repository around it."""

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float) -> None:
        self.folder = tempfile.TemporaryDirectory(
            prefix="chapter-", ignore_cleanup_errors=True
        )
        super().__init__(kernel_name, self.folder.name, startup_timeout)

    def stop(self) -> None:
        """Stop the kernel and remove its folder."""
        super().stop()
        self.folder.cleanup()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the reader's own settings out of the runs, and count what they do."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(nbval.plugin, "RunningKernel", EmptyFolderKernel)
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist: its controller does the rest for all
    home = tempfile.TemporaryDirectory(
        prefix="chapter-home-", ignore_cleanup_errors=True
    )
    config.add_cleanup(home.cleanup)
    for name in [name for name in os.environ if name.startswith(refresh.PERSONAL)]:
        patch.delenv(name)
    for name, value in refresh.CPU_ONLY.items():
        patch.setenv(name, value)
    for name in ("KERAS_HOME", "IPYTHONDIR"):
        folder = Path(home.name, name.lower())
        folder.mkdir()
        patch.setenv(name, str(folder))
    config.pluginmanager.register(Summary(config), "book-summary")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a cell that is tagged `raises-exception` and raises nothing.

    nbval alone lets it pass where the output is not compared.
    """
    yield
    if not isinstance(item, nbval.plugin.IPyNbCell):
        return
    raised = any(output.output_type == "error" for output in item.test_outputs)
    if item.options["check_exception"] and not raised:
        item.raise_cell_error(
            "Tagged raises-exception and raises nothing. "
            "Fix: drop the tag, or mend what the chapter says about the error."
        )


class Summary:
    """Counts notebooks, cells, compared outputs and claims, and times the notebooks."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.seconds: collections.Counter[str] = collections.Counter()
        self.outcomes: dict[str, dict[int, str]] = collections.defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome and the seconds of a notebook's cell."""
        notebook, found, cell = report.nodeid.partition(".ipynb::Cell ")
        if not found:
            return
        notebook += ".ipynb"
        self.seconds[notebook] += report.duration
        if report.when == "call" or report.outcome == "failed":
            self.outcomes[notebook][int(cell)] = report.outcome

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the summary of a run that had notebooks in it."""
        if not self.outcomes:
            return
        cells = failed = outputs = compared = proved = claims = 0
        for name, outcomes in self.outcomes.items():
            code = [
                cell
                for cell in chapters.read(self.root / Path(name)).cells
                if cell.cell_type == "code"
            ]
            for number, outcome in outcomes.items():
                cell = code[number]
                cells += 1
                failed += outcome != "passed"
                if chapters.has_text_output(cell):
                    outputs += 1
                    compared += chapters.is_compared(cell) and outcome == "passed"
                if "claim" in chapters.tags(cell):
                    claims += 1
                    proved += outcome == "passed"
        write = terminalreporter.write_line
        terminalreporter.section("the book")
        write(f"notebooks          {len(self.outcomes)}")
        write(f"cells run          {cells}, {failed} failed")
        share = 100 * compared // outputs if outputs else 100
        write(f"outputs compared   {compared} of {outputs} ({share} %)")
        write(f"claims that hold   {proved} of {claims}")
        slowest = [f"{Path(n).stem} {s:.0f} s" for n, s in self.seconds.most_common(5)]
        write(f"slowest            {', '.join(slowest)}")
