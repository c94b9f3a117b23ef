// The site's search wants a page to have every word. Of a message or a question it is given
// those words that the page has whose words, taken together, are the rarest. First come the
// pages among whose keywords the question is, then Troubleshooting, for many words.
function mendSearch() {
  const asked = new URLSearchParams(location.search).get("q");
  if (typeof Search === "undefined" || !asked) return;
  const line = element("p", "", "A message, or a question? ");
  const link = element("a", "", "Ask Troubleshooting");
  link.href = `book/troubleshooting.html?${new URLSearchParams({ q: asked })}`;
  line.append(link, ".");
  document.getElementById("search-results").before(line);

  const parse = Search._parseQuery;
  Search._parseQuery = (query) => {
    const [, words, , shown] = parse(query);
    const { terms, titleterms, docnames } = Search._index;
    const pages = (word) => [terms[word] ?? [], titleterms[word] ?? []].flat();
    const stemmer = new Stemmer();
    const stems = (text) => splitQuery(text.toLowerCase()).map((x) => stemmer.stemWord(x));
    const line = (text) => ` ${stems(text).join(" ")} `;
    const isAsked = (term) => term.includes(" ") && line(query).includes(line(term));
    const first = Object.keys(terms).filter(isAsked).flatMap(pages);
    const all = [...docnames.keys()];
    const has = new Map([...words].map((word) => [word, new Set(pages(word))]));
    const many = words.size > 3 ? docnames.indexOf("book/troubleshooting") : -1;
    const worth = (page) => {
      const found = [...has.values()].filter((some) => some.has(page));
      const rare = found.reduce((sum, some) => sum + Math.log(1 + all.length / some.size), 0);
      return page === many ? 1.2 * rare : rare;
    };
    const [best] = (first.length ? first : all).sort((a, b) => worth(b) - worth(a));
    if (worth(best)) {
      for (const word of words) if (!has.get(word).has(best)) words.delete(word);
      for (const word of shown)
        if (!words.has(stemmer.stemWord(word))) shown.delete(word);
      kept.write(SOUGHT, [...shown].join(" "));
    }
    Scorer.score = ([page, , , , score]) => {
      const index = docnames.indexOf(page);
      return score + 100 * first.includes(index) + 50 * (index === many);
    };
    return [query, words, new Set(), shown, new Set()];
  };
}

mendSearch();
