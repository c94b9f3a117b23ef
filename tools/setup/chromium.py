"""Find or get a browser of the Chromium family, which the tests of the site drive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.model.errors import UserError, command
from tools.setup import installing

COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
MAC_APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
HOW_TO_GET_ONE = (
    "no Chromium or Chrome was found, and none could be installed. "
    "Fix: install one (Debian: apt-get install chromium; any system: "
    "python -m playwright install chromium), or set CHROMIUM to its path."
)


DRIVER_LIBRARY = "libatomic1"  # what a bare Debian lacks for Playwright's driver
HOW_TO_START_THE_DRIVER = (
    "Playwright's driver does not start ({reason}). "
    f"Fix: give it what it lacks (Debian: apt-get install {DRIVER_LIBRARY}, as root)."
)


def is_program(path: str | Path) -> bool:
    """Whether a path leads to a file that can be run."""
    return Path(path).is_file() and os.access(path, os.X_OK)


def find() -> str | None:
    """The path of a browser that is here already, or None.

    `$CHROMIUM` comes first, then a command of the system, an application on macOS, and
    a browser that Playwright downloaded earlier.

    Raises:
        UserError: `$CHROMIUM` is set and is no program.
    """
    chosen = os.environ.get("CHROMIUM")
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise UserError(
                f"CHROMIUM={chosen}: no such program. "
                "Fix: set it to the path of Chromium or Chrome, or unset it."
            )
        return path
    for name in COMMANDS:
        path = shutil.which(name)
        if path is not None:
            return path
    for path in MAC_APPLICATIONS:
        if is_program(path):
            return path
    return find_download()


def driver_problem() -> str:
    """Why Playwright's driver, a program of its own, does not start; or nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    said = " ".join(done.stderr.split())[-200:]
    return (said or f"exit status {done.returncode}") if done.returncode else ""


def start_driver() -> None:
    """See that Playwright's driver starts; install what a bare Debian lacks for it.

    Raises:
        UserError: it does not start.
    """
    reason = driver_problem()
    if reason and installing.install_package(DRIVER_LIBRARY):
        reason = driver_problem()
    if reason:
        raise UserError(HOW_TO_START_THE_DRIVER.format(reason=reason))


def find_download() -> str | None:
    """The browser that Playwright downloaded earlier, or None."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if is_program(path) else None


def download() -> bool:
    """Let Playwright download its own Chromium."""
    return installing.succeeds(
        sys.executable, "-m", "playwright", "install", "chromium"
    )


def install_package() -> bool:
    """Install Debian's package; that needs root."""
    return installing.install_package("chromium")


def get(ways: tuple[Callable[[], bool], ...] = (download, install_package)) -> str:
    """The path of a browser; where there is none, get one.

    Raises:
        UserError: there is none, and none could be installed.
    """
    path = find()
    for way in ways:
        if path is not None:
            break
        if way():
            path = find()
    if path is None:
        raise UserError(HOW_TO_GET_ONE)
    return path


def launch_options() -> dict[str, object]:
    """What Playwright's `launch` takes for a browser that stays local."""
    arguments = [
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
        "--no-first-run",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")
    return {"executable_path": get(), "args": arguments}


@command
def main() -> None:
    """Print the path of a browser, after installing one if there is none."""
    start_driver()
    print(get())


if __name__ == "__main__":
    raise SystemExit(main())
