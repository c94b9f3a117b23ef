// Which rows of Troubleshooting answer what somebody typed or pasted. A wrong row is worse
// than none: a row is found if most of one of its messages stands together in what was
// typed, or if what was typed and one of its questions say much the same.

// Words that tell nothing about a failure.
const EMPTY = new Set(
  `a about after all also always am an and any anyone are aren as at be been being
  bug but by call called can cannot case cases code could did do does doesn doing
  don during each else error errors etc every everyone everything facing failed
  following for from get gets getting give gives go goes going got had has have
  hello help here hi how however i if in into is isn issue issues it its just keras
  know last like line lot make makes may maybe me more most my need needs no not
  nothing now of official officially ok on or other others our people please problem
  problems python question quite rather really recent run running runs same say says
  see seem seems several should simply so some something still such sure tell than
  thank thanks that the their them then there these they thing things this those to
  too traceback tried try trying understand up us using ve version very via want
  wants was way we well were what when where whether which while who why will with
  without wonder wondering would yes you your`.split(/\s+/),
);

// What askers call the same thing.
const SAME = new Map(
  [
    "detect detected detects recognize recognized recognizing recognise visible",
    "hang hangs stuck freeze freezes frozen deadlock deadlocks stall stalls hung",
    "utilization utilisation usage util",
    "tensorflow tf",
    "pytorch torch",
    "memory vram",
    "finetune finetuning finetuned",
  ].flatMap((line) => line.split(" ").map((word, _, words) => [word, words[0]])),
);

// A word as it is compared: one spelling, British or American, without its ending. Names
// and numbers stay as they are.
const stemmed = new Map();
function stem(word) {
  const made = () => (EMPTY.has(word) ? "" : shortened(SAME.get(word) ?? word));
  if (!stemmed.has(word)) stemmed.set(word, made());
  return stemmed.get(word);
}

function shortened(word) {
  if (!/^[a-z]{4,}$/.test(word)) return word;
  const ending =
    /(?<=.{3})((iz)?ations?|(iz|at)(e[ds]?|[eo]rs?|ing)|ings?|ed|ers?|es|ly|al|e|s)$/;
  return word
    .replace(/([iy])s(?=(e|ed|es|ers?|ing|ations?)$)/, "$1z")
    .replace(/our$/, "or")
    .replace(ending, "")
    .replace(/(.)\1$/, "$1");
}

// The words of a text, in their order, of equal lines once. The name of an error before a
// colon tells little; dates, paths and addresses in memory tell nothing. RTX4090 is two.
function wordsOf(text) {
  const lines = new Map(text.split("\n").map((line) => [line.replace(/\d+/g, "0"), line]));
  const plain = [...lines.values()]
    .join("\n")
    .replace(/\b\w+(Error|Exception|Warning):/g, " ")
    .replace(/\b0x[\da-f]+|\d{4}-\d\d-\d\d[ T\d:.,]*|\b\d\d:\d\d[\d:.]*/gi, " ")
    .replace(/(?:\b[A-Za-z]:|[~.])?(?:[\\/][\w.@+:-]+){2,}/g, " ")
    .toLowerCase()
    .replace(/\bfine[- ]tun/g, "finetun")
    .replace(/\b([a-z]{3,})(\d{4})\b/g, "$1 $2");
  return plain.match(/\w{2,}|\d/g) ?? [];
}

const stems = (text) => wordsOf(text).map(stem).filter(Boolean);

const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

const isLong = (word) => /^[a-z]{6,}$/.test(word);

// More than a third of the letters are of another script than English.
function isForeign(text) {
  const count = (pattern) => (text.match(pattern) ?? []).length;
  return 2 * count(/\p{L}/gu) > 3 * count(/\p{Script=Latin}/gu);
}

// Names in a message: what is quoted, has capitals inside, a number or an underscore.
const NAME = /['"`]([\w. ]+)['"`]|\b\w*(?:[A-Z]\w*[A-Z]|_|[a-z]\d|[a-z][A-Z])\w*\b/g;

// Where most of a message, by the weights of its words, stands together in what was typed.
function together({ words, places }, weights) {
  const room = 2 * weights.size + 2;
  const found = [...weights.keys()].flatMap((word) => places.get(word) ?? []);
  const counts = new Map();
  let [first, held, most, end] = [0, 0, 0, 0];
  for (const place of found.sort((a, b) => a - b)) {
    const word = words[place];
    counts.set(word, (counts.get(word) ?? 0) + 1);
    if (counts.get(word) === 1) held += weights.get(word);
    while (place - found[first] >= room) {
      const gone = words[found[first++]];
      counts.set(gone, counts.get(gone) - 1);
      if (!counts.get(gone)) held -= weights.get(gone);
    }
    if (held > most) [most, end] = [held, place + 1];
  }
  return words.slice(Math.max(0, end - room), end);
}

// The weight of the words that two texts have in common, in the same order.
function inOrder(some, others, weights) {
  let row = others.map(() => 0);
  for (const word of some) {
    let [corner, left] = [0, 0];
    row = row.map((above, index) => {
      const both = others[index] === word ? corner + weights.get(word) : 0;
      left = Math.max(above, left, both);
      corner = above;
      return left;
    });
  }
  return row.at(-1) ?? 0;
}

class Finder {
  // rows: of each its `messages` and `questions`, its whole `text`, and `must` and `never`,
  // what has to be and may not be in what is typed. All but the text are lists of texts.
  constructor(rows) {
    const joined = (parts) => parts.map((part) => stems(part).join(" ")).filter(Boolean);
    this.rows = rows.map(({ text, questions, must, never }) => ({
      words: new Set(stems(text)),
      asked: new Set(stems(questions.join("\n"))),
      must: joined(must),
      never: joined(never),
    }));
    this.spread = new Map();
    for (const { words } of this.rows)
      for (const word of words) this.spread.set(word, (this.spread.get(word) ?? 0) + 1);
    this.units = rows.flatMap(({ messages, questions }, row) => [
      ...messages.map((text) => this.unit(row, text, true)),
      ...questions.map((text) => this.unit(row, text, false)),
    ]);
    this.named = new Set(this.units.flatMap((unit) => unit.order));
    const words = { tokenize: (text) => text.split(" "), processTerm: (word) => word };
    this.index = new MiniSearch({
      fields: ["text", "long"],
      ...words,
      searchOptions: { ...words, fields: ["text"] },
    });
    this.index.addAll(this.units.map(({ text, long }, id) => ({ id, text, long })));
  }

  // One message or question of a row, and how much each of its words tells.
  unit(row, text, isMessage) {
    const order = stems(text);
    const long = wordsOf(text).filter(isLong).join(" ");
    const names = new Set(isMessage ? stems((text.match(NAME) ?? []).join(" ")) : []);
    const tells = (word) => Math.max(this.weight(word), names.has(word) ? 0.6 : 0);
    const weights = new Map(order.map((word) => [word, tells(word)]));
    const all = total([...weights.values()]);
    return { row, isMessage, text: order.join(" "), order, long, weights, all };
  }

  // How much a word tells: 1 if one row has it, 0 if all have it.
  weight(word) {
    if (/^\d{1,2}$/.test(word)) return 0.1;
    const spread = this.spread.get(word);
    if (!spread) return /[\d_]/.test(word) ? 1 : 0.7;
    return 1 - Math.log(spread) / Math.log(this.rows.length);
  }

  // The same, in a question: what is in no message and in no question tells less.
  telling(word) {
    return this.weight(word) * (this.named.has(word) ? 1 : 0.4);
  }

  // For a word with a slip of the finger one that the rows have.
  mended(word) {
    if (!isLong(word) || this.spread.has(stem(word))) return word;
    return this.index.search(word, { fields: ["long"], fuzzy: 0.2 })[0]?.terms[0] ?? word;
  }

  // How surely a message is in what was typed; 0: it is not.
  messageScore({ order, weights, all }, shared, typed) {
    const least = all * (weights.size > 4 ? 0.75 : 0.8);
    if (total(shared.map((word) => weights.get(word))) < least) return 0;
    const held = inOrder(order, together(typed, weights), weights);
    return held >= Math.max(least, 0.9) ? (held * held) / all : 0;
  }

  // How surely a question asks what was typed; 0: it does not. A few words are enough if
  // the questions of the row have them.
  questionScore({ row, weights, all }, shared, { different, asks }) {
    if (different.length > 40) return 0;
    const held = total(shared.map((word) => weights.get(word)));
    const known = different.filter((word) => this.rows[row].asked.has(word));
    const knows = total(known.map((word) => this.telling(word)));
    const [whole, part] = [held / all, knows / asks];
    const isSame = held >= 0.9 && part >= 0.3 && whole + part >= 1.2;
    const isPart = different.length <= 12 && knows >= 0.8 && part >= 0.65;
    return whole >= 0.5 && (isSame || isPart) ? held * whole : 0;
  }

  // How surely what was typed is a part of a message or question; 0: it is not.
  quoteScore({ text, weights, all }, shared, { different, line }) {
    if (different.length < 2 || shared.length < different.length) return 0;
    const held = total(shared.map((word) => weights.get(word)));
    return held >= 0.3 && ` ${text} `.includes(line) ? (held * held) / all : 0;
  }

  // The numbers of the rows that answer, the best first.
  find(text) {
    const mend = text.length < 300 ? (word) => this.mended(word) : (word) => word;
    const words = wordsOf(text).map(mend).map(stem).filter(Boolean);
    const places = new Map(words.map((word) => [word, []]));
    words.forEach((word, place) => places.get(word).push(place));
    const different = [...places.keys()];
    const asks = total(different.map((word) => this.telling(word)));
    const line = ` ${words.join(" ")} `;
    const typed = { words, places, different, asks, line };
    const has = (part) => line.includes(` ${part} `);
    const may = this.rows.map((row) => row.must.every(has) && !row.never.some(has));
    const foreign = isForeign(text);
    const best = new Map();
    for (const { id, terms } of this.index.search(different.join(" "))) {
      const unit = this.units[id];
      if (!may[unit.row] || (foreign && !unit.isMessage)) continue;
      const score = Math.max(
        unit.isMessage
          ? this.messageScore(unit, terms, typed)
          : this.questionScore(unit, terms, typed),
        this.quoteScore(unit, terms, typed),
      );
      if (score > (best.get(unit.row) ?? 0)) best.set(unit.row, score);
    }
    const least = 0.6 * Math.max(...best.values());
    const found = [...best].filter(([, score]) => score >= least);
    if (found.length)
      return found.sort((a, b) => b[1] - a[1]).slice(0, 3).map(([row]) => row);
    const isName = words.length && !foreign && text.trim().split(/\s+/).length <= 2;
    const hasAll = (row) => words.every((word) => this.rows[row].words.has(word));
    return [...may.keys()].filter((row) => isName && may[row] && hasAll(row));
  }

  // The words that tell most, names first, as they were typed.
  rarest(text) {
    const tells = (word) => {
      const known = stem(word.toLowerCase());
      return known && this.weight(known) + (/[\d_]|.[A-Z]/.test(word) ? 1 : 0);
    };
    const words = [...new Set(text.match(/[A-Za-z_]\w{2,}/g) ?? [])].filter(tells);
    return words.sort((a, b) => tells(b) - tells(a)).slice(0, 6);
  }
}

// What is a message among the code in a sentence: three words, or a name in capitals.
const QUOTED = /\s\S+\s|^[A-Z_]{6,}$/;

// The rows of Troubleshooting that answer. The index is made when there is time.
let finder;
function answering(rows) {
  const texts = (row, selector) =>
    [...row.querySelectorAll(selector)].map((part) => part.textContent);
  const read = (row) => ({
    messages: [
      ...texts(row, "pre, .also code"),
      ...texts(row, ":scope > p:first-child code").filter((code) => QUOTED.test(code)),
    ],
    questions: texts(row, ":scope > p:first-child, .ask"),
    must: texts(row, ".must"),
    never: texts(row, ".never"),
    text: row.textContent,
  });
  const prepare = () => (finder ??= new Finder(rows.map(read)));
  (window.requestIdleCallback ?? setTimeout)(prepare);
  return (typed) =>
    prepare()
      .find(typed)
      .map((index) => rows[index]);
}

// What Troubleshooting says when no row answers: where to look and to ask instead.
function noAnswer(note, typed) {
  const link = (text, href, query) => {
    const made = element("a", "", text);
    made.href = `${href}?${new URLSearchParams(query)}`;
    note.append(made);
  };
  note.textContent = isForeign(typed)
    ? "This page reads English. Nothing in what you typed is a message that it knows. "
    : "Not here. ";
  const words = finder.rarest(typed).join(" ");
  if (words) link(`Search the book for “${words}”`, "../search.html", { q: words });
  const issues = document.querySelector("a[href*='/issues/new']")?.href.split("?")[0];
  if (!issues) return;
  note.append(words ? ", or " : "");
  const [title, body] = [words || typed.slice(0, 60), typed.slice(0, 4000)];
  const fence = "```";
  link("ask: open an issue with this message", issues, {
    title: `Not in Troubleshooting: ${title}`,
    body: `${fence}\n${body}\n${fence}\n`,
  });
  note.append(".");
}

const label = "Paste a message, or ask a question";
addFilter(".filter-start", "ul.troubles > li", label, answering, noAnswer);
