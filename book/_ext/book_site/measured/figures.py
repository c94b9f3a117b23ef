"""Draw results: the figures of the page What a GPU would give, as SVG."""

from __future__ import annotations

import io

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.engines import NAMES
from book_site.measured import report

# Okabe and Ito's colours, and shapes, so that nothing hangs on the colour alone.
ENGINES = {
    "keras-tensorflow": ("#E69F00", "o"),
    "keras-jax": ("#0072B2", "s"),
    "keras-torch": ("#D55E00", "^"),
    "torch": ("#CC79A7", "v"),
    "jax": ("#56B4E9", "D"),
}
DTYPES = {
    "float32": ("#0072B2", "o"),
    "tf32": ("#009E73", "^"),
    "bfloat16": ("#D55E00", "s"),
    "float16": ("#CC79A7", "D"),
}
STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "measured results",  # the same picture gives the same file
}


def as_svg(figure: Figure) -> str:
    """The figure as text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()


def _si(value: float, _position=None) -> str:
    """A number of an axis with a prefix: 2k, 3M."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"


def roofline(all_results: list[dict]) -> Figure:
    """Rate over arithmetic intensity, one panel per device, under its measured roofs.

    The roofline model is that of Williams, Waterman and Patterson (2009),
    doi:10.1145/1498765.1498785.
    """
    figure, axes = plt.subplots(
        len(all_results),
        1,
        figsize=(7, 4 * len(all_results)),
        squeeze=False,
        sharex=True,
    )
    for results, axis in zip(all_results, axes[:, 0], strict=True):
        slope = report.rate(report.bandwidth(results), "bytes")
        axis.set_title(results["device"]["name"])
        for dtype, (colour, marker) in DTYPES.items():
            highest = report.peak(results, dtype)
            if highest is None:
                continue
            roof = report.rate(highest, "flop")
            corner = roof / slope
            axis.plot([0.02, corner, 1e4], [0.02 * slope, roof, roof], color=colour)
            found = report.on_device(report.good(results, "matmul", dtype=dtype))
            axis.plot(
                [result["flop"] / result["bytes"] for result in found],
                [report.rate(result, "flop") for result in found],
                linestyle="none",
                marker=marker,
                color=colour,
                alpha=0.6,
                label=f"matrix product, {dtype}",
            )
        for name, marker, label in (
            ("addition", "x", "sum of two vectors"),
            ("chain", "+", "twelve elementwise operations, compiled"),
        ):
            found = report.good(results, name)
            found = [
                r for r in found if r["params"].get("mode", "compiled") == "compiled"
            ]
            axis.plot(
                [result["flop"] / result["bytes"] for result in found],
                [report.rate(result, "flop") for result in found],
                linestyle="none",
                marker=marker,
                color="#555555",
                label=label,
            )
        axis.set(xscale="log", yscale="log", ylabel="FLOP per second")
        axis.yaxis.set_major_formatter(FuncFormatter(_si))
        axis.legend(fontsize=8, loc="lower right")
    axes[-1, 0].set_xlabel("arithmetic intensity (FLOP per byte)")
    return figure


def _dots(
    rows: list[tuple[str, list[report.SpeedUp]]], title: str, label: str
) -> Figure:
    """A row of dots for each technique: one dot for each engine and model."""
    figure, axis = plt.subplots(figsize=(7, 1.2 + 0.55 * len(rows)))
    shown = set()
    for place, (_, found) in enumerate(rows):
        for number, speed_up in enumerate(found):
            engine = speed_up.fast["engine"]
            colour, marker = ENGINES[engine]
            axis.plot(
                speed_up.factor,
                place + 0.5 * (number / max(1, len(found) - 1) - 0.5),
                linestyle="none",
                marker=marker,
                markersize=6,
                color=colour,
                markerfacecolor=colour if speed_up.is_clear else "none",
                label=None if engine in shown else NAMES[engine],
            )
            shown.add(engine)
    axis.axvline(1, color="#767676", linewidth=1)
    axis.set_yticks(range(len(rows)), [name for name, _ in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set(xscale="log", xlabel=label, title=title)
    axis.xaxis.set_major_formatter(FuncFormatter(_si))
    axis.xaxis.set_minor_formatter(FuncFormatter(lambda v, _: ""))
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    low, high = axis.get_xlim()
    axis.set_xticks([tick for tick in ticks if low <= tick <= high])
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def speed_ups(found: list[report.SpeedUp], name: str) -> Figure:
    """What each technique gains on the device `name`: a dot per engine and model."""
    rows: dict[str, list[report.SpeedUp]] = {}
    for speed_up in found:
        rows.setdefault(speed_up.technique, []).append(speed_up)
    return _dots(list(rows.items()), name, "times faster, per sample trained")


def batches(results: dict, model: str, size: str) -> Figure | None:
    """Samples per second over the batch size, each engine in its usual way."""
    figure, axis = plt.subplots(figsize=(7, 3.2))
    for engine, (colour, marker) in ENGINES.items():
        found: dict[tuple, list[dict]] = {}
        for result in report.good(results, "train", engine, model=model, size=size):
            way = result["params"]["precision"], result["params"]["mode"]
            found.setdefault(way, []).append(result)
        line = max(found.values(), key=len, default=[])
        if len(line) < 3:
            continue
        line.sort(key=lambda result: result["params"]["batch"])
        sizes = [result["params"]["batch"] for result in line]
        rates = [b / r["median_s"] for b, r in zip(sizes, line, strict=True)]
        axis.plot(sizes, rates, marker=marker, color=colour, label=NAMES[engine])
    if not axis.lines:
        plt.close(figure)
        return None
    axis.set(xscale="log", title=report.MODELS[model])
    axis.set(xlabel="samples in a batch", ylabel="samples per second")
    axis.set_ylim(bottom=0)
    axis.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(FuncFormatter(_si))
    axis.legend(fontsize=8)
    return figure


def break_even(results: dict, engine: str) -> Figure:
    """Time of a product of matrices over its size: CPU, device, device with copies.

    Args:
        results: of an accelerator.
        engine: a Keras engine.
    """
    figure, axis = plt.subplots(figsize=(7, 3.6))
    lines = {
        "on the CPU": report.good(results, "matmul", engine, place="cpu"),
        "on the device": report.on_device(
            report.good(results, "matmul", engine, dtype="float32")
        ),
        "on the device, with the copies": report.good(results, "round-trip", engine),
    }
    for (label, found), (colour, marker) in zip(
        lines.items(), DTYPES.values(), strict=False
    ):
        sizes = [result["params"]["size"] for result in found]
        times = [1e3 * result["median_s"] for result in found]
        axis.plot(sizes, times, marker=marker, color=colour, label=label)
    axis.set(xscale="log", yscale="log", title=f"{results['device']['name']}")
    axis.set(xlabel="rows and columns of each matrix", ylabel="time (ms)")
    axis.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axis.minorticks_off()
    axis.legend(fontsize=8)
    return figure
