"""Serve the site, built again after each change: `python -m tools.site.serve PORT`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

HOST = "127.0.0.1"


def free_port(word: str) -> int:
    """The port that a word names, if nobody listens there.

    Raises:
        UserError: the word is no port, or the port is taken.
    """
    if not (word.isdigit() and 1024 <= int(word) <= 65535):
        raise UserError(
            f"PORT={word} is no port. Fix: make serve PORT=8000 (1024 to 65535)"
        )
    port = int(word)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            other = port + 1 if port < 65535 else port - 1
            raise UserError(
                f"port {port} is taken. Fix: make serve PORT={other}"
            ) from None
    return port


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Serve the site until Ctrl-C."""
    words = sys.argv[1:] if argv is None else argv
    port = free_port(words[0] if words else "8000")
    arguments = ["-c", "tools/site/serve", "--host", HOST, "--port", str(port)]
    ignored = ["_build", ".git", ".venv", "__pycache__", ".ipynb_checkpoints"]
    for folder in ignored:
        arguments += ["--re-ignore", rf"(^|/){folder.replace('.', '[.]')}(/|$)"]
    arguments += ["-q", ".", "_build/serve"]
    os.chdir(root)
    os.execv(sys.executable, [sys.executable, "-m", "sphinx_autobuild", *arguments])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
