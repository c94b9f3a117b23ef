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

// The rows that have all words of what was typed.
function havingAll(rows) {
  const texts = rows.map((row) => row.textContent.toLowerCase());
  return (typed) => {
    const words = typed.toLowerCase().split(/\s+/);
    return rows.filter((_, index) => words.every((word) => texts[index].includes(word)));
  };
}

// A field that hides the rows of a page that do not match what is typed into it. The best
// rows stand first, below the field; `none` says what there is instead of rows.
function addFilter(place, rows, label, matching, none) {
  const before = document.querySelector(place);
  const all = [...document.querySelectorAll(rows)];
  if (!before || !all.length) return;
  const field = element(none ? "textarea" : "input", "row-filter");
  if (none) field.rows = 1;
  else field.type = "search";
  field.placeholder = field.ariaLabel = label;
  const note = element("p", "row-filter-note");
  note.setAttribute("role", "status");
  const best = element("ul", all[0].parentElement.className);
  const match = matching(all);
  const homes = new Map(); // of the rows that stand below the field
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
    let shown = typed ? match(typed) : all;
    if (kind) shown = shown.filter((row) => row.classList.contains(kind));
    for (const [row, home] of homes) home.replaceWith(row);
    homes.clear();
    all.forEach((row) => (row.hidden = !shown.includes(row)));
    if (none && typed)
      for (const row of shown) {
        homes.set(row, document.createComment(""));
        row.replaceWith(homes.get(row));
        best.append(row);
      }
    for (const section of sections)
      section.hidden = !section.querySelector(`${rows}:not([hidden])`);
    note.textContent = typed || kind ? `${shown.length || "None"} of ${all.length}` : "";
    if (none && !shown.length) none(note, typed);
  }

  field.addEventListener("input", filter);
  before.after(field, note, best);
  const asked = new URLSearchParams(location.search).get("q");
  const given = asked ?? sought.join(" ");
  if (asked || (given && match(given).length)) {
    field.value = given;
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

addFilter(".ledger-counts", "ul.ledger > li", "Filter the claims", havingAll);
addFilter(".filter-start", "ul.corrections > li", "Filter the statements", havingAll);
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
