"""Where the results come from: the processor, the driver, the versions, the commit."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
from pathlib import Path

from tools.machine import processor
from tools.model.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


def _output(*command: str) -> str | None:
    """What a program prints, or None if it is not there or fails."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def nvidia() -> dict:
    """The first NVIDIA GPU's memory in bytes and its driver, as nvidia-smi says."""
    fields = "memory.total,driver_version"
    text = _output(
        "nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"
    )
    if not text:
        return {}
    memory, driver = text.splitlines()[0].split(", ")
    return {"memory_bytes": int(memory) * 2**20, "driver": driver}


def slug(text: str) -> str:
    """A text as part of a file's name: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def device(kind: str, described: list[dict]) -> dict:
    """The device that is measured.

    Args:
        kind: "cpu" or an accelerator's kind.
        described: what each engine says of the accelerator.

    Returns:
        name, kind, id (for the file's name), cpu, and what is known of memory_bytes,
        capability and driver.
    """
    cpu = processor()
    if kind == "cpu":
        name = f"{cpu['name']}, {cpu['cores']} cores"
        found = {"name": name, "memory_bytes": cpu.get("memory_bytes")}
    else:
        found = {}
        for more in (*described, nvidia() if kind == "gpu" else {}):
            found.update(more)
    found = {k: v for k, v in found.items() if v is not None}
    return {**found, "kind": kind, "id": slug(found["name"]), "cpu": cpu}


def suite() -> str:
    """A fingerprint of the measuring programs: the start of a SHA-256 of their text."""
    digest = hashlib.sha256()
    waiting = ROOT / "snippets" / "waiting.py"  # decides when a clock stops
    for path in (*sorted((ROOT / "benchmarks").rglob("*.py")), waiting):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def commit(given: str | None) -> str:
    """The commit that is checked out, with "+changes" if benchmarks/ differs from it.

    Raises:
        UserError: there is no repository and `given` is None.
    """
    if given:
        return given
    found = _output("git", "rev-parse", "HEAD")
    if not found:
        raise UserError(
            "no commit is known here, and results without one are worthless later. "
            "Fix: run in a clone with git, or give --commit SHA"
        )
    code = (
        "status",
        "--porcelain",
        "--",
        "benchmarks",
        ":!benchmarks/results",
        "snippets",
    )
    return found + ("+changes" if _output("git", *code) else "")


def system() -> dict:
    """The operating system and Python."""
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return {"system": kernel, "python": platform.python_version()}
