// Small improvements of pages that are complete without them.

// Scrollable boxes can be reached and scrolled with the keyboard.
function makeScrollable() {
  for (const box of document.querySelectorAll(
    ".bd-article pre, .bd-article .pst-scrollable-table-container, .bd-article .text_html",
  )) {
    const scrolls =
      box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// The words of the site's search that led here. The theme marks and forgets them.
const sought = localStorage.getItem("sphinx_highlight_terms") ?? "";

// Which texts match: those with all the words, and where no text has them all, as when a
// whole message is pasted, those that share its rare words.
function matching(texts, words) {
  const has = texts.map((text) => words.map((word) => text.includes(word)));
  const complete = has.map((row) => row.every(Boolean));
  if (complete.some(Boolean)) return { complete: true, shown: complete };
  const spread = words.map((_, word) => has.filter((row) => row[word]).length);
  const scores = has.map((row) =>
    row.reduce((sum, found, word) => sum + (found ? 1 / spread[word] : 0), 0),
  );
  const best = Math.max(...scores);
  return { complete: false, shown: scores.map((x) => best > 0 && x > best / 2) };
}

// A field that hides the rows of a page that do not match what is typed into it.
function addFilter(place, rows, label) {
  const before = document.querySelector(place);
  const all = [...document.querySelectorAll(rows)];
  if (!before || !all.length) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "row-filter";
  field.placeholder = label;
  field.setAttribute("aria-label", label);
  const note = document.createElement("p");
  note.className = "row-filter-note";
  note.setAttribute("role", "status");
  const texts = all.map((row) => row.textContent.toLowerCase());
  const sections = [...new Set(all.map((row) => row.closest("section")))];

  function filter() {
    const words = [...new Set(field.value.toLowerCase().split(/\s+/).filter(Boolean))];
    const { complete, shown } = matching(texts, words);
    all.forEach((row, index) => (row.hidden = !shown[index]));
    for (const section of sections)
      section.hidden = !section.querySelector(`${rows}:not([hidden])`);
    const count = `${shown.filter(Boolean).length} of ${all.length}`;
    const near = complete ? "" : ". None has all of these words; these have some";
    note.textContent = words.length ? count + near : "";
  }

  field.addEventListener("input", filter);
  before.after(field, note);
  const wanted = sought.split(/\s+/).filter(Boolean);
  if (wanted.length && matching(texts, wanted).shown.some(Boolean)) {
    field.value = wanted.join(" ");
    filter();
    field.scrollIntoView();
  }
}

addFilter(".ledger-counts", "ul.ledger > li", "Filter the claims");
addFilter(".filter-start", "ul.troubles > li", "Paste a message, or type a part of it");
addFilter(".filter-start", "ul.corrections > li", "Filter the statements");
makeScrollable();
window.addEventListener("resize", makeScrollable);
