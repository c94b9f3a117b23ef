"""Write what was measured for the page What a GPU would give, in MyST Markdown.

Each part is a function of all results that returns Markdown. A figure is given to
`draw(name, figure)`, which stores it and returns its address for Markdown.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator

import matplotlib.pyplot as plt

from benchmarks import flops
from benchmarks.engines import NAMES, usual_mode
from benchmarks.experiments import EXPERIMENTS
from benchmarks.sizes import BATCHES, SIZES
from book_site.measured import figures, report
from book_site.measured.report import digits, per_second, seconds

Draw = Callable[[str, plt.Figure], str]


def table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """A Markdown table: the first columns hold words, the others numbers."""
    marks = [*["---"] * words, *["--:"] * (len(head) - words)]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(address: str, alt: str) -> str:
    """A figure with its alternative text."""
    return f"```{{image}} {address}\n:alt: {alt}\n```"


def whole(text: str) -> str:
    """A text that is not broken between its words."""
    return text.replace(" ", "\u00a0")


def day(text: str) -> str:
    """An ISO date as 21 November 2026."""
    date = datetime.date.fromisoformat(text)
    return f"{date.day} {date:%B %Y}"


def accelerators(all_results: list[dict]) -> list[dict]:
    """The results of devices that are no CPUs."""
    return [r for r in all_results if r["device"]["kind"] != "cpu"]


def way(result: dict) -> str:
    """Engine and mode of a result, in words."""
    return f"{NAMES[result['engine']]}, {result['params']['mode']}"


# --- devices -------------------------------------------------------------------------


def devices(all_results: list[dict], draw: Draw) -> str:
    """The devices with what is known of each."""
    rows = []
    for results in all_results:
        device, provenance = results["device"], results["provenance"]
        packages = ", ".join(f"{k} {v}" for k, v in provenance["packages"].items())
        memory = device.get("memory_bytes")
        driver = f", driver {device['driver']}" if "driver" in device else ""
        rows.append(
            [
                device["name"],
                report.size_of(memory) if memory else "",
                day(provenance["date"]),
                f"Python {provenance['python']}, {packages}{driver}",
            ]
        )
    text = table(["device", "memory", "measured on", "with"], rows, words=4)
    if not accelerators(all_results):
        text += (
            "\n\n**No accelerator has been measured here yet.** What can be said of "
            "one without it stands above, as the compiler's plan and as measured by "
            "others."
        )
    return text


# --- models --------------------------------------------------------------------------


def _weights(model: str, size: str) -> int:
    """The number of weights of a model."""
    shape = SIZES[model][size]
    if model == "mlp":
        widths = [shape.inputs, *[shape.width] * shape.layers, shape.classes]
        return sum(a * b + b for a, b in itertools.pairwise(widths))
    if model == "conv":
        channels = [3, *(f for f in shape.filters for _ in range(2))]
        pairs = itertools.pairwise(channels)
        last = channels[-1] * shape.classes + shape.classes
        return sum(9 * a * b + b for a, b in pairs) + last
    width = shape.width
    block = 12 * width * width + 13 * width
    ends = (shape.vocabulary + shape.length + 2) * width
    return shape.layers * block + ends + (width + 1) * shape.vocabulary


def shape(model: str, size: str) -> str:
    """A model in a sentence without a verb."""
    its = SIZES[model][size]
    if model == "mlp":
        return f"{its.layers} hidden layers of {its.width}, {its.inputs} inputs"
    if model == "conv":
        filters = ", ".join(map(str, its.filters))
        return f"images of {its.side} × {its.side}, stages of {filters} filters"
    return (
        f"{its.layers} layers of width {its.width}, {its.heads} heads, "
        f"{its.length} tokens"
    )


def _best_step(results: dict, model: str, size: str) -> dict | None:
    """The fastest training step with Keras, of the middle batch."""
    batch = BATCHES[model][size][1]
    found = [
        result
        for result in report.good(results, "train", model=model, size=size, batch=batch)
        if result["engine"].startswith("keras")
    ]
    return min(found, key=lambda result: result["median_s"], default=None)


def summary(all_results: list[dict], draw: Draw) -> str:
    """The fastest training step of each model on each device, and how they compare."""
    head = ["model, samples in a step", *(r["device"]["name"] for r in all_results)]
    first = all_results[0]
    rows = []
    for model, size in _measured(all_results):
        batch = BATCHES[model][size][1]
        row = [f"{report.MODELS[model]} ({size}), {batch}"]
        base = _best_step(first, model, size)
        for results in all_results:
            found = _best_step(results, model, size)
            if not found:
                row.append("not measured")
                continue
            cell = f"**{seconds(found['median_s'])}** {way(found)}"
            cell += f", {found['params']['precision']}"
            if results is not first and base:
                cell += f": **{digits(base['median_s'] / found['median_s'])} times**"
            row.append(cell)
        rows.append(row)
    return table(head, rows, words=1 + len(all_results))


def _measured(all_results: list[dict]) -> Iterator[tuple[str, str]]:
    """The models and sizes for which some device has a time."""
    for model, sizes in BATCHES.items():
        for size in sizes:
            if any(_best_step(results, model, size) for results in all_results):
                yield model, size


def models(all_results: list[dict], draw: Draw) -> str:
    """A table for each model: the ways to run it, on each device."""
    parts = []
    for model, size in _measured(all_results):
        batch = BATCHES[model][size][1]
        step = flops.training_step(SIZES[model][size], batch)
        weights = digits(_weights(model, size))
        parts.append(
            f"#### {report.MODELS[model]}, {size}\n\n"
            f"{shape(model, size).capitalize()}; {weights} weights. A training step "
            f"on {batch} samples is {per_second(step, 'FLOP').removesuffix('/s')}."
        )
        for results in all_results:
            best = _best_step(results, model, size)
            if not best:
                continue
            prefix = "T" if report.rate(best, "flop") >= 1e12 else "G"
            rows = list(_ways(results, model, size, batch, prefix))
            head = [
                results["device"]["name"],
                "training step",
                f"{prefix}FLOP/s (of the peak)",
                "memory",
                "first step",
                "forward pass",
            ]
            parts.append(table(head, rows))
    return "\n\n".join(parts)


def _ways(
    results: dict, model: str, size: str, batch: int, prefix: str
) -> Iterator[list[str]]:
    """The rows of one model on one device, with rates in GFLOP/s or TFLOP/s."""
    names = {"model": model, "size": size, "batch": batch}
    for engine in NAMES:
        for result in report.good(results, "train", engine, **names):
            params = result["params"]
            usual = usual_mode(engine, results["device"]["kind"] != "cpu")
            speed = digits(report.rate(result, "flop") / {"G": 1e9, "T": 1e12}[prefix])
            share = report.share_of_peak(results, result)
            if share:
                speed = whole(f"{speed} ({100 * share:.0f} %)")
            memory = result["peak_memory_bytes"]
            forward = report.one(results, "infer", engine, **params)
            words = whole(f"{params['precision']}, {params['mode']}")
            words = f"**{words}**" if params["mode"] == usual else words
            yield [
                f"{whole(NAMES[engine] + ',')} {words}",
                seconds(result["median_s"]),
                speed,
                whole(report.size_of(memory)) if memory else "",
                seconds(min(result["first_s"])),
                seconds(forward["median_s"]) if forward else "",
            ]


def rates(all_results: list[dict], draw: Draw) -> str:
    """How to estimate the time of another model: the rates that the models reached."""
    rows = []
    for results in all_results:
        for model, size in _measured([results]):
            found = _best_step(results, model, size)
            rows.append(
                [
                    results["device"]["name"],
                    f"{report.MODELS[model].lower()}, {size}",
                    found["params"]["precision"],
                    per_second(report.rate(found, "flop"), "FLOP"),
                ]
            )
    head = ["device", "model", "precision", "rate in training"]
    return table(head, rows, words=3)


# --- figures -------------------------------------------------------------------------


def roofline(all_results: list[dict], draw: Draw) -> str:
    """The rooflines, and the numbers of the roofs."""
    rows = []
    for results in all_results:
        row = [
            results["device"]["name"],
            per_second(report.rate(report.bandwidth(results), "bytes"), "B"),
        ]
        for dtype in figures.DTYPES:
            found = report.peak(results, dtype)
            row.append(
                f"{per_second(report.rate(found, 'flop'), 'FLOP')} "
                f"({NAMES[found['engine']].removeprefix('Keras on ')})"
                if found
                else "none"
            )
        rows.append(row)
    alt = (
        "FLOP per second over arithmetic intensity, with double logarithmic axes: sums "
        "of vectors lie on the slope of the memory, large matrix products at the roof."
    )
    picture = figure(draw("roofline", figures.roofline(all_results)), alt)
    head = ["device", "memory bandwidth", *figures.DTYPES]
    return f"{picture}\n\n{table(head, rows)}"


def speed_ups(all_results: list[dict], draw: Draw) -> str:
    """What each technique gains, a figure per device."""
    parts = []
    for results in all_results:
        found = list(report.speed_ups(results))
        if not found:
            continue
        name = results["device"]["name"]
        address = draw(
            f"speed-ups-{results['device']['id']}", figures.speed_ups(found, name)
        )
        lost = [s for s in found if s.is_clear and s.factor < 1]
        unclear = sum(not s.is_clear for s in found)
        alt = f"Speed-ups on {name}: a dot for each technique, engine and model."
        parts.append(figure(address, alt))
        parts.append(
            f"{len(found)} comparisons on {name}: {len(found) - len(lost) - unclear} "
            f"made the step faster, {len(lost)} slower, and {unclear} can't be told "
            "from noise (hollow)."
        )
        if lost:
            worst = min(lost, key=lambda s: s.factor)
            params = worst.fast["params"]
            parts.append(
                f"The worst: {worst.technique} on {NAMES[worst.fast['engine']]}, "
                f"{report.MODELS[params['model']].lower()}, makes the step "
                f"{digits(1 / worst.factor)} times slower."
            )
    return "\n\n".join(parts)


def batches(all_results: list[dict], draw: Draw) -> str:
    """Samples per second over the batch size, a figure per device and model."""
    parts = []
    for results in all_results:
        for model, size in _measured([results]):
            drawn = figures.batches(results, model, size)
            if drawn is None:
                continue
            device = results["device"]
            address = draw(f"batches-{device['id']}-{model}-{size}", drawn)
            name = f"{report.MODELS[model].lower()}, {size}"
            alt = (
                f"Samples per second over the batch size: {name}, on {device['name']}."
            )
            parts += [f"**{device['name']}, {name}**", figure(address, alt)]
    return "\n\n".join(parts) or "Not measured."


def beside_keras(all_results: list[dict], draw: Draw) -> str:
    """The same model with and without Keras."""
    rows = []
    for results in all_results:
        for found in report.beside_keras(results):
            params = found.slow["params"]
            noise = "" if found.is_clear else " (noise)"
            model = report.MODELS[params["model"]].lower()
            rows.append(
                [
                    results["device"]["name"],
                    f"{whole(model + ', ' + params['size'] + ',')} "
                    + whole(f"{params['batch']} samples, {params['precision']}"),
                    NAMES[found.fast["engine"]].removesuffix(" alone")
                    + f", {params['mode']}",
                    seconds(found.slow["median_s"]),
                    seconds(found.fast["median_s"]),
                    digits(found.factor) + noise,
                ]
            )
    head = ["device", "model", "engine", "with Keras", "without", "with over without"]
    return table(head, rows, words=3) if rows else "Not measured."


def calls(all_results: list[dict], draw: Draw) -> str:
    """What one call costs, and from which size on an accelerator wins."""
    rows = []
    for results in all_results:
        for engine in NAMES:
            waited = report.one(results, "dispatch", engine, wait=True)
            queued = report.one(results, "dispatch", engine, wait=False)
            if waited and queued:
                rows.append(
                    [
                        results["device"]["name"],
                        NAMES[engine],
                        seconds(waited["median_s"]),
                        seconds(queued["median_s"]),
                    ]
                )
    head = ["device", "engine", "with waiting", "without"]
    parts = [table(head, rows, words=2)]
    for results in accelerators(all_results):
        name, lines = results["device"]["name"], []
        for engine in NAMES:
            for experiment, words in (
                ("matmul", "with the data on the device"),
                ("round-trip", "with the copies"),
            ):
                if not report.good(results, experiment, engine):
                    continue
                size = report.break_even(results, engine, experiment)
                when = f"from {size} rows on" if size else "at no size measured"
                lines.append(f"- {NAMES[engine]}, {words}: {when}")
            if report.good(results, "round-trip", engine):
                drawn = figures.break_even(results, engine)
                address = draw(f"break-even-{results['device']['id']}-{engine}", drawn)
                alt = f"Time of a product of matrices over its size: {name}."
                parts.append(figure(address, alt))
        parts.append(f"{name} beats the CPU beside it:\n\n" + "\n".join(lines))
    if not accelerators(all_results):
        parts.append(
            "The break-even size of an accelerator, with and without the copies "
            "between the host's memory and its own, is measured where there is one."
        )
    return "\n\n".join(parts)


# --- everything ----------------------------------------------------------------------


def everything(all_results: list[dict], draw: Draw) -> str:
    """Every result of every device, with what was timed, and the provenance."""
    return "\n\n".join(part for r in all_results for part in _everything_of(r))


def _everything_of(results: dict) -> Iterator[str]:
    """One device's part."""
    device, provenance = results["device"], results["provenance"]
    sampling = provenance["options"]["sampling"]
    yield f"#### {device['name']}"
    yield (
        f"`{provenance['command']}` on {day(provenance['date'])}, at commit "
        f"`{provenance['commit'][:12]}`, {provenance['system']}. Each case was "
        f"measured in {provenance['options']['rounds']} rounds, in new processes, with "
        f"up to {sampling['repeats']} samples of {sampling['at_least']:g} s or more. "
        f"The clock is {provenance['clock']}."
    )
    for name, experiment in EXPERIMENTS.items():
        found = [r for r in results["results"] if r["experiment"] == name]
        if not found:
            continue
        rows = [_row(results, result) for result in found]
        head = ["case", "median", "quartiles", "samples", "rate"]
        yield (
            f"````{{dropdown}} {experiment.title}: {len(found)} cases\n"
            f"{provenance['clocks'][name]}\n\n{table(head, rows)}\n````"
        )
    if results["left_out"]:
        lines = "\n".join(
            f"- {NAMES.get(left.get('engine'), left['experiment'])}: {left['why']}"
            for left in results["left_out"]
        )
        yield f"Left out on this machine:\n\n{lines}"


def _row(results: dict, result: dict) -> list[str]:
    """A result as a row of the table of everything."""
    words = [
        f"{name} {value}" if isinstance(value, bool | int) else str(value)
        for name, value in result["params"].items()
    ]
    case = f"{NAMES[result['engine']]}, {', '.join(words)}"
    if result["status"] != "ok":
        return [case, f"{result['status']}: {result['why']}", "", "", ""]
    what = "flop" if result["flop"] and result["experiment"] != "addition" else "bytes"
    speed = ""
    if result[what]:
        unit = {"flop": "FLOP", "bytes": "B"}[what]
        speed = per_second(report.rate(result, what), unit)
    mark = f'<span id="{report.anchor(results, result)}"></span>'
    return [
        mark + case,
        seconds(result["median_s"]),
        f"{seconds(result['low_s'])} to {seconds(result['high_s'])}",
        str(sum(map(len, result["samples_s"]))),
        speed,
    ]


PARTS = {
    part.__name__.replace("_", "-"): part
    for part in (
        devices,
        summary,
        models,
        rates,
        roofline,
        speed_ups,
        batches,
        beside_keras,
        calls,
        everything,
    )
}
