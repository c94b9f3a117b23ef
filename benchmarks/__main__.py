"""Measure this machine, or check and compare what was measured."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import asking, compiled, machine, results, run
from benchmarks.engines import NAMES
from benchmarks.experiments import EXPERIMENTS
from benchmarks.plan import LeftOut, plan
from tools.model import errors, files
from tools.model.errors import UserError

# Seconds per sample and samples per round.
SAMPLING = {"repeats": 4, "at_least": 0.1, "limit": 10.0}
QUICK_SAMPLING = {"repeats": 3, "at_least": 0.05, "limit": 5.0}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    text = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what the book teaches on this machine. The results go to "
        "benchmarks/results/DEVICE.json, and the page What a GPU would give draws "
        "them. Needs Keras and one of TensorFlow, JAX and PyTorch; what is missing is "
        "left out.",
        epilog="experiments: "
        + "; ".join(f"{name}: {e.title.lower()}" for name, e in EXPERIMENTS.items()),
    )
    text.add_argument(
        "--quick",
        action="store_true",
        help="fewer sizes, one model, one round (minutes)",
    )
    text.add_argument(
        "--only",
        nargs="+",
        choices=EXPERIMENTS,
        default=[],
        metavar="EXPERIMENT",
        help="only these experiments; see below",
    )
    text.add_argument(
        "--engines",
        nargs="+",
        choices=NAMES,
        default=list(NAMES),
        metavar="ENGINE",
        help=f"only these engines: {', '.join(NAMES)}",
    )
    text.add_argument("--cpu", action="store_true", help="hide the accelerators")
    text.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="measure everything N times, in new processes each (default: 2; quick: 1)",
    )
    text.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write (default: benchmarks/results/DEVICE.json)",
    )
    text.add_argument(
        "--resume", action="store_true", help="go on with a run that was interrupted"
    )
    text.add_argument(
        "--commit", metavar="SHA", help="the commit, where there is no git repository"
    )
    text.add_argument(
        "--compiler",
        action="store_true",
        help="measure nothing: ask XLA's compiler what each NVIDIA GPU would do with "
        f"the models, and write {compiled.PATH.name} (half an hour; Linux)",
    )
    text.add_argument(
        "--list", action="store_true", help="show the plan, measure nothing"
    )
    other = text.add_mutually_exclusive_group()
    other.add_argument(
        "--check",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="check files of results (default: all of benchmarks/results)",
    )
    other.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="compare two runs"
    )
    return text


def check(paths: list[Path]) -> int:
    """Check files of results."""
    for path in paths or sorted(results.FOLDER.glob("*.json")):
        if path.name == compiled.PATH.name:
            plan_ = compiled.load(path)
            print(f"{path.name}: {len(plan_['plans'])} plans, {compiled.LABEL}")
            continue
        found = results.load(path)
        print(
            f"{path.name}: {len(found['results'])} results of {found['device']['name']}"
        )
    return 0


def compare(one: Path, other: Path) -> int:
    """Compare two files of results, which need not have their device's name."""
    pairs = results.compare(results.read(one), results.read(other))
    if not pairs:
        raise UserError(f"{one} and {other} have no case in common")
    apart = [pair for pair in pairs if not pair.agree]
    ratios = sorted(pair.ratio for pair in pairs)
    middle = ratios[len(ratios) // 2]
    print(f"{len(pairs)} cases in both; second over first: median ratio {middle:.3f}")
    print(f"{len(pairs) - len(apart)} agree: the ranges of their samples overlap")
    for pair in apart:
        print(f"  apart by {pair.ratio:.2f}: {pair.name}")
    return 0


def ask_compiler(args: argparse.Namespace, command: str) -> int:
    """Record what the cards' own compilers plan."""
    output = _output(args, compiled.PATH)
    found = asking.record(
        output, machine.commit(args.commit), command, args.quick, args.resume, _say
    )
    _store(found, output, compiled.check)
    failed = sum(plan_["status"] == "failed" for plan_ in found["plans"])
    print(f"{len(found['plans'])} plans, {failed} of them failed: {output}")
    return 0


def _output(args: argparse.Namespace, usual: Path) -> Path:
    """Where to write."""
    output = args.output or usual
    if not output.parent.is_dir():
        raise UserError(
            f"{output.parent}: no such folder. Fix: make it, or --output FILE"
        )
    return output


def _store(found: dict, output: Path, check_: Callable[[dict, str], None]) -> None:
    """Check what was found, write it, and remove what was kept on the way."""
    try:
        check_(found, output.name)
    except ImportError:
        print(
            "not checked: jsonschema is not installed here; `make book` checks the file"
        )
    files.write_text(output, json.dumps(found, indent=1) + "\n")
    output.with_suffix(".partial.jsonl").unlink()


def _interrupted(given: list[str]) -> int:
    """Say how to go on."""
    again = [word for word in given if word != "--resume"]
    command = shlex.join(["python", "-m", "benchmarks", *again, "--resume"])
    print(f"\ninterrupted; what is done is kept. Go on with: {command}")
    return 130


def _plan(args: argparse.Namespace):
    """Ask the engines what there is, and plan."""
    print("looking at what is here ...", flush=True)
    found, missing = run.probe(args.engines, args.cpu)
    if not found:
        reasons = "; ".join(f"{NAMES[left.engine]}: {left.why}" for left in missing)
        raise UserError(f"no engine is here. {reasons}. Fix: pip install keras jax")
    target, found, blind = run.choose(found)
    units, left_out = plan(target, list(found), args.quick, args.only)
    if not units:
        raise UserError("nothing of that can be measured here. Fix: see --help")
    return target, found, units, [*missing, *blind, *left_out]


def _without_paths(arguments: list[str]) -> list[str]:
    """The arguments without --output: where a file lies is no part of what it holds."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--output")
    return options.parse_known_args(arguments)[1]


def _say_left_out(left_out: list[LeftOut]) -> None:
    """Print what is not measured, and why."""
    for left in left_out:
        who = NAMES[left.engine] if left.engine else left.experiment
        print(f"left out: {who}: {left.why}")


@errors.command
def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    text = parser()
    args = text.parse_args(arguments)
    if args.check is not None:
        return check(args.check)
    if args.compare:
        return compare(*args.compare)
    if args.rounds is not None and args.rounds < 1:
        text.error("--rounds: at least 1")
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", "benchmarks", *_without_paths(given)])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    if args.compiler:
        try:
            return ask_compiler(args, command)
        except KeyboardInterrupt:
            return _interrupted(given)
    commit = machine.commit(args.commit)
    target, found, units, left_out = _plan(args)
    options = run.Options(
        rounds=args.rounds or (1 if args.quick else 2),
        quick=args.quick,
        only=tuple(args.only),
        engines=tuple(args.engines),
        on_cpu=args.cpu,
        sampling=QUICK_SAMPLING if args.quick else SAMPLING,
    )
    head = run.header(options, found, target, commit, command)
    output = _output(args, results.FOLDER / f"{head['device']['id']}.json")
    count = options.rounds * sum(len(unit.cases) for unit in units)
    print(f"device: {head['device']['name']}")
    _say_left_out(left_out)
    if args.list:
        for unit in units:
            for case in unit.cases:
                print(run.describe(unit.engine, case))
        print(f"{count} measurements in {options.rounds} rounds")
        return 0
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5 * os.cpu_count():
        print(
            "other programs are at work here: what they take will show in the results"
        )
    try:
        measured = run.measure(
            units, left_out, head, options, output, args.resume, say=_say
        )
    except KeyboardInterrupt:
        return _interrupted(given)
    _store(measured, output, results.check)
    count, bad = len(measured["results"]), ("failed", "out of memory")
    without = sum(result["status"] in bad for result in measured["results"])
    print(f"{count} results, {without} of them without a time: {output}")
    return 0


def _say(line: str) -> None:
    """Print a line of progress at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
