// Sentence: how surprising each word is, what else could stand there, and another sentence beside it.

import { ask, known } from "./ask.js";
import { call, exports, program } from "./exports.js";
import { difference, fixed, h } from "./dom.js";
import { examples, latest, line, refusal } from "./fields.js";
import { methods } from "./methods.js";
import { panel } from "./panel.js";
import { drawn, figure, words } from "./words.js";

export const title = "Sentence";
export const defaults = { text: "The keys to the cabinet is here.", other: "", method: "pll", at: "", model: "" };
const EXAMPLES = [
  { text: "The keys to the cabinet is here." },
  { text: "She poured the coffee into the piano." },
  { text: "The cat sleep.", other: "The cat sleeps.", name: "sleep or sleeps?" },
];

export function create(app) {
  let params = defaults;
  let change = null; // the word that was chosen last, and what it changed
  let scores = []; // of the sentences, by the method that is seen
  let places = []; // what else could stand in each of them

  const [first, second] = [line("Sentence"), line("Second sentence", { placeholder: "a second sentence, to compare" })];
  const compare = h("button", { type: "button", class: "quiet", onclick: beside }, "Compare with a second sentence");
  const form = h(
    "form",
    { class: "ask", onsubmit: submit },
    first.element, second.element,
    h("div", { class: "row" }, h("button", { class: "go" }, "Look"), compare),
    examples(EXAMPLES, ({ text, other = "" }) => {
      [first.value, second.value] = [text, other];
      app.go({ ...params, text, other, at: "" });
    }),
  );
  const told = refusal();
  const changed = h("p", { class: "change", role: "status" });
  const picture = figure((at) => app.go({ ...params, at }, { replace: true }));
  const side = panel(choose);
  const table = methods(app, (method) => app.go({ ...params, method }));
  const take = exports("sentence", { svg: () => drawn(scores), json: taken, python });
  const result = h(
    "div",
    { class: "result", hidden: true },
    changed,
    h("div", { class: "split" }, picture.element, side.element),
    table.element,
    take.element,
  );
  const element = h(
    "section",
    { class: "view", "aria-label": title },
    h("h1", {}, "How surprising is each word?"),
    h("p", { class: "lede" },
      "A masked language model is shown a sentence with one word hidden, and guesses it. The stronger the colour, the worse it ",
      "guessed: pale words are what it expected, strong ones surprised it. Choose a word to see what it would have said."),
    form, told.element, result,
  );
  const run = latest(told);

  function reveal(two) {
    second.element.hidden = !two;
    compare.textContent = two ? "One sentence only" : "Compare with a second sentence";
  }
  reveal(false);

  function beside() {
    reveal(second.element.hidden);
    if (second.element.hidden) {
      if (params.other) app.go({ ...params, other: "", at: "" });
    } else {
      second.value = second.value || first.value;
      second.area.focus();
    }
  }

  function submit(event) {
    event.preventDefault();
    change = null;
    app.go({ ...params, text: first.value, other: second.element.hidden ? "" : second.value, at: "" });
  }

  // Another token at a place: its own number is known at once, that of the sentence is asked for.
  function choose(which, place, other) {
    const own = places[which].places[place];
    change = {
      to: other.text, from: scores[which].text, total: scores[which].total, method: params.method,
      words: `${words(scores[which])[place]} → ${other.shown}`, bits: [-own.log_prob, -other.log_prob],
    };
    app.go({ ...params, [which ? "other" : "text"]: other.text, at: `${"ab"[which]}${place}` });
  }

  const texts = () => [params.text, ...(params.other ? [params.other] : [])];
  const scoring = (text) => ["explorer/score", app.body({ text, method: params.method })];
  const placing = (text) => ["explorer/places", app.body({ text })];

  async function show(given) {
    const two = params.other;
    params = given;
    first.sync(params.text);
    if (params.other !== two) {
      if (params.other) second.sync(params.other);
      reveal(Boolean(params.other));
    }
    tellChange();
    // asked at the same time, the server answers both from the same passes
    const guessed = Promise.all(texts().map((text) => ask(...placing(text)).catch((problem) => ({ problem }))));
    const held = texts().map((text) => known(...scoring(text)));
    const answers = held.every(Boolean) ? held : await run((signal) => Promise.all(texts().map((text) => ask(...scoring(text), signal))));
    if (!answers || given !== params) return;
    const failed = answers.find((one) => one.refused ?? one.result.status !== "ok");
    told.show(failed ? new Error(failed.refused ?? failed.result.facts[0]) : null);
    result.hidden = Boolean(failed);
    if (failed) return;
    scores = answers.map((one) => one.result);
    places = texts().map((text) => known(...placing(text))?.result ?? null);
    render();
    if (places.includes(null)) await alternatives(given, guessed);
    table.show(params, texts());
  }

  async function alternatives(given, guessed) {
    const found = await guessed;
    if (given !== params && (given.text !== params.text || given.other !== params.other)) return;
    places = found.map((one) => one.result ?? { places: [], why: one.problem.message });
    render();
  }

  function render() {
    const at = chosen();
    picture.show(scores, at, params);
    side.show(scores, places, at);
    tellChange();
    take.refresh();
  }

  // The place that is looked at: which sentence, which token; the most surprising one if none was chosen.
  function chosen() {
    const [, letter = "a", number] = params.at.match(/^([ab])(\d+)$/) ?? [];
    const which = letter === "b" && scores[1] ? 1 : 0;
    const tokens = scores[which].tokens;
    if (number !== undefined && Number(number) < tokens.length) return [which, Number(number)];
    const logs = tokens.map((one) => one.log_prob);
    return [which, logs.indexOf(Math.min(...logs))];
  }

  function tellChange() {
    const score = scores.find((one) => change && one.text === change.to && one.method === change.method);
    changed.hidden = !change || !texts().includes(change.to);
    if (changed.hidden) return;
    const [before, after] = change.bits;
    const whole = score
      ? `The whole sentence: ${fixed(change.total)} → ${fixed(score.total)} bits (${difference(score.total - change.total)}).`
      : "Asking for the whole sentence …";
    changed.replaceChildren(h("b", {}, change.words), ` at this place: ${fixed(before)} → ${fixed(after)} bits of surprise. ${whole}`);
  }

  function taken() {
    return { view: "sentence", scores, places };
  }

  function python() {
    const { method } = params;
    const said = texts().length > 1 ? [texts(), method] : [params.text, method];
    const lines = [`found = ${call("lm.score", said, { base: 2 })}`, "print(found)"];
    const [which, place] = chosen();
    const own = places[which]?.places[place];
    if (own && scores[0].model === "small-en") {
      const all = call("lm.marginals", [texts()[which]], { base: 2, outcomes: "text" });
      lines.push(`likeliest = ${all}.top(${own.place}, 20)`, "print(likeliest)");
    }
    return program(scores[0].model, app.model, ...lines);
  }

  return { element, show, repaint: () => scores.length && render() };
}
