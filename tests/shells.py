"""A shell of IPython, in which the chapters' helpers are tried."""

import contextlib
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tools.model.chapters import ROOT


def snippet(name):
    """The source of a snippet, as a set-up cell carries it."""
    return (ROOT / "snippets" / f"{name}.py").read_text(encoding="utf-8")


@contextlib.contextmanager
def fresh_shell(folder, *names):
    """A shell in this process, after a set-up cell with these snippets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        patch.setattr(sys, "excepthook", sys.excepthook)
        InteractiveShell.clear_instance()
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        for name in names:
            shell.run_cell(snippet(name)).raise_error()
        yield shell
        InteractiveShell.clear_instance()
