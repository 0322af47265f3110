// Write: a chain at work, step by step; to be paused, stepped and seen again.

import { ask, stream } from "./ask.js";
import { align } from "./align.js";
import { fixed, h, MASK, svg } from "./dom.js";
import { call, exports, program } from "./exports.js";
import { choice, examples, latest, line, number, refusal } from "./fields.js";
import { ladder, trace } from "./traces.js";

export const title = "Write";
export const defaults = { text: `The ${MASK} ${MASK} slowly ${MASK} the ${MASK}.`, kernel: "gibbs", steps: "24", chains: "1", seed: "0", temperature: "1", step: "", model: "" };
const EXAMPLES = [
  { text: `The ${MASK} ${MASK} slowly ${MASK} the ${MASK}.`, kernel: "gibbs", steps: "24", name: "Gibbs: one word at a time" },
  { text: `The ${MASK} ${MASK} ${MASK} ${MASK} the ${MASK} ${MASK}.`, kernel: "mask_predict", steps: "", name: "Mask-predict: all at once, then mend" },
  { text: `She ${MASK} the ${MASK} with her ${MASK}.`, kernel: "metropolis", steps: "30", name: "Metropolis: propose, accept or not" },
];
const PACE = 420; // milliseconds a step

export function create(app) {
  let params = null;
  let run = null; // {of: what was asked, rows: steps that came, result, over: will more come?}
  let timer = null; // while it plays

  const text = line("Sentence with masks", { masks: true });
  const kernel = choice("Kernel", [["gibbs"]], () => law());
  const [steps, chains, seed, temperature] = [
    number("Steps", { min: 1, max: 1000 }), number("Chains", { min: 1, max: 8, width: 3 }), number("Seed", { min: 0, max: 1e9 }),
    number("Temperature", { min: 0.1, max: 5, step: 0.1 }),
  ];
  const fields = { kernel: kernel.select, steps: steps.input, chains: chains.input, seed: seed.input, temperature: temperature.input };
  steps.input.placeholder = "auto";
  const about = h("p", { class: "soft" });
  const form = h("form", { class: "ask", onsubmit: submit }, text.element,
    h("div", { class: "row" }, h("button", { class: "go" }, "Write"), kernel.element, steps.element, chains.element, seed.element, temperature.element), about,
    examples(EXAMPLES, ({ name, ...one }) => {
      text.value = one.text;
      app.go({ ...params, ...one, step: "" });
    }));
  const told = refusal();
  const canvas = h("div", { class: "canvas" });
  const slider = h("input", { type: "range", min: "0", value: "0", "aria-label": "Step", oninput: () => (pause(true), seek(Number(slider.value), true)), onchange: () => remember() });
  const play = h("button", { type: "button", class: "go", onclick: () => (timer ? pause() : start()) }, "Play");
  const button = (path, name, onclick) => h("button", { type: "button", class: "icon", "aria-label": name, title: name, onclick },
    svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: path, fill: "currentColor" })));
  const count = h("p", { class: "readout count" });
  const transport = h("div", { class: "transport", role: "group", "aria-label": "Steps" },
    button("M2 2h2.5v12H2zM14 2v12L5.5 8z", "To the start", () => (pause(), seek(0))), button("M12 2v12L3.5 8z", "One step back", () => (pause(), seek(at() - 1))), play,
    button("M4 2v12l8.5-6z", "One step on", () => (pause(), seek(at() + 1))), button("M11.5 2H14v12h-2.5zM2 2v12l8.5-6z", "To the end", () => (pause(), seek(Infinity))), slider);
  const traces = h("div", { class: "traces" });
  const history = h("div", { class: "history", tabindex: "0", role: "group", "aria-label": "All steps" });
  const facts = h("p", { class: "soft facts" });
  const take = exports("writing", { svg: () => ladder(run.rows, shown), json: () => ({ view: "write", ...run.of, steps: run.rows, result: run.result }), python });
  const result = h("div", { class: "result", hidden: true }, canvas, transport, count, traces,
    h("h2", {}, "Step by step"), history, facts, take.element);
  const element = h("section", { class: "view", "aria-label": title },
    h("h1", {}, "How does it write?"),
    h("p", { class: "lede" },
      "A masked model does not write from left to right. It guesses hidden words, looks at what it wrote, and guesses again. ",
      "Boxes are still hidden; a word that just changed lights up. How the next word is chosen is the kernel's rule."),
    form, told.element, result);
  const latestRun = latest(told);

  let kernels = [];
  ask("methods").then((found) => {
    kernels = found.kernels;
    kernel.fill(kernels.map((one) => [one.name]));
    kernel.select.value = params?.kernel ?? defaults.kernel;
    law();
  }).catch(() => {});

  function law() {
    const one = kernels.find(({ name }) => name === kernel.select.value);
    about.textContent = one ? `${one.name}: ${one.title}.` : "";
    temperature.element.hidden = Boolean(one) && !("temperature" in one.options);
  }

  function submit(event) {
    event.preventDefault();
    const typed = Object.entries(fields).map(([name, field]) => [name, field.value || (name === "steps" ? "" : defaults[name])]);
    app.go({ ...params, ...Object.fromEntries(typed), text: text.value, step: "" });
  }

  function body() {
    const one = kernels.find(({ name }) => name === params.kernel);
    const options = Number(params.temperature) !== 1 && (!one || "temperature" in one.options) ? { options: { temperature: Number(params.temperature) } } : {};
    return app.body({ text: params.text, kernel: params.kernel, chains: Number(params.chains), seed: Number(params.seed), ...(params.steps ? { steps: Number(params.steps) } : {}), ...options });
  }

  function show(given) {
    const was = params;
    params = given;
    text.sync(params.text);
    for (const [name, field] of Object.entries(fields)) if (params[name] !== was?.[name]) field.value = params[name];
    law();
    const of = body();
    if (run && JSON.stringify(run.of) === JSON.stringify(of)) return void (timer || seek(params.step === "" ? Infinity : Number(params.step), true));
    write(of);
  }

  async function write(of) {
    pause(true);
    const own = { of, rows: [], result: null, over: false, plays: false };
    const wanted = params.step;
    const done = await latestRun((signal) => stream("explorer/write", of, signal, (kind, data) => {
      if (kind === "result") return void (own.result = data.result);
      own.rows.push(data);
      if (own.rows.length === 1) {
        run = own;
        result.hidden = false;
        slider.value = "0";
        own.plays = wanted === "" && !matchMedia("(prefers-reduced-motion: reduce)").matches;
        if (own.plays) start();
      }
      slider.max = String(own.rows.length - 1);
      if (own.rows.length === 1) frame();
    }).then(() => true));
    own.over = true;
    if (run !== own) return;
    if (done && wanted !== "") seek(Number(wanted), true);
    else if (!own.plays) seek(Infinity); // who has paused stays where that was
    frame();
  }

  // ---- time

  const at = () => Number(slider.value);

  function start() {
    if (run.over && at() >= run.rows.length - 1) slider.value = "0"; // once more
    timer ??= setInterval(tick, PACE);
    play.textContent = "Pause";
    frame();
  }

  function tick() {
    if (at() < run.rows.length - 1) {
      slider.value = String(at() + 1);
      frame();
    } else if (run.over) pause();
  }

  function pause(quiet = false) {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    if (run?.rows.length && !quiet) remember();
  }

  function seek(step, quiet = false) {
    slider.value = String(Math.max(0, Math.min(run.rows.length - 1, step)));
    frame();
    if (!quiet) remember();
  }

  const remember = () => {
    if (String(at()) !== params.step && !element.hidden) app.go({ ...params, step: String(at()) }, { replace: true });
  };

  // ---- what is seen

  const words = (row, chain) => row.texts[chain].split(/\s+/).filter(Boolean);

  // The words of a chain at a step, each with whether it is hidden, was written, or has just changed.
  function shown(step, chain) {
    const now = words(run.rows[step], chain);
    const fresh = step ? new Set(align(words(run.rows[step - 1], chain), now).filter((one) => !one.same && one.b !== null).map((one) => one.b)) : new Set();
    const given = new Set(align(params.text.split(/\s+/).filter(Boolean), now).filter((one) => one.same && one.b !== null && !now[one.b].includes(MASK)).map((one) => one.b));
    return now.map((word, place) => ({ word, hidden: word.includes(MASK), fresh: fresh.has(place), given: given.has(place) }));
  }

  function frame() {
    const step = Math.min(at(), run.rows.length - 1);
    canvas.replaceChildren(...run.rows[step].texts.map((_, chain) => h("p", {}, shown(step, chain).flatMap(drawnWord))));
    const spent = run.rows.slice(1, step + 1).reduce((sum, row) => sum + (row.numbers.passes?.[0] ?? 0), 0);
    const { energy, accepted } = run.rows[step].numbers;
    const more = [
      energy && `energy ${energy.map((one) => fixed(Number(one))).join(", ")}`,
      accepted && `this proposal was ${accepted.map((one) => (one ? "accepted" : "rejected")).join(", ")}`,
    ].filter(Boolean);
    count.replaceChildren(h("b", {}, `Step ${run.rows[step].step}`), ` of ${run.over ? run.rows.length - 1 : "…"} · `, h("span", { "data-passes": spent }, spent.toLocaleString("en")), ` forward ${spent === 1 ? "pass" : "passes"} a chain`, more.length ? ` · ${more.join(" · ")}` : "");
    traces.replaceChildren(...trace(run.rows, step));
    history.replaceChildren(ladder(run.rows, shown, step, (other) => (pause(true), seek(other))));
    facts.textContent = run.result ? `Samples from: ${run.result.law}. Seed ${run.result.seed}, ${run.result.model}.` : "";
    take.refresh();
  }

  const drawnWord = ({ word, hidden, fresh, given }) => {
    const [before, after] = hidden ? word.split(MASK) : [word, ""];
    const name = hidden ? "blank" : fresh ? "fresh" : given ? "given" : "drawn";
    return hidden ? [before, h("span", { class: name, role: "img", "aria-label": "hidden" }), after, " "] : [h("span", { class: name }, word), " "];
  };

  function python() {
    const { text: said, kernel: name, options, model, ...rest } = run.of;
    const every = run.result?.model === "small-en" ? { every: 1 } : {};
    return program(run.result?.model, app.model, `chain = ${call("lm.sample", [said, name], { ...rest, ...options, ...every })}`, "print(chain)" + (every.every ? "  # chain.kept[0] are the texts, step by step" : ""));
  }

  return { element, show, repaint: () => run && frame() };
}
