// The calculators of the page What will it take?: what is asked stands in
// what-will-it-take.yml, the formulas here, in the functions that bear their names.

(() => {
  // ---- Read and write numbers ----------------------------------------------------------

  const NUMBER =
    /^([+-]?)([0-9]{1,3}(?:([ ,_'])[0-9]{3})(?:\3[0-9]{3})*|[0-9]*)(\.[0-9]*)?(?:e([+-]?[0-9]{1,5}))? *([a-z%]*)$/i;
  const POWERS = {
    "": 0, k: 3, thousand: 3, m: 6, million: 6, g: 9, b: 9, billion: 9, t: 12, trillion: 12,
  };
  const SUFFIXES = {
    number: POWERS,
    percent: { "": 0, "%": 0 },
    bytes: { "": 0, byte: 0, bytes: 0, kb: 3, mb: 6, gb: 9, tb: 12 },
  };
  const BINARY = { kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 };
  const EXAMPLES = {
    number: "7000000000, 7,000,000,000, 7e9 or 7B",
    percent: "40 or 0.5",
    bytes: "28200000000, 28.2e9 or 28.2 GB",
  };

  // The value of what was typed, and what is wrong with it: [7e9, ""].
  function read(text, kind, low, high, whole = false) {
    const plain = text.replace(/[\u00a0\u2009\u202f]/g, " ").replace(/’/g, "'").trim();
    if (!plain) return [0, "Write a number here."];
    const found = NUMBER.exec(plain) ?? [];
    const digits = (found[2] ?? "").replace(/[^0-9]/g, "");
    const fraction = (found[4] ?? "").slice(1);
    const suffix = (found[6] ?? "").toLowerCase();
    const binary = kind === "bytes" && Object.hasOwn(BINARY, suffix);
    if (!(digits || fraction) || !(binary || Object.hasOwn(SUFFIXES[kind], suffix)))
      return [0, `This is no number. Write it like ${EXAMPLES[kind]}.`];
    const power = Number(found[5] ?? 0) + (binary ? 0 : SUFFIXES[kind][suffix]);
    let value = Number(`${found[1]}${digits || 0}.${fraction || 0}e${power}`);
    if (binary) value *= BINARY[suffix];
    if (value < low) return [value, `Too small: at least ${decimal(low, 15)}.`];
    if (value > high) return [value, `Too large: at most ${decimal(high, 15)}.`];
    if (whole && value % 1) return [value, "Write a whole number."];
    return [value, ""];
  }

  function decimal(value, digits = 3) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e").map(Number);
    if (value && (power <= -7 || power >= 16)) return `${mantissa}e${power}`;
    return value.toLocaleString("en", { maximumSignificantDigits: digits });
  }

  const wholeUp = (value) => Math.ceil(value * (1 - 1e-12));

  function inUnits(value, units) {
    let [, scale, name] = units[0];
    for (const [start, size, unit] of units)
      if (value >= start) [scale, name] = [size, unit];
    return `${decimal(value / scale)} ${name}`;
  }

  const steps = (base, names) => names.map((name, k) => [base ** k, base ** k, name]);
  const GIB = steps(1024, ["bytes", "KiB", "MiB", "GiB", "TiB"]);
  const GB = steps(1000, ["bytes", "kB", "MB", "GB", "TB"]);
  const FLOP = [
    [1, 1, "FLOP"], [1e6, 1e6, "MFLOP"], [1e9, 1e9, "GFLOP"], [1e12, 1e12, "TFLOP"],
    [1e15, 1e15, "PFLOP"],
  ];
  const TIME = [
    [1e-9, 1e-9, "ns"], [1e-6, 1e-6, "µs"], [1e-3, 1e-3, "ms"], [1, 1, "s"],
    [120, 60, "min"], [7200, 3600, "h"], [172800, 86400, "days"],
    [63115200, 31557600, "years"],
  ];
  const held = (bytes) => inUnits(bytes, GIB);
  const moved = (bytes) => inUnits(bytes, GB);
  const work = (operations) => inUnits(operations, FLOP);
  const duration = (seconds) => (seconds ? inUnits(seconds, TIME) : "0 s");
  const all = (value) => decimal(value, 15);

  // ---- The formulas --------------------------------------------------------------------

  const REMEMBERED = { adam: 8, momentum: 4, sgd: 0 };
  const OPTIMIZERS = {
    adam: "Adam",
    momentum: "Lion, or SGD with momentum",
    sgd: "plain SGD",
  };
  const RATES = { float32: "float32", tf32: "tf32", half: "float16" };
  const COUNTERS = 12;
  const STATE_BEYOND = 16;
  const ENOUGH = 1e15;

  const row = (name, value, how, mark = "") => ({ name, value, how, mark });
  const group = (title, rows) => ({ title, rows });
  const noTf32 = (v) => ({ problem: ["numbers", `The ${v.card} has no TF32.`] });

  function stepBytes(parameters, optimizer, mixed, kept) {
    return {
      weights: 4 * parameters,
      gradients: 4 * parameters,
      optimizer: REMEMBERED[optimizer] * parameters + COUNTERS,
      copies: mixed ? 2 * parameters : 0,
      activations: (mixed ? 2 : 4) * kept,
    };
  }

  const added = (step) => Object.values(step).reduce((sum, part) => sum + part);

  function largestDivisor(number, most) {
    let best = 0;
    for (let small = 1; small * small <= number; small++)
      if (number % small === 0)
        for (const divisor of [small, number / small])
          if (best < divisor && divisor <= most) best = divisor;
    return best;
  }

  const segmentsKept = (layers) => Math.ceil(2 * Math.sqrt(layers)) - 1;

  function remedy(name, total, room, how) {
    const fits = total <= room;
    const value = `${held(total)}, ${fits ? "fits" : "does not fit"}`;
    return row(name, value, how, fits ? "good" : "bad");
  }

  function memory(v, figures) {
    const card = figures.cards[v.card];
    const room = (card.memory * v.share) / 100;
    const mixed = v.policy === "mixed";
    const step = stepBytes(v.parameters, v.optimizer, mixed, v.batch * v.activations);
    const total = added(step);
    const fits = total <= room;
    const count = all(v.parameters);
    const rows = [
      row("Weights", held(step.weights), `${count} × 4 bytes`),
      row("Gradients", held(step.gradients), `${count} × 4 bytes`),
      row(
        `State of ${OPTIMIZERS[v.optimizer]}`,
        held(step.optimizer),
        `${count} × ${decimal(REMEMBERED[v.optimizer])} bytes, and 12 bytes`,
      ),
    ];
    if (mixed)
      rows.push(
        row("16-bit copies of the weights", held(step.copies), `${count} × 2 bytes`),
      );
    rows.push(
      row(
        "Activations",
        held(step.activations),
        `batch ${all(v.batch)} × ${all(v.activations)} × ${mixed ? 2 : 4} bytes`,
      ),
      row("Together", held(total), "the sum", fits ? "good" : "bad"),
      row(`Room on the ${v.card}`, held(room), `${decimal(v.share)} % of ${held(card.memory)}`),
    );
    const groups = [group("What the step holds", rows)];
    if (fits) {
      const verdict =
        `It fits, by the ledger: ${held(total)} of the ${held(room)} that programs ` +
        `get of the ${v.card}. A compiler's plan can be 1.8 times as ` +
        `large: ${held(1.8 * total)}.`;
      return { verdict, groups };
    }
    const remedies = remediesOf(v, figures, room, total);
    const first = remedies.find((one) => one.mark === "good");
    const verdict =
      `It does not fit: the step holds ${held(total)}, and programs get ${held(room)} ` +
      `of the ${v.card}. ` +
      (first
        ? `The first remedy that is enough: ${first.name[0].toLowerCase()}` +
          `${first.name.slice(1)} (${first.value}).`
        : "No remedy on one card is enough: spread the state over several.");
    groups.push(group("Remedies, the cheapest first", remedies));
    return { verdict, groups };
  }

  function remediesOf(v, figures, room, total) {
    const rows = [];
    let mixed = v.policy === "mixed";
    let withIt = "";
    if (!mixed) {
      const has = Object.hasOwn(figures.cards[v.card].rates, "bfloat16");
      const name = has ? "mixed_bfloat16" : "mixed_float16";
      const less = added(
        stepBytes(v.parameters, v.optimizer, true, v.batch * v.activations),
      );
      const how = "activations in 2 bytes, and a 16-bit copy of the weights";
      rows.push(remedy(`Mixed precision, ${name}`, less, room, how));
      if (room < less && less < total) [mixed, withIt] = [true, " with mixed precision"];
    }
    const sample = (mixed ? 2 : 4) * v.activations;
    const floor = added(stepBytes(v.parameters, v.optimizer, mixed, 0));
    const left = Math.max(room - floor, 0);
    const most = Math.floor(left / sample);
    rows.push(
      remedy(
        (most ? `A batch of ${all(most)}` : "A smaller batch") + withIt,
        floor + Math.max(most, 1) * sample,
        room,
        `${held(floor)} whatever the batch, ${held(sample)} for a sample`,
      ),
    );

    const gathered = 4 * v.parameters;
    const micro = largestDivisor(
      v.batch,
      Math.floor(Math.max(left - gathered, 0) / sample),
    );
    rows.push(
      remedy(
        `The same batch in ${micro ? `${all(v.batch / micro)} pieces` : "pieces"}${withIt}`,
        floor + gathered + Math.max(micro, 1) * sample,
        room,
        `activations of one piece, and ${held(gathered)} for the sum of gradients`,
      ),
    );

    const kept = segmentsKept(v.layers);
    rows.push(
      remedy(
        `Rematerialisation${withIt}`,
        floor + (v.batch * sample * kept) / v.layers,
        room,
        `${all(kept)} of ${all(v.layers)} layers' outputs alive`,
      ),
    );

    const names = Object.keys(REMEMBERED);
    for (const other of names.slice(names.indexOf(v.optimizer) + 1)) {
      const bare = added(stepBytes(v.parameters, other, mixed, 0));
      const fitting = Math.floor(Math.max(room - bare, 0) / sample);
      const size = most ? v.batch : Math.max(Math.min(fitting, v.batch), 1);
      const how =
        `${decimal(REMEMBERED[other])} bytes of state a weight, ` +
        `a batch of ${all(size)}`;
      const name = `Another optimizer${withIt}: ${OPTIMIZERS[other]}`;
      rows.push(remedy(name, bare + size * sample, room, how));
    }

    const larger = Object.entries(figures.cards)
      .sort(([, a], [, b]) => a.memory - b.memory)
      .find(([, card]) => total <= (card.memory * v.share) / 100);
    if (larger) {
      const [name, card] = larger;
      const how = `${decimal(v.share)} % of its ${held(card.memory)}`;
      rows.push(row(`A larger card: ${name}`, `${held(total)}, fits`, how, "good"));
    } else rows.push(row("A larger card", "does not fit", "none of the cards here", "bad"));
    return rows;
  }

  function roofline(v, figures) {
    const card = figures.cards[v.card];
    const rate = card.rates[RATES[v.numbers]];
    if (rate === undefined) return noTf32(v);
    const [each, fixed] = [v.bytes_sample, v.bytes_fixed];
    if (!(each + fixed))
      return { problem: ["bytes_fixed", "Some bytes must move: both are 0."] };
    const speed = card.bandwidth;
    const start = v.kernels * v.pace * 1e-6;
    const flop = v.batch * v.operations;
    const data = fixed + v.batch * each;
    const times = { arithmetic: flop / rate, memory: data / speed, launches: start };
    const binds = Object.keys(times).reduce((a, b) => (times[b] > times[a] ? b : a));
    const least = times[binds];
    const words = {
      arithmetic: "arithmetic binds (compute-bound)",
      memory: "the memory's bandwidth binds (memory-bound)",
      launches: "the start of the kernels binds (latency-bound)",
    };
    const peak = `${decimal(rate / 1e12, 6)} TFLOP/s`;
    const bandwidth = `${decimal(speed / 1e9, 6)} GB/s`;
    const rows = [
      row("Arithmetic", duration(times.arithmetic), `${work(flop)} ÷ ${peak}`),
      row("Memory", duration(times.memory), `${moved(data)} ÷ ${bandwidth}`),
      row("Launches", duration(start), `${all(v.kernels)} × ${decimal(v.pace)} µs`),
      row("Least time", duration(least), "the longest of the three"),
      row(
        "Arithmetic intensity",
        `${decimal(flop / data)} FLOP per byte`,
        `${work(flop)} ÷ ${moved(data)}`,
      ),
      row(
        "Ridge of the card",
        `${decimal(rate / speed)} FLOP per byte`,
        `${peak} ÷ ${bandwidth}`,
      ),
    ];
    let verdict =
      `With a batch of ${all(v.batch)} ${words[binds]}: at least ` +
      `${duration(least)} on the ${v.card}. `;
    const gain = v.operations / rate - each / speed;
    const turn = Math.max(gain > 0 ? wholeUp(fixed / speed / gain) : Infinity, 1);
    const reached = turn <= ENOUGH;
    const reach = reached ? `a batch of ${all(turn)}` : "no batch";
    verdict += reached
      ? `The arithmetic takes longer than the memory from ${reach} on.`
      : "No batch makes the arithmetic take longer than the memory.";
    const how =
      `${duration(fixed / speed)} for what moves once ÷ ` +
      `(${duration(v.operations / rate)} − ${duration(each / speed)}) for each sample`;
    const own = (v.own_first + v.own_each * v.batch) * 1e-6;
    const even = [
      row("The batch that reaches the ridge", reach, how),
      ownMachine(v, start + fixed / speed, Math.max(v.operations / rate, each / speed)),
      row(
        "What the card can gain over your machine",
        `${decimal(own / least)} times, at most`,
        `${duration(own)} there ÷ the least time here`,
      ),
    ];
    return { verdict, groups: [group("The limits", rows), group("Break-even", even)] };
  }

  function ownMachine(v, latency, cost) {
    const [first, each] = [v.own_first * 1e-6, v.own_each * 1e-6];
    const [later, saved] = [latency - first, each - cost];
    const size = saved ? wholeUp(later / saved) : Infinity;
    let said = "at no batch";
    if (later <= 0 && saved >= 0) said = "from the first sample on";
    else if (later > 0 && saved > 0 && size <= ENOUGH)
      said = `from a batch of ${all(size)} on`;
    else if (later < 0 && saved < 0 && 1 < size && size <= ENOUGH)
      said = `below a batch of ${all(size)} only`;
    const how =
      `(${duration(latency)} − ${duration(first)} before the first sample) ÷ ` +
      `(${duration(each)} − ${duration(cost)} for each)`;
    return row("The card is faster than your machine", said, how);
  }

  const ringBytes = (n, result) => ((2 * (n - 1)) / n) * result;

  function cards(v, figures) {
    const [card, link] = [figures.cards[v.card], figures.links[v.link]];
    const width = v.policy === "mixed" ? 2 : 4;
    const each = 4 + REMEMBERED[v.optimizer];
    const state = each * v.parameters + STATE_BEYOND;
    const part = (each * v.parameters) / v.cards + STATE_BEYOND;
    const sends = ringBytes(v.cards, width * v.parameters + 4);
    const features = v.batch * v.features * width;
    const [n, many] = [all(v.cards), all(v.parameters)];
    const twice = `2 × ${all(v.cards - 1)}/${n}`;
    const whole = `${many} × ${decimal(each)} bytes, and 16 bytes`;
    const eighth = `${many} × ${decimal(each)} bytes ÷ ${n}, and 16 bytes`;
    const rows = (holds, how, bytes, sent) => {
      const fits = holds <= card.memory;
      const size = `${held(holds)} (${moved(holds)})`;
      return [
        row(
          "A card holds of the state",
          fits ? size : `${size}, does not fit`,
          `${how}; the ${v.card} has ${held(card.memory)}`,
          fits ? "good" : "bad",
        ),
        row("A card sends in a step", moved(bytes), sent),
        row(
          "The link needs at least",
          duration(bytes / link),
          `${moved(bytes)} ÷ ${decimal(link / 1e9, 6)} GB/s`,
        ),
      ];
    };
    const one = `${decimal(width)} bytes`;
    const reduced = `${twice} × ${many} gradients × ${one}`;
    const scattered = `${n} cards gather and scatter: ${twice} × ${many} × ${one}`;
    const summed =
      `${all(v.reduces)} all-reduces × ${twice} × ` +
      `${all(v.batch)} × ${all(v.features)} × ${one}`;
    const featuresSent = v.reduces * ringBytes(v.cards, features);
    const gathered = row(
      "And gathers, for a while",
      `${held(width * v.parameters)} (${moved(width * v.parameters)})`,
      `all weights when the forward pass ends: ${many} × ${one}`,
    );
    const sharded = rows(part, eighth, sends, scattered);
    sharded.splice(1, 0, gathered);
    const groups = [
      group("Data parallel", rows(state, whole, sends, reduced)),
      group("FSDP", sharded),
      group("Tensor parallel", rows(part, eighth, featuresSent, summed)),
    ];
    const least = duration(sends / link);
    let verdict;
    if (state <= card.memory)
      verdict =
        `The state fits as ${n} copies of ${held(state)}. Data parallelism sends ` +
        `${moved(sends)} a step, at least ${least} on this link.`;
    else if (part <= card.memory)
      verdict =
        `The state, ${held(state)}, fits on no ${v.card}; cut in ${n} it is ` +
        `${held(part)} a card. FSDP sends ${moved(sends)} a step, at ` +
        `least ${least} on this link; tensor parallelism ${moved(featuresSent)}, ` +
        `${duration(featuresSent / link)}.`;
    else {
      const needed = Math.ceil((each * v.parameters) / (card.memory - STATE_BEYOND));
      verdict =
        `Even cut in ${n} the state does not fit: ${held(part)} a card. The state ` +
        `alone needs ${all(needed)} cards of this kind.`;
    }
    return { verdict, groups };
  }

  function price(v, figures) {
    const [card, link] = [figures.cards[v.card], figures.links[v.link]];
    const rate = card.rates[RATES[v.numbers]];
    if (rate === undefined) return noTf32(v);
    const compute = v.operations / v.cards / (rate * (v.reached / 100));
    const message = v.sent / link;
    const step = Math.max(compute, message);
    const count = v.samples / v.batch;
    const seconds = step * count;
    const cost = (seconds / 3600) * v.cards * v.price;
    const between = (v.days * 86400) / v.machines;
    const interval = Math.sqrt(2 * v.checkpoint * between);
    const lost = v.checkpoint / interval + interval / (2 * between);
    const n = all(v.cards);
    const rows = [
      row(
        "Arithmetic of a step",
        duration(compute),
        `${work(v.operations)} ÷ ${n} ÷ ` +
          `(${decimal(v.reached)} % of ${decimal(rate / 1e12, 6)} TFLOP/s)`,
      ),
      row(
        "Messages of a step",
        duration(message),
        `${moved(v.sent)} ÷ ${decimal(link / 1e9, 6)} GB/s`,
      ),
      row(
        "Time of the training",
        duration(seconds),
        `${decimal(count)} steps × ${duration(step)}, the longer of the two`,
      ),
      row(
        "Price",
        decimal(cost),
        `${decimal(seconds / 3600)} h × ${n} cards × ${decimal(v.price, 6)}`,
      ),
    ];
    const saves = [
      row(
        "Save every",
        duration(interval),
        `√(2 × ${duration(v.checkpoint)} × ${decimal(v.days)} days ` +
          `÷ ${all(v.machines)} machines)`,
      ),
      row(
        "Lost to checkpoints and crashes",
        lost < 1 ? `${decimal(100 * lost)} %` : "all of the time",
        `${duration(v.checkpoint)} ÷ ${duration(interval)}, and ` +
          `${duration(interval)} ÷ 2 ÷ ${duration(between)} between two crashes`,
      ),
    ];
    const binds = compute >= message ? "arithmetic takes" : "messages take";
    let verdict =
      `${duration(seconds)} on ${n} cards, for ${decimal(cost)}; of a step the ${binds} ` +
      "longer. ";
    if (lost < 1) {
      const [longer, dearer] = [seconds / (1 - lost), cost / (1 - lost)];
      verdict +=
        `Save every ${duration(interval)}: with checkpoints and crashes it is ` +
        `${duration(longer)} and ${decimal(dearer)}.`;
      const how = `÷ (1 − ${decimal(lost)})`;
      saves.push(row("Time with both", duration(longer), `${duration(seconds)} ${how}`));
      saves.push(row("Price with both", decimal(dearer), `${decimal(cost)} ${how}`));
    } else verdict += "A machine fails before a checkpoint pays: it would never end.";
    return { verdict, groups: [group("The training", rows), group("Checkpoints", saves)] };
  }

  const FORMULAS = { memory, roofline, cards, price };

  // ---- The forms -----------------------------------------------------------------------

  function make(tag, text, className = "") {
    const made = document.createElement(tag);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  class Calculator {
    static all = [];

    constructor(form, figures) {
      this.form = form;
      this.name = form.dataset.calculator;
      this.figures = figures;
      this.fields = [...form.querySelectorAll("input, select")];
      this.example = this.texts();
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("input", () => this.show());
      form.addEventListener("change", () => this.remember());
      for (const button of form.querySelectorAll("[data-act]")) {
        button.hidden = false;
        button.addEventListener("click", () => this[button.dataset.act]());
      }
      this.show();
      Calculator.all.push(this);
    }

    texts() {
      return Object.fromEntries(this.fields.map((field) => [field.name, field.value]));
    }

    // What is chosen or typed in a field, and what is wrong with it.
    static valueOf(field) {
      if (field.tagName === "SELECT")
        return [field.value, field.value ? "" : "Choose one of these."];
      const { kind, low, high, whole } = field.dataset;
      return read(field.value, kind, Number(low), Number(high), whole === "yes");
    }

    show() {
      const values = {};
      const wrong = [];
      for (const field of this.fields) {
        const [value, error] = Calculator.valueOf(field);
        values[field.name] = value;
        this.say(field, error, error || field.tagName === "SELECT" ? "" : all(value));
        if (error) wrong.push(field);
      }
      const result = wrong.length ? {} : FORMULAS[this.name](values, this.figures);
      if (result.problem) {
        const [name, error] = result.problem;
        const field = this.form.elements[name];
        this.say(field, error, "");
        wrong.push(field);
      }
      const verdict = this.form.querySelector("output");
      const labels = wrong.map((field) => field.labels[0].firstChild.textContent.trim());
      const text = wrong.length ? `Not worked out. See: ${labels.join("; ")}.` : result.verdict;
      if (verdict.textContent !== text) verdict.textContent = text;
      const place = this.form.querySelector(".calc-result");
      place.hidden = wrong.length > 0;
      if (!wrong.length) this.draw(place, result.groups);
    }

    // The error of a field, or how its number was understood.
    say(field, error, understood) {
      const about = document.getElementById(field.getAttribute("aria-describedby"));
      const same = understood === "" || field.value.trim() === understood;
      const unit = field.dataset.kind === "bytes" ? " bytes" : "";
      about.querySelector(".calc-error").textContent = error;
      about.querySelector(".calc-understood").textContent = same
        ? ""
        : `= ${understood}${unit}`;
      if (error) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }

    draw(place, groups) {
      const parts = groups.flatMap(({ title, rows }) => {
        const list = document.createElement("dl");
        for (const { name, value, how, mark } of rows) {
          const line = make("div", "", mark && `calc-${mark}`);
          line.append(make("dt", name), make("dd", value, "calc-value"));
          line.append(make("dd", how, "calc-how"));
          list.append(line);
        }
        return [make("h3", title), list];
      });
      place.replaceChildren(...parts);
    }

    // The address keeps what was typed: a reload shows it again.
    remember() {
      const query = new URLSearchParams(this.texts());
      history.replaceState(null, "", `#${this.name}?${query}`);
    }

    async copy() {
      this.remember();
      let said = "Copied.";
      try {
        await navigator.clipboard.writeText(location.href);
      } catch {
        said = "The address of this page is the link: copy it.";
      }
      this.form.querySelector(".calc-said").textContent = said;
    }

    reset() {
      this.fill(this.example);
      this.remember();
      this.form.querySelector(".calc-said").textContent = "This is the example again.";
    }

    // Put texts into the fields. A choice that does not offer its text is empty then.
    fill(texts) {
      for (const field of this.fields) field.value = texts[field.name] ?? field.value;
      this.show();
    }
  }

  // Show what a link such as #memory?parameters=7e9 says.
  function openLink() {
    const [, name, query] = /^#([a-z]+)\?(.*)$/s.exec(location.hash) ?? [];
    const calculator = Calculator.all.find((one) => one.name === name);
    if (!calculator) return;
    const texts = Object.fromEntries(new URLSearchParams(query));
    calculator.fill(texts);
    const known = calculator.fields.map((field) => field.name);
    const unknown = Object.keys(texts).filter((key) => !known.includes(key));
    calculator.form.querySelector(".calc-said").textContent = unknown.length
      ? `The link has no field of this page: ${unknown.join(", ")}.`
      : "";
    calculator.form.scrollIntoView();
  }

  function start() {
    const figures = JSON.parse(document.getElementById("calculator-figures").textContent);
    for (const form of document.querySelectorAll("form.calculator"))
      new Calculator(form, figures);
    openLink();
    window.addEventListener("hashchange", openLink);
  }

  globalThis.calculators = { read, decimal, formulas: FORMULAS };
  start();
})();
