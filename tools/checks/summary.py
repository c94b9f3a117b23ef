"""The summary that ends a run of the notebooks: what held, broke, was not checked."""

import collections
import dataclasses
import datetime
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import machine
from tools.model import chapters, claims_file, files, outcomes
from tools.model.errors import UserError

SLOWEST = 5  # notebooks that the summary names


@dataclasses.dataclass(frozen=True)
class Ran:
    """What became of one cell."""

    path: Path  # of its notebook
    cell: int  # its index in the notebook, from 0
    claim: str  # such as `12.7`, or nothing
    outcome: str  # `held`, `broken` or `not checked`
    reason: str


class Summary:
    """Counts cells, outputs and claims, and writes the report on the claims."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.stores = config.option.store  # then nothing is compared
        self.seconds: collections.Counter[Path] = collections.Counter()
        self.ran: dict[tuple[Path, int], Ran] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome and the seconds of a notebook's cell."""
        known = dict(report.user_properties)
        if "notebook" not in known:
            return
        path, cell = self.root / known["notebook"], int(known["cell"])
        self.seconds[path] += report.duration
        if "outcome" in known:
            claim, outcome = known.get("claim", ""), known["outcome"]
            self.ran[path, cell] = Ran(path, cell, claim, outcome, known["reason"])

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the summary of a run that had notebooks in it, and write the report."""
        if not self.ran:
            return
        terminalreporter.section("the book")
        for line in self.lines():
            terminalreporter.write_line(line)
        try:
            self.write()
        except (OSError, UserError) as error:
            terminalreporter.write_line(f"{claims_file.REPORT} is not written: {error}")

    def write(self) -> None:
        """Write what became of the claims that were run, and with which versions."""
        report = self.root / claims_file.REPORT
        report.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            claims_file.line(chapter, claim, ran.outcome, ran.reason)
            for chapter in map(chapters.chapter, sorted({path for path, _ in self.ran}))
            for claim in chapter.claims
            if (ran := self.ran.get((chapter.path, claim.cell)))
        ]
        text = claims_file.text(
            lines,
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            python=platform.python_version(),
            versions=machine.versions(),
        )
        files.write_text(report, text)

    def lines(self) -> Iterator[str]:
        """The summary."""
        cells = self.ran.values()
        failed = [x for x in cells if x.outcome == outcomes.BROKEN]
        unrun = sum(x.reason.startswith("not run: ") for x in cells)
        more = f", {unrun} not run" if unrun else ""
        claims = collections.Counter(x.outcome for x in cells if x.claim)
        outputs, compared = self.outputs()
        share = 100 * compared // outputs if outputs else 100
        times = self.seconds.most_common(SLOWEST)
        counts = ", ".join(f"{claims[outcome]} {outcome}" for outcome in outcomes.ALL)
        yield f"notebooks          {len({x.path for x in cells})}"
        yield f"cells run          {len(cells) - unrun}, {len(failed)} failed{more}"
        if not self.stores:
            yield f"outputs compared   {compared} of {outputs} ({share} %)"
        yield f"claims             {counts}"
        yield f"slowest            {', '.join(f'{x.stem} {s:.0f} s' for x, s in times)}"
        unchecked = [x for x in cells if x.outcome == outcomes.UNCHECKED and x.claim]
        yield from named("broken", [x for x in failed if x.claim])
        yield from named("failed", [x for x in failed if not x.claim])
        yield from named("not checked", unchecked)

    def outputs(self) -> tuple[int, int]:
        """How many of the cells have text output, and of how many it was compared."""
        outputs = compared = 0
        for ran in self.ran.values():
            cell = chapters.chapter(ran.path).cells[ran.cell]
            if chapters.has_text_output(cell):
                good = ran.outcome != outcomes.BROKEN and "not run" not in ran.reason
                outputs += 1
                compared += chapters.is_compared(cell) and good
        return outputs, compared


def named(what: str, cells: list[Ran]) -> Iterator[str]:
    """A line for each cell, or one for all of a notebook with the same reason."""
    groups: dict[tuple[Path, str], list[Ran]] = collections.defaultdict(list)
    for cell in cells:
        groups[cell.path, cell.reason].append(cell)
    for (path, reason), same in groups.items():
        first, others = same[0], len(same) - 1
        cell = chapters.chapter(path).cells[first.cell]
        place = chapters.where(path, first.cell, cell)
        label = f"{first.claim} " if first.claim else ""
        more = f" and {others} more of its cells" if others else ""
        yield f"{what:<12} {label}{place}{more}: {reason}"
