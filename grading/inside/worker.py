"""Runs a student's cells in the sandbox and answers the grader's questions about them.

    python worker.py PIPE

PIPE is the descriptor of a socket, on which requests come and answers go. Everything
here may be changed by the student's code while it runs: the grader does not rely on it.
This file, protocol.py and stub_otter.py are copied into the sandbox.
"""

from __future__ import annotations

import os
import re
import sys
import threading

import protocol

# A command that installs packages: it is left out at grading.
INSTALLS = re.compile(r"\s*(?:pip|pip3|conda|mamba|uv|python3? -m pip)\b")
objects: dict[int, object] = {}  # what handles stand for
current = {"request": 0}  # the number of the request that is answered


def keep(value) -> protocol.Handle:
    """Keep an object here and give its handle out."""
    number = len(objects)
    objects[number] = value
    return protocol.Handle(number, type(value).__name__)


def read_exactly(descriptor: int, size: int) -> bytes:
    """Read a number of bytes; the grader's end closed is the end of this process."""
    parts = bytearray()
    while len(parts) < size:
        part = os.read(descriptor, min(size - len(parts), 2**20))
        if not part:
            os._exit(0)
        parts += part
    return bytes(parts)


def read_request(pipe: int) -> dict:
    """The next request of the grader."""
    text, data = protocol.lengths(read_exactly(pipe, protocol.HEADER.size))
    return protocol.unpack(read_exactly(pipe, text), read_exactly(pipe, data))


def run_cell(shell, source: str) -> dict:
    """Run a cell as a notebook would; what it raised comes back as text."""
    result = shell.run_cell(source, store_history=False)
    sys.stdout.flush()
    sys.stderr.flush()
    error = result.error_before_exec or result.error_in_exec
    return {"error": describe(error) if error is not None else None}


def describe(error: BaseException) -> dict:
    """An error's type and message, cut to what a page can show."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return {"type": type(error).__name__[:80], "message": text[:2000]}


def act(shell, request: dict, values):
    """What a request asks for: the value, or KeyError where a name is missing."""
    kind = request["do"]
    if kind == "get":
        return shell.user_ns[request["name"]]
    target = values(request["target"])
    if kind == "attribute":
        return getattr(target, request["name"])
    if kind == "item":
        return target[values(request["key"])]
    return target(*values(request["arguments"]), **values(request["named"]))


def write(pipe: int, frame: bytes) -> None:
    """Write a frame."""
    left = memoryview(frame)
    while left:
        left = left[os.write(pipe, left) :]


def lender(pipe: int):
    """What turns the number of a grader's function into one that calls it there."""
    speaking = threading.Lock()

    def borrow(number: int):
        def function(*arguments, **named):
            values = {"arguments": list(arguments), "named": named}
            with speaking:
                call = {"number": current["request"], "call": number}
                write(pipe, protocol.encode_message(call, values, keep))
                reply = read_request(pipe)
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return protocol.decode(reply["value"], held, borrow)

        return function

    return borrow


def held(handle: protocol.Handle):
    """The object that a handle stands for."""
    return objects[handle._number]


def answer(shell, request: dict, borrow) -> bytes:
    """The frame that answers a request."""
    number = current["request"] = request["number"]
    if request["do"] == "run":
        done = run_cell(shell, request["source"])
        return protocol.pack({"number": number, **done})
    try:
        value = act(shell, request, lambda v: protocol.decode(v, held, borrow))
        return protocol.encode_message({"number": number}, {"value": value}, keep)
    except BaseException as error:
        if isinstance(error, KeyError) and request["do"] == "get":
            return protocol.pack({"number": number, "missing": True})
        return protocol.pack({"number": number, "error": describe(error)})


def make_shell():
    """What runs the cells: IPython, with what a notebook may want and can't have."""
    from IPython.core.interactiveshell import InteractiveShell

    class Shell(InteractiveShell):
        """Draws figures into memory, and installs nothing."""

        def enable_matplotlib(self, gui=None):
            return gui, "agg"

        def system(self, cmd):
            if INSTALLS.match(cmd):
                return print("an installation, left out at grading")
            return super().system(cmd)

    shell = Shell.instance()
    shell.user_ns.update(__name__="__main__")
    for name in ("pip", "conda", "mamba", "micromamba", "uv"):
        shell.register_magic_function(lambda line: shell.system("pip"), "line", name)
    return shell


def main() -> None:
    """Answer requests until the grader closes its end."""
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    shell, borrow = make_shell(), lender(pipe)
    write(pipe, protocol.pack({"number": 0, "ready": True}))
    while True:
        write(pipe, answer(shell, read_request(pipe), borrow))


if __name__ == "__main__":
    main()
