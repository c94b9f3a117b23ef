import re
import sys
import traceback

from IPython import get_ipython
from IPython.core.magic import register_cell_magic


@register_cell_magic("raises")
def raises_magic(line, cell):
    """%%raises ErrorType [or Another] [: text]: run a cell that must raise the error.

    Shows the cell's own lines on the way to the error and its message; with a text,
    the message's sentence that begins with it. Leaves the error in `raised`. Another
    magic, such as %%process, may stand in the next line.

    Raises:
        AssertionError: the cell raised nothing.
        Exception: what the cell raised, if the type or the text is not in it.
    """
    kinds, _, text = (part.strip() for part in line.partition(":"))
    shell = get_ipython()
    source = shell.transform_cell(cell)
    path = shell.compile.cache(source)
    try:
        exec(compile(source, path, "exec"), shell.user_ns)
    except Exception as error:
        raised = error
    else:
        raise AssertionError(f"the cell raised nothing, and {kinds} was expected")
    report = getattr(raised, "report", "")  # of a cell in another process
    if not report:
        for step in traceback.extract_tb(raised.__traceback__):
            if step.filename == path:
                report += f'  File "cell", line {step.lineno}, in {step.name}\n'
                report += f"    {step.line}\n"
        report += "".join(traceback.format_exception_only(raised))
    report = re.sub(r"\x1b\[\d+m", "", report).strip("\n")
    kind = "|".join(re.escape(name.strip()) for name in kinds.split(" or "))
    last = re.search(rf"^(\w+: )?[\w.]*?\b({kind})(?=:|$)", report, re.M)
    message = report[last.end() :].removeprefix(": ") if last else ""
    if last and text:
        sentence = re.search(rf"{re.escape(text)}.*?(?=\.?$|\. )", message, re.M)
        last, message = sentence and last, sentence and sentence[0]
    if not last:
        raise raised
    shown = f"{last[1] or ''}{last[2]}: {message}".removesuffix(": ")
    print(report[: last.start()] + shown, file=sys.stderr)
    shell.user_ns["raised"] = raised
