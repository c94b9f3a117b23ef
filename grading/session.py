"""One worker in its sandbox, seen from the grader: requests go in, answers come out."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import sys
import time
from collections.abc import Callable

from grading import sandbox
from grading.inside import protocol
from grading.inside.protocol import ProtocolError

CHUNK = 2**20  # bytes read at a time
START_SECONDS = 60
WAITS = (0.2, 1.0, 3.0, 6.0)  # seconds between two tries to start a worker
SHOWN = 4000  # bytes of what a cell prints that a report may show
MAX_REPORT = 64 * 2**10  # bytes of what the worker may say of a cell that has run
MAX_CALLS = 10_000  # calls of a test's functions while one question is answered


class WorkerLost(Exception):
    """The worker is gone, with all that the student's code had made in it.

    Args:
        reason: why.
        slow: whether it took too long.
    """

    def __init__(self, reason: str, slow: bool = False) -> None:
        super().__init__(reason)
        self.slow = slow


class Session:
    """A worker in a sandbox.

    It is held still except while it answers: nothing in it runs while a test computes,
    or measures, on its own. After a WorkerLost the session can only be closed.

    Args:
        limits: what the submission may use.
        place: makes the place where the worker runs, apart from the grader.

    Raises:
        WorkerLost: it did not start.
    """

    def __init__(
        self,
        limits: sandbox.Limits,
        place: Callable[..., sandbox.Sandbox] = sandbox.Sandbox,
    ) -> None:
        self.limits = limits
        self.number = 0
        self.lost = False  # after a WorkerLost
        self.printed = b""  # the start of what the last request printed
        self.functions: dict[int, Callable] = {}  # that a test has sent, by number
        self._resolve = None  # what stands for a handle in their arguments
        self._calling = False  # one of them is running
        self.place = place(limits)
        inside_requests, self.requests = os.pipe()
        self.answers, inside_answers = os.pipe()
        self.output, inside_output = os.pipe()
        program = [sys.executable, "-X", "utf8", f"{sandbox.INSIDE}/worker.py"]
        numbers = [str(inside_requests), str(inside_answers)]
        for descriptor in (self.requests, self.answers, self.output):
            os.set_blocking(descriptor, False)
        try:
            passed = [inside_requests, inside_answers]
            try:
                self.place.start([*program, *numbers], passed, inside_output)
            finally:
                for descriptor in (inside_requests, inside_answers, inside_output):
                    os.close(descriptor)
            message, _ = self._exchange(b"", START_SECONDS, "starting")
            if message.get("ready") is not True:
                raise self._lost("the worker did not start")
        except WorkerLost as lost:
            self._drain()
            said = self.printed.decode(errors="replace").strip().splitlines()
            self.close()
            reason = f"{lost} ({said[-1][:200]})" if said else str(lost)
            raise WorkerLost(reason, lost.slow) from None
        except BaseException:
            self.close()
            raise

    def run(self, source: str, seconds: float) -> dict | None:
        """Run a cell.

        Returns:
            The error that it raised, with `type` and `message`, or None.

        Raises:
            WorkerLost: it ended, hung, or broke a limit or the protocol.
        """
        request = {"do": "run", "source": source}
        message, _ = self._ask(request, {}, seconds, MAX_REPORT)
        error = message.get("error")
        return None if error is None else self._error(error)

    def ask(self, request: dict, values: dict, seconds: float, resolve) -> object:
        """Ask for a value.

        Args:
            request: `do` and the fields that are plain JSON.
            values: the fields whose values are encoded. A function among them is called
                here, with plain data, each time the student's code calls it.
            seconds: the time limit.
            resolve: what stands for a handle here.

        Raises:
            KeyError: the name that was asked for does not exist.
            RemoteError: the student's code raised an error.
            WorkerLost: the worker is gone.
        """
        self._resolve = resolve
        message, arrays = self._ask(request, values, seconds)
        if message.get("missing") is True:
            raise KeyError(request.get("name"))
        if "error" in message:
            error = self._error(message["error"])
            raise RemoteError(error["type"], error["message"])
        if "value" not in message:
            raise self._lost("it broke the protocol: no value")
        try:
            return protocol.Decoder(arrays, resolve).decode(message["value"])
        except (ProtocolError, RecursionError, MemoryError) as error:
            raise self._lost(f"it broke the protocol: {error}") from None

    def settle(self) -> None:
        """Let it run until nothing happens in it, and see whether it is still there.

        Raises:
            WorkerLost: it is not; what ran last has harmed it.
        """
        self.place.go()
        self.place.settle()
        self.place.stop()
        if self._readable():
            raise self._lost("it broke the protocol: it spoke without being asked")

    def close(self) -> None:
        """End the worker and everything in its sandbox."""
        self.place.end()
        for name in ("requests", "answers", "output"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)

    def _error(self, error: object) -> dict:
        """What the worker says of an error, if it is what it should be."""
        if not isinstance(error, dict) or not all(
            isinstance(error.get(name), str) for name in ("type", "message")
        ):
            raise self._lost("it broke the protocol: no error")
        return {"type": error["type"][:80], "message": error["message"][:2000]}

    def _lost(self, reason: str, slow: bool = False) -> WorkerLost:
        """The error to raise when the worker is of no use any more."""
        self.lost = True
        return WorkerLost(self.place.why() or reason, slow)

    def _ask(
        self,
        request: dict,
        values: dict,
        seconds: float,
        largest: int = protocol.MAX_TEXT,
    ) -> tuple[dict, list[bytes]]:
        """Send a request and read its answer."""
        if self.requests < 0:
            raise WorkerLost("the worker is gone")
        if self._calling:
            raise TypeError("a function of a test has plain data only")
        self.number += 1
        frame = protocol.encode_message(
            {**request, "number": self.number}, values, self._lend
        )
        return self._exchange(frame, seconds, "running", largest)

    def _exchange(
        self,
        frame: bytes,
        seconds: float,
        doing: str,
        largest: int = MAX_REPORT,
    ) -> tuple[dict, list[bytes]]:
        """Send a request and read its answer; do the calls that come in between."""
        if frame and self._readable():
            raise self._lost("it broke the protocol: it spoke without being asked")
        deadline = time.monotonic() + seconds
        self.place.go()
        self.printed, self._printed = b"", 0
        for _ in range(MAX_CALLS):
            reader = _Reader(largest, arrays=largest > MAX_REPORT)
            late = f"it was still {doing} after {seconds:.3g} s"
            self._talk(frame, reader, deadline, late)
            if reader.message.pop("number", None) != self.number:
                raise self._lost("it broke the protocol: an answer to another question")
            if "call" not in reader.message:
                break
            if not self.functions:
                raise self._lost("it broke the protocol: a call of what is not there")
            frame = self._call(reader.message, reader.arrays)
        else:
            raise self._lost(f"it called a function of the check {MAX_CALLS} times")
        self.place.stop()
        self._drain()
        return reader.message, reader.arrays

    def _lend(self, function: object) -> protocol.Function:
        """What the worker gets for a function of a test.

        Raises:
            TypeError: it is none, and no plain data either.
        """
        if not callable(function):
            raise TypeError(
                f"a test can't send {type(function).__name__}. "
                "Fix: send numbers, texts, lists, arrays or functions."
            )
        number = self.number * 1000 + len(self.functions)  # never used again
        self.functions[number] = function
        return protocol.Function(number)

    def _call(self, message: dict, arrays: list[bytes]) -> bytes:
        """The frame with what a function of the test returns to the worker."""
        function, number = message["call"], {"number": self.number}
        function = self.functions.get(function) if type(function) is int else None
        try:
            decoder = protocol.Decoder(arrays, self._resolve)
            arguments = decoder.decode(message.get("arguments"))
            named = decoder.decode(message.get("named"))
        except (ProtocolError, RecursionError, MemoryError) as error:
            raise self._lost(f"it broke the protocol: {error}") from None
        except (TypeError, AttributeError):  # what is no value at all
            raise self._lost("it broke the protocol: a call") from None
        self._calling = True
        try:
            value = function(*arguments, **named)
        except Exception as error:  # the student's code used it in another way
            said = f"this function can't be called so ({type(error).__name__})"
            return protocol.pack({**number, "error": said})
        finally:
            self._calling = False
        return protocol.encode_message(number, {"value": value}, self._lend)

    def _talk(self, frame: bytes, reader: _Reader, deadline: float, late: str) -> None:
        """Write a frame and read one, while what the student's code prints is taken."""
        left = memoryview(frame)
        # Not epoll: a user has only so many of its watches, and a worker can take them.
        with selectors.PollSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            selector.register(self.output, selectors.EVENT_READ)
            if left:
                selector.register(self.requests, selectors.EVENT_WRITE)
            while not reader.complete:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise self._lost(late, slow=True)
                for key, _ in selector.select(min(remaining, 1)):
                    if key.fd == self.requests:
                        try:
                            left = left[os.write(self.requests, left[:CHUNK]) :]
                        except BrokenPipeError:
                            left = left[:0]  # the end of its answers tells why
                        if not left:
                            selector.unregister(self.requests)
                        continue
                    wanted = CHUNK if key.fd == self.output else reader.wanted
                    part = os.read(key.fd, min(wanted, CHUNK))
                    if key.fd == self.output:
                        self._printed += len(part)
                        if len(self.printed) < SHOWN:
                            self.printed += part[:SHOWN]
                        if self._printed > self.limits.output_bytes:
                            megabytes = self.limits.output_bytes / 2**20
                            raise self._lost(f"it printed more than {megabytes:g} MiB")
                        if not part:
                            selector.unregister(self.output)
                    elif part:
                        try:
                            reader.feed(part)
                        except ProtocolError as error:
                            raise self._lost(
                                f"it broke the protocol: {error}"
                            ) from None
                    else:
                        raise self._lost("it ended the process")

    def _drain(self) -> None:
        """Take what was printed before the answer came."""
        with contextlib.suppress(OSError):
            self.printed = (self.printed + os.read(self.output, CHUNK))[:SHOWN]

    def _readable(self) -> bool:
        """Whether an answer is there that nobody asked for."""
        with selectors.PollSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            ready = bool(selector.select(0))
        if ready:  # or the end: the worker is gone
            try:
                if not os.read(self.answers, 1):
                    raise self._lost("it ended the process")
            except BlockingIOError:
                return False
        return ready


def open_session(
    limits: sandbox.Limits,
    place: Callable[..., sandbox.Sandbox] = sandbox.Sandbox,
) -> Session:
    """A session; while the kernel has no process left for it, it is tried again.

    The many processes of a worker that was just ended may still be on their way out.

    Args:
        limits, place: see Session.

    Raises:
        WorkerLost: it did not start.
        OSError: this machine had no process left, which is nobody's fault.
    """
    for wait in (*WAITS, None):
        try:
            return Session(limits, place)
        except WorkerLost as lost:
            if os.strerror(errno.EAGAIN) not in str(lost):
                raise
            if wait is None:
                raise OSError(str(lost)) from None
            time.sleep(wait)
    raise AssertionError


class RemoteError(Exception):
    """The student's code raised an error while a test used it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)


class _Reader:
    """Puts a frame together from the parts in which it arrives.

    Args:
        largest: how many bytes its text may have.
        arrays: whether it may have any.
    """

    def __init__(self, largest: int = protocol.MAX_TEXT, arrays: bool = True) -> None:
        self.largest = largest
        self.may_have_arrays = arrays
        self.message: dict = {}
        self.arrays: list[bytes] = []
        self.complete = False
        self._sizes: list[int] | None = None  # known once the text has been read
        self._buffer = bytearray()
        self._text_length: int | None = None

    @property
    def wanted(self) -> int:
        """How many bytes are missing until something can be done."""
        return max(1, self._goal() - len(self._buffer))

    def _goal(self) -> int:
        if self._text_length is None:
            return protocol.HEADER.size
        if self._sizes is None:
            return self._text_length
        return self._sizes[len(self.arrays)]

    def feed(self, part: bytes) -> None:
        """Take the next bytes: at most `wanted` of them."""
        self._buffer += part
        while not self.complete and len(self._buffer) >= self._goal():
            taken = bytes(self._buffer[: self._goal()])
            del self._buffer[: len(taken)]
            if self._text_length is None:
                self._text_length = protocol.text_length(taken, self.largest)
            elif self._sizes is None:
                self.message, self._sizes = protocol.unpack_text(taken)
                if self._sizes and not self.may_have_arrays:
                    raise ProtocolError("arrays where there can be none")
            else:
                self.arrays.append(taken)
            self.complete = self._sizes is not None and len(self.arrays) == len(
                self._sizes
            )
