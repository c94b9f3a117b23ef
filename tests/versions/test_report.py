"""The report that a run of the notebooks leaves, and what it prints."""

from types import SimpleNamespace

import notebook_factory as factory
import pytest

from tools.checks.summary import Summary
from tools.model import chapters, claims_file, files, outcomes


@pytest.fixture
def ran(house):
    """A run in which the only claim broke; what it printed."""
    path = factory.save(house, factory.chapter())
    (claim,) = chapters.chapter(path).claims
    summary = Summary(SimpleNamespace(rootpath=house))
    known = {
        "notebook": "notebooks/05-tiny.ipynb",
        "cell": str(claim.cell),
        "claim": claim.label,
        "outcome": outcomes.BROKEN,
        "reason": "KeyError: 'x'",
    }
    summary.pytest_runtest_logreport(
        SimpleNamespace(user_properties=list(known.items()), duration=2.0)
    )
    printed = []
    terminal = SimpleNamespace(section=print, write_line=printed.append)
    summary.pytest_terminal_summary(terminal)
    return house, printed


def test_a_run_leaves_its_claims_with_the_versions(ran):
    house, _ = ran
    report = files.read_json(house / claims_file.REPORT, "")
    assert {"date", "python", "versions"} < report.keys()
    (claim,) = report["claims"]
    assert claim["label"] == "5.1"
    assert (claim["outcome"], claim["reason"]) == ("broken", "KeyError: 'x'")


def test_a_run_names_what_broke_and_what_took_longest(ran):
    _, printed = ran
    assert "claims             0 held, 1 broken, 0 not checked" in printed
    assert "slowest            05-tiny 2 s" in printed
    (broken,) = (line for line in printed if line.startswith("broken"))
    assert "5.1 05-tiny.ipynb, cell " in broken and broken.endswith(": KeyError: 'x'")
