"""The calculators of What will it take?: chapters, Python and the page agree.

`make book` builds the site first. The Python is held against what the chapters print
and assert, and the page against the Python, on inputs from a fixed seed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import bs4
import pytest
import test_site
from book_site.calculators import figures as sources
from book_site.calculators import form, numbers, roofline
from book_site.calculators.cards import ring_bytes, state_bytes
from book_site.calculators.fields import Choice, Field, Number, fields
from book_site.calculators.formulas import CALCULATORS
from book_site.calculators.memory import added, largest_divisor, step_bytes
from book_site.calculators.memory import segments_kept as kept_by_best_segments
from book_site.calculators.result import Result
from playwright.sync_api import Browser, Locator, Page

from tools.model import chapters
from tools.model.errors import UserError

base, browser = test_site.base, test_site.browser  # fixtures
PAGE = "book/what-will-it-take.html"
FIGURES = sources.figures(chapters.ROOT)
FIELDS = fields(FIGURES)
every_calculator = pytest.mark.parametrize("name", FIELDS)


def answer(name: str, **changes: Any) -> Result:
    """What a calculator says of its example with some values changed."""
    return CALCULATORS[name](form.example(FIELDS[name]) | changes, FIGURES)


def value(result: Result, name: str) -> str:
    """The first row with a name."""
    rows = [row for _, rows in result.groups for row in rows]
    return next(row.value for row in rows if row.name == name)


@functools.cache
def printed(chapter: int) -> str:
    """All that a chapter's cells print."""
    (path,) = (
        x for x in chapters.chapter_paths() if chapters.chapter_number(x) == chapter
    )
    cells = chapters.read(path).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text", "") for output in outputs)


# --- the Python and the chapters ------------------------------------------------------


def test_the_ledger_is_that_of_claims_5_1_and_5_2():
    small = step_bytes(35_683, "adam", False, 0)
    for line in ("weights", "gradients"):
        assert f"{line:12}ledger {small[line]:7.0f}" in printed(5)
    assert f"Adam        ledger {small['optimizer']:7.0f}" in printed(5)
    assert (
        f"{'plain SGD':34}held {step_bytes(35_683, 'sgd', False, 0)['optimizer']:7.0f}"
        in (printed(5))
    )
    one, many = (step_bytes(35_683, "adam", False, n * 12_995_584) for n in (1, 256))
    mib = [step["activations"] / 2**20 for step in (one, many)]
    assert f"activations {mib[0]:10.2f}{mib[1]:12.2f}" in printed(5)


def test_a_weight_costs_what_claim_5_4_and_exercise_5_1_say():
    assert added(step_bytes(1e9, "adam", False, 0)) == 16e9 + 12
    assert added(step_bytes(1e9, "adam", True, 0)) == 18e9 + 12
    costs = {
        name: round(added(step_bytes(1024**2, name, False, 0)) / 1024**2)
        for name in ("sgd", "momentum", "adam")
    }
    assert costs == {"sgd": 8, "momentum": 12, "adam": 16}
    assert str({"SGD": 8, "momentum": 12, "Lion": 12, "Adam": 16}) in printed(5)


def test_the_best_segments_are_those_of_claim_5_12():
    assert kept_by_best_segments(16) == 7  # the peak of chapter 5's figure
    for layers in range(1, 500):
        least = min(s + math.ceil(layers / s) - 1 for s in range(1, layers + 1))
        assert kept_by_best_segments(layers) == least


def test_micro_batches_are_equal_as_claim_5_10_needs():
    for batch in range(1, 200):
        for most in (0, 1, 7, 50, 1000):
            found = [n for n in range(1, batch + 1) if batch % n == 0 and n <= most]
            assert largest_divisor(batch, most) == max(found, default=0)


def test_the_example_needs_what_chapter_5_says():
    result = answer("memory")
    assert value(result, "Together") == "12.4 GiB"
    assert value(result, "Mixed precision, mixed_float16") == "6.2 GiB, fits"
    assert (
        "first remedy that is enough: mixed precision, mixed_float16" in result.verdict
    )


def test_the_first_remedy_that_is_enough_is_named():
    card = {"card": "H100", "share": 100.0, "layers": 16.0}
    big = answer("memory", parameters=4e9, batch=1024.0, policy="mixed", **card)
    assert "first remedy that is enough: a batch of " in big.verdict
    most = int(re.search("a batch of ([0-9,]+)", big.verdict)[1].replace(",", ""))
    fits = [
        added(step_bytes(4e9, "adam", True, n * 12_995_584))
        <= FIGURES["cards"]["H100"]["memory"]
        for n in (most, most + 1)
    ]
    assert fits == [True, False]
    # Mixed precision is not enough and helps, so the smaller batch comes on top of it.
    both = answer("memory", parameters=4e9, batch=1024.0, **card)
    assert "not fit" in value(both, "Mixed precision, mixed_bfloat16")
    assert f"a batch of {most} with mixed precision" in both.verdict
    floor = answer("memory", parameters=5.5e9, activations=1e6, batch=8.0, **card)
    assert "another optimizer: Lion" in floor.verdict
    larger = answer("memory", parameters=11e9, activations=1e6, batch=8.0, **card)
    assert "a larger card: B200" in larger.verdict
    none = answer("memory", parameters=1e12, activations=1e6, batch=8.0, **card)
    assert "No remedy on one card" in none.verdict
    assert "It fits" in answer("memory", batch=1.0).verdict


def test_the_roofline_is_that_of_claims_1_9_and_1_10():
    for batch, intensity in ((8, "8.0"), (128, "120.5"), (512, "409.6")):
        assert f"batch {batch:3}: {float(intensity):5.1f} FLOP per byte" in printed(1)
        found = value(answer("roofline", batch=float(batch)), "Arithmetic intensity")
        assert float(found.split()[0]) == pytest.approx(float(intensity), rel=0.005)
        bound = "compute-bound" if batch == 512 else "memory-bound"
        assert bound in answer("roofline", batch=float(batch), kernels=0.0).verdict
    ridges = {("float32", "T4"): 25, ("half", "T4"): 203, ("tf32", "H100"): 148}
    ridges |= {("float32", "H100"): 20, ("half", "H100"): 295}
    for (kind, card), ridge in ridges.items():
        result = answer("roofline", numbers=kind, card=card)
        shown = value(result, "Ridge of the card").partition(" ")[0]
        assert round(float(shown)) == ridge
        assert re.search(rf"^{card} .* {ridge}\b", printed(1), re.M)


def test_the_break_even_batch_is_where_the_two_times_meet():
    values = {"operations": 33_554_432.0, "bytes_sample": 16_384.0, "kernels": 0.0}
    assert "from a batch of 345 on" in answer("roofline", **values).verdict
    assert "memory-bound" in answer("roofline", **values, batch=344.0).verdict
    assert "compute-bound" in answer("roofline", **values, batch=345.0).verdict
    few = {"operations": 2.0, "bytes_sample": 8.0, "bytes_fixed": 0.0, "kernels": 0.0}
    assert "No batch makes" in answer("roofline", **few).verdict


def test_the_bounds_are_those_of_claim_17_14():
    per_row = (6 + 6 + 5) * 2 * 512**2 + 3 * 2 * 512 * 10  # the tower's products
    tower = {"operations": float(per_row), "bytes_sample": 16_809_984 / 8192}
    tower |= {"bytes_fixed": 2.0 * 18_972_808, "kernels": 0.0}
    for card, kind in (("T4", "float32"), ("A100 40 GB", "tf32"), ("H100", "tf32")):
        for batch in (64.0, 8192.0):
            result = answer("roofline", **tower, card=card, numbers=kind, batch=batch)
            line = rf"{card:11}{kind:8} batch {batch:5.0f}: arithmetic +(\S+) µs, "
            said = re.search(line + r"memory +(\S+) µs", printed(17)).groups()
            for name, text in zip(("Arithmetic", "Memory"), said, strict=True):
                found = re.match(r"([\d.,]+) (µs|ms)", value(result, name))
                scale = 1000 if found[2] == "ms" else 1
                assert float(found[1]) * scale == pytest.approx(
                    float(text), rel=0.005, abs=0.06
                )
            bound = "memory-bound" if batch == 64 else "compute-bound"
            assert bound in result.verdict


def test_the_break_even_with_a_machine_is_the_formula_of_claim_1_2():
    values = {"own_first": 10.0, "own_each": 100.0}

    def said(latency: float, cost: float, **more: float) -> str:
        return roofline.own_machine(values | more, latency * 1e-6, cost * 1e-6)[0].value

    assert said(1010, 50) == "from a batch of 20 on"
    assert said(5, 50) == "from the first sample on"
    assert said(1010, 200) == "at no batch"
    assert said(10, 200, own_first=1010.0) == "below a batch of 10 only"


def test_what_cards_hold_and_send_is_that_of_claims_18_1_to_18_5():
    small = 4 * 1024 * 4096 + 2 * (4096 + 1024) + 1024 * 16 + 16
    assert f"{small:,} parameters" in printed(18) or f"{small} parameters" in printed(
        18
    )
    reduced = ring_bytes(8, 4 * small + 4)
    assert str({"held": int(state_bytes(small, "adam")), "sent": {
        "all-reduce of 8": int(reduced)}}) in printed(18)  # fmt: skip
    features = 3 * ring_bytes(8, 8192 * 1024 * 4)
    assert f"{{'all-reduce of 8': {features:.0f}}}" in printed(18)
    values = {"parameters": float(small), "policy": "float32", "batch": 8192.0}
    result = answer("cards", **values, features=1024.0, reduces=3.0)
    sends = [rows[-2].value for _, rows in result.groups]
    assert sends == ["118 MB", "118 MB", "176 MB"]
    warm_up = answer("cards", parameters=12.0 * 2 * 2048 * 8192, cards=16.0,
        policy="float32")  # fmt: skip
    assert "(4.83 GB)" in warm_up.groups[0][1][0].value  # exercise 18.1
    assert "(302 MB)" in warm_up.groups[1][1][0].value
    assert warm_up.groups[0][1][1].value == warm_up.groups[1][1][2].value == "3.02 GB"


def test_eight_billion_weights_are_those_of_claims_18_12_to_18_16():
    result = answer("cards")
    assert "(96.6 GB), does not fit" in value(result, "A card holds of the state")
    assert "whole        96.6 billion" in printed(18)
    assert value(result, "A card sends in a step") == "28.2 GB"
    assert "total                28.19 GB" in printed(18)
    for link in FIGURES["links"]:
        seconds = re.search(re.escape(link) + r" +([\d.]+) s at least", printed(18))[1]
        least = value(answer("cards", link=link), "The link needs at least")
        found, unit = least.split()
        found = float(found) * (1e-3 if unit == "ms" else 1)
        assert found == pytest.approx(float(seconds), abs=0.006)
    deep = 96 * 12 * 12288.0**2
    assert "Even cut in 8" in answer("cards", parameters=deep).verdict
    assert (
        "(261 GB), does not fit"
        in answer("cards", parameters=deep).groups[1][1][0].value
    )


def test_one_card_sends_nothing():
    rows = answer("cards", cards=1.0).groups[0][1]
    assert [row.value for row in rows[1:]] == ["0 bytes", "0 s"]


def test_an_epoch_costs_what_claim_18_17_computes():
    *_, infiniband, _ = FIGURES["links"]
    nvlink = next(iter(FIGURES["links"]))
    whole = 28.19e9 * 8 / 7
    for cards, link, hours, cost in (
        (8, nvlink, 4.1, 98),
        (16, infiniband, 2.6, 123),
        (64, infiniband, 2.7, 516),
    ):
        sent = whole * (cards - 1) / cards
        result = answer("price", cards=float(cards), link=link, sent=sent)
        assert re.search(rf"^ +{cards} .*{hours} h, +{cost}\b", printed(18), re.M)
        shown = float(value(result, "Time of the training").removesuffix(" h"))
        assert round(shown, 1) == hours
        assert round(float(value(result, "Price"))) == cost


def test_checkpoints_are_those_of_exercise_14_1():
    for cost, minutes, lost in ((60, 64, 3.1), (5, 18, 0.9)):
        said = f"{cost} s: every {minutes} minutes, {lost}% lost"
        assert said in printed(14)
        result = answer("price", checkpoint=float(cost))
        assert round(float(value(result, "Save every").removesuffix(" min"))) == minutes
        share = value(result, "Lost to checkpoints and crashes").removesuffix(" %")
        assert round(float(share), 1) == lost
    hopeless = answer("price", checkpoint=1e6, days=0.01)
    assert "it would never end" in hopeless.verdict


def test_a_card_without_a_type_is_told_at_its_field():
    for name in ("roofline", "price"):
        assert answer(name, card="T4", numbers="tf32").problem[0] == "numbers"
    nothing = answer("roofline", bytes_sample=0.0, bytes_fixed=0.0)
    assert nothing.problem[0] == "bytes_fixed"


def test_the_cards_are_those_that_chapters_1_and_17_have():
    for name, card in FIGURES["cards"].items():
        memory, bandwidth = card["memory"] / 2**30, card["bandwidth"] / 1e9
        row = rf"^{name} .*{memory:.1f} GiB +{bandwidth:.0f} GB/s"
        assert re.search(row, printed(17), re.M)
    path = chapters.ROOT / "notebooks" / "01-why-gpus.ipynb"
    first = sources.definition(path, sources.source_of(path, "cards = {"), "cards")
    names = {"T4": "T4", "A100": "A100 40 GB", "H100": "H100"}
    types = {"float32": "float32", "TF32": "tf32", "16 bits": "float16"}
    assert first.keys() == names.keys()
    for name, (speed, peaks) in first.items():
        card = FIGURES["cards"][names[name]]
        assert speed == pytest.approx(card["bandwidth"], rel=1e-3)
        rates = {kind: card["rates"][types[kind]] for kind in peaks}
        assert peaks == pytest.approx(rates)


def test_only_what_a_definition_needs_is_run(tmp_path):
    source = (
        "import no_such_module\nA = 2\ndef f(x):\n    return A * x\nB = f(3)\n1 / 0\n"
    )
    assert sources.definition(tmp_path / "x.py", source, "B") == 6
    with pytest.raises(UserError, match=r"x\.py has no C"):
        sources.definition(tmp_path / "x.py", source, "C")
    with pytest.raises(UserError, match=r"x\.py is missing"):
        sources.source_of(tmp_path / "x.py")


# --- numbers --------------------------------------------------------------------------

READ = [
    *(("7e9", "number", 7e9), ("7B", "number", 7e9), ("350M", "number", 3.5e8)),
    *((" 1,234,567 ", "number", 1_234_567), ("1 234 567", "number", 1_234_567)),
    *(
        ("1_000", "number", 1000),
        ("1’000", "number", 1000),
        ("12\u202f000", "number", 12e3),
    ),
    *(
        ("7.1B", "number", 7.1e9),
        ("1.5 trillion", "number", 1.5e12),
        (".5", "number", 0.5),
    ),
    *(
        ("28.2 GB", "bytes", 28.2e9),
        ("16 GiB", "bytes", 2**34),
        ("75 %", "percent", 75),
    ),
]
REFUSED = [
    *(("", "number"), ("   ", "number"), ("abc", "number"), ("1,5", "number")),
    *(("7e", "number"), ("--5", "number"), ("0x10", "number"), ("1e999999", "number")),
    *(("7 GB", "number"), ("5 apples", "number"), ("7B", "bytes"), ("NaN", "number")),
    *(
        ("Infinity", "number"),
        ("-1", "number"),
        ("1e999", "number"),
        ("2e15", "number"),
    ),
    *(("constructor", "number"), ("1.5", "bytes"), ("1,000 000", "number")),
]


@pytest.mark.parametrize(("text", "kind", "wanted"), READ)
def test_a_number_is_read_as_people_write_it(text, kind, wanted):
    assert numbers.read(text, kind, 0, 1e15) == (wanted, "")


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_what_is_no_number_is_refused_with_words(text, kind):
    _, error = numbers.read(text, kind, 0, 1e15, whole=True)
    assert error.endswith((".", "B", "7B"))
    assert len(error) > 10


def test_numbers_are_written_for_people():
    shown = [numbers.decimal(x) for x in (0, 7e9, 1.125, 0.04567, 999.6, 1e39, 3e-8)]
    assert shown == ["0", "7,000,000,000", "1.13", "0.0457", "1,000", "1e39", "3e-8"]
    assert numbers.held(2.0**34) == "16 GiB" and numbers.moved(28.19e9) == "28.2 GB"
    shown = [numbers.duration(x) for x in (0, 3e-9, 90, 3818, 1e9)]
    assert shown == ["0 s", "3 ns", "90 s", "63.6 min", "31.7 years"]


# --- the page and the Python ----------------------------------------------------------


def drawn(name: str, source: random.Random, corners: bool = False) -> dict[str, Any]:
    """Random values for a calculator's fields; corners: limits only."""
    values: dict[str, Any] = {}
    for field in FIELDS[name]:
        if isinstance(field, Choice):
            values[field.name] = source.choice(list(field.options))
            continue
        low, high = field.low, field.high
        if corners:
            number = source.choice([low, high])
        elif source.random() < 0.5:  # near the example
            middle = field.read(field.example)[0]
            number = min(max(middle * 10 ** source.uniform(-2, 2), low), high)
        else:
            number = 10 ** source.uniform(math.log10(low or 1e-3), math.log10(high))
        values[field.name] = float(round(number) if field.whole else number)
    return values


def as_dict(result: Result) -> dict[str, Any]:
    """A result as the script returns it."""
    if result.problem:
        return {"problem": list(result.problem)}
    groups = [
        {"title": title, "rows": [dataclasses.asdict(row) for row in rows]}
        for title, rows in result.groups
    ]
    return {"verdict": result.verdict, "groups": groups}


@dataclasses.dataclass
class Visit:
    """A tab that shows the page, with what its console said."""

    watched: test_site.Watched
    url: str

    @property
    def tab(self) -> Page:
        return self.watched.tab

    def open(self, link: str = "") -> Visit:
        """Open the page, as a link with this fragment does."""
        self.tab.goto("about:blank")
        self.watched.open(self.url + link)
        return self

    def form(self, name: str) -> Locator:
        return self.tab.locator(f"#{name}-form")

    def field(self, name: str, field: str) -> Locator:
        return self.tab.locator(f"#{name}-{field}")

    def verdict(self, name: str) -> str:
        return self.form(name).locator("output").inner_text()

    def error(self, name: str, field: str) -> str:
        return self.tab.locator(f"#{name}-{field}-about .calc-error").inner_text()


@pytest.fixture
def visit(browser: Browser, base: str) -> Iterator[Visit]:
    """A desktop's tab with the page."""
    watched = test_site.watch(
        browser,
        test_site.host(base),
        viewport=test_site.DESKTOP,
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield Visit(watched, base + PAGE).open()
    assert not watched.problems
    watched.tab.context.close()


@every_calculator
def test_page_and_python_agree_on_hundreds_of_inputs(visit, name):
    source = random.Random(f"2026 {name}")
    inputs = [drawn(name, source) for _ in range(150)]
    inputs += [drawn(name, source, corners=True) for _ in range(100)]
    known = visit.tab.evaluate(
        "JSON.parse(document.querySelector('#calculator-figures').textContent)"
    )
    assert known == FIGURES
    found = visit.tab.evaluate(
        "([name, inputs, figures]) => "
        "inputs.map((values) => calculators.formulas[name](values, figures))",
        [name, inputs, FIGURES],
    )
    assert len(found) == 250
    for values, said in zip(inputs, found, strict=True):
        assert said == as_dict(CALCULATORS[name](values, FIGURES)), values
        assert not re.search(r"NaN|Infinity|undefined|\binf\b", str(said)), values


def test_page_and_python_read_alike(visit):
    source = random.Random(2026)
    letters = "0123456789.,_' eEkKmMgGbB%i+-"
    texts = [text for text, *_ in READ + REFUSED]
    texts += [
        "".join(source.choices(letters, k=source.randint(1, 7))) for _ in range(2000)
    ]
    cases = [[text, kind] for text in texts for kind in numbers.SUFFIXES]
    limits = 0.5, 1e15, True
    found = visit.tab.evaluate(
        "([cases, limits]) => cases.map((one) => calculators.read(...one, ...limits))",
        [cases, limits],
    )
    wanted = [list(numbers.read(*case, *limits)) for case in cases]
    assert found == wanted
    assert sum(not error for _, error in wanted) > 300


def test_page_and_python_write_alike(visit):
    source = random.Random(2026)
    values = [10 ** source.uniform(-12, 40) for _ in range(500)]
    values += [n / 8 for n in range(200)] + [999.5, 99.95, 1e15, 1e16, 1e-6, 9.995e15]
    for digits in (3, 6, 15):
        found = visit.tab.evaluate(
            "([values, digits]) => values.map((x) => calculators.decimal(x, digits))",
            [values, digits],
        )
        assert found == [numbers.decimal(x, digits) for x in values]


def typed(field: Field, number: Any, source: random.Random) -> str:
    """A value as somebody might type it."""
    if isinstance(field, Choice):
        return number
    ways = [repr(number), f"{number:.17g}"]
    if field.whole:
        ways += [f"{number:,.0f}", f"{number:.0f}"]
    return source.choice(ways)


def put(visit: Visit, name: str, texts: dict[str, str]) -> None:
    """Type and choose."""
    for field in FIELDS[name]:
        control = visit.field(name, field.name)
        text = texts[field.name]
        if isinstance(field, Choice):
            control.select_option(text)
        else:
            control.fill(text)


def shown(visit: Visit, name: str) -> list[list[str]]:
    """The rows that are seen."""
    rows = visit.form(name).locator("dl > div")
    return rows.evaluate_all(
        "rows => rows.map(row => [...row.children].map(part => part.innerText))"
    )


@every_calculator
def test_what_is_typed_is_worked_out(visit, name):
    source = random.Random(f"typed {name}")
    for _ in range(2):
        values = drawn(name, source)
        put(visit, name, {
            field.name: typed(field, values[field.name], source)
            for field in FIELDS[name]
        })  # fmt: skip
        result = CALCULATORS[name](values, FIGURES)
        if result.problem:
            assert visit.error(name, result.problem[0]) == result.problem[1]
            continue
        assert visit.verdict(name) == result.verdict
        rows = [row for _, rows in result.groups for row in rows]
        assert shown(visit, name) == [[row.name, row.value, row.how] for row in rows]


def test_what_was_understood_is_said(visit):
    about = visit.tab.locator("#memory-parameters-about .calc-understood")
    visit.field("memory", "parameters").fill("7B")
    assert about.inner_text() == "= 7,000,000,000"
    visit.field("memory", "parameters").fill("7,000,000,000")
    assert about.inner_text() == ""
    visit.field("price", "sent").fill("16 GiB")
    said = visit.tab.locator("#price-sent-about .calc-understood").inner_text()
    assert said == "= 17,179,869,184 bytes"


@every_calculator
def test_the_page_shows_the_example_without_scripts(browser, base, visit, name):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(base + PAGE)
    result = answer(name)
    plain = tab.locator(f"#{name}-form")
    assert plain.locator("output").inner_text() == result.verdict == visit.verdict(name)
    assert plain.locator("noscript p").is_visible()
    assert not plain.locator("[data-act]").first.is_visible()
    values = [field.example for field in FIELDS[name]]
    fields_shown = plain.locator("input, select")
    assert fields_shown.evaluate_all("all => all.map(x => x.value)") == values
    before = plain.locator(".calc-result").inner_html()
    assert before == visit.form(name).locator(".calc-result").inner_html()
    context.close()


NUMBERS = [
    (name, field)
    for name in FIELDS
    for field in FIELDS[name]
    if isinstance(field, Number)
]


# Type a text into one field after the other, and note what is seen each time.
TYPE = """(form, cases) => cases.map(([name, text, after]) => {
  const field = form.elements[name];
  const put = (text) => {
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  };
  const look = () => ({
    texts: Object.fromEntries([...form.querySelectorAll("input")]
      .map((one) => [one.name, one.value])),
    errors: Object.fromEntries([...form.elements]
      .filter((one) => one.getAttribute("aria-invalid") === "true")
      .map((one) => [one.name,
        document.getElementById(one.getAttribute("aria-describedby"))
          .querySelector(".calc-error").innerText])),
    verdict: form.querySelector("output").innerText,
    shown: form.querySelector(".calc-result").checkVisibility(),
  });
  put(text);
  const wrong = look();
  put(after);
  return [wrong, look()];
})"""


@every_calculator
def test_wrong_input_is_told_at_its_field_and_nothing_is_lost(visit, name):
    own = [field for key, field in NUMBERS if key == name]
    cases = [
        (field, text)
        for field in own
        for text in ("-1", "", "many", "1e999", "1e31", *["1.5"] * field.whole)
    ]
    found = visit.form(name).evaluate(
        TYPE, [[field.name, text, field.example] for field, text in cases]
    )
    example = {field.name: field.example for field in own}
    for (field, text), (wrong, mended) in zip(cases, found, strict=True):
        assert wrong["texts"] == example | {field.name: text}
        limits = field.kind, field.low, field.high, field.whole
        assert wrong["errors"] == {field.name: numbers.read(text, *limits)[1]}
        assert len(wrong["errors"][field.name]) > 10
        assert wrong["verdict"] == f"Not worked out. See: {field.label}."
        assert not wrong["shown"]
        assert mended["errors"] == {} and mended["shown"]
        assert mended["verdict"] == answer(name).verdict


def test_a_card_without_tf32_is_told_at_the_field(visit):
    visit.field("roofline", "card").select_option("T4")
    visit.field("roofline", "numbers").select_option("tf32")
    assert visit.error("roofline", "numbers") == "The T4 has no TF32."
    visit.field("roofline", "card").select_option("L4")
    assert visit.error("roofline", "numbers") == ""


@every_calculator
def test_a_shared_link_opens_with_the_same_numbers(visit, browser, base, name):
    source = random.Random(f"link {name}")
    values = drawn(name, source)
    texts = {x.name: typed(x, values[x.name], source) for x in FIELDS[name]}
    put(visit, name, texts)
    visit.form(name).get_by_role("button", name="Copy link").click()
    assert visit.form(name).locator(".calc-said").inner_text() == "Copied."
    link = visit.tab.evaluate("navigator.clipboard.readText()")
    seen = visit.verdict(name)
    other = Visit(test_site.watch(browser, test_site.host(base)), link).open()
    controls = other.form(name).locator("input, select")
    assert controls.evaluate_all("all => all.map(x => x.value)") == [*texts.values()]
    assert other.verdict(name) == seen
    assert not other.watched.problems
    other.tab.context.close()
    visit.form(name).get_by_role("button", name="Reset").click()
    assert visit.verdict(name) == answer(name).verdict


def test_where_nothing_can_be_copied_the_address_is_the_link(browser, base):
    watched = test_site.watch(browser, test_site.host(base))
    visit = Visit(watched, base + PAGE)
    watched.tab.add_init_script("Object.defineProperty(navigator, 'clipboard', {})")
    visit.open().form("price").get_by_role("button", name="Copy link").click()
    assert "#price?operations=3.048e15&" in visit.tab.url  # nothing was typed before
    visit.field("memory", "batch").fill("17")
    visit.form("memory").get_by_role("button", name="Copy link").click()
    said = visit.form("memory").locator(".calc-said").inner_text()
    assert said.startswith("The address of this page is the link")
    visit.tab.reload()
    assert visit.field("memory", "batch").input_value() == "17"
    assert not watched.problems
    watched.tab.context.close()


def test_a_broken_link_is_told_at_the_fields_and_loses_nothing(visit):
    broken = {"parameters": "abc", "card": "RTX 5090", "batch": "<b>", "depth": "7"}
    visit.open(f"#memory?{urlencode(broken)}")
    for field in ("parameters", "card", "batch"):
        assert visit.error("memory", field)
        assert visit.field("memory", field).input_value() == broken[field]
    assert visit.field("memory", "share").input_value() == "75"
    verdict = visit.verdict("memory")
    assert verdict == "Not worked out. See: Trainable weights; Batch; Card."
    assert "depth" in visit.form("memory").locator(".calc-said").inner_text()
    visit.field("memory", "parameters").fill("35683")
    visit.field("memory", "batch").fill("256")
    visit.field("memory", "card").select_option("T4")
    assert visit.verdict("memory") == answer("memory").verdict
    assert visit.verdict("price") == answer("price").verdict


@pytest.mark.parametrize(
    "link", ["#memory?%", "#memory?batch=%zz&=&&", "#nobody?a=1", "#%"]
)
def test_a_link_that_makes_no_sense_leaves_the_page_whole(visit, link):
    visit.open(link)
    assert visit.verdict("cards") == answer("cards").verdict
    visit.field("memory", "batch").fill("1")
    assert "It fits" in visit.verdict("memory")


def test_the_keyboard_is_enough(visit):
    keys = visit.tab.keyboard
    visit.field("memory", "parameters").focus()
    keys.press("Control+a")
    keys.type("7e8")
    keys.press("Tab")
    focused = visit.tab.evaluate("document.activeElement.id")
    assert focused == "memory-optimizer"
    keys.press("ArrowDown")
    for _ in range(len(FIELDS["memory"]) - 1):
        keys.press("Tab")
    assert visit.tab.evaluate("document.activeElement.dataset.act") == "copy"
    keys.press("Enter")
    link = visit.tab.evaluate("navigator.clipboard.readText()")
    assert "parameters=7e8&optimizer=momentum" in link
    assert visit.verdict("memory") == (
        answer("memory", parameters=7e8, optimizer="momentum").verdict
    )
    order = [field for fields_ in FIELDS.values() for field in fields_]
    found = visit.tab.locator("form.calculator :is(input, select)")
    assert found.evaluate_all("all => all.map(x => x.name)") == [x.name for x in order]
    assert found.evaluate_all("all => all.every(x => x.tabIndex === 0 && x.labels[0])")
    for output in visit.tab.locator("form.calculator output").all():
        assert output.get_attribute("aria-live") == "polite"


def fill_all(visit: Visit, text_of: Callable[[Number], str]) -> None:
    """Put a text into each field for a number, in all calculators."""
    for name in FIELDS:
        own = [field for key, field in NUMBERS if key == name]
        cases = [[field.name, text_of(field), text_of(field)] for field in own]
        visit.form(name).evaluate(TYPE, cases)


def test_a_phone_never_scrolls_sideways(browser, base):
    watched = test_site.watch(browser, test_site.host(base), viewport=test_site.PHONE,
        has_touch=True, is_mobile=True)  # fmt: skip
    visit = Visit(watched, base + PAGE).open()
    assert not visit.tab.evaluate(test_site.OVERFLOW)
    fill_all(visit, lambda field: f"{field.high:.0f}")
    assert not visit.tab.evaluate(test_site.OVERFLOW)
    assert not re.search(r"NaN|Infinity", visit.tab.locator("main").inner_text())
    fill_all(visit, lambda field: "9" * 60)
    assert visit.verdict("memory").startswith("Not worked out")
    assert not visit.tab.evaluate(test_site.OVERFLOW)
    assert not watched.problems
    watched.tab.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_results_and_errors_are_accessible(visit, theme):
    visit.tab.emulate_media(color_scheme=theme)
    visit.tab.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
    visit.field("memory", "parameters").fill("many")
    visit.field("price", "samples").fill("7B")
    visit.tab.wait_for_timeout(250)  # colours fade from one theme to the other
    assert not test_site.violations(visit.tab)


def test_the_page_works_from_a_folder_offline(browser):
    watched = test_site.watch(browser, "file://", offline=True)
    visit = Visit(watched, (test_site.HTML / PAGE).as_uri()).open("#memory?batch=1")
    assert "It fits" in visit.verdict("memory")
    assert not watched.problems
    watched.tab.context.close()


def test_only_this_page_loads_the_script(base):
    loads = [
        path.relative_to(test_site.HTML).as_posix()
        for path in test_site.HTML.rglob("*.html")
        if "calculators.js" in path.read_text(encoding="utf-8")
    ]
    assert loads == [PAGE]


def test_every_calculator_links_the_claims_of_its_formulas(base):
    page = bs4.BeautifulSoup((test_site.HTML / PAGE).read_text(), "html.parser")
    for form_ in page.select("form.calculator"):
        links = form_.find_parent("section").select("p a[href*='#claim-']")
        assert len(links) >= 3, form_["id"]
    assert len(page.select("form.calculator")) == len(FIELDS)
