"""See that the programs which the tests call are here; a bare Debian gets them."""

from __future__ import annotations

import shutil

from tools.model.errors import UserError, command
from tools.setup import installing

PROGRAMS = ("git",)  # each in a Debian package of its own name


@command
def main() -> None:
    """Install what is missing; that needs root on Debian.

    Raises:
        UserError: a program is missing and can't be installed.
    """
    for program in PROGRAMS:
        if shutil.which(program) is None:
            installing.install_package(program)
        if shutil.which(program) is None:
            raise UserError(
                f"the tests call {program}, which is not here. Fix: install it "
                f"(Debian: apt-get install {program}, as root)."
            )


if __name__ == "__main__":
    raise SystemExit(main())
