"""The messages between grader and worker: what goes through, and what is refused."""

import collections
import contextlib
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.inside import protocol
from grading.inside.protocol import Handle, ProtocolError

SETTINGS = settings(max_examples=400, deadline=None, derandomize=True, database=None)


def through(value):
    """A value after it went through a frame."""
    keep = lambda kept: Handle(7, type(kept).__name__)  # noqa: E731
    return read(protocol.encode_message({"number": 1}, {"value": value}, keep))


def read(frame: bytes):
    """The value in a frame."""
    header, rest = frame[: protocol.HEADER.size], frame[protocol.HEADER.size :]
    text, data = protocol.lengths(header.ljust(protocol.HEADER.size))
    message = protocol.unpack(rest[:text], rest[text : text + data])
    return decode(message["value"])


def decode(value):
    """A value of which the worker has sent the JSON form."""
    return protocol.decode(value, lambda handle: handle)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.just(...),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner)
    ),
    max_leaves=20,
)


@SETTINGS
@given(plain, st.data())
def test_plain_data_comes_back_as_it_was_and_if_damaged_is_refused(value, data):
    frame = bytearray(protocol.encode_message({"number": 1}, {"value": value}, None))
    back = read(bytes(frame))
    assert back == value
    assert type(back) is type(value)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(frame) - 1))
        frame[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError, KeyError):  # or it is read
        read(bytes(frame))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype="int8").reshape(2, 3),
        np.zeros((0, 4), np.float32),
        np.array(3.5),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["a", "bc"]),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(10)[::2],
    ],
)
def test_arrays_come_back_as_they_were(value):
    back = through(value)
    assert type(back) is np.ndarray
    assert back.dtype == value.dtype
    np.testing.assert_array_equal(back, value)
    back[...] = value  # it can be written


def test_scalars_stay_scalars():
    assert type(through(np.float32(0.1))) is np.float32
    assert through(np.bool_(True)) is np.bool_(True)
    assert math.isnan(through(float("nan")))
    assert through(2**200) == 2**200


def test_types_that_numpy_lacks_come_back_as_float32():
    back = through(np.ones(2, ml_dtypes.bfloat16))
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, [1, 1])


def test_subclasses_come_back_as_what_they_extend():
    assert type(through(collections.OrderedDict(a=1))) is dict
    assert type(through(collections.namedtuple("Pair", "a b")(1, 2))) is tuple
    assert type(through(type("Text", (str,), {})("x"))) is str


@pytest.mark.parametrize("value", [object(), len, np.array([object()]), {(1,): 2}])
def test_the_rest_stays_where_it_is(value):
    assert type(through(value)) is Handle


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["$", "items", "data", "dtype", "shape", "text", "number", "kind"]
            ),
            inner
            | st.sampled_from(
                ["array", "scalar", "dict", "set", "tuple", "handle", "bytes", "int"]
            )
            | st.sampled_from(
                ["float", "<f4", "|b1", "<U3", "O", "0x1f", "-inf", "AAAA"]
            ),
            max_size=5,
        )
    ),
    max_leaves=15,
)


@SETTINGS
@given(json_like)
def test_any_value_is_decoded_or_refused(value):
    with contextlib.suppress(ProtocolError):
        decode(value)


EIGHT = b"12345678"


def array(dtype: str, shape: list, data: bytes = EIGHT) -> dict:
    """The JSON form of an array."""
    return {"$": "array", "dtype": dtype, "shape": shape, "data": data}


FORGED = {
    "an unknown kind": {"$": "pickle"},
    "no kind": {"a": 1},
    "an object array": array("|O8", [1]),
    "an array of the wrong size": array("<f4", [3]),
    "a negative size": array("<f4", [-2]),
    "a size that is no number": array("<f4", [True, "2"]),
    "sizes that overflow": array("<f4", [2**62, 4]),
    "sizes that overflow beside a zero": array("<f8", [0, *[2**27] * 3], b""),
    "too many dimensions": array("<f4", [1] * 40),
    "text that is no sign": array("<U1", [2], b"a\0\0\0\0\0\x11\0"),
    "a scalar with a shape": {**array("<f4", [2]), "$": "scalar"},
    "bytes that are none": {"$": "bytes", "data": "?"},
    "bytes that are a number": {"$": "bytes", "data": 7},
    "a handle without a number": {"$": "handle", "number": "1", "kind": "int"},
    "a handle below zero": {"$": "handle", "number": -1, "kind": "int"},
    "a handle without a kind": {"$": "handle", "number": 1},
    "a function": {"$": "function", "number": 1},
    "a set of lists": {"$": "set", "items": [[1]]},
    "a dict without keys": {"$": "dict", "items": [[1]]},
    "a dict with a list as key": {"$": "dict", "items": [[[1], 2]]},
    "a number that is code": {"$": "int", "text": "__import__('os')"},
    "a float that is none": {"$": "float", "text": "1e999"},
    "items that are none": {"$": "tuple", "items": "abc"},
}


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_forged_values_are_refused(value):
    with pytest.raises(ProtocolError):
        decode(value)


@pytest.mark.parametrize("length", [0, 1, protocol.MAX_MESSAGE + 1, 2**32 - 1])
@pytest.mark.parametrize("data", [0, 2**32 - 1])
def test_bad_lengths_are_refused(length, data):
    with pytest.raises(ProtocolError, match="a text of"):
        protocol.lengths(protocol.HEADER.pack(length, data))


@pytest.mark.parametrize("sizes", [[4, 5], [9], [-1]])
def test_data_that_are_not_there_are_refused(sizes):
    items = ", ".join(f'{{"$": "bytes", "data": {size}}}' for size in sizes)
    with pytest.raises(ProtocolError, match="more data"):
        protocol.unpack(f'{{"value": [{items}]}}'.encode(), EIGHT)
