"""The one kind of error that a user of these tools is meant to see."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable


class UserError(Exception):
    """A mistake that the user can mend: says what, where and how to fix it."""


def command(main: Callable[..., int | None]) -> Callable[..., int]:
    """Wrap a program's main: print a UserError as one line and exit with status 1."""

    @functools.wraps(main)
    def run(*args, **kwargs) -> int:
        try:
            return main(*args, **kwargs) or 0
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted: what was finished before is kept", file=sys.stderr)
            return 130

    return run
