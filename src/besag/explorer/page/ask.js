// Questions to the server. What was answered is held; a server that is slow, busy or gone is told, and asked again.

import { h } from "./dom.js";

const HELD = 200; // answers
const SLOW = 700; // milliseconds before a reader is told to wait
const AGAIN = 3; // seconds before a server that is gone is asked again

const held = new Map();
const open = new Set(); // what is being asked
const board = () => document.getElementById("notice");

export class Refused extends Error {}

export const key = (route, body) => `${route} ${JSON.stringify(body ?? null)}`;

export const known = (route, body) => held.get(key(route, body));

export async function ask(route, body, signal) {
  const name = key(route, body);
  if (held.has(name)) return held.get(name);
  const answer = await asked(route, body, signal, (response) => response.json());
  held.set(name, answer);
  if (held.size > HELD) held.delete(held.keys().next().value);
  return answer;
}

// Server-sent events of a POST: tell(kind, data) for each.
export function stream(route, body, signal, tell) {
  return asked(route, body, signal, async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read().catch(lost);
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, kind, data] = event.match(/^event: (\w+)\ndata: (.*)$/s) ?? [];
        if (kind === "error") throw new Refused(JSON.parse(data).message);
        if (kind) tell(kind, JSON.parse(data));
      }
    }
  });
}

function lost(problem) {
  throw problem.name === "AbortError" ? problem : new Refused("The server went away meanwhile; what came so far is shown.");
}

async function asked(route, body, signal, read) {
  const one = { since: performance.now(), state: "asking", stop: new AbortController() };
  const stopped = signal ? AbortSignal.any([signal, one.stop.signal]) : one.stop.signal;
  open.add(one);
  watch();
  try {
    for (;;) {
      stopped.throwIfAborted();
      const response = await sent(route, body, stopped);
      if (response?.ok) {
        one.state = "asking";
        return await read(response);
      }
      if (response?.status !== 429 && response) await refuse(response);
      one.state = response ? "busy" : "gone";
      one.until = performance.now() + 1000 * (Number(response?.headers.get("Retry-After")) || AGAIN);
      await pause(one, stopped);
    }
  } finally {
    open.delete(one);
    show();
  }
}

async function sent(route, body, signal) {
  const given = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const response = await fetch(route, body ? { ...given, signal } : { signal });
    return response.status === 503 ? null : response;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    return null;
  }
}

async function refuse(response) {
  const told = await response.json().catch(() => null);
  throw new Refused(told?.error?.message ?? `the server answered ${response.status}`);
}

const pause = (one, signal) =>
  new Promise((resolve, reject) => {
    one.now = resolve;
    const timer = setTimeout(resolve, one.until - performance.now());
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });

// ---- what a reader is told meanwhile

let ticking = null;
function watch() {
  ticking ??= setInterval(show, 250);
}

function show() {
  if (!open.size) {
    clearInterval(ticking);
    ticking = null;
  }
  const [text, button] = sentence([...open]);
  const place = board();
  if (place.dataset.text === text) return;
  place.dataset.text = text;
  place.replaceChildren(...(text ? [h("span", { class: "spin", "aria-hidden": "true" }), h("span", {}, text), button] : []));
  place.classList.toggle("trouble", /busy|not answer/.test(text));
}

function sentence(all) {
  const seconds = (one) => Math.max(1, Math.ceil((one.until - performance.now()) / 1000));
  const gone = all.find((one) => one.state === "gone");
  if (gone) {
    const text = `The server does not answer. What you typed is still here; it is asked again in ${seconds(gone)} s.`;
    return [text, h("button", { type: "button", onclick: () => all.forEach((one) => one.now?.()) }, "Ask now")];
  }
  const busy = all.find((one) => one.state === "busy");
  if (busy) {
    const text = `The server is busy with what others asked. It is asked again in ${seconds(busy)} s.`;
    return [text, stopping(all)];
  }
  const waited = Math.max(0, ...all.map((one) => performance.now() - one.since));
  if (waited < SLOW) return ["", null];
  return [`Asking the model … ${Math.floor(waited / 1000) || "<1"} s`, stopping(all)];
}

const stopping = (all) =>
  h("button", { type: "button", onclick: () => all.forEach((one) => one.stop.abort()) }, "Stop");
