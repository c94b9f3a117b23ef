"""The student's names as a test sees them: `env["softmax"](logits)`.

What the student's code holds is asked for, and plain data comes back. An object that is
no plain data comes back as a Remote. A Remote can be called, read and indexed, which
asks again. It has no value of its own: what compares, counts or converts it raises an
error, so it can't pass an assertion by itself.
"""

from __future__ import annotations

import reprlib
from typing import NoReturn

import numpy as np

from grading.inside import protocol
from grading.session import Session

LONG = 200  # characters of a text that is no value, but a program
PROGRAM = "a program"
TELLING = 600  # characters of a call that somebody can read
TOOLS = ("get_ipython(", "tempfile.", "Path(")  # a check's own machinery in the worker

SHORT = reprlib.Repr()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 8
SHORT.maxstring = SHORT.maxother = 80


def short(value: object) -> str:
    """A value in a few words, for a student whose answer has failed a check."""
    if callable(value) and not isinstance(value, Remote):
        return "a function of the check"
    if isinstance(value, str) and len(value) > LONG:
        return PROGRAM
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        start = value[(slice(SHORT.maxlist + 1),) * value.ndim]  # more is not shown
        return f"{SHORT.repr(start.tolist())} of shape {value.shape}"
    try:
        return SHORT.repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a very long number"


def call_text(path: str, arguments: list, named: dict) -> str:
    """How a call is written."""
    words = [short(argument) for argument in arguments]
    words += [f"{name}={short(argument)}" for name, argument in named.items()]
    return f"{path}({', '.join(words)})"


class NotPlainData(TypeError):
    """A test needed a value, and the student's code gave an object."""


class Remote(protocol.Handle):
    """An object in the worker."""

    __slots__ = ("_answers", "_path")
    __hash__ = None

    def __init__(
        self, answers: Answers, handle: protocol.Handle, path: str = "it"
    ) -> None:
        object.__setattr__(self, "_answers", answers)
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_number", handle._number)
        object.__setattr__(self, "_kind", handle._kind)

    def __call__(self, *arguments, **named):
        """Call the object in the worker."""
        values = {"target": self, "arguments": list(arguments), "named": named}
        path = call_text(self._path, arguments, named)
        told = not path.startswith(TOOLS)
        if told:
            self._answers.last = path
        answer = self._answers.ask({"do": "call"}, values, path)
        if told:
            self._answers.last = f"{path}, which gave {short(answer)}"
        return answer

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        request = {"do": "attribute", "name": name}
        return self._answers.ask(request, {"target": self}, f"{self._path}.{name}")

    def __getitem__(self, key):
        values = {"target": self, "key": key}
        path = f"{self._path}[{short(key)}]"
        return self._answers.ask({"do": "item"}, values, path)

    def __repr__(self) -> str:
        return "<an object of the notebook>"

    def _refuse(self, *others) -> NoReturn:
        raise NotPlainData(
            f"got an object of type {self._kind!r} where numbers, a text, a list "
            "or an array were expected"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __len__ = __iter__ = __contains__ = __reversed__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refuse
    __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __setattr__ = __delattr__ = __setitem__ = __delitem__ = _refuse
    __reduce_ex__ = __copy__ = __deepcopy__ = _refuse

    def __format__(self, how: str) -> str:
        return repr(self)


class Answers:
    """The names of a notebook that has run.

    Args:
        session: the worker it ran in.
        seconds: the time limit of one question to it.
    """

    def __init__(self, session: Session, seconds: float) -> None:
        self._session = session
        self._seconds = seconds
        self.last = ""  # the last call that was made, and what it gave

    @property
    def last_call(self) -> str:
        """The last call that was made, and what it gave, if a person can read it."""
        telling = len(self.last) <= TELLING and PROGRAM not in self.last
        return self.last if telling else ""

    def __getitem__(self, name: str):
        return self.ask({"do": "get", "name": str(name)}, {}, str(name))

    def get(self, name: str, default=None):
        """The value of a name, or a default where there is none."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: str) -> bool:
        missing = object()
        return self.get(name, missing) is not missing

    def ask(self, request: dict, values: dict, path: str):
        """Ask the worker for what a path, such as `dense(2, 3).count`, stands for."""
        return self._session.ask(
            request, values, self._seconds, lambda handle: Remote(self, handle, path)
        )
