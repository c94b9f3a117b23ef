"""The browser of the Chromium family that prints the book and that the tests drive."""

import os
import shutil

from tools.model.errors import UserError

MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", MAC)


def launch_options() -> dict[str, object]:
    """What Playwright's `launch` takes: `$CHROMIUM`, or a browser that is here.

    Raises:
        UserError: there is none.
    """
    programs = (os.environ["CHROMIUM"],) if "CHROMIUM" in os.environ else PROGRAMS
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None:
        raise UserError(
            f"there is no browser {' or '.join(programs)}. Fix: install Chromium or "
            "Chrome, or set CHROMIUM to its path"
        )
    return {"executable_path": path, "args": ["--disable-gpu", "--disable-quic"]}
