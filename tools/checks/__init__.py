"""Run all checks, the claims first: `python -m tools.checks`."""
