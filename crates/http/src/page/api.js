// The daemon's door as functions. The token, or a code that is exchanged for it, comes in the address's fragment, which is
// never sent anywhere, and leaves the address at once; the token is kept for this tab. The working directory comes with it
// and is kept for good.

const KEY = "kontekst-token";
const FOLDER = "kontekst-folder";
const given = new URLSearchParams(location.hash.slice(1));
if (given.get("token") || given.get("code")) {
  if (given.get("dir")) keepFolder(given.get("dir"));
  history.replaceState(null, "", location.pathname);
  const token = given.get("token") ?? (await exchanged(given.get("code")));
  if (token) sessionStorage.setItem(KEY, token);
}

/** The token for a code that `kontekst web` made. A code works once. */
async function exchanged(code) {
  const answer = await fetch("/api/token", { headers: { "Kontekst-Code": code } }).catch(() => null);
  return answer?.ok ? (await answer.json()).token : null;
}

/** The working directory of the last run, or the one that `kontekst web` was called in. */
export const folder = () => localStorage.getItem(FOLDER) ?? "";

export function keepFolder(path) {
  localStorage.setItem(FOLDER, path);
}

/** Whether the page was opened with a token, now or earlier in this tab. */
export const admitted = () => sessionStorage.getItem(KEY) !== null;

/** An answer that says why not. `status` is 0 when nothing answered. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "the daemon does not answer; `kontekst status` says whether it runs");
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, said.error ?? `the daemon answered ${answer.status}`);
  }
  return answer;
}

const json = async (path) => (await ask("GET", path)).json();
const named = (id) => encodeURIComponent(id);

export const status = () => json("/api/status");
export const sessions = async () => (await json("/api/sessions")).sessions;
export const session = (id) => json(`/api/sessions/${named(id)}`);
export const decide = (run, decision) => ask("POST", `/api/runs/${named(run)}/decisions`, decision);
export const cancel = (run) => ask("POST", `/api/runs/${named(run)}/cancel`, {});

/** Starts a run and calls `on(name, data)` for each of its events. Ends with the run. */
export async function run(request, on, signal) {
  const answer = await ask("POST", "/api/runs", request, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) on(field("event") ?? "message", JSON.parse(data));
    }
  }
}
