"""The outcomes of claims, the remarks that cells print, and what a failure says.

A claim *held*, is *broken*, or was *not checked*. `not_checked` and `measure_in_turns`
(see `snippets/`) print what this machine could not tell. Such lines depend on the
machine, so no comparison of outputs sees them.
"""

import copy
import re

import nbformat

ALL = HELD, BROKEN, UNCHECKED = "held", "broken", "not checked"
NOT_CHECKED = "Not checked: "
REMARKS = (NOT_CHECKED, "Measured less: ")
# A colour as a terminal gets it, and as pytest writes it into XML.
COLOUR = re.compile(r"(?:\x1b|#x1B)\[[0-9;]*m")
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b.*")
ARROW = re.compile(r"-+> ?\d+ +(\S.*)")  # the line of a cell that raised
DIFFERENCE = "assert reference_output == test_output failed:"


def reasons(outputs: list[nbformat.NotebookNode]) -> list[str]:
    """Why the claim of a cell with these outputs was not checked; empty if it was."""
    return [
        line.removeprefix(NOT_CHECKED).strip()
        for output in outputs
        if output.output_type == "stream"
        for line in output.text.splitlines()
        if line.startswith(NOT_CHECKED)
    ]


def without_remarks(
    outputs: list[nbformat.NotebookNode],
) -> list[nbformat.NotebookNode]:
    """The outputs without such lines, and without streams that held nothing else."""
    kept = []
    for output in copy.deepcopy(outputs):
        if output.output_type == "stream":
            lines = output.text.splitlines(keepends=True)
            output.text = "".join(x for x in lines if not x.startswith(REMARKS))
            if lines and not output.text:
                continue
        kept.append(output)
    return kept


def last_words(text: str) -> str:
    """The one line of a failure that tells most: the exception, or what differs."""
    lines = [line.strip() for line in COLOUR.sub("", text).splitlines()]
    lines = [line for line in lines if line]
    reason = next((x for x in lines if re.match(r"Cell \d+: ", x)), "")
    if "outputs differ" in reason:
        start = lines.index(DIFFERENCE) + 1 if DIFFERENCE in lines else -1
        return "stored output differs: " + " ".join(lines[start:][:1])
    if reason and "caused an exception" not in reason:
        return reason.partition(": ")[2]
    exceptions = [line for line in lines if EXCEPTION.match(line)]
    last = (exceptions or lines or ["no message"])[-1]
    raised = [match[1] for line in lines if (match := ARROW.match(line))]
    silent = re.fullmatch(r"[\w.]+:?", last)  # an exception without a message
    return f"{last.rstrip(':')}: {raised[-1]}" if silent and raised else last
