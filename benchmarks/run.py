"""Measure a plan in worker processes, and go on after an interruption."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import fcntl
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from benchmarks import machine
from benchmarks.engines import NAMES
from benchmarks.experiments import EXPERIMENTS
from benchmarks.plan import LeftOut, Machine, Unit, key
from benchmarks.stopwatch import quartiles
from tools.model.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
# Seconds in which a case must end: compilers take most of them.
LONGEST = 240
# A series of growing cases ends where one piece of work takes longer than this.
SLOW = 2.0


def _environment(engine: str, on_cpu: bool, scratch: str) -> dict[str, str]:
    """The variables of a worker: one backend, memory as needed, no compiler's cache."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KERAS_", "TF_", "XLA_", "JAX_", "TORCHINDUCTOR_"))
    }
    variables.update(
        PYTHONPATH=os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        KERAS_HOME=scratch,
        TF_FORCE_GPU_ALLOW_GROWTH="true",
        TF_CPP_MIN_LOG_LEVEL="2",
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
        # torch.compile would find its work of the last run and look faster than it is.
        TORCHINDUCTOR_CACHE_DIR=str(Path(scratch, "inductor")),
        TORCHINDUCTOR_FORCE_DISABLE_CACHES="1",
    )
    if engine.startswith("keras-"):
        variables["KERAS_BACKEND"] = engine.removeprefix("keras-")
    if on_cpu:
        variables.update(
            CUDA_VISIBLE_DEVICES="-1", JAX_PLATFORMS="cpu", KERAS_TORCH_DEVICE="cpu"
        )
    return variables


class Worker:
    """A process that answers one request.

    Args:
        request: what its program reads.
        on_cpu: hide accelerators.
        program: the module that it runs.
        variables: of its environment, besides those of the engine.
    """

    def __init__(
        self,
        request: dict,
        on_cpu: bool,
        program: str = "benchmarks.worker",
        variables: dict[str, str] | None = None,
    ):
        self.late = False
        self._scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = self._scratch.name
        self._log = Path(folder, "log").open(  # noqa: SIM115 (closed in `close`)
            "w+", encoding="utf-8", errors="replace"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", program],
            cwd=folder,
            env={
                **_environment(request.get("engine", ""), on_cpu, folder),
                **(variables or {}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        with contextlib.suppress(BrokenPipeError):
            json.dump(request, self.process.stdin)
            self.process.stdin.close()

    def messages(self, timeout: float) -> Iterator[dict]:
        """What the worker says, until it ends or is silent for `timeout` seconds."""
        while True:
            timer = threading.Timer(timeout, self._stop_late)
            timer.daemon = True  # Ctrl-C does not wait for it
            try:
                timer.start()
                line = self.process.stdout.readline()
            finally:
                timer.cancel()
            if not line:
                return
            yield json.loads(line)

    def _stop_late(self) -> None:
        self.late = True
        self.kill()

    def kill(self) -> None:
        """End the process and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> str:
        """End it, and tell how it ended if that was not as it should."""
        self.kill()
        status = self.process.wait()
        self.process.stdout.close()
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line.strip()]
        self._log.close()
        self._scratch.cleanup()
        if self.late:
            return "stopped: it took too long"
        if status == -signal.SIGKILL:
            return "killed by the system, as Linux does when memory runs out"
        last = " ".join(w for w in (lines or [""])[-1].split() if "/" not in w)
        return f"the process ended with status {status}: {last}"[:200]


def probe(engines: list[str], on_cpu: bool) -> tuple[dict[str, dict], list[LeftOut]]:
    """Ask each engine what it is and what it sees.

    Returns:
        What the engines that are here say, by name; and the others, with the reason.
    """
    found, left_out = {}, []
    for engine in engines:
        worker = Worker({"engine": engine, "probe": True}, on_cpu)
        answer = next(worker.messages(LONGEST), None)
        ended = worker.close()
        if answer and "missing" not in answer:
            found[engine] = answer
        else:
            why = answer["missing"] if answer else ended
            left_out.append(LeftOut("all", why, engine))
    return found, left_out


def choose(found: dict[str, dict]) -> tuple[Machine, dict[str, dict], list[LeftOut]]:
    """Choose the device: an accelerator, if any engine sees one.

    Returns:
        The machine, what the engines on it say, and the engines that do not see it.
    """
    kinds = [answer["kind"] for answer in found.values()]
    kind = next((kind for kind in kinds if kind != "cpu"), "cpu")
    here = {engine: said for engine, said in found.items() if said["kind"] == kind}
    blind = [
        LeftOut("all", f"it sees no {kind} here", engine)
        for engine in found
        if engine not in here
    ]
    texts = [said["device"].get("capability") for said in here.values()]
    text = next(filter(None, texts), None)
    capability = tuple(int(part) for part in text.split(".")) if text else None
    return Machine(kind, capability), here, blind


def _same_run(one: dict, other: dict) -> bool:
    """Whether two headers differ in nothing but the day and the command."""

    def core(header):
        header = json.loads(json.dumps(header))
        for name in ("date", "command"):
            header["provenance"].pop(name)
        return header

    return core(one) == core(other)


class Journal:
    """The results of a run so far, a line each, so that nothing is lost.

    The first line is what the run is made of; a run is resumed only by one that is made
    of the same.
    """

    def __init__(self, path: Path):
        self.path = path
        self.records: list[dict] = []
        self._file: IO[str] | None = None

    def start(self, header: dict, resume: bool) -> None:
        """Begin, or go on with what an interrupted run has left.

        Raises:
            UserError: there is something to resume and nobody asked for it, or the
                other way round, or it is from another run, or that run is at work.
        """
        self._lock()
        if not self.path.stat().st_size:
            if resume:
                self.path.unlink()
                raise UserError(
                    f"{self.path.name}: there is no interrupted run to resume. "
                    "Fix: leave --resume out"
                )
            self._write(header, "w")
            return
        if not resume:
            raise UserError(
                f"{self.path}: an interrupted run has left its results here. "
                "Fix: go on with --resume, or remove the file"
            )
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]
        if not whole or not _same_run(json.loads(whole[0]), header):
            raise UserError(
                f"{self.path}: the interrupted run had other options, versions or "
                "programs. Fix: run as then, or remove the file"
            )
        self.records = [json.loads(line) for line in whole[1:]]
        self.path.write_text("".join(whole), encoding="utf-8")  # without a half line

    def _lock(self) -> None:
        """Let no other run write here until this one is closed or its process ends."""
        self._file = self.path.open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{self.path}: another run is writing here. Fix: wait for it, or "
                "give another --output"
            ) from None

    def close(self) -> None:
        """Let others write."""
        if self._file:
            self._file.close()

    def add(self, record: dict) -> None:
        """Note a result."""
        self.records.append(record)
        self._write(record, "a")

    def _write(self, value: dict, mode: str) -> None:
        with self.path.open(mode, encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")
            file.flush()
            os.fsync(file.fileno())


def measure_unit(
    unit: Unit, cases: list[dict], options: dict, on_cpu: bool = False
) -> Iterator[tuple[dict, dict]]:
    """Measure cases of a unit, in a new process after each one that failed.

    Args:
        unit: says which engine, and whether the cases grow.
        cases: those of its cases that are to be measured.
        options: for benchmarks.stopwatch.sample.
        on_cpu: hide accelerators.

    Yields:
        Each case with its result: "status" is "ok", "out of memory", "failed" or "left
        out", and "why" says why it is not "ok".
    """
    cases = list(cases)
    while cases:
        request = {"engine": unit.engine, "cases": cases, "options": options}
        worker = Worker(request, on_cpu)
        done, under_way, slow = 0, False, False
        try:
            for message in worker.messages(LONGEST):
                under_way = "start" in message
                if under_way:
                    continue
                result = message["result"]
                yield cases[done], result
                done += 1
                if unit.grows and result["status"] == "ok":
                    slow = statistics.median(result["samples_s"]) > SLOW
                if slow:
                    break
        finally:
            ended = worker.close()
        if slow:
            why = f"a smaller one took more than {SLOW:g} s each time"
            yield from (
                (case, {"status": "left out", "why": why}) for case in cases[done:]
            )
            return
        if under_way or done == 0:  # it died, perhaps before it could begin
            killed = ended.startswith("killed")
            status = "out of memory" if killed else "failed"
            yield cases[done], {"status": status, "why": ended}
            done += 1
        cases = cases[done:]


def _digits(value: float) -> float:
    """A number with five digits: more are noise."""
    return float(f"{value:.5g}")


def merge(records: list[dict]) -> dict:
    """The rounds of one case as one result: median and quartiles of all samples."""
    first = records[0]
    merged = {name: first[name] for name in ("experiment", "engine", "params")}
    good = [record for record in records if record["status"] == "ok"]
    bad = [record for record in records if record["status"] != "ok"]
    if not good:
        return {**merged, "status": first["status"], "why": first["why"]}
    samples = [[_digits(s) for s in record["samples_s"]] for record in good]
    low, median, high = quartiles(itertools.chain.from_iterable(samples))
    peaks = [r["peak_memory_bytes"] for r in good if r["peak_memory_bytes"] is not None]
    merged.update(
        status="ok",
        median_s=_digits(median),
        low_s=_digits(low),
        high_s=_digits(high),
        samples_s=samples,
        calls=[record["calls"] for record in good],
        first_s=[_digits(record["first_s"]) for record in good],
        flop=good[0]["flop"],
        bytes=good[0]["bytes"],
        peak_memory_bytes=max(peaks, default=None),
    )
    if bad:
        merged["why"] = f"one round {bad[0]['status']}: {bad[0]['why']}"
    return merged


def describe(engine: str, case: dict) -> str:
    """A case in a few words."""
    words = [
        f"{name}={value}" if isinstance(value, bool | int) else str(value)
        for name, value in case["params"].items()
    ]
    return f"{case['experiment']:10} {NAMES[engine]:19} {' '.join(words)}"


def _outcome(result: dict) -> str:
    """A result in a few words."""
    if result["status"] != "ok":
        return f"{result['status']}: {result['why']}"
    return f"{1e3 * statistics.median(result['samples_s']):.4g} ms"


@dataclasses.dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes:
        rounds: how often the whole plan is measured, each time in new processes.
        quick: whether this is the short plan.
        only: names of experiments, or empty for all.
        engines: names of engines.
        on_cpu: hide accelerators.
        sampling: for benchmarks.stopwatch.sample.
    """

    rounds: int
    quick: bool
    only: tuple[str, ...]
    engines: tuple[str, ...]
    on_cpu: bool
    sampling: dict

    def as_json(self) -> dict:
        """The options as JSON would return them."""
        return json.loads(json.dumps(dataclasses.asdict(self)))


def header(
    options: Options, found: dict[str, dict], target: Machine, commit: str, command: str
) -> dict:
    """Device and provenance of a run."""
    versions = {k: v for said in found.values() for k, v in said["versions"].items()}
    resolution = time.get_clock_info("perf_counter").resolution
    return {
        "schema": 1,
        "device": machine.device(target.kind, [s["device"] for s in found.values()]),
        "provenance": {
            "date": datetime.date.today().isoformat(),
            "commit": commit,
            "suite": machine.suite(),
            "command": command,
            **machine.system(),
            "packages": dict(sorted(versions.items())),
            "options": options.as_json(),
            "clock": f"time.perf_counter, resolution {resolution:g} s",
            "clocks": {name: e.clock for name, e in EXPERIMENTS.items()},
        },
    }


def _by_case(records: list[dict]) -> dict[str, list[dict]]:
    """The records of each case, by its name; none for a case that has none."""
    found = collections.defaultdict(list)
    for record in records:
        found[key(record["engine"], record)].append(record)
    return found


def _pending(unit: Unit, round_: int, records: list[dict]) -> list[dict]:
    """The cases of a unit that are due in a round: what failed is not tried again."""
    done = _by_case(records)
    return [
        case
        for case in unit.cases
        if all(
            record["round"] != round_ and record["status"] == "ok"
            for record in done[key(unit.engine, case)]
        )
    ]


def _measure_rounds(
    units: list[Unit], options: Options, journal: Journal, say: Callable[[str], None]
) -> None:
    """Measure what the journal does not have yet, and show the progress."""
    total = options.rounds * sum(len(unit.cases) for unit in units)
    if journal.records:
        say(f"resumed: {len(journal.records)} of {total} are done")
    began = time.monotonic()
    for round_ in range(options.rounds):
        for unit in units:
            pending = _pending(unit, round_, journal.records)
            for case, result in measure_unit(
                unit, pending, options.sampling, options.on_cpu
            ):
                journal.add({"engine": unit.engine, "round": round_, **case, **result})
                minutes = (time.monotonic() - began) / 60
                say(
                    f"[{len(journal.records):3}/{total}] {minutes:4.1f} min  "
                    f"{describe(unit.engine, case)}  {_outcome(result)}"
                )


def measure(
    units: list[Unit],
    left_out: list[LeftOut],
    head: dict,
    options: Options,
    output: Path,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict:
    """Measure all units and return the results as they go into a file.

    What is done is kept beside `output` after each case. After an interruption, call it
    again with resume=True.
    """
    missing = [
        {k: v for k, v in dataclasses.asdict(left).items() if v is not None}
        for left in left_out
    ]
    with contextlib.closing(Journal(output.with_suffix(".partial.jsonl"))) as journal:
        journal.start({**head, "left_out": missing}, resume)
        _measure_rounds(units, options, journal, say)
    return {
        **head,
        "left_out": missing,
        "results": [merge(records) for records in _by_case(journal.records).values()],
    }
