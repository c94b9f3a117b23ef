/* One thing that is too wide would make Chromium print the whole book smaller. So wide
   tables and formulas get smaller type, and then words are broken. The answer names what
   is still too wide for the width, in pixels. */
(width) => {
  const isWide = (node) => node.getBoundingClientRect().right > width + 1;
  for (const node of document.querySelectorAll("table, math")) {
    for (let size = 0.96; isWide(node) && size > 0.55; size -= 0.04) {
      node.style.fontSize = `${size}em`;
    }
    if (isWide(node)) node.style.overflowWrap = "anywhere";
  }
  const widest = [...document.querySelectorAll("article *")].filter(isWide).pop();
  return widest && `<${widest.tagName}> in #${widest.closest("[id]")?.id}`;
}
