"""Stands for otter-grader, which older notebooks import: their checks do nothing."""


class Notebook:
    """Takes what otter.Notebook takes; every check is left out."""

    def __init__(self, *arguments, **named) -> None:
        pass

    def check(self, *arguments, **named) -> None:
        """Check nothing: the grader runs the checks, outside the sandbox."""

    check_all = export = add_plugin_files = run_plugin = check
