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

// A field that hides the rows of a page without the words in it.
function addFilter(place, rows, label) {
  const before = document.querySelector(place);
  if (!before) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "row-filter";
  field.placeholder = label;
  field.setAttribute("aria-label", label);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of document.querySelectorAll(rows)) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  before.after(field);
}

addFilter(".ledger-counts", "ul.ledger > li", "Filter the claims");
addFilter(".troubles-start", "ul.troubles > li", "Filter the failures");
makeScrollable();
window.addEventListener("resize", makeScrollable);
