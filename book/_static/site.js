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

// A field above the ledger that hides the claims without the words in it.
function addLedgerFilter() {
  const counts = document.querySelector(".ledger-counts");
  if (!counts) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "ledger-filter";
  field.placeholder = "Filter the claims";
  field.setAttribute("aria-label", "Filter the claims");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of document.querySelectorAll("ul.ledger > li")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  counts.after(field);
}

addLedgerFilter();
makeScrollable();
window.addEventListener("resize", makeScrollable);
