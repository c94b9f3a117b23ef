// Small improvements of pages that are complete without them.

// While a page loads, what is folded is not laid out at all, whoever asks for its size,
// as the theme does. Then it is again where a search in the page finds it.
const start = document.documentElement.classList;
start.add("starting");
window.addEventListener("load", () => setTimeout(() => start.remove("starting")));

// Scrollable boxes that can be seen can be reached and scrolled with the keyboard. All
// are measured before one is changed: else each change has the page laid out anew.
// The theme does the same to some, later; what it finds done costs it nothing.
const BOXES = "pre, .cell_output > .output, .pst-scrollable-table-container, .text_html";
function makeScrollable() {
  const boxes = [...document.querySelectorAll(`.bd-article :is(${BOXES})`)];
  const scroll = boxes.map(
    (box) =>
      box.checkVisibility() &&
      (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight),
  );
  boxes.forEach((box, index) => (box.tabIndex = scroll[index] ? 0 : -1));
}

// Proofs, solutions, hints and the recap are open in the page: they are folded here.
function fold() {
  for (const details of document.querySelectorAll("details.fold")) {
    details.open = false;
    details.classList.add("folded");
  }
}

// What is kept in this browser, where the browser lets a page keep something.
const kept = {
  read(name) {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  write(name, choice) {
    try {
      localStorage.setItem(name, choice);
    } catch {
      // The page works without.
    }
  },
};

function element(tag, className, content = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.innerHTML = content;
  if (tag === "button") made.type = "button";
  return made;
}

// A question: its options become buttons, and its answer waits for one of them.
class Guess {
  static all = [];

  constructor(list) {
    this.name = list.id;
    this.parts = [...document.getElementsByClassName(`${list.id}-answer`)];
    this.reason = this.parts.at(-1).querySelector("p").innerHTML;
    const options = [...list.children];
    this.right = options.findIndex((li) => li.classList.contains("guess-right"));
    this.box = element("div", "guess-box");
    this.buttons = options.map((li) =>
      element("button", "", (li.querySelector("p") ?? li).innerHTML),
    );
    this.buttons.push(element("button", "guess-show", "Show me"));
    const group = element("div", "guess-options");
    group.append(...this.buttons);
    group.setAttribute("role", "group");
    const question = list.previousElementSibling;
    question.id = `${list.id}-question`;
    group.setAttribute("aria-labelledby", question.id);
    this.said = element("div", "guess-said");
    this.said.setAttribute("role", "status");
    this.again = element("button", "guess-again", "Guess again");
    this.box.append(group, this.said, this.again);
    list.after(this.box);
    list.hidden = true;
    this.buttons.forEach((button, index) =>
      button.addEventListener("click", () => this.reveal(index)),
    );
    this.again.addEventListener("click", () => {
      kept.write(this.name, "");
      this.show(null);
      this.buttons[0].focus();
    });
    this.restore();
    this.parts.forEach((part) => {
      part.classList.add("ready");
      part.addEventListener("beforematch", () => this.reveal());
    });
    Guess.all.push(this);
  }

  // What was chosen here before, or all answers where the reader wants them all.
  restore() {
    const before = kept.read(this.name);
    const all = kept.read("answers") ? this.buttons.length - 1 : null;
    this.show(before in this.buttons ? Number(before) : all);
  }

  // Show the answer, as the button of this number was chosen; hide it for null.
  show(index) {
    this.shown = index !== null;
    const told = index === this.buttons.length - 1;
    for (const part of this.parts)
      if (this.shown) part.removeAttribute("hidden");
      else part.setAttribute("hidden", "until-found");
    this.buttons.forEach((button, place) => {
      const right = this.shown && place === this.right;
      button.ariaDisabled = String(this.shown);
      button.ariaPressed = String(place === index);
      button.classList.toggle("guess-right", right);
      button.classList.toggle("guess-wrong", place === index && !right && !told);
    });
    this.buttons.at(-1).hidden = this.shown && !told;
    const verdict = told ? "" : index === this.right ? "Right. " : "Not this one. ";
    this.said.innerHTML = this.shown ? `<p>${verdict}${this.reason}</p>` : "";
    this.again.hidden = !this.shown;
  }

  // Show the answer to who has chosen a button, or who was led to it.
  reveal(index = null) {
    if (this.shown) return;
    if (index !== null) kept.write(this.name, index);
    this.show(index ?? this.buttons.length - 1);
    makeScrollable();
  }
}

// A switch for somebody who only reads: every answer of every page is shown.
function addAnswerSwitch() {
  if (!Guess.all.length) return;
  const label = element("label", "answer-switch", '<input type="checkbox">');
  const box = label.firstChild;
  label.append(" Show all answers");
  box.checked = Boolean(kept.read("answers"));
  box.addEventListener("change", () => {
    kept.write("answers", box.checked ? "all" : "");
    Guess.all.forEach((guess) => guess.restore());
    makeScrollable();
  });
  document.querySelector(".bd-article h1").after(label);
}

// Open the folds around a place, and the proof of a claim; show an answer around it.
function unfold(place) {
  for (let node = place; node; node = node.parentElement)
    if (node.matches("details")) node.open = true;
  if (place.matches(".claim")) place.parentElement.querySelector(".proof").open = true;
  for (const guess of Guess.all)
    if (guess.parts.some((part) => part.contains(place))) guess.reveal();
}

// Open what is around the place that the address names. Its name is plain ASCII.
function openTarget() {
  const place = document.getElementById(location.hash.slice(1));
  if (!place?.closest(".bd-article")) return;
  unfold(place);
  place.scrollIntoView();
}

// The words of the site's search that led here; the next page is not to have them.
const SOUGHT = "sphinx_highlight_terms";
const sought = (kept.read(SOUGHT) ?? "").split(/\s+/).filter(Boolean);
kept.write(SOUGHT, "");

// Open the folds and show the answers that have all the words of a search.
function openSought() {
  if (!sought.length) return;
  const has = (part) => {
    const text = part.textContent.toLowerCase();
    return sought.every((word) => text.includes(word));
  };
  document.querySelectorAll("details.fold").forEach((part) => has(part) && unfold(part));
  Guess.all.forEach((guess) => guess.parts.some(has) && guess.reveal());
}

// The words of a text, without its numbers and the name of an error before a colon.
const wordsOf = (text) => new Set(bare(text).match(/[a-z_][\w.]*\w/g) ?? []);
const bare = (text) => text.replace(/\w+Error:/g, "").toLowerCase();

// Which rows answer what was typed or pasted: those whose text has all of it; else those
// one of whose messages is in it, or which have most of it. A few words must all be there,
// of many words SHARE: half by their number, half by their weight, which is the larger the
// fewer rows have the word. Below that, and far below the best row, no row is shown.
const SHARE = 0.7;
function matching(rows, typed) {
  const parts = bare(typed).split(/\s+/).filter(Boolean);
  const whole = rows.map((row) => parts.every((part) => row.text.includes(part)));
  if (whole.some(Boolean)) return whole;
  const words = wordsOf(typed);
  const spread = new Map();
  for (const row of rows)
    for (const word of row.words) spread.set(word, (spread.get(word) ?? 0) + 1);
  const rarity = (word) => 1 / (1 + (spread.get(word) ?? 0));
  const share = (some, others, few) => {
    const sum = (chosen) => chosen.reduce((total, word) => total + rarity(word), 0);
    const found = [...some].filter((word) => others.has(word));
    if (some.size <= few) return found.length === some.size && some.size ? 1 : 0;
    return (sum(found) / sum([...some]) + found.length / some.size) / 2 || 0;
  };
  const scores = rows.map((row) =>
    Math.max(
      share(words, row.words, 6),
      ...row.messages.map((one) => share(one, words, 4)),
    ),
  );
  const least = Math.max(SHARE, 0.9 * Math.max(...scores));
  return scores.map((score) => score >= least);
}

// The three longest words of a message, after the name of its error if it has one, for the
// site's search, which wants each of them. Names of files and of Python's are left out.
const longest = (text) => {
  const message = text.split(/\w+Error:/).at(-1).toLowerCase();
  const words = message.match(/(?<![\w./])[a-z]+(?![\w/]|\.\w)/g) ?? [];
  return [...new Set(words)].sort((a, b) => b.length - a.length).slice(0, 3).join(" ");
};

// A field that hides the rows of a page that do not match what is typed into it.
function addFilter(place, rows, label) {
  const before = document.querySelector(place);
  const all = [...document.querySelectorAll(rows)];
  if (!before || !all.length) return;
  const field = element("input", "row-filter");
  field.type = "search";
  field.placeholder = field.ariaLabel = label;
  const note = element("p", "row-filter-note");
  note.setAttribute("role", "status");
  const texts = all.map((row) => ({
    text: row.textContent.toLowerCase(),
    words: wordsOf(row.textContent),
    messages: [...row.querySelectorAll("pre, p:first-child code, .also code")]
      .map((code) => wordsOf(code.textContent))
      .filter((message) => message.size > 1),
  }));
  const sections = [...new Set(all.map((row) => row.closest("section")))];

  // The ledger's counts of one kind of claims show that kind alone.
  let kind = "";
  const kinds = [...before.querySelectorAll("[class*='kind-']")].map((tile) => {
    const button = element("button", tile.className, tile.innerHTML);
    tile.replaceWith(button);
    button.addEventListener("click", () => {
      kind = kind === button.classList[1] ? "" : button.classList[1];
      for (const each of kinds) each.ariaPressed = String(each.classList[1] === kind);
      filter();
    });
    return button;
  });

  function filter() {
    const typed = field.value.trim();
    const shown = matching(texts, typed);
    if (kind) all.forEach((row, i) => (shown[i] &&= row.classList.contains(kind)));
    all.forEach((row, index) => (row.hidden = !shown[index]));
    for (const section of sections)
      section.hidden = !section.querySelector(`${rows}:not([hidden])`);
    const count = `${shown.filter(Boolean).length} of ${all.length}`;
    note.textContent = typed || kind ? count : "";
    if (shown.some(Boolean)) return;
    note.textContent = "Not here. ";
    const chapters = element("a", "", "Search the chapters for it");
    chapters.href = `../search.html?${new URLSearchParams({ q: longest(typed) })}`;
    note.append(chapters);
  }

  field.addEventListener("input", filter);
  before.after(field, note);
  if (sought.length && matching(texts, sought.join(" ")).some(Boolean)) {
    field.value = sought.join(" ");
    filter();
    field.scrollIntoView();
  }
}

// The menu Run also closes with Escape and when something else is clicked or focused.
const menu = document.querySelector(".run-menu");
function closeMenu(event) {
  if (!menu?.open) return;
  if (event.key === "Escape") menu.querySelector("summary").focus();
  else if (event.type === "keydown" || menu.contains(event.target)) return;
  menu.open = false;
}
for (const type of ["click", "focusin", "keydown"])
  document.addEventListener(type, closeMenu);

addFilter(".ledger-counts", "ul.ledger > li", "Filter the claims");
addFilter(".filter-start", "ul.troubles > li", "Paste a message, or type a part of it");
addFilter(".filter-start", "ul.corrections > li", "Filter the statements");
fold();
document.querySelectorAll("ul.guess").forEach((list) => new Guess(list));
addAnswerSwitch();
if (location.hash) openTarget();
window.addEventListener("hashchange", openTarget);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  if (link && link.href === location.href) openTarget(); // there is no hashchange
});
openSought();
makeScrollable();
const onOpen = (event) => event.target.open && makeScrollable();
document.addEventListener("toggle", onOpen, true); // it does not bubble
window.addEventListener("resize", makeScrollable);
