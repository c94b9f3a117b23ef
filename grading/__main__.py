"""python -m grading: the commands of the class."""

import os
import signal

from grading import apart

if __name__ == "__main__":
    # Started by `make`, it ends with it, however that ends: so before all that is slow.
    if "MAKELEVEL" in os.environ:
        apart.die_with(os.getppid(), signal.SIGTERM)
    from grading.cli import main

    raise SystemExit(main())
