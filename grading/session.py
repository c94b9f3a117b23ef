"""One worker in its sandbox, seen from the grader: requests go in, answers come out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable

from grading import sandbox
from grading.inside import protocol
from grading.inside.protocol import ProtocolError

CHUNK = 2**20  # bytes read at a time
START_SECONDS = 60
WAITS = (0.2, 1.0, 3.0, 6.0)  # seconds between two tries to start a worker
SHOWN = 4000  # bytes of what a request prints that are looked at
MAX_REPORT = 64 * 2**10  # bytes of what the worker may say of a cell that has run
UNASKED = "it broke the protocol: it spoke without being asked"


class WorkerLost(Exception):
    """The worker is gone, with all that the student's code had made in it.

    Args:
        reason: why.
        slow: whether it took too long.
    """

    def __init__(self, reason: str, slow: bool = False) -> None:
        super().__init__(reason)
        self.slow = slow


class RemoteError(Exception):
    """The student's code raised an error while a test used it."""


class Session:
    """A worker in a sandbox.

    It is held still except while it answers: nothing in it runs while a test computes,
    or measures, on its own. After a WorkerLost the session can only be closed.

    Raises:
        OSError: it did not start. No student's code has run, so this is no student's
            fault.
    """

    def __init__(self, limits: sandbox.Limits) -> None:
        self.number = 0
        self.lost = False  # after a WorkerLost
        self.functions: dict[int, Callable] = {}  # that a test has sent, by number
        self._resolve = None  # what stands for a handle in their arguments
        self._calling = False  # one of them is running
        self._printed = 0  # bytes printed before the last request
        # What the worker prints goes into memory that the kernel bounds, as a file.
        self.output = os.memfd_create("output")
        fcntl.fcntl(self.output, fcntl.F_SETFL, os.O_APPEND)
        self.pipe, inside = socket.socketpair()
        self.place = sandbox.Sandbox(limits)
        program = [sys.executable, "-X", "utf8", f"{sandbox.INSIDE}/worker.py"]
        try:
            with inside:
                number = inside.fileno()
                self.place.start([*program, str(number)], [number], self.output)
            if self._exchange(b"", START_SECONDS, "starting").get("ready") is not True:
                raise self._lost("the worker did not start")
        except WorkerLost as lost:
            lines = self.printed.decode(errors="replace").strip().splitlines()
            self.close()
            last = f" ({lines[-1][:200]})" if lines else ""
            raise OSError(f"{lost}{last}") from None
        except BaseException:
            self.close()
            raise

    @property
    def printed(self) -> bytes:
        """The start of what the last request printed."""
        return os.pread(self.output, SHOWN, self._printed)

    def run(self, source: str, seconds: float) -> dict | None:
        """Run a cell.

        Returns:
            The error that it raised, with `type` and `message`, or None.

        Raises:
            WorkerLost: it ended, hung, or broke a limit or the protocol.
        """
        request = {"do": "run", "source": source}
        message = self._ask(request, {}, seconds, MAX_REPORT)
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
        message = self._ask(request, values, seconds, protocol.MAX_MESSAGE)
        if message.get("missing") is True:
            raise KeyError(request.get("name"))
        if "error" in message:
            error = self._error(message["error"])
            raise RemoteError(f"{error['type']}: {error['message']}".removesuffix(": "))
        return self._decode(message.get("value", {}))

    def pause(self, seconds: float) -> None:
        """Let it run for a while, and see whether it is still there.

        Raises:
            WorkerLost: it is not; what ran last has harmed it.
        """
        self.place.go()
        time.sleep(seconds)
        self.place.stop()
        self._expect_silence()

    def close(self) -> None:
        """End the worker and everything in its sandbox."""
        self.place.end()
        self.pipe.close()
        if self.output >= 0:
            os.close(self.output)
            self.output = -1

    def _error(self, error: object) -> dict:
        """What the worker says of an error, if it is what it should be."""
        if not isinstance(error, dict) or not all(
            isinstance(error.get(name), str) for name in ("type", "message")
        ):
            raise self._lost("it broke the protocol: no error")
        return {"type": error["type"][:80], "message": error["message"][:2000]}

    def _decode(self, value: object) -> object:
        """The value that the worker has sent."""
        try:
            return protocol.decode(value, self._resolve)
        except (ProtocolError, RecursionError, MemoryError) as error:
            raise self._lost(f"it broke the protocol: {error}") from None

    def _lost(self, reason: str, slow: bool = False) -> WorkerLost:
        """The error to raise when the worker is of no use any more."""
        self.lost = True
        return WorkerLost(self.place.why() or reason, slow)

    def _ask(self, request: dict, values: dict, seconds: float, largest: int) -> dict:
        """Send a request and read its answer."""
        if self.output < 0:
            raise WorkerLost("the worker is gone")
        if self._calling:
            raise TypeError("a function of a test has plain data only")
        self.number += 1
        message = {**request, "number": self.number}
        frame = protocol.encode_message(message, values, self._lend)
        self._expect_silence()
        self._printed = os.fstat(self.output).st_size
        return self._exchange(frame, seconds, "running", largest)

    def _exchange(
        self, frame: bytes, seconds: float, doing: str, largest: int = MAX_REPORT
    ) -> dict:
        """Send a request and read its answer; do the calls that come in between."""
        deadline = time.monotonic() + seconds
        late = f"it was still {doing} after {seconds:.3g} s"
        self.place.go()
        while True:
            message = self._talk(frame, deadline, late, largest)
            if message.pop("number", None) != self.number:
                raise self._lost("it broke the protocol: an answer to another question")
            if "call" not in message:
                self.place.stop()
                return message
            frame = self._call(message)

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

    def _call(self, message: dict) -> bytes:
        """The frame with what a function of the test returns to the worker."""
        called, number = message["call"], {"number": self.number}
        function = self.functions.get(called) if type(called) is int else None
        if function is None:
            raise self._lost("it broke the protocol: a call of what is not there")
        arguments = self._decode(message.get("arguments"))
        named = self._decode(message.get("named"))
        if type(arguments) is not list or type(named) is not dict:
            raise self._lost("it broke the protocol: a call")
        self._calling = True
        try:
            value = function(*arguments, **named)
        except Exception as error:  # the student's code used it in another way
            reason = f"this function can't be called so ({type(error).__name__})"
            return protocol.pack({**number, "error": reason})
        finally:
            self._calling = False
        return protocol.encode_message(number, {"value": value}, self._lend)

    def _talk(self, frame: bytes, deadline: float, late: str, largest: int) -> dict:
        """Write a frame, and read the message that comes back."""
        try:
            self.pipe.settimeout(max(0.001, deadline - time.monotonic()))
            self.pipe.sendall(frame)
            header = self._read(protocol.HEADER.size, deadline)
            text, data = protocol.lengths(header, largest)
            return protocol.unpack(
                self._read(text, deadline), self._read(data, deadline)
            )
        except TimeoutError:
            raise self._lost(late, slow=True) from None
        except ConnectionError:
            raise self._lost("it ended the process") from None
        except (ProtocolError, MemoryError) as error:
            raise self._lost(f"it broke the protocol: {error}") from None

    def _read(self, size: int, deadline: float) -> bytes:
        """Read a number of bytes, which the worker may send one by one."""
        parts = bytearray()
        while len(parts) < size:
            self.pipe.settimeout(max(0.001, deadline - time.monotonic()))
            part = self.pipe.recv(min(size - len(parts), CHUNK))
            if not part or time.monotonic() > deadline:
                raise TimeoutError if part else ConnectionError
            parts += part
        return bytes(parts)

    def _expect_silence(self) -> None:
        """See that there is no answer that nobody asked for, and a worker."""
        with contextlib.suppress(BlockingIOError):
            self.pipe.setblocking(False)
            try:
                part = self.pipe.recv(1)
            except ConnectionError:
                part = b""
            raise self._lost(UNASKED if part else "it ended the process")


def open_session(limits: sandbox.Limits) -> Session:
    """A session; one that does not start is tried again.

    The many processes of a worker that was just ended may still be on their way out,
    and the kernel has none left for another sandbox.

    Raises:
        OSError: none did start, which is nobody's fault.
    """
    for wait in WAITS:
        try:
            return Session(limits)
        except OSError:
            time.sleep(wait)
    return Session(limits)
