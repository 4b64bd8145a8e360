// The page: sessions at the side, one conversation, one prompt. State is what the daemon says; nothing is kept here.

import * as api from "./api.js";
import * as approval from "./approval.js";
import * as conversation from "./conversation.js";
import { el, ordered } from "./text.js";

const at = (id) => document.querySelector(`#${id}`);
const [list, prompt, agent, folder, note, send, stop] =
  ["sessions", "prompt", "agent", "folder", "note", "send", "stop"].map(at);
let current = null; // the id of the session shown
let going = null; // {run, abort} while a run goes on

// ---- what the daemon is, and its sessions ----

async function refresh() {
  try {
    const [status, sessions] = await Promise.all([api.status(), api.sessions()]);
    const { model } = status;
    at("status").className = "";
    at("status").textContent = [model.name || "no model yet", model.endpoint, `kontekst ${status.version}`].filter(Boolean).join(" · ");
    if (!folder.value) folder.value = api.folder() || status.working_dir;
    if (!agent.options.length) agent.append(...status.agents.map((name) => new Option(name)));
    listed(sessions);
  } catch (error) {
    down(error);
  }
}

function down(error) {
  at("status").className = "down";
  at("status").textContent = error.status === 401
    ? "Not admitted: open this page with `kontekst web`."
    : error.message;
}

function listed(sessions) {
  list.replaceChildren(...sessions.map(({ id, title, modified }) => {
    const button = el("button", "", el("span", "name", title || id), el("span", "when", ago(modified)));
    button.type = "button";
    button.dataset.id = id;
    if (id === current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => show(id));
    return el("li", "", button);
  }));
  if (!sessions.length) list.append(el("li", "empty", "No sessions yet."));
}

function ago(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, s]) => seconds >= s) ?? ["second", 1];
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-Math.floor(seconds / size), unit);
}

function choose(id, title) {
  current = id;
  at("title").textContent = title;
  document.title = id ? `${title} · kontekst` : "kontekst";
  for (const button of list.querySelectorAll("button")) {
    button.toggleAttribute("aria-current", button.dataset.id === id);
    if (button.dataset.id === id) button.setAttribute("aria-current", "true");
  }
  at("side").classList.remove("open");
  at("menu").setAttribute("aria-expanded", "false");
}

async function show(id) {
  if (going) return say("A run is going on; stop it first (Esc).");
  try {
    const { entries, truncated } = await api.session(id);
    const button = [...list.querySelectorAll("button")].find((one) => one.dataset.id === id);
    choose(id, button?.querySelector(".name").textContent ?? id);
    at("meter").hidden = true;
    conversation.stored(entries, truncated);
  } catch (error) {
    say(error.message);
  }
}

function fresh() {
  if (going) return say("A run is going on; stop it first (Esc).");
  choose(null, "New session");
  at("meter").hidden = true;
  conversation.clear();
  prompt.focus();
}

// ---- a run ----

const say = (text) => (note.textContent = text);

async function start() {
  const asked = prompt.value.trim();
  if (!asked || going) return;
  api.keepFolder(folder.value.trim());
  prompt.value = "";
  grow();
  conversation.user(asked);
  going = { run: null, abort: new AbortController() };
  send.disabled = true;
  stop.hidden = false;
  say("Waiting for the model…");
  let ended = false;
  try {
    const request = { prompt: asked, session: current, agent: agent.value || null, working_dir: folder.value.trim() || null };
    await api.run(request, (name, data) => (ended = heard(name, data, asked) || ended), going.abort.signal);
    if (!ended) conversation.event("The connection to the daemon broke; the run was stopped.", "bad");
  } catch (error) {
    if (error.status !== undefined) {
      conversation.event(error.message, "bad");
      prompt.value ||= asked;
    } else if (!ended) conversation.event("Stopped.");
  }
  conversation.settle();
  approval.close();
  going = null;
  send.disabled = false;
  stop.hidden = true;
  say("");
  await refresh();
}

/** One event of the run. Returns true for the last. */
function heard(name, data, asked) {
  if (name !== "progress" && name !== "notice") say("");
  switch (name) {
    case "started":
      going.run = data.run;
      if (!current) choose(data.session, ordered(asked.split("\n")[0].slice(0, 80)));
      break;
    case "text": conversation.text(data.text); break;
    case "reasoning": conversation.reasoning(data.text); break;
    case "turn": conversation.settle(); meter(data.context); break;
    case "notice": conversation.event(data.text, "warn"); break;
    case "compacted":
      conversation.event(`The conversation was summarised: ${data.before} tokens became ${data.after}.`);
      break;
    case "worker": conversation.event(`Worker ${data.worker.slice(0, 8)} ${data.says}`); break;
    case "progress": say(progress(data)); break;
    case "proposed":
      for (const call of data.calls) conversation.call(call, "waits");
      conversation.follow(() => approval.open(data.calls, decide));
      say("Approve or deny: a, d (Esc leaves the prompt first)");
      break;
    case "tool_started": conversation.call({ id: data.call, name: data.name, arguments: "" }, "running"); break;
    case "tool_finished": conversation.result(data.call, data.ok, data.text); break;
    case "completed":
      if (data.truncated) conversation.event("The answer was cut: it reached its limit of tokens.", "warn");
      return true;
    case "denied": conversation.event("Denied; the run ended."); return true;
    case "cancelled": conversation.event("Stopped."); return true;
    case "failed": conversation.event(data.hint ? `${data.message}\n${data.hint}` : data.message, "bad"); return true;
    default: break;
  }
  return false;
}

function progress({ kind, place, model, server, bytes, fraction, processed, total, cached, seconds }) {
  const share = (part) => `${Math.round(100 * part)} %`;
  switch (kind) {
    case "session": return "This session is busy with another run; this one waits.";
    case "queued": return `Number ${place} in the queue for the model.`;
    case "postponed": return `The model server asks to wait ${seconds} s.`;
    case "loading": return `Loading ${model}… ${fraction == null ? "" : share(fraction)}`;
    case "prefill": return `Reading the conversation: ${share(processed / Math.max(1, total))} of ${total} tokens, ${cached} remembered.`;
    case "requested": return model ? `Waiting for the first token of ${model} at ${server}.` : `Waiting for the model server at ${server}.`;
    case "writing": return `Writing something that is shown when it is complete: ${bytes} bytes.`;
    default: return "";
  }
}

function meter(context) {
  if (!context) return;
  const used = context.system_tokens + context.tool_tokens + context.history_tokens + (context.memory_tokens ?? 0);
  const share = used / Math.max(1, context.context_size);
  at("meter").hidden = false;
  at("meter-text").textContent = `${used} of ${context.context_size} tokens`;
  Object.assign(at("meter-bar"), { value: share, high: 0.85, optimum: 0, low: 0.5 });
}

async function decide(call, decision) {
  conversation.call(call, decision.approve ? "approved" : "denied");
  try {
    await api.decide(going?.run ?? "", { call: call.id, ...decision });
  } catch (error) {
    conversation.event(error.message, "bad");
  }
}

function halt() {
  if (!going) return;
  // The daemon ends the run and says so; without a run yet, hanging up does the same.
  if (going.run) api.cancel(going.run).catch(() => going?.abort.abort());
  else going.abort.abort();
}

// ---- the keyboard ----

function grow() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

function step(by) {
  const buttons = [...list.querySelectorAll("button")];
  const next = buttons[buttons.findIndex((one) => one.dataset.id === current) + by] ?? (current ? null : buttons[0]);
  if (next) show(next.dataset.id);
}

const keys = {
  "/": () => prompt.focus(), n: fresh, j: () => step(1), k: () => step(-1),
  a: () => approval.approveNext(), A: () => approval.approveAll(), d: () => approval.denyNext(),
  "?": () => at("help").showModal(), Escape: halt,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || at("help").open) return;
  const writing = event.target.matches("input, textarea, select");
  if (writing) {
    if (event.key === "Escape") event.target.blur();
    else if (event.target === prompt && event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      start();
    }
    return;
  }
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

prompt.addEventListener("input", grow);
at("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
stop.addEventListener("click", halt);
at("new").addEventListener("click", fresh);
at("menu").addEventListener("click", () => {
  at("menu").setAttribute("aria-expanded", String(at("side").classList.toggle("open")));
});

if (api.admitted()) await refresh();
else down({ status: 401 });
prompt.focus();
