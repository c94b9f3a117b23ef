// The calculators of the page What will it take?: what is asked stands in
// what-will-it-take.yml, the formulas here, in the functions that bear their names.

(() => {
  // ---- Read and write numbers ----------------------------------------------------------

  const NUMBER =
    /^([+-]?)([0-9]{1,3}(?:([ ,_'])[0-9]{3})(?:\3[0-9]{3})*|[0-9]*)(\.[0-9]*)?(?:e([+-]?[0-9]{1,5}))? *([a-z%]*)$/i;
  const POWERS = {
    "": 0, k: 3, thousand: 3, m: 6, million: 6, g: 9, b: 9, billion: 9, t: 12, trillion: 12, p: 15,
  };
  const SUFFIXES = {
    number: POWERS,
    percent: { "": 0, "%": 0 },
    bytes: { "": 0, byte: 0, bytes: 0, kb: 3, mb: 6, gb: 9, tb: 12 },
  };
  const BINARY = { kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 };
  const EXAMPLES = {
    number: "7000000000, 7,000,000,000, 7e9 or 7B",
    percent: "40",
    bytes: "28200000000, 28.2e9 or 28.2 GB",
  };

  // The value of what was typed, and what is wrong with it: [7e9, ""].
  function read(text, kind, low, high, whole = false) {
    const plain = text.replace(/[\u00a0\u2009\u202f]/g, " ").replace(/’/g, "'").trim();
    if (!plain) return [0, "Write a number here."];
    const factors = plain.split(/ *[×x*] */);
    if (kind === "number" && factors.length > 1) return product(factors, low, high, whole);
    const found = NUMBER.exec(plain) ?? [];
    const digits = (found[2] ?? "").replace(/[^0-9]/g, "");
    const fraction = (found[4] ?? "").slice(1);
    let suffix = (found[6] ?? "").toLowerCase();
    if (kind === "number") suffix = suffix.replace(/flop$/, "");
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

  // A product such as 1,024 × 12,288.
  function product(factors, low, high, whole) {
    let value = 1;
    for (const factor of factors) {
      const [one, error] = read(factor, "number", 0, high);
      if (error) return [0, error];
      value *= one;
    }
    return read(String(value), "number", low, high, whole);
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
  const FLOP = steps(1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
  const TIME = [
    [1e-9, 1e-9, "ns"], [1e-6, 1e-6, "µs"], [1e-3, 1e-3, "ms"], [1, 1, "s"], [120, 60, "min"],
    [7200, 3600, "h"], [172800, 86400, "days"], [63115200, 31557600, "years"],
  ];
  const held = (bytes) => inUnits(bytes, GIB);
  const moved = (bytes) => inUnits(bytes, GB);
  const work = (operations) => inUnits(operations, FLOP);
  const duration = (seconds) => (seconds ? inUnits(seconds, TIME) : "0 s");
  const all = (value) => decimal(value, 15);
  const counted = (number, what) => `${all(number)} ${what}${number === 1 ? "" : "s"}`;

  // ---- The formulas --------------------------------------------------------------------

  const REMEMBERED = { adam: 8, momentum: 4, sgd: 0 };
  const OPTIMIZERS = { adam: "Adam", momentum: "Lion, or SGD with momentum", sgd: "plain SGD" };
  const RATES = { float32: "float32", tf32: "tf32", half: "float16" };
  const COUNTERS = 12;
  const STATE_BEYOND = 16;
  const ENOUGH = 1e15;
  // A compiled step can hold this many times the ledger's activations: up to 2.4 times by
  // the plans (tools/plan), 2.6 times in 16 bits on an H200, where cuDNN had its own room.
  const COMPILED = 2.8;
  // So many cards does NVLink reach in most machines.
  const NVLINK_REACH = 8;
  // So many all-reduces of features has a transformer's layer.
  const LAYER_REDUCES = 4;
  // This part of the room must be left for activations.
  const MARGIN = 0.2;

  const row = (name, value, how, mark = "") => ({ name, value, how, mark });
  const group = (title, rows) => ({ title, rows });
  const noTf32 = (v) => ({ problem: ["numbers", `The ${v.card} has no TF32.`] });

  // The card that was chosen, with the figures that were typed in its place.
  function chosen(v, figures) {
    const card = { ...figures.cards[v.card], name: `the ${v.card}` };
    if (v.memory || v.peak || v.bandwidth) card.name = "your card";
    if (v.memory) card.memory = v.memory;
    if (v.bandwidth) card.bandwidth = v.bandwidth * 1e9;
    if (v.peak) card.rates = { ...card.rates, [RATES[v.numbers]]: v.peak * 1e12 };
    return card;
  }

  function stepBytes(parameters, optimizer, mixed, kept, frozen = 0, width = 4) {
    return {
      weights: 4 * parameters,
      frozen: width * frozen,
      gradients: 4 * parameters,
      optimizer: REMEMBERED[optimizer] * parameters + COUNTERS,
      copies: mixed ? 2 * (parameters + (width === 4 ? frozen : 0)) : 0,
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

  // The bytes that programs get of a card.
  const roomOn = (card, v) => (card.memory * v.share) / 100;

  // What the step holds, and what a compiler may make of it.
  const upTo = (step) => added(step) + (COMPILED - 1) * step.activations;

  const SURE = "fits with room for the compiler";
  const BY_LEDGER = "fits by the ledger, without room for the compiler";

  // How a step fits: its mark, and the words for it.
  function fit(step, room) {
    if (upTo(step) <= room) return ["good", SURE];
    if (added(step) <= room) return ["perhaps", BY_LEDGER];
    return ["bad", "does not fit"];
  }

  function remedy(name, step, room, how) {
    const [mark, words] = fit(step, room);
    return row(name, `${held(added(step))}, ${words}`, how, mark);
  }

  function memory(v, figures) {
    const card = { ...(figures.cards[v.card] ?? figures.owned[v.card]) };
    if (v.memory) card.memory = v.memory;
    const name = v.memory ? "your card" : `the ${v.card}`;
    const room = roomOn(card, v);
    const mixed = v.policy === "mixed";
    const width = Number(v.width);
    const bytes = (optimizer, half, kept) =>
      stepBytes(v.parameters, optimizer, half, kept, v.frozen, width);
    const step = bytes(v.optimizer, mixed, v.batch * v.activations);
    const [total, most] = [added(step), upTo(step)];
    const [mark, words] = fit(step, room);
    const count = all(v.parameters);
    const kept = `batch ${all(v.batch)} × ${all(v.activations)} × ${mixed ? 2 : 4} bytes`;
    const remembered = `${count} × ${REMEMBERED[v.optimizer]} bytes, and 12 bytes`;
    const compiled = `the same with ${COMPILED} times the activations`;
    const copied = all(step.copies / 2);
    const copies = row("16-bit copies of the weights", held(step.copies), `${copied} × 2 bytes`);
    const frozen = row("Frozen weights", held(step.frozen), `${all(v.frozen)} × ${width} bytes`);
    const rows = [
      row("Weights", held(step.weights), `${count} × 4 bytes`),
      ...(v.frozen ? [frozen] : []),
      row("Gradients", held(step.gradients), `${count} × 4 bytes`),
      row(`State of ${OPTIMIZERS[v.optimizer]}`, held(step.optimizer), remembered),
      ...(mixed ? [copies] : []),
      row("Activations", held(step.activations), kept),
      row("Together", held(total), "the sum: the ledger", mark),
      row("A compiler may need up to", held(most), compiled, most <= room ? "good" : mark),
      row(`Room on ${name}`, held(room), `${decimal(v.share)} % of ${held(card.memory)}`),
    ];
    const groups = [group("What the step holds", rows)];
    const programs = `${held(room)} that programs get of ${name}`;
    if (mark === "good")
      return {
        groups,
        verdict:
          `It ${SURE}: the step holds ${held(total)}, a compiler ` +
          `may make up to ${held(most)} of it, and both are less than the ${programs}.`,
      };
    const remedies = remediesOf(v, figures, card, step, bytes);
    const named = (one) => `${one.name[0].toLowerCase()}${one.name.slice(1)}`;
    const sure = remedies.find((one) => one.mark === "good");
    const first = remedies.find((one) => one.mark !== "bad");
    let verdict =
      mark === "bad"
        ? `It does not fit: the step holds ${held(total)}, more than the ${programs}. `
        : `It ${words}: the step holds ${held(total)} of the ${programs}, and a ` +
          `compiler may make up to ${held(most)} of it. `;
    if (mark === "bad" && first && first !== sure)
      verdict += `The first remedy that fits by the ledger: ${named(first)}. `;
    if (sure) verdict += `The first that ${SURE}: ${named(sure)}.`;
    else if (first) verdict += "No remedy leaves room for the compiler: ask it for its plan.";
    else verdict += "No remedy on one card is enough: spread the state over several.";
    groups.push(group("Remedies, the cheapest first", remedies));
    return { verdict, groups };
  }

  function remediesOf(v, figures, card, step, bytes) {
    const room = roomOn(card, v);
    const rows = [];
    let mixed = v.policy === "mixed";
    let withIt = "";
    if (!mixed) {
      const has = Object.hasOwn(card.rates ?? { bfloat16: 0 }, "bfloat16");
      const name = has ? "mixed_bfloat16" : "mixed_float16";
      const kept = v.batch * v.activations;
      const less = bytes(v.optimizer, true, kept);
      const how = "activations in 2 bytes, and a 16-bit copy of the weights";
      rows.push(remedy(`Mixed precision, ${name}`, less, room, how));
      if (room < upTo(less) && added(less) < added(step))
        [mixed, withIt] = [true, " with mixed precision"];
    }
    const sample = (mixed ? 2 : 4) * v.activations;
    const rest = bytes(v.optimizer, mixed, 0);
    const floor = added(rest);
    const holding = (activations, more = 0) => ({ ...rest, more, activations });
    // So many samples' activations have room beside the rest: surely, or by the ledger.
    const samples = (beside, factor = 1) =>
      Math.floor(Math.max(room - beside, 0) / (factor * sample));
    const sure = (beside) => samples(beside, COMPILED) || samples(beside);
    const most = sure(floor);
    const byLedger = samples(floor);
    const alone = most < byLedger ? `; by the ledger alone ${all(byLedger)}` : "";
    const size = (most ? `A batch of ${all(most)}` : "A smaller batch") + withIt;
    const each = `${held(floor)} whatever the batch, ${held(sample)} for a sample${alone}`;
    rows.push(remedy(size, holding(Math.max(most, 1) * sample), room, each));
    const gathered = 4 * v.parameters;
    const micro = largestDivisor(v.batch, sure(floor + gathered));
    const pieces = micro ? counted(v.batch / micro, "piece") : "pieces";
    const inPieces = holding(Math.max(micro, 1) * sample, gathered);
    const one = `activations of one piece, and ${held(gathered)} for the sum of gradients`;
    rows.push(remedy(`The same batch in ${pieces}${withIt}`, inPieces, room, one));
    const kept = Math.ceil(2 * Math.sqrt(v.layers)) - 1; // the best equal segments
    const alive = `${all(kept)} of ${all(v.layers)} layers' outputs alive`;
    const fewer = holding((v.batch * sample * kept) / v.layers);
    rows.push(remedy(`Rematerialisation${withIt}`, fewer, room, alive));

    const names = Object.keys(REMEMBERED);
    for (const other of names.slice(names.indexOf(v.optimizer) + 1)) {
      const bare = bytes(other, mixed, 0);
      const fitting = sure(added(bare));
      const size = most ? v.batch : Math.max(Math.min(fitting, v.batch), 1);
      const how = `${REMEMBERED[other]} bytes of state a weight, a batch of ${all(size)}`;
      const name = `Another optimizer${withIt}: ${OPTIMIZERS[other]}`;
      rows.push(remedy(name, { ...bare, activations: size * sample }, room, how));
    }

    const known = Object.entries(figures.cards).sort(([, a], [, b]) => a.memory - b.memory);
    const larger =
      known.find(([, one]) => upTo(step) <= roomOn(one, v)) ??
      known.find(([, one]) => added(step) <= roomOn(one, v));
    if (larger) {
      const [name, one] = larger;
      const how = `${decimal(v.share)} % of its ${held(one.memory)}`;
      rows.push(remedy(`A larger card: ${name}`, step, roomOn(one, v), how));
    } else rows.push(row("A larger card", "does not fit", "none of the cards here", "bad"));
    return rows;
  }

  function roofline(v, figures) {
    const card = chosen(v, figures);
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
    const perByte = (ratio) => `${decimal(ratio)} FLOP per byte`;
    const peak = `${decimal(rate / 1e12, 6)} TFLOP/s`;
    const bandwidth = `${decimal(speed / 1e9, 6)} GB/s`;
    const rows = [
      row("Arithmetic", duration(times.arithmetic), `${work(flop)} ÷ ${peak}`),
      row("Memory", duration(times.memory), `${moved(data)} ÷ ${bandwidth}`),
      row("Launches", duration(start), `${all(v.kernels)} × ${decimal(v.pace)} µs`),
      row("Least time", duration(least), "the longest of the three"),
      row("Arithmetic intensity", perByte(flop / data), `${work(flop)} ÷ ${moved(data)}`),
      row("Ridge of the card", perByte(rate / speed), `${peak} ÷ ${bandwidth}`),
    ];
    let verdict =
      `With a batch of ${all(v.batch)} ${words[binds]}: at least ` +
      `${duration(least)} on ${card.name}. `;
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
      row("What the card can gain over your machine", `${decimal(own / least)} times, at most`,
        `${duration(own)} there ÷ the least time here`),
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

  // What a card holds of each layout for the whole step and for a while, and sends.
  function layouts(v) {
    const [n, many] = [v.cards, all(v.parameters)];
    const mixed = v.policy === "mixed";
    const width = mixed ? 2 : 4;
    const copies = mixed ? 2 * v.parameters : 0;
    const layer = v.parameters / Math.max(v.reduces / LAYER_REDUCES, 1);
    const gathered = (count) => (n > 1 ? width * count : copies);
    const ring = (factor) => `${all(factor)} × ${all(n - 1)}/${all(n)}`;
    const sends = (factor, bytes) => (factor * (n - 1) * bytes) / n;
    const weights = width * v.parameters + 4; // and the loss
    const one = `${many} × ${width} bytes`;
    const layout = (name, words, parts, brief, kept, sent, how) => ({
      ...{ name, words, parts, kept, sent, how },
      step: {
        state: ((4 + REMEMBERED[v.optimizer]) * v.parameters) / parts + STATE_BEYOND,
        weights: brief,
        // On one card as the first form counts them; on several as they travel.
        gradients: ((n > 1 ? width : 4) * v.parameters) / parts,
      },
    });
    return [
      layout("Data parallel", "data parallelism", 1, copies, "all weights in 16 bits",
        sends(2, weights), `of the gradients: ${ring(2)} × ${one}`),
      layout("FSDP", "FSDP", n, gathered(v.parameters),
        "all weights, gathered until the forward pass ends",
        sends(2, weights), `gathered, and scattered: ${ring(2)} × ${one}`),
      layout("FSDP, gathered twice", "FSDP that gathers each layer twice", n,
        gathered(layer), `one layer's weights, ${all(LAYER_REDUCES)} all-reduces a layer`,
        sends(3, weights), `gathered twice, and scattered: ${ring(3)} × ${one}`),
      layout("Tensor parallel", "tensor parallelism", n, copies / n,
        "its weights in 16 bits", sends(2 * v.reduces, width * v.batch * v.features),
        `${counted(v.reduces, "all-reduce")} × ${ring(2)} × ${all(v.batch)} × ` +
          `${all(v.features)} × ${width} bytes`),
    ];
  }

  // What is wrong with the link: NVLink is another one on each card, or none.
  function wrongLink(v, figures) {
    const own = figures.nvlink[v.card] ?? "no NVLink";
    if (v.cards === 1 || !v.link.startsWith("NVLink") || v.link === own) return null;
    return { problem: ["link", `The ${v.card} has ${own}.`] };
  }

  function cards(v, figures) {
    if (v.batch % v.cards)
      return { problem: ["batch", `Not divisible by ${counted(v.cards, "card")}.`] };
    const wrong = wrongLink(v, figures);
    if (wrong) return wrong;
    const [card, link] = [chosen(v, figures), figures.links[v.link]];
    const room = roomOn(card, v);
    const [n, many] = [all(v.cards), all(v.parameters)];
    const far = v.link.startsWith("NVLink") && v.cards > NVLINK_REACH;
    const reach = far ? `; in most machines NVLink reaches ${NVLINK_REACH} cards` : "";
    const found = layouts(v);
    const groups = found.map((one) => {
      const { step, parts } = one;
      one.left = room - added(step);
      one.mark = one.left < 0 ? "bad" : one.left < MARGIN * room ? "perhaps" : "good";
      const over = parts > 1 ? ` ÷ ${n}` : "";
      const line = (name, bytes, how) => {
        const fits = bytes <= room;
        const size = `${held(bytes)} (${moved(bytes)})${fits ? "" : ", does not fit"}`;
        return row(name, size, how, fits ? "" : "bad");
      };
      const sum = line(
        "Together",
        added(step),
        one.left < 0
          ? `programs get ${held(room)}, ${decimal(v.share)} % of ${card.name}`
          : `${held(one.left)} of ${held(room)} are left for activations`,
      );
      const each = `${4 + REMEMBERED[v.optimizer]} bytes${over}, and 16 bytes`;
      const bytes = `${decimal((step.gradients * parts) / v.parameters)} bytes${over}`;
      return group(one.name, [
        line("A card holds of the state", step.state, `${many} × ${each}`),
        ...(step.weights ? [line("And for a while", step.weights, one.kept)] : []),
        line("And of the gradients", step.gradients, `${many} × ${bytes}`),
        { ...sum, mark: one.mark },
        row("A card sends in a step", moved(one.sent), one.how),
        row(
          "The link needs at least",
          duration(one.sent / link),
          `${moved(one.sent)} ÷ ${decimal(link / 1e9, 6)} GB/s${reach}`,
        ),
      ]);
    });
    return { verdict: verdictOf(v, found, room, link), groups };
  }

  // The first layout that leaves a margin. Tensor parallelism waits for its messages, so
  // it is none without NVLink, or beyond its reach.
  function verdictOf(v, found, room, link) {
    const near = v.link.startsWith("NVLink") && v.cards <= NVLINK_REACH;
    const offered = near || v.cards === 1 ? found : found.slice(0, -1);
    const best = offered.find((one) => one.mark === "good");
    const least = offered.reduce((a, b) => (b.left > a.left ? b : a));
    const needs = (one) => `${one.words} needs ${held(added(one.step))} a card`;
    const programs = `of the ${held(room)} that programs get`;
    if (best) {
      const before = offered.slice(0, offered.indexOf(best)).map(needs).join(", ");
      return (
        (before && `Too much for ${programs.slice(3)}: ${before}. `) +
        `Before activations, ${needs(best)}, and ${held(best.left)} ${programs} are ` +
        `left for them. It sends ${moved(best.sent)} a step, at least ` +
        `${duration(best.sent / link)} on this link.`
      );
    }
    const { step } = found[2];
    const shared = (added(step) - step.weights - STATE_BEYOND) * v.cards;
    const beside = (1 - MARGIN) * room - STATE_BEYOND - step.weights;
    const needed = Math.ceil(shared / beside);
    const among = v.batch % needed ? ", or the next number that divides the batch" : "";
    const start =
      least.left < 0
        ? `It does not fit on ${counted(v.cards, "card")} of ` +
          `${v.memory ? "your kind" : `the kind ${v.card}`}: `
        : `It fits barely, with ${held(least.left)} left for activations: `;
    return (
      `${start}even ${needs(least)}, ${programs}. ` +
      (v.cards === 1
        ? "Take more cards."
        : beside > 0
          ? `FSDP that gathers each layer twice, with a fifth left for activations, ` +
            `needs ${counted(needed, "card")} of this kind${among}.`
          : "One layer's weights are too large for FSDP: take a mesh of two axes.")
    );
  }

  function price(v, figures) {
    const [card, link] = [chosen(v, figures), figures.links[v.link]];
    const rate = card.rates[RATES[v.numbers]];
    if (rate === undefined) return noTf32(v);
    const wrong = wrongLink(v, figures);
    if (wrong) return wrong;
    if (v.machines > v.cards)
      return { problem: ["machines", `More than ${counted(v.cards, "card")}.`] };
    const sent = v.cards > 1 ? v.sent : 0;
    const compute = v.operations / v.cards / (rate * (v.reached / 100));
    const message = sent / link;
    const step = Math.max(compute, message);
    const count = v.samples / v.batch;
    const seconds = step * count;
    const cost = (seconds / 3600) * v.cards * v.price;
    const between = (v.days * 86400) / v.machines;
    const interval = Math.sqrt(2 * v.checkpoint * between);
    const lost = v.checkpoint / interval + interval / (2 * between);
    const n = all(v.cards);
    const rows = [
      row("Arithmetic of a step", duration(compute),
        `${work(v.operations)} ÷ ${n} ÷ ` +
          `(${decimal(v.reached)} % of ${decimal(rate / 1e12, 6)} TFLOP/s)`),
      row("Messages of a step", duration(message),
        `${moved(sent)} ÷ ${decimal(link / 1e9, 6)} GB/s`),
      row("Time of the training", duration(seconds),
        `${count % 1 ? decimal(count) : all(count)} steps × ${duration(step)}, the longer of the two`),
      row("Price", decimal(cost),
        `${decimal(seconds / 3600)} h × ${counted(v.cards, "card")} × ${decimal(v.price, 6)}`),
    ];
    const saves = [
      row("Save every", duration(interval),
        `√(2 × ${duration(v.checkpoint)} × ${decimal(v.days)} days ` +
          `÷ ${counted(v.machines, "machine")})`),
      row("Lost to checkpoints and crashes",
        lost < 1 ? `${decimal(100 * lost)} %` : "all of the time",
        `${duration(v.checkpoint)} ÷ ${duration(interval)}, and ` +
          `${duration(interval)} ÷ 2 ÷ ${duration(between)} between two crashes`),
    ];
    const binds = compute >= message ? "arithmetic takes" : "messages take";
    let verdict =
      `${duration(seconds)} on ${counted(v.cards, "card")}, for ${decimal(cost)}; of a step the ${binds} ` +
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
      about.querySelector(".calc-understood").textContent = same ? "" : `= ${understood}${unit}`;
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
