"""The one kind of error that a user of these tools is meant to see."""

import functools
import sys
from collections.abc import Callable

FIX = "Fix: see the name, the rights and that the disk has room"


class UserError(Exception):
    """A mistake that the user can mend: says what, where and how to fix it."""


def command(main: Callable[..., int | None]) -> Callable[..., int]:
    """Wrap a program's main: print what the user can mend as one line, with status 1.

    That is a UserError, or a file that can't be read or written.
    """

    @functools.wraps(main)
    def run(*args, **kwargs) -> int:
        try:
            return main(*args, **kwargs) or 0
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            print(f"error: {place}{error.strerror}. {FIX}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted: the files that are finished are kept", file=sys.stderr)
            return 130

    return run
