import ast
import subprocess
import sys

from IPython import get_ipython
from IPython.core.magic import register_cell_magic


def missing_compiler():
    """Why there is no compiler for NVIDIA GPUs here; "" if there is. Colab gets it."""
    if sys.platform != "linux":
        return "XLA's compiler for NVIDIA GPUs exists for Linux alone"
    folder, wheels = compiler_wheels()
    words = ["install", "--no-deps", "--target", str(folder), *wheels]
    if not folder.exists() and "google.colab" in sys.modules:
        subprocess.run([sys.executable, "-m", "pip", *words, "-q"])
    if folder.exists():
        return ""
    return f"the compiler for NVIDIA GPUs is not here. Fix: pip {' '.join(words)}"


no_compiler, compiler = missing_compiler(), None
# A set-up cell becomes a module there: no variable of a later cell gets in its way.
AS_MODULE = """
import sys, types
plan = sys.modules["plan"] = types.ModuleType("plan")
exec(compile({!r}, "plan.py", "exec"), vars(plan))
globals().update({{k: v for k, v in vars(plan).items() if k[0] != "_"}})
"""


@register_cell_magic("compiler")
def compiler_magic(line, cell):
    """%%compiler [NAME ...]: run the cell in the process of the GPUs' compiler.

    The process keeps its variables from cell to cell. Those that are named come back
    to the notebook: numbers, texts, lists, tuples and dictionaries of them.
    """
    global compiler
    if no_compiler:
        not_checked(no_compiler)
        return
    if compiler is None:
        folder, _ = compiler_wheels()
        compiler = StandingProcess(fresh=True, **compiler_variables(folder))
    if cell.startswith("# @title Set-up"):
        cell = AS_MODULE.format(cell)
    names = "".join(f"'{name}': {name}, " for name in line.split())
    answer, printed = compiler.run(f"{cell}\nanswer = repr({{{names}}})")
    get_ipython().user_ns.update(ast.literal_eval(answer))
    print(printed, end="")


@register_cell_magic("here")
def here_magic(line, cell):
    """%%here: run the cell in the notebook, unless the compiler is missing."""
    if no_compiler:
        not_checked(no_compiler)
    else:
        get_ipython().run_cell(cell).raise_error()
