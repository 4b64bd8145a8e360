// Text from a model, a file or a server becomes nodes here, and only as text: nothing is ever parsed as HTML.

/** An element with a class and children; strings become text. */
export function el(name, className = "", ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.map((child) => (typeof child === "string" ? ordered(child) : child)));
  return node;
}

/** Text in the order in which it was written: characters that turn the text around them are spelled out. */
export function ordered(text) {
  return text.replace(
    /[\u202a-\u202e\u2066-\u2069]|\udb40[\udc00-\udc7f]/g,
    (turning) => `\\u{${turning.codePointAt(0).toString(16)}}`,
  );
}

/** What is approved is shown as it is: characters that hide or reorder others are spelled out. */
export function literal(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g,
    (hidden) => `\\u{${hidden.codePointAt(0).toString(16)}}`,
  );
}

/** Words and fenced code. Everything else of Markdown reads well as it is. */
export function prose(written) {
  const text = ordered(written);
  const nodes = [];
  const fence = /^(`{3,}|~{3,})[^\n]*\n([\s\S]*?)(?:\n\1[ \t]*(?:\n|$)|$(?![\s\S]))/gm;
  let from = 0;
  for (const found of text.matchAll(fence)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(el("pre", "", found[2]));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** A unified diff, coloured; any other text as it is. */
export function preview(text) {
  const shown = literal(text);
  if (!/^@@ /m.test(shown)) return el("pre", "", shown);
  const pre = el("pre", "diff");
  for (const line of shown.replace(/\n$/, "").split("\n")) {
    const kind = /^(\+\+\+|---|@@)/.test(line) ? "at" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : "";
    pre.append(el("span", kind, line));
  }
  return pre;
}

/** A call in one line: the argument that tells most, and the others behind it. */
export function inShort(argumentsText) {
  try {
    const values = Object.values(JSON.parse(argumentsText)).map((v) => (typeof v === "string" ? v : JSON.stringify(v)));
    const line = values.join("  ").replace(/\s+/g, " ");
    return literal(line.length > 120 ? `${line.slice(0, 119)}…` : line);
  } catch {
    return literal(argumentsText.slice(0, 120));
  }
}

/** Arguments over several lines, or as they came where they are not JSON. */
export function inFull(argumentsText) {
  try {
    return literal(JSON.stringify(JSON.parse(argumentsText), null, 2));
  } catch {
    return literal(argumentsText);
  }
}
