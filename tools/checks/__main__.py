"""All checks, from the command line."""

from tools.checks.parts import main

if __name__ == "__main__":
    raise SystemExit(main())
