"""How pytest runs the notebooks: without the reader's settings, with a summary."""

import os
import tempfile
from pathlib import Path

import pytest

from tools import machine
from tools.checks.summary import Summary

# Settings of the person who runs this: a chapter sets what it needs itself.
PERSONAL = ("JAX_", "KERAS_", "PYTEST_ADDOPTS", "PYTHONPATH", "TF_", "XLA_")

pytest_plugins = ["tools.checks.cells"]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """What `-n auto` means: what memory can feed; twice that for tests, which wait."""
    computes = any("notebooks" in name for name in config.args)
    return machine.workers() * (1 if computes else 2)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the reader's own settings out of the runs, and count what they do."""
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist: its controller does it for all
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    home = tempfile.TemporaryDirectory(
        prefix="chapter-home-", ignore_cleanup_errors=True
    )
    config.add_cleanup(home.cleanup)
    for name in [name for name in os.environ if name.startswith(PERSONAL)]:
        patch.delenv(name)
    patch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # outputs are those of a CPU everywhere
    for name in ("KERAS_HOME", "IPYTHONDIR"):
        folder = Path(home.name, name.lower())
        folder.mkdir()
        patch.setenv(name, str(folder))
    config.pluginmanager.register(Summary(config), "book-summary")
