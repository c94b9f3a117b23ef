import json
import os
import subprocess
import sys

STANDING = """
import contextlib as _contextlib, io as _io, json as _json, os as _os, sys as _sys
_replies = _os.fdopen(_os.dup(1), "w")
_os.dup2(2, 1)
for _line in _sys.stdin:
    answer, _printed = None, _io.StringIO()
    try:
        with _contextlib.redirect_stdout(_printed):
            exec(_json.loads(_line))
        _reply = _json.dumps({"answer": answer, "printed": _printed.getvalue()})
    except Exception as _error:
        _reply = _json.dumps({"error": f"{type(_error).__name__}: {_error}"})
    print(_reply, file=_replies, flush=True)
"""


class StandingProcess:
    """A fresh Python process that keeps its variables from one source to the next.

    It begins with the source `start`. Its errors begin with `name`.
    """

    def __init__(self, name="", start="", cwd=None, **variables):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-c", LEAN + start + STANDING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=cwd,
            env={**os.environ, **variables},
        )

    def run(self, source):
        """Run the source there.

        Returns:
            What it left in the variable `answer`, and what it printed.

        Raises:
            ProcessError: it raised an error, or the process died.
        """
        print(json.dumps(source), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if line:
            reply = json.loads(line)
        else:
            reply = {"error": f"died, status {self.process.wait()}"}
        if "error" in reply:
            error = ProcessError(f"{self.name}: {reply['error']}".removeprefix(": "))
            error.report = str(error)
            raise error
        return reply["answer"], reply["printed"]
