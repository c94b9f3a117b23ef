"""One worker in its sandbox, seen from the grader: requests go in, answers come out."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

import psutil

from grading import protocol, sandbox
from grading.protocol import ProtocolError

CHUNK = 2**20  # bytes read at a time
WATCH = 0.2  # seconds between two looks at the memory
START_SECONDS = 60
SETTLE = 0.1  # seconds in which harm done on the sly shows
SHOWN = 4000  # characters of what a cell prints that a report may show


class WorkerLost(Exception):
    """The worker is gone, with all that the student's code had made in it."""


class Session:
    """A worker in a sandbox.

    Args:
        limits: what the submission may use.
        slot: which of the workers that run at the same time this is.
        isolate: makes the command line that runs a program apart from the grader.

    Raises:
        WorkerLost: it did not start.
    """

    def __init__(
        self,
        limits: sandbox.Limits,
        slot: int = 0,
        isolate: Callable[..., list[str]] = sandbox.command,
    ) -> None:
        self.limits = limits
        self.number = 0
        self.printed = b""  # the start of what the last request printed
        self.over_memory = False
        inside_requests, self.requests = os.pipe()
        self.answers, inside_answers = os.pipe()
        self.output, inside_output = os.pipe()
        program = [sys.executable, "-X", "utf8", f"{sandbox.INSIDE}/worker.py"]
        numbers = [str(inside_requests), str(inside_answers)]
        own = json.dumps(limits.of_process())
        try:
            self.process = subprocess.Popen(
                isolate([*program, *numbers, own], limits, slot),
                stdin=subprocess.DEVNULL,
                stdout=inside_output,
                stderr=inside_output,
                pass_fds=(inside_requests, inside_answers),
                cwd="/",
            )
        finally:
            for descriptor in (inside_requests, inside_answers, inside_output):
                os.close(descriptor)
        for descriptor in (self.requests, self.answers, self.output):
            os.set_blocking(descriptor, False)
        self.closing = threading.Event()
        self.watching = threading.Thread(target=self._watch, daemon=True)
        self.watching.start()
        message, _ = self._exchange(b"", START_SECONDS, "starting")
        if message.get("ready") is not True:
            raise self._lost("the worker did not start")

    def run(self, source: str, seconds: float) -> dict | None:
        """Run a cell.

        Returns:
            The error that it raised, with `type` and `message`, or None.

        Raises:
            WorkerLost: it ended, hung, or broke a limit or the protocol.
        """
        message, _ = self._ask({"do": "run", "source": source}, {}, seconds)
        error = message.get("error")
        return None if error is None else self._error(error)

    def ask(self, request: dict, values: dict, seconds: float, resolve) -> object:
        """Ask for a value.

        Args:
            request: `do` and the fields that are plain JSON.
            values: the fields whose values are encoded.
            seconds: the time limit.
            resolve: what stands for a handle here.

        Raises:
            KeyError: the name that was asked for does not exist.
            RemoteError: the student's code raised an error.
            WorkerLost: the worker is gone.
        """
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
        """Wait a moment and see whether the worker is still there.

        Raises:
            WorkerLost: it is not; what ran last has harmed it.
        """
        time.sleep(SETTLE)
        if self._readable():
            raise self._lost("it broke the protocol: it spoke without being asked")
        if self.process.poll() is not None:
            raise self._lost("it ended the process")

    def close(self) -> None:
        """End the worker and everything in its sandbox."""
        self.closing.set()
        self.watching.join()
        self.process.kill()
        self.process.wait()
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

    def _lost(self, reason: str) -> WorkerLost:
        """End the worker; the error to raise."""
        if self.over_memory:
            gigabytes = self.limits.memory_bytes / 2**30
            reason = f"it used more than {gigabytes:g} GiB of memory"
        self.close()
        return WorkerLost(reason)

    def _ask(
        self, request: dict, values: dict, seconds: float
    ) -> tuple[dict, list[bytes]]:
        """Send a request and read its answer."""
        if self.requests < 0:
            raise WorkerLost("the worker is gone")
        self.number += 1
        frame = protocol.encode_message(
            {**request, "number": self.number}, values, _refuse
        )
        return self._exchange(frame, seconds, "running")

    def _exchange(
        self, frame: bytes, seconds: float, doing: str
    ) -> tuple[dict, list[bytes]]:
        """Write a frame and read one, while what the student's code prints is taken."""
        if frame and self._readable():
            raise self._lost("it broke the protocol: it spoke without being asked")
        reader = _Reader()
        deadline = time.monotonic() + seconds
        self.printed, printed = b"", 0
        left = memoryview(frame)
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            selector.register(self.output, selectors.EVENT_READ)
            if left:
                selector.register(self.requests, selectors.EVENT_WRITE)
            while not reader.complete:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise self._lost(f"it was still {doing} after {seconds:g} s")
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
                        printed += len(part)
                        if len(self.printed) < SHOWN:
                            self.printed += part[:SHOWN]
                        if printed > self.limits.output_bytes:
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
        if reader.message.pop("number", None) != self.number:
            raise self._lost("it broke the protocol: an answer to another question")
        self._drain()
        return reader.message, reader.arrays

    def _drain(self) -> None:
        """Take what was printed before the answer came."""
        with contextlib.suppress(BlockingIOError):
            self.printed = (self.printed + os.read(self.output, CHUNK))[:SHOWN]

    def _readable(self) -> bool:
        """Whether an answer is there that nobody asked for."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            ready = bool(selector.select(0))
        if ready:  # or the end: the worker is gone
            try:
                if not os.read(self.answers, 1):
                    raise self._lost("it ended the process")
            except BlockingIOError:
                return False
        return ready

    def _watch(self) -> None:
        """End the worker when its processes together use too much memory."""
        while not self.closing.wait(WATCH):
            if exceeds(self.process.pid, self.limits.memory_bytes):
                self.over_memory = True
                self.process.kill()
                return


class RemoteError(Exception):
    """The student's code raised an error while a test used it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)


class _Reader:
    """Puts a frame together from the parts in which it arrives."""

    def __init__(self) -> None:
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
                self._text_length = protocol.text_length(taken)
            elif self._sizes is None:
                self.message, self._sizes = protocol.unpack_text(taken)
            else:
                self.arrays.append(taken)
            self.complete = self._sizes is not None and len(self.arrays) == len(
                self._sizes
            )


def exceeds(pid: int, limit: int) -> bool:
    """Whether a process and its descendants hold more memory than a limit, in bytes.

    Pages that several of them share count once: the sum of the resident sizes is
    looked at first, because it is cheap and never too small.
    """
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
        resident = shared_out = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                resident += process.memory_info().rss
        if resident <= limit:
            return False
        for process in processes:
            with contextlib.suppress(psutil.Error):
                shared_out += process.memory_full_info().pss
        return shared_out > limit
    return False


def _refuse(value) -> NoReturn:
    """Say that a test sends what it can't send."""
    raise TypeError(
        f"a test can send plain data only, and {type(value).__name__} is none. "
        "Fix: send numbers, texts, lists or arrays."
    )
