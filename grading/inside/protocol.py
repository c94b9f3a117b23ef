"""The messages between the grader and a worker that runs a student's code.

A message is a frame: the length of a JSON text and the length of the data (four bytes
each, big-endian), the text of a JSON object, then the data: the bytes of its arrays in
the order in which the text names their lengths. So a frame says how long it is before
it is read, and no byte of it is used twice.

Values are plain data: None, bool, int, float, str, bytes, Ellipsis, list, tuple, dict,
set, and NumPy arrays and scalars of numbers and booleans. What is none of these stays
with the worker, and a handle (a number) stands for it. Nothing is ever unpickled.

A test may send a function: it stays with the grader, and the worker gets its number. To
call it the worker sends a frame with `call` before its answer, and waits for the reply.

The grader must be able to read anything: whoever writes the student's code controls
every byte that the worker sends. A message that breaks a rule raises ProtocolError.
This file is copied into the sandbox; it imports nothing of the book.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys

HEADER = struct.Struct(">II")
MAX_MESSAGE = 128 * 2**20  # bytes
MAX_DIMENSIONS = 16
MARK = "$"  # the key that tells an encoded value from a plain JSON one
DTYPE = re.compile(r"[<|]?(?:b1|i[1248]|u[1248]|f[248]|c8|c16)|[<|][SU][0-9]{1,6}")
KEYS = (str, bool, int, float, type(None))


class ProtocolError(Exception):
    """A message breaks the rules of the protocol."""


class Handle:
    """Stands for an object that stays in the worker.

    Args:
        number: the worker's number for the object.
        kind: the name of the object's type, as the worker tells it.
    """

    # With an underscore: a test that reads `.kind` asks for the student's attribute.
    __slots__ = ("_kind", "_number")

    def __init__(self, number: int, kind: str = "object") -> None:
        self._number = number
        self._kind = kind


class Function(Handle):
    """Stands for a function that stays with the grader; the worker may call it."""

    __slots__ = ()


def pack(message: dict) -> bytes:
    """The frame of a message whose values are already encoded."""
    parts: list[bytes] = []

    def beside(data: bytes) -> int:
        parts.append(data)
        return len(data)

    text = json.dumps(message, default=beside).encode()
    data = b"".join(parts)
    if len(text) + len(data) > MAX_MESSAGE:
        raise ProtocolError("the message is too large")
    return HEADER.pack(len(text), len(data)) + text + data


def lengths(header: bytes, largest: int = MAX_MESSAGE) -> tuple[int, int]:
    """The bytes of the text and of the data that a header announces."""
    text, data = HEADER.unpack(header)
    if text < 2 or text + data > largest:
        raise ProtocolError(f"a text of {text} bytes, and {data} bytes of data")
    return text, data


def unpack(text: bytes, data: bytes) -> dict:
    """The message in a frame's JSON text, with the data in their places."""
    used = 0

    def attach(value: dict) -> dict:
        nonlocal used
        size = value.get("data")
        if MARK in value and type(size) is int:
            if not 0 <= size <= len(data) - used:
                raise ProtocolError("more data than there are")
            value["data"] = data[used : used + size]
            used += size
        return value

    try:
        message = json.loads(text.decode(), object_hook=attach)
    except (ValueError, RecursionError):  # no UTF-8, no JSON, a number without end
        raise ProtocolError("not JSON") from None
    if not isinstance(message, dict):
        raise ProtocolError("not an object")
    return message


def encode(value, keep):
    """The JSON form of a value.

    Args:
        value: of any kind.
        keep: called with a value that is no plain data; returns its Handle.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Function):
        return marked("function", number=value._number)
    if isinstance(value, Handle):
        return marked("handle", number=value._number, kind=value._kind)
    array = as_array(value)
    if array is not None:
        return marked(
            "scalar" if isinstance(value, sys.modules["numpy"].generic) else "array",
            dtype=array.dtype.str,
            shape=list(array.shape),
            data=array.tobytes(),
        )
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        number = int(value)
        return number if abs(number) < 2**63 else marked("int", text=hex(number))
    if isinstance(value, float):
        number = float(value)
        finite = math.isfinite(number)
        return number if finite else marked("float", text=str(number))
    if value is Ellipsis:
        return marked("ellipsis")
    if isinstance(value, bytes):
        return marked("bytes", data=bytes(value))
    if isinstance(value, list):
        return [encode(item, keep) for item in value]
    if isinstance(value, (tuple, set, frozenset)):
        items = [encode(item, keep) for item in value]
        return marked("tuple" if isinstance(value, tuple) else "set", items=items)
    if isinstance(value, dict) and all(isinstance(key, KEYS) for key in value):
        pairs = [[encode(key, keep), encode(item, keep)] for key, item in value.items()]
        return marked("dict", items=pairs)
    return encode(keep(value), keep)


def marked(kind: str, /, **fields) -> dict:
    """The JSON form of a value that JSON does not have."""
    return {MARK: kind, **fields}


def as_array(value):
    """A NumPy array with a value's numbers, or None if it has none to send."""
    np = sys.modules.get("numpy")
    if np is None:  # nobody has imported it, so there can be no array
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    elif hasattr(value, "shape") and hasattr(value, "dtype"):  # a tensor, a variable
        try:
            if hasattr(value, "detach"):  # PyTorch: off its graph and its device
                value = value.detach().cpu()
            array = np.asarray(value)
        except Exception:
            return None
    else:
        return None
    if array.dtype.kind == "V" and array.dtype.names is None:
        try:  # bfloat16, float8, int4: NumPy has no such types of its own
            array = array.astype(np.float32)
        except (TypeError, ValueError):
            return None
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array if DTYPE.fullmatch(array.dtype.str) else None


def decode(value, resolve, borrow=None):
    """The value of a JSON form, whoever wrote it.

    Args:
        value: what a message holds.
        resolve: called with a Handle; returns what stands for it here.
        borrow: called with a function's number; returns what calls it. Without it there
            can be no function.

    Raises:
        ProtocolError: it is no JSON form of a value.
        RecursionError: it is nested too deep.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [decode(item, resolve, borrow) for item in value]
    kind = value.get(MARK)
    if kind == "int":
        return int(_text(value, r"-?0x[0-9a-f]{1,4096}"), 16)
    if kind == "float":
        return float(_text(value, r"nan|-?inf"))
    if kind == "ellipsis":
        return Ellipsis
    if kind == "bytes":
        return _bytes(value)
    if kind in ("tuple", "set", "dict"):
        items = value.get("items")
        if not isinstance(items, list):
            raise ProtocolError("a collection without items")
        items = decode(items, resolve, borrow)
        try:
            return {"tuple": tuple, "set": set, "dict": dict}[kind](items)
        except (TypeError, ValueError):
            raise ProtocolError(f"a {kind} of what it can't hold") from None
    if kind in ("array", "scalar"):
        return _array(value, kind)
    if kind == "handle":
        number, name = value.get("number"), value.get("kind")
        if type(number) is not int or not 0 <= number < 2**53:
            raise ProtocolError("a handle without a number")
        if not isinstance(name, str):
            raise ProtocolError("a handle without a kind")
        return resolve(Handle(number, name[:80]))
    if kind == "function" and borrow is not None:
        return borrow(value["number"])
    raise ProtocolError("an unknown kind of value")


def _text(value: dict, pattern: str) -> str:
    text = value.get("text")
    if not isinstance(text, str) or not re.fullmatch(pattern, text):
        raise ProtocolError("a bad number")
    return text


def _bytes(value: dict) -> bytes:
    data = value.get("data")
    if not isinstance(data, bytes):
        raise ProtocolError("bytes that are none")
    return data


def _array(value: dict, kind: str):
    import numpy as np

    data, name, shape = _bytes(value), value.get("dtype"), value.get("shape")
    if not isinstance(name, str) or not DTYPE.fullmatch(name):
        raise ProtocolError("an array of an unknown type")
    if (
        not isinstance(shape, list)
        or len(shape) > (MAX_DIMENSIONS if kind == "array" else 0)
        or not all(type(size) is int and 0 <= size <= MAX_MESSAGE for size in shape)
    ):
        raise ProtocolError("an array of a bad shape")
    dtype = np.dtype(name)
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ProtocolError("an array whose size is not that of its shape")
    if dtype.kind == "U" and any(np.frombuffer(data, "<u4") > sys.maxunicode):
        raise ProtocolError("an array with text that is none")
    try:
        array = np.frombuffer(data, dtype).reshape(shape).copy()
    except ValueError:  # an empty one whose other sizes overflow
        raise ProtocolError("an array of a bad shape") from None
    return array[()] if kind == "scalar" else array


def encode_message(message: dict, values: dict, keep) -> bytes:
    """The frame of a message: fields of plain JSON, and values to encode."""
    encoded = {name: encode(value, keep) for name, value in values.items()}
    return pack({**message, **encoded})
