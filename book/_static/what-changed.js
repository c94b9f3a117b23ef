// What changed between any two releases: does what book/_ext/book_site/what_changed.py
// and tools/drift/releases.py do for the two newest; a test compares them.

(() => {
  const form = document.getElementById("changes");
  const data = JSON.parse(document.getElementById("changes-data").textContent);
  const choices = ["from", "to"].map((end) => document.getElementById(`changes-${end}`));
  const found = form.querySelector(".changes-found");
  const states = new Map(data.states.map((state) => [state.name, state]));

  // A claim as the page needs it.
  const read = ([id, label, sentence, tried, versions]) => ({
    id, label, tried, sentence: data.sentences[sentence], versions: data.versions[versions],
  });

  const escaped = (text) =>
    text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function sentence(text) {
    const parts = (text.charAt(0).toUpperCase() + text.slice(1)).split("`").map(escaped);
    return parts
      .map((part, i) => (i % 2 && i < parts.length - 1 ? `<code>${part}</code>` : part))
      .join("");
  }

  const how = (text) => `<br><span class="change-how">${text}</span>`;

  // Where a claim's outcome differs. A set that only one state tried counts if it broke.
  function turns(before, after, sets) {
    const rows = [];
    for (const [name, [outcome, reason]] of Object.entries(after.tried)) {
      const was = (before.tried[name] ?? ["not tried"])[0];
      if (was === outcome || (was === "not tried" && outcome !== "broken")) continue;
      const used = escaped(name ? sets[name] ?? name : after.versions);
      const why = reason ? `: ${escaped(reason)}` : "";
      const turn = `${was} → <strong>${outcome}</strong> with ${used}${why}`;
      rows.push([after, sentence(after.sentence) + how(turn)]);
    }
    return rows;
  }

  function changes(old, recent) {
    const [before, after] = [old, recent].map(
      (state) => new Map(state.claims.map(read).map((claim) => [claim.id, claim])),
    );
    const plain = (claim) => [claim, sentence(claim.sentence)];
    const both = [...after.values()].filter((claim) => before.has(claim.id));
    const kinds = {
      New: [...after.values()].filter((claim) => !before.has(claim.id)).map(plain),
      Gone: [...before.values()].filter((claim) => !after.has(claim.id)).map(plain),
      Reworded: both
        .map((claim) => [claim, before.get(claim.id)])
        .filter(([claim, was]) => claim.sentence !== was.sentence)
        .map(([claim, was]) => [
          claim,
          sentence(claim.sentence) + how(`before: ${sentence(was.sentence)}`),
        ]),
      "Another outcome": both.flatMap((claim) =>
        turns(before.get(claim.id), claim, recent.sets),
      ),
    };
    const lists = Object.entries(kinds).filter(([, rows]) => rows.length);
    const none = lists.length ? "" : " No claim changed.";
    const item = ([claim, text]) => `<li><strong>${claim.label}</strong> ${text}</li>`;
    return (
      `<p>${before.size} claims before, ${after.size} after.${none}</p>` +
      lists
        .map(([kind, rows]) => [`${kind}: ${rows.length}`, rows.map(item).join("")])
        .map(([title, items]) => `<h3>${title}</h3><ul>${items}</ul>`)
        .join("")
    );
  }

  function show() {
    const [old, recent] = choices.map((choice) => states.get(choice.value));
    found.innerHTML = changes(old, recent);
  }

  // The choice stands in the address, so that it can be sent to somebody.
  function restore() {
    const chosen = new URLSearchParams(location.hash.slice(1));
    const names = ["from", "to"].map((end) => chosen.get(end));
    if (!names.every((name) => states.has(name))) return;
    names.forEach((name, i) => (choices[i].value = name));
    show();
  }

  for (const choice of choices) {
    choice.disabled = false;
    choice.addEventListener("change", () => {
      const [from, to] = choices.map((one) => one.value);
      history.replaceState(null, "", `#${new URLSearchParams({ from, to })}`);
      show();
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
  restore();
})();
