// The conversation on the screen: what is stored, and what arrives while a run goes on.

import { el, inFull, inShort, literal, ordered, prose } from "./text.js";

const log = document.querySelector("#log");
const calls = new Map();
let open = null; // the answer that grows, {node, text, dirty}
let thought = null;

/** Runs `change` and keeps the end in sight if it was in sight. */
export function follow(change) {
  const near = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  change();
  if (near) log.scrollTop = log.scrollHeight;
}

const add = (node) => follow(() => log.append(node));

export function clear() {
  log.replaceChildren();
  calls.clear();
  settle();
}

export function user(text) {
  settle();
  add(el("div", "said user", text));
  log.scrollTop = log.scrollHeight;
}

/** A line of its own: a notice, an ending. `kind` is "", "warn" or "bad". */
export function event(text, kind = "") {
  settle();
  add(el("p", `event ${kind}`, text));
}

/** Pieces are collected and drawn once a frame, however fast they come. */
export function text(piece) {
  if (!open) {
    settleThought();
    open = { node: el("div", "said assistant busy"), text: "" };
    add(open.node);
  }
  open.text += piece;
  draw(open, (it) => it.node.replaceChildren(...prose(it.text)));
}

export function reasoning(piece) {
  if (!thought) {
    const body = el("div");
    const box = el("details", "thought", el("summary", "", "Thinking…"), body);
    thought = { node: body, box, text: "" };
    add(box);
  }
  thought.text += piece;
  draw(thought, (it) => (it.node.textContent = ordered(it.text)));
}

function draw(it, how) {
  if (it.due) return;
  it.due = requestAnimationFrame(() => {
    it.due = 0;
    follow(() => how(it));
  });
}

function settleThought() {
  if (!thought) return;
  cancelAnimationFrame(thought.due);
  thought.node.textContent = ordered(thought.text);
  thought.box.firstChild.textContent = "Thought";
  thought = null;
}

/** The answer that was growing is complete. */
export function settle() {
  settleThought();
  if (!open) return;
  cancelAnimationFrame(open.due);
  const { node, text: whole } = open;
  open = null;
  follow(() => {
    node.classList.remove("busy");
    node.replaceChildren(...prose(whole));
  });
}

/** A tool call; `state` is what the corner says. */
export function call({ id, name, arguments: given }, state) {
  settle();
  let shown = calls.get(id);
  if (!shown) {
    const corner = el("span", "state");
    const line = el("summary", "", corner, el("span", "tool", literal(name)), " ", el("span", "what", inShort(given ?? "")));
    const box = el("details", "call", line);
    if (given) box.append(el("pre", "", inFull(given)));
    shown = { box, corner };
    calls.set(id, shown);
    add(box);
  }
  shown.corner.textContent = state;
}

export function result(id, ok, output, state = ok ? "done" : "failed") {
  const shown = calls.get(id);
  if (!shown) return;
  shown.corner.textContent = state;
  shown.box.classList.add(ok ? "ok" : "failed");
  if (output) follow(() => shown.box.append(el("pre", "", literal(output))));
}

/** A whole stored conversation. */
export function stored(entries, truncated) {
  clear();
  if (truncated) event("The beginning of this session is left out here; `kontekst sessions show` has all of it.");
  for (const entry of entries) {
    if (entry.role === "user") add(el("div", "said user", entry.text));
    else if (entry.role === "summary") add(el("div", "said summary", entry.text));
    else if (entry.role === "tool") result(entry.call, entry.ok, entry.text);
    else {
      if (entry.reasoning) add(el("details", "thought", el("summary", "", "Thought"), el("div", "", entry.reasoning)));
      if (entry.text) add(el("div", "said assistant", ...prose(entry.text)));
      for (const made of entry.calls ?? []) call(made, "");
    }
  }
  log.scrollTop = log.scrollHeight;
}
