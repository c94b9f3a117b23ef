"""The page *What a GPU would give*: tables of the compiler's plan and of measurements.

The directive `measured` takes a table's name, of `PLAN`, `MEASURED`, or `against`. The
tables are made of the files in `tools/plan/results`; an invalid one stops the build.
"""

import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from book_site.programs_page import ENGINES
from book_site.words import date_in_words
from tools.model.errors import UserError
from tools.plan import record
from tools.plan.sizes import BATCHES, SIZES, USUAL

MODELS = {
    "mlp": "Multilayer perceptron",
    "conv": "Convolutional net",
    "transformer": "Decoder-only transformer",
}
POLICIES = {
    "float32": "float32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}
BINDS = {"arithmetic": "arithmetic", "memory": "memory bus"}
EXACT, TF32 = "float32, TF32 forbidden", "TF32"  # on a card that has both
UNASKED = ("tensorflow", "jax")  # take TF32 for float32 if nothing is said
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1, ""), (1e-3, "m"), (1e-6, "µ"))
HOLD = "\u00a0"  # a space at which no line is broken
LIBRARIES = {"__cudnn$": "cuDNN", "__cublas$": "cuBLAS"}


# --- numbers and tables in Markdown --------------------------------------------------


def digits(value: float) -> str:
    """A number with three significant digits and no exponent."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")  # a narrow space that holds
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit, such as `1.23 TFLOP/s` or `138 ms`."""
    factor, prefix = next((x for x in PREFIXES if value >= x[0]), PREFIXES[-1])
    return f"{digits(value / factor)}{HOLD}{prefix}{unit}"


def size_of(value: float) -> str:
    """A number of bytes in MiB or GiB."""
    if value >= 2**30:
        return f"{digits(value / 2**30)}{HOLD}GiB"
    return f"{digits(value / 2**20)}{HOLD}MiB"


def table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """A Markdown table: the first columns hold words, the others numbers."""
    marks = [*["---"] * words, *["--:"] * (len(head) - words)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, marks, *rows])


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


# --- find your card ------------------------------------------------------------------


def matrix_work(plan: dict) -> str:
    """Who multiplies: the libraries that are called, or XLA on the tensor cores."""
    who = [
        name
        for prefix, name in LIBRARIES.items()
        if any(kind.startswith(prefix) for kind in plan["launches"])
    ]
    if plan["instructions"]:
        who.append("tensor cores")
    return ", ".join(who) or "plain float32"


def tensor_cores(plan: dict) -> str:
    """Whether the tensor cores multiply; in a library's call only the library knows."""
    if plan["instructions"]:
        return "yes"
    names = matrix_work(plan)
    return "no" if names == "plain float32" else f"left to {names}"


def weights(plan: dict, model: str) -> str:
    """How many weights a large model has: Adam's state in float32 is 12 bytes each."""
    wanted = {"model": model, "size": "large", "precision": "float32"}.items()
    state = next(x["memory"]["state"] for x in plan["plans"] if wanted <= x.items())
    return f"{digits(state / 12e6)} million weights"


def share(plan: dict, card: dict) -> float:
    """The step's memory over what JAX lets it have of the card's."""
    return plan["memory"]["total"] / card["limit"]


def doubt(part: float) -> str:
    """What is said of a step with such a share of the limit; nothing if it fits."""
    return "does not fit" if part > 1 else "may fit" if part > 2 / 3 else ""


def cards(plan: dict) -> str:
    """A row for each card, a column for each of the large models."""
    head = [
        f"{MODELS[x]}, {weights(plan, x)}: {shape(x, 'large')}; "
        f"{BATCHES[x]['large']} samples"
        for x in BATCHES
    ]
    rows = []
    for name, card in plan["cards"].items():
        policy = record.suitable(card)
        memory = size_of(card["limit"])
        row = [f"**{name.replace(' ', HOLD)}** <br>{memory}, {POLICIES[policy]}"]
        for model in BATCHES:
            wanted = {"card": name, "model": model, "size": "large"}.items()
            cases = (x for x in plan["plans"] if wanted <= x.items())
            row.append(
                next((_cell(x, card) for x in cases if x["precision"] == policy), "")
            )
        rows.append(row)
    text = table(["card, 16 bits", *head], rows, words=len(head) + 1)
    return f"```{{table}}\n:class: cards\n\n{text}\n```"


def _cell(case: dict, card: dict) -> str:
    """Memory, tensor cores and the roofline's time of one step on one card."""
    if case["status"] != "planned":
        return f"{case['status']}: {case['why']}"
    part = share(case, card)
    words = f"{100 * part:.0f} %" if part <= 1 else f"{part:.2g} times the limit"
    style = " over" if part > 1 else ""
    bar = f'<span class="share{style}" style="--share: {min(part, 1):.3f}"></span>'
    memory = f"**{size_of(case['memory']['total'])}**, {words}"
    memory = ": ".join(filter(None, (doubt(part), memory)))
    least = "the card has no rate for these numbers"
    if case["least_s"] is not None:
        least = f"{BINDS[case['binds']]}: {quantity(case['least_s'], 's')}"
    return f"{bar}{memory}<br>tensor cores: {tensor_cores(case)}<br>{least}"


def plans(plan: dict) -> str:
    """A folded table of each model and size: all that was asked, all that was said."""
    head = ["case", "state", "inputs", "temporaries", "total", "of the limit"]
    head += ["kernels", "matrix work", "roofline", "side"]
    parts = []
    for size in ("large", "small"):
        for model in BATCHES:
            wanted = {"model": model, "size": size}.items()
            cases = [x for x in plan["plans"] if wanted <= x.items()]
            rows = [_row(x, plan["cards"][x["card"]]) for x in cases]
            parts.append(
                f"````{{dropdown}} {MODELS[model]}, {size}: {len(cases)} plans\n"
                f"Here: {shape(model, size)}. Each row is one training step.\n\n"
                f"{table(head, rows)}\n````"
            )
    return "\n\n".join(parts)


def _row(case: dict, card: dict) -> list[str]:
    """A case as a row."""
    name = f"{case['card']}, {POLICIES[case['precision']]}, {case['batch']}"
    if case["status"] != "planned":
        return [name, f"{case['status']}: {case['why']}", *[""] * 8]
    memory = case["memory"]
    sizes = (memory[x] for x in ("state", "inputs", "temporaries", "total"))
    part = share(case, card)
    return [
        name,
        *(size_of(size) for size in sizes),
        ", ".join(filter(None, (f"{100 * part:.0f} %", doubt(part)))),
        str(sum(case["launches"].values())),
        matrix_work(case),
        quantity(case["least_s"], "s") if case["least_s"] else "unknown",
        BINDS.get(case["binds"], case["binds"]),
    ]


def asked(plan: dict) -> str:
    """What is known of the cards, and where the plan comes from."""
    origin = plan["provenance"]
    packages = ", ".join(f"{k} {v}" for k, v in origin["packages"].items())
    rows = []
    for name, card in plan["cards"].items():
        rates = (
            card["rates"].get(x) for x in ("float32", "tf32", "float16", "bfloat16")
        )
        rows.append(
            [
                name,
                card["sources"],
                ".".join(map(str, card["capability"])),
                size_of(card["memory"]),
                size_of(card["limit"]),
                quantity(card["bandwidth"], "B/s"),
                *(quantity(x, "FLOP/s") if x else "none" for x in rates),
            ]
        )
    head = ["card", "source of the figures", "compute capability", "memory", "limit"]
    head += ["bandwidth", "float32", "tf32", "float16", "bfloat16"]
    return (
        f"`{origin['command']}` on {date_in_words(origin['date'])}, at commit "
        f"`{origin['commit'][:12]}`; Python {origin['python']}, {packages}. It was "
        f"compiled on {origin['compiled_on']['name']}, "
        f"{origin['compiled_on']['cores']} cores, {origin['system']}, without a GPU."
        f"\n\n````{{dropdown}} The cards' figures\n{table(head, rows, words=2)}\n````"
    )


# --- what was measured ---------------------------------------------------------------


def devices(records: list[dict]) -> str:
    """The devices, with what each was measured."""
    rows = []
    for known in records:
        origin = known["provenance"]
        packages = ", ".join(f"{k} {v}" for k, v in origin["packages"].items())
        packages += f", driver {origin['driver']}" if origin["driver"] else ""
        when = f"{date_in_words(origin['date'])}, `{origin['command']}`"
        rows.append([known["device"]["name"], packages, when])
    return table(["device", "with", "measured on"], rows, words=3)


def measured(records: list[dict], what: str) -> Iterator[tuple[list[str], dict]]:
    """The results of a kind, each below its device and backend; failures, too.

    "numbers" says in words with which numbers it was computed.
    """
    for known in records:
        kinds = {x.get("policy", x.get("dtype")) for x in known["results"]}
        for result in known["results"]:
            if result["what"] == what:
                backend = result["backend"]
                name = result.get("policy", result.get("dtype"))
                if "tf32" in kinds and what not in ("add", "copy to the device"):
                    unasked = ", if you say nothing" if backend in UNASKED else ""
                    name = {"float32": EXACT, "tf32": TF32 + unasked}.get(name, name)
                where = [known["device"]["name"], ENGINES[backend]]
                yield where, {**result, "numbers": name}


def quartiles(result: dict) -> list[float]:
    """The quartiles of a result's samples, in seconds."""
    samples = result["samples_s"]
    return statistics.quantiles(samples * (1 + (len(samples) == 1)), n=4)


def time_of(result: dict | None) -> str:
    """A result in words: its median, with the quartiles."""
    if result is None:
        return "not measured"
    if result["status"] != "measured":
        return result["status"]
    low, median, high = (quantity(x, "s") for x in quartiles(result))
    return f"**{median}** ({low} to {high})"


CASE = ("model", "size", "policy", "way", "batch")


def steps(records: list[dict]) -> str:
    """A row for each model and way: a training step and a prediction of a batch.

    The step is compared with the one that the device takes if nothing is said.
    """
    rows = []
    for known in records:
        trained, predicted = (
            {(*where, *map(result.get, CASE)): result for where, result in found}
            for found in (measured([known], x) for x in ("training step", "predict"))
        )
        has_tf32 = any("tf32" in key for key in trained)
        for key, result in trained.items():
            *where, model, size, _, way, batch = key
            if model:
                unasked = has_tf32 and result["backend"] in UNASKED
                usual = "tf32" if unasked else "float32"
                plain = trained.get((*where, model, size, usual, USUAL, batch), {})
                name = f"{MODELS[model]}, {size}, {batch}"
                row = [*where, name, f"{result['numbers']}; {way}", time_of(result)]
                rows.append([*row, gain(plain, result), time_of(predicted.get(key))])
    head = ["device", "Keras on", "model, size, batch", "how"]
    head += ["training step", "times as fast", "predict"]
    return table(head, rows, words=4)


def gain(plain: dict, result: dict) -> str:
    """How many times as fast a step is as the plain one; nothing without both times."""
    if not ("samples_s" in plain and "samples_s" in result):
        return ""
    before, after = quartiles(plain), quartiles(result)
    overlap = before[0] <= after[2] and after[0] <= before[2] and plain is not result
    return f"{before[1] / after[1]:.2f}" + (" (noise)" if overlap else "")


def against(plan: dict, records: list[dict]) -> str:
    """What a step took beside the roofline: each that was planned and measured."""
    rows = []
    for where, result in measured(records, "training step"):
        words = set(re.split("[ -]", where[0].replace("GB", " GB")))
        for case in plan["plans"]:
            card = plan["cards"][case["card"]]
            policy = case["precision"]
            if policy == "float32" and "tf32" in card["rates"]:
                policy = "tf32"  # what a float32 product is computed in there
            key = (case["model"], case["size"], policy, USUAL, case["batch"])
            if not words.issuperset(case["card"].split()) or not case.get("least_s"):
                continue
            if key == tuple(map(result.get, CASE)) and "samples_s" in result:
                least, took = case["least_s"], quartiles(result)[1]
                numbers = POLICIES.get(policy, result["numbers"])
                step = f"{', '.join(where)}: {MODELS[case['model']]}; {numbers}"
                ratio = f"**{quantity(took, 's')}**, {took / least:.1f} times as long"
                rows.append([step, quantity(least, "s"), ratio])
    return table(["a step", "roofline", "took"], rows)


def rates(records: list[dict]) -> str:
    """Operations and bytes a second: products of matrices, sums, copies.

    The sum of two numbers is no work: its time is what a call costs.
    """
    rows = []
    for what in ("add", "matmul", "copy to the device"):
        for where, result in measured(records, what):
            size = result["size"]
            if result["status"] != "measured":
                continue
            work, unit = {
                "matmul": (2 * size**3, "FLOP/s"),
                "add": (3 * 4 * size, "B/s"),
                "copy to the device": (4 * size, "B/s"),
            }[what]
            rate = quantity(work / quartiles(result)[1], unit) if size > 1 else ""
            name = f"{what}, {size:,}, {result['numbers']}"
            if "waiting" in result:
                name += f", waiting {result['waiting']}"
            rows.append([*where, name, time_of(result), rate])
    head = ["device", "Keras on", "what, size, numbers"]
    return table([*head, "a call", "rate"], rows, words=len(head))


PLAN = {part.__name__: part for part in (cards, plans, asked)}
MEASURED = {part.__name__: part for part in (devices, steps, rates)}


class Measured(SphinxDirective):
    """Put a table in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the table."""
        name = self.arguments[0]
        folder = Path(self.env.srcdir, "tools", "plan", "results")
        for path in folder.glob("*.json"):
            self.env.note_dependency(str(path))
        try:
            if name in PLAN:
                text = PLAN[name](record.load_plan(folder))
            elif name in MEASURED:
                text = MEASURED[name](record.load_devices(folder))
            elif name == "against":
                text = against(record.load_plan(folder), record.load_devices(folder))
            else:
                names = ", ".join(sorted({*PLAN, *MEASURED, "against"}))
                raise self.error(f"no table {name!r}. Fix: one of {names}")
        except UserError as error:
            raise ExtensionError(str(error)) from None
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("measured", Measured)
