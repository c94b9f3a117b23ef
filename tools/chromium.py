"""The browser of the Chromium family that prints the book and that the tests drive."""

from __future__ import annotations

import os
import shutil

from tools.model.errors import UserError

PROGRAMS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
ARGUMENTS = (
    *("--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
)


def downloaded() -> str:
    """Where Playwright puts the browser that it downloads, if it is asked to."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def find() -> str:
    """The path of a browser: `$CHROMIUM`, one of the system, or Playwright's own.

    Raises:
        UserError: `$CHROMIUM` is no program, or no browser is here.
    """
    chosen = os.environ.get("CHROMIUM")
    programs = (chosen,) if chosen else PROGRAMS
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None and not chosen:
        path = shutil.which(downloaded())
    if path is None:
        missing = f"CHROMIUM={chosen} is no program" if chosen else "no browser is here"
        raise UserError(
            f"{missing}. Fix: install Chromium (Debian: apt-get install chromium; "
            f"any system: python -m playwright install chromium), or set CHROMIUM to "
            "the path of Chromium or Chrome"
        )
    return path


def launch_options() -> dict[str, object]:
    """What Playwright's `launch` takes for a browser that stays on this machine."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    sandbox = ["--no-sandbox"] if as_root else []
    return {"executable_path": find(), "args": [*ARGUMENTS, *sandbox]}
