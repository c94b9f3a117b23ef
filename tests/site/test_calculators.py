"""The calculators of *What will it take?* in a browser, against what chapters print."""

import functools
import re

import pytest
import yaml

from tools.model import chapters
from tools.plan import record
from tools.plan.sizes import SIZES

PAGE = "book/what-will-it-take.html"
FIELDS = yaml.safe_load(
    (chapters.ROOT / "book" / "what-will-it-take.yml").read_text(encoding="utf-8")
)
# What a calculator says of its example with some values changed.
ANSWER = """([name, changes]) => {
  const figures = document.getElementById("calculator-figures").textContent;
  const values = {};
  for (const field of document.getElementById(`${name}-form`).elements) {
    if (field.tagName === "SELECT") values[field.name] = field.value;
    if (field.tagName !== "INPUT") continue;
    const { kind, low, high, whole } = field.dataset;
    const limits = [kind, Number(low), Number(high), whole === "yes"];
    [values[field.name]] = calculators.read(field.value, ...limits);
  }
  const result = calculators.formulas[name]({ ...values, ...changes },
                                            JSON.parse(figures));
  const [rows, how] = [{}, {}];
  for (const { title, rows: some } of result.groups ?? [])
    for (const row of some) {
      rows[`${title}: ${row.name}`] = row.value;
      how[`${title}: ${row.name}`] = row.how;
    }
  return { verdict: result.verdict, problem: result.problem, rows, how };
}"""


@functools.cache
def printed(number):
    """All that a chapter's cells print."""
    (chapter,) = (x for x in chapters.book() if x.number == number)
    outputs = [output for cell in chapter.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text", "") for output in outputs)


@pytest.fixture(scope="module")
def page(browser, base):
    """The page with the calculators."""
    tab = browser.new_page()
    tab.goto(base + PAGE)
    tab.wait_for_selector("output:has-text('It does not fit')")
    yield tab
    tab.close()


@pytest.fixture
def answer(page):
    """Ask a calculator: its verdict and its rows."""
    page.reload()

    def ask(name, **changes):
        return page.evaluate(ANSWER, [name, changes])

    return ask


def value(result, name):
    """The value of the first row whose title and name end so."""
    return next(x for key, x in result["rows"].items() if key.endswith(name))


# --- the formulas and the chapters ----------------------------------------------------


def test_the_ledger_is_chapter_5s(answer):
    result = answer("memory")
    assert value(result, "Together") == "12.4 GiB"
    half = value(result, "Mixed precision, mixed_float16")
    assert half == "6.2 GiB, fits by the ledger, without room for the compiler"
    assert "first remedy that fits by the ledger: mixed precision" in result["verdict"]
    for batch, mib in ((1, "49.57"), (256, "12691.00")):
        kept = answer("memory", batch=batch)["rows"]["What the step holds: Activations"]
        number, unit = kept.split()
        number = float(number) * (1024 if unit == "GiB" else 1)
        assert mib in printed(5) and number == pytest.approx(float(mib), rel=0.004)
    costs = {"sgd": "8", "momentum": "12", "adam": "16"}
    for name, cost in costs.items():
        held = answer("memory", optimizer=name, parameters=2**30, activations=1)
        assert value(held, "Together") == f"{cost} GiB"
    base = {"parameters": 1, "activations": 1, "frozen": 2**30}
    for width in ("4", "2", "1"):
        held = answer("memory", **base, width=width)
        assert value(held, "Together") == f"{width} GiB"
    own = answer("memory", batch=1, memory=2**30, share=100)
    assert value(own, "Room on your card") == "1 GiB"
    assert value(answer("memory", card="Arc B580"), "Arc B580") == "8.5 GiB"
    for name, size in (("SGD", 8), ("momentum", 12), ("Adam", 16)):
        assert re.search(rf"{name} +{size} bytes a weight", printed(5))


def test_the_first_remedy_that_is_enough_is_named(answer):
    card = {"card": "H100", "share": 100, "layers": 16}
    cases = {"parameters": 4e9, "policy": "mixed", **card}
    big = answer("memory", batch=1024, **cases)
    sure = "first that fits with room for the compiler: a batch of "
    assert sure in big["verdict"]
    most = int(re.search("a batch of ([0-9,]+)", big["verdict"])[1].replace(",", ""))
    limit = r"by the ledger alone ([0-9,]+)"
    how = next(row for key, row in big["how"].items() if "A batch of" in key)
    by_ledger = int(re.search(limit, how)[1].replace(",", ""))
    for batch, start in (
        (most, "It fits with room for the compiler"),
        (most + 1, "It fits by the ledger, without room for the compiler"),
        (by_ledger, "It fits by the ledger, without room for the compiler"),
        (by_ledger + 1, "It does not fit"),
    ):
        assert answer("memory", batch=batch, **cases)["verdict"].startswith(start)
    for parameters, remedy in (
        (5.5e9, "another optimizer: Lion"),
        (11e9, "a larger card: B200"),
        (1e12, "No remedy on one card"),
    ):
        rest = {"activations": 1e6, "batch": 8, **card}
        assert remedy in answer("memory", parameters=parameters, **rest)["verdict"]


def numbers_kept(model):
    """The inputs of all layers of a large model of the plan, for a sample."""
    size = SIZES[model]["large"]
    if model == "mlp":
        return size.inputs + size.layers * size.width + size.classes
    side, channels, kept = size.side, 3, 0
    for filters in size.filters:  # two convolutions and a pooling
        kept += side**2 * (channels + 2 * filters)
        side, channels = side // 2, filters
    return kept + side**2 * channels + channels + size.classes


def test_the_compilers_plans_lie_between_the_ledger_and_what_it_may_need(answer):
    folder = chapters.ROOT / "tools" / "plan" / "results"
    plans = record.load_plan(folder)["plans"]
    weights = {"mlp": 377_340_904, "conv": 5_198_376}
    ratios = {"mlp": [], "conv": []}
    for plan in plans:
        model, precision = plan["model"], plan["precision"]
        if model not in weights or plan["size"] != "large":
            continue
        if (plan["card"], precision) == ("T4", "mixed_bfloat16"):  # which it has not
            continue
        result = answer(
            "memory",
            parameters=weights[model],
            activations=numbers_kept(model),
            policy="float32" if precision == "float32" else "mixed",
            **{name: plan[name] for name in ("batch", "card")},
        )
        planned = plan["memory"]["total"] / 2**30
        ledger = float(value(result, "Together").removesuffix(" GiB"))
        most = float(value(result, "may need up to").removesuffix(" GiB"))
        assert 0.75 * ledger < planned < 1.005 * most, plan
        ratios[model].append(planned / ledger)
    assert min(ratios["conv"]) > 2  # so one answer, by the ledger alone, is not enough
    assert len(ratios["mlp"]) == len(ratios["conv"]) == 14


def test_the_roofline_is_that_of_chapter_1(answer):
    for batch, intensity in ((8, 8.0), (128, 120.5), (512, 409.6)):
        assert f"batch {batch:3}: {intensity:5.1f} FLOP per byte" in printed(1)
        said = value(answer("roofline", batch=batch), "Arithmetic intensity")
        assert float(said.split()[0]) == pytest.approx(intensity, rel=0.005)
    assert "memory-bound" in answer("roofline", batch=344)["verdict"]
    assert "compute-bound" in answer("roofline", batch=345)["verdict"]


def test_the_break_even_is_the_formula_of_chapter_1(answer):
    # 1,000 µs before the first sample and 20 µs each, against 100 µs each at home.
    card = {"bytes_sample": 0, "bytes_fixed": 1, "kernels": 1, "pace": 1000}
    peak = 494.7e12  # the H100's in TF32
    values = {**card, "numbers": "tf32", "operations": 20e-6 * peak, "own_first": 0}
    said = value(answer("roofline", **values, own_each=100), "than your machine")
    assert said == "from a batch of 13 on"
    said = value(answer("roofline", **values, own_each=10), "than your machine")
    assert said == "at no batch"


def test_what_cards_hold_and_send_is_that_of_chapter_18(answer):
    result = answer("cards")
    assert "(96.6 GB), does not fit" in value(result, "A card holds of the state")
    assert "state, whole       96.6 billion" in printed(18)
    gathered = result["rows"]["FSDP: And for a while"]
    assert gathered == "15 GiB (16.1 GB)"  # all weights, two bytes each
    assert "FSDP needs 28.1 GiB a card" in result["verdict"]
    assert value(result, "A card sends in a step") == "28.2 GB"
    sent = 7 / 8 * 2 * 2 * 8_053_284_864  # gathered once and scattered once, two bytes
    for link, bandwidth in FIELDS["links"].items():
        if link.startswith("NVLink") and link != FIELDS["nvlink"]["H100"]:
            continue
        found, unit = value(answer("cards", link=link), "link needs at least").split()
        found = float(found) * (1e-3 if unit == "ms" else 1)
        assert found == pytest.approx(sent / bandwidth, rel=0.01)
    alone = answer("cards", cards=1)
    assert value(alone, "A card sends in a step") == "0 bytes"


def test_weights_that_are_gathered_for_a_while_must_fit_too(answer):
    big = answer("cards", parameters=70e9, cards=16)
    assert big["verdict"].startswith("It does not fit on 16 cards of the kind H100")
    assert big["rows"]["FSDP: And for a while"] == "130 GiB (140 GB), does not fit"
    deep = answer("cards", parameters=174e9, cards=64, reduces=4 * 96)
    assert "FSDP that gathers each layer twice needs 38.8 GiB" in deep["verdict"]
    assert deep["rows"]["FSDP: And for a while"] == "324 GiB (348 GB), does not fit"
    assert "NVLink reaches 8 cards" in deep["how"]["FSDP: The link needs at least"]
    sends = [
        deep["rows"][f"{name}: A card sends in a step"]
        for name in ("FSDP", "FSDP, gathered twice")
    ]
    assert sends == ["685 GB", "1.03 TB"]


def test_a_layout_that_leaves_no_margin_is_not_recommended(answer):
    # All of it goes by the share that programs get, 75 % of the card.
    small = {"parameters": 3e9, "cards": 8}  # copies: 48 GB
    more = answer("cards", **small)["verdict"]
    assert more.startswith("Before activations, data parallelism needs 44.7 GiB")
    less = answer("cards", **small, share=65)["verdict"]
    assert "Before activations, FSDP needs" in less
    assert (
        "Before activations, FSDP needs"
        in answer("cards", parameters=3.9e9, cards=8)["verdict"]
    )
    nvlink = {"card": "A100 80 GB", "link": FIELDS["nvlink"]["A100 80 GB"]}
    two = {"parameters": 7e9, "cards": 2, **nvlink}
    verdict = answer("cards", **two)["verdict"]
    assert "FSDP that gathers each layer twice, with a fifth left" in verdict
    assert verdict.startswith("It fits barely")
    needed = int(re.search(r"needs (\d+) cards", verdict)[1])
    assert needed == 3
    for cards, enough in ((needed, True), (needed - 1, False)):
        said = answer("cards", **two | {"cards": cards, "batch": cards})["verdict"]
        assert ("Before activations" in said) == enough
    # Beyond NVLink's reach tensor parallelism is shown, and not recommended.
    far = answer("cards", parameters=40e9, cards=16, reduces=4)
    assert "tensor" not in far["verdict"]
    assert far["rows"]["Tensor parallel: Together"].startswith("37.3 GiB")
    slow = {"card": "L4", "link": "Ethernet, 100 Gbit/s"}  # nor without NVLink
    assert "tensor" not in answer("cards", parameters=6.8e9, **slow)["verdict"]


def test_one_card_holds_what_the_first_form_says(answer):
    step = {"parameters": 7e9, "policy": "mixed", "card": "H200", "batch": 1}
    one = answer("cards", cards=1, **step)
    first = answer("memory", activations=1, optimizer="adam", **step)
    together = one["rows"]["Data parallel: Together"]
    assert together.startswith(value(first, "Together").partition(" ")[0])


@pytest.mark.parametrize(
    ("form", "changes", "problem"),
    [
        ("cards", {"batch": 100}, ["batch", "Not divisible by 8 cards."]),
        ("cards", {"card": "T4"}, ["link", "The T4 has no NVLink."]),
        (
            "price",
            {"card": "A100 40 GB", "link": "NVLink 4 (900 GB/s both ways)"},
            ["link", "The A100 40 GB has NVLink 3 (600 GB/s both ways)."],
        ),
        ("price", {"cards": 8}, ["machines", "More than 8 cards."]),
        (
            "roofline",
            {"card": "T4", "numbers": "tf32"},
            ["numbers", "The T4 has no TF32."],
        ),
    ],
)
def test_what_cannot_be_is_told_at_its_field(answer, form, changes, problem):
    assert answer(form, **changes)["problem"] == problem


def test_a_training_costs_as_before_and_saves_as_chapter_14_computes(answer):
    nvlink = FIELDS["nvlink"]["H100"]
    infiniband = "InfiniBand NDR, 400 Gbit/s"
    for cards, link, hours, cost in (
        (8, nvlink, 4.1, 98),
        (16, infiniband, 2.6, 123),
        (64, infiniband, 2.7, 516),
    ):
        sent = 28.19e9 * 8 / 7 * (cards - 1) / cards
        result = answer("price", cards=cards, link=link, sent=sent, machines=8)
        shown = value(result, "Time of the training").removesuffix(" h")
        assert round(float(shown), 1) == hours
        assert round(float(value(result, "Price"))) == cost
    for cost, minutes, lost in ((60, 64, 3.1), (5, 18, 0.9)):
        assert f"{cost} s: every {minutes} minutes, {lost}% lost" in printed(14)
        result = answer("price", checkpoint=cost)
        assert round(float(value(result, "Save every").split()[0])) == minutes
        share = value(result, "Lost to checkpoints and crashes").removesuffix(" %")
        assert round(float(share), 1) == lost
    hopeless = answer("price", checkpoint=1e6, days=0.01)
    assert "it would never end" in hopeless["verdict"]


# --- the forms ------------------------------------------------------------------------


def test_wrong_input_is_told_at_its_field_and_nothing_is_worked_out(page):
    field, verdict = page.locator("#memory-batch"), page.locator("#memory-form output")
    for text in ("", "many", "-1", "1e31", "1.5", "2 x many"):
        field.fill(text)
        assert page.locator("#memory-batch-about .calc-error").inner_text()
        assert field.get_attribute("aria-invalid") == "true"
        assert verdict.inner_text() == "Not worked out. See: Batch.", text
    field.fill("256")
    assert "It does not fit" in verdict.inner_text()


def test_a_number_is_read_as_people_write_it(page):
    for text, kind, wanted in (
        ("7B", "number", 7e9),
        ("7,000,000,000", "number", 7e9),
        ("8 GFLOP", "number", 8e9),
        ("28.2 GB", "bytes", 28.2e9),
        ("16 GiB", "bytes", 16 * 2**30),
        ("40 %", "percent", 40),
        ("1,024 × 12,288", "number", 12_582_912),
        ("1024 x 12288", "number", 12_582_912),
    ):
        found = page.evaluate("x => calculators.read(...x)", [text, kind, 0, 1e30])
        assert found == [pytest.approx(wanted), ""]


def test_a_link_opens_with_its_numbers_and_says_what_it_does_not_know(browser, base):
    tab = browser.new_page()
    tab.goto(f"{base}{PAGE}#memory?batch=17&card=RTX+9090&depth=7")
    assert tab.locator("#memory-batch").input_value() == "17"
    verdict = tab.locator("#memory-form output")
    assert verdict.inner_text() == "Not worked out. See: Card."
    assert "depth" in tab.locator("#memory-form .calc-said").inner_text()
    tab.locator("#memory-form").get_by_role("button", name="Reset").click()
    assert "It does not fit" in verdict.inner_text()
    assert "#memory?parameters=35%2C683&" in tab.url
    tab.close()
