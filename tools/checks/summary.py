"""The summary that ends a run of the notebooks: what held, broke, was not checked."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path

import pytest

from tools.drift import claims
from tools.model import chapters, files, outcomes
from tools.model.errors import UserError

SLOWEST = 5  # notebooks, and cells, that the summary names
LONG = 20  # seconds that no cell takes on a quiet machine with two cores


@dataclasses.dataclass(frozen=True)
class Ran:
    """What became of one cell."""

    notebook: str  # its path from the root
    cell: int  # its index in the notebook, from 0
    claim: str  # such as `12.7`, or nothing
    outcome: str  # `held`, `broken` or `not checked`
    reason: str


class Summary:
    """Counts notebooks, cells, compared outputs and claims, and times the notebooks."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.seconds: collections.Counter[str] = collections.Counter()
        self.long: dict[tuple[str, int], float] = {}  # the cells that took over LONG
        self.ran: dict[tuple[str, int], Ran] = {}
        self.unstarted: dict[str, str] = {}  # notebooks that could not be collected
        self.fault = ""  # why there is no file with the claims
        self.commit = ""  # of the files that run, if git knows them all
        kernels = config.getoption("kernel_python", "")
        xml = config.getoption("xmlpath", None)
        self.file = Path(xml).with_suffix(".json") if xml and not kernels else None

    def pytest_sessionstart(self) -> None:
        """Note the commit that runs."""
        if self.file:
            self.commit = claims.clean_commit(self.root)

    def pytest_sessionfinish(self) -> None:
        """Write what became of the claims beside the XML of the run."""
        if self.file is None or not any(cell.claim for cell in self.ran.values()):
            return
        same = self.commit == claims.clean_commit(self.root)
        ran = {
            key: claims.Outcome(cell.outcome, cell.reason)
            for key, cell in self.ran.items()
        }
        try:
            found = claims.tested(ran, self.commit if same else "", self.root)
            files.write_text(self.file, claims.text(found))
        except (OSError, UserError) as error:
            self.fault = f"{self.file.name} is not written: {error}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a notebook that can't be read."""
        if report.failed and report.nodeid.endswith(".ipynb"):
            self.unstarted[report.nodeid] = outcomes.last_words(report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome and the seconds of a notebook's cell."""
        known = dict(report.user_properties)
        if "notebook" not in known:
            if report.failed and ".ipynb" in report.nodeid:  # its worker died
                name = report.nodeid.partition("::")[0]
                self.unstarted[name] = outcomes.last_words(report.longreprtext)
            return
        self.seconds[known["notebook"]] += report.duration
        cell = int(known["cell"])
        if report.duration > LONG:
            self.long[known["notebook"], cell] = report.duration
        if "outcome" in known:
            self.ran[known["notebook"], cell] = Ran(
                known["notebook"],
                cell,
                known.get("claim", ""),
                known["outcome"],
                known["reason"],
            )

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the summary of a run that had notebooks in it."""
        if not self.ran and not self.unstarted:
            return
        terminalreporter.section("the book")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """The summary."""
        cells = list(self.ran.values())
        outcome = collections.Counter(cell.outcome for cell in cells)
        claims = collections.Counter(cell.outcome for cell in cells if cell.claim)
        unrun = sum(cell.reason.startswith("not run: ") for cell in cells)
        outputs, compared = self.outputs()
        share = 100 * compared // outputs if outputs else 100
        lines = [
            f"notebooks          {len({cell.notebook for cell in cells})}",
            f"cells run          {len(cells) - unrun}, "
            + f"{outcome[outcomes.BROKEN]} failed"
            + (f", {unrun} not run" if unrun else ""),
            f"outputs compared   {compared} of {outputs} ({share} %)",
            "claims             " + ", ".join(f"{claims[x]} {x}" for x in outcomes.ALL),
        ]
        slowest = self.seconds.most_common(SLOWEST)
        if slowest:
            times = ", ".join(f"{Path(name).stem} {s:.0f} s" for name, s in slowest)
            lines.append(f"slowest            {times}")
        for (name, cell), seconds in self.longest():
            where = chapters.where(
                Path(name), cell, chapters.read(self.root / name).cells[cell]
            )
            lines.append(f"over {LONG} s          {where}: {seconds:.0f} s")
        failed = [x for x in cells if x.outcome == outcomes.BROKEN]
        lines += [f"{name}: can't be run: {x}" for name, x in self.unstarted.items()]
        lines += [self.fault] if self.fault else []
        lines += self.named("broken", [x for x in failed if x.claim])
        lines += self.named("failed", [x for x in failed if not x.claim])
        unchecked = [x for x in cells if x.outcome == outcomes.UNCHECKED and x.claim]
        return lines + self.named("not checked", unchecked)

    def longest(self) -> list[tuple[tuple[str, int], float]]:
        """Which cells took longest of those that took too long, with their seconds."""
        return sorted(self.long.items(), key=lambda item: -item[1])[:SLOWEST]

    def outputs(self) -> tuple[int, int]:
        """How many of the cells have text output, and of how many it was compared."""
        outputs = compared = 0
        for name in {name for name, _ in self.ran}:
            cells = chapters.read(self.root / name).cells
            for index, cell in enumerate(cells):
                ran = self.ran.get((name, index))
                if ran and chapters.has_text_output(cell):
                    outputs += 1
                    good = (
                        ran.outcome != outcomes.BROKEN and "not run" not in ran.reason
                    )
                    compared += chapters.is_compared(cell) and good
        return outputs, compared

    def named(self, what: str, cells: list[Ran]) -> list[str]:
        """A line for each cell, or one for all of a notebook with the same reason."""
        groups: dict[tuple[str, str], list[Ran]] = collections.defaultdict(list)
        for cell in cells:
            groups[cell.notebook, cell.reason].append(cell)
        lines = []
        for (name, reason), same in groups.items():
            first, more = same[0], len(same) - 1
            cell = chapters.read(self.root / name).cells[first.cell]
            place = chapters.where(Path(name), first.cell, cell)
            place += f" and {more} more of its cells" if more else ""
            label = f"{first.claim} " if first.claim else ""
            lines.append(f"{what:<12} {label}{place}: {reason}")
        return lines
