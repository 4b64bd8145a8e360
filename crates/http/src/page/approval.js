// The calls that wait for a decision: each with what it would do, approved or denied one by one or all at once.

import { el, inFull, literal, preview } from "./text.js";

const ask = document.querySelector("#ask");
let waiting = [];
let send = null;

/** Shows the calls; `decide(call, decision)` sends one decision and rejects when it was not taken. */
export function open(calls, decide) {
  send = decide;
  waiting = calls.map((call) => ({ call, card: card(call) }));
  ask.replaceChildren(...waiting.map(({ card }) => card));
  ask.hidden = waiting.length === 0;
  mark();
}

export function close() {
  waiting = [];
  ask.replaceChildren();
  ask.hidden = true;
}

export const pending = () => waiting.length > 0;
export const approveNext = () => waiting[0] && approve(waiting[0].call);
export const approveAll = () => [...waiting].forEach(({ call }) => approve(call));

/** Puts the cursor where the reason of a denial is written. */
export const denyNext = () => waiting[0]?.card.querySelector("input").focus();

function card(call) {
  const yes = el("button", "approve", "Approve ", el("kbd", "", "a"));
  yes.type = "button";
  yes.addEventListener("click", () => approve(call));
  const reason = el("input");
  reason.placeholder = "Reason for the model (optional)";
  reason.setAttribute("aria-label", `Why ${call.name} is denied`);
  const no = el("button", "deny", "Deny ", el("kbd", "", "d"));
  const form = el("form", "decide", yes, reason, no);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = reason.value.trim();
    // With a reason the model goes on and reads it; without one the run ends.
    decided(call, { approve: false, reason: text, continue: text !== "" });
  });
  const shown = el("article", "call", el("h3", "", el("span", "tool", literal(call.name))));
  if (call.caution) shown.append(el("p", "caution", literal(call.caution)));
  shown.append(call.preview ? preview(call.preview) : el("pre", "", inFull(call.arguments)), form);
  if (call.preview) {
    shown.append(el("details", "", el("summary", "", "Arguments"), el("pre", "", inFull(call.arguments))));
  }
  return shown;
}

const approve = (call) => decided(call, { approve: true });

async function decided(call, decision) {
  const at = waiting.findIndex((one) => one.call.id === call.id);
  if (at < 0) return;
  const [{ card: done }] = waiting.splice(at, 1);
  done.remove();
  ask.hidden = waiting.length === 0;
  mark();
  await send(call, decision);
}

function mark() {
  waiting.forEach(({ card }, at) => card.classList.toggle("next", at === 0));
}
