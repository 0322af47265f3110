// All ways to score a sentence beside each other, each saying whether its number is a probability, and of what.

import { ask, known } from "./ask.js";
import { difference, fixed, h } from "./dom.js";

const DEAR = new Set(["ag_chain"]); // asked only by hand: thousands of passes

export function methods(app, pick) {
  const head = h("thead", {});
  const rows = h("tbody", {});
  const element = h("section", { class: "methods" },
    h("h2", {}, "All scores of it, side by side"),
    h("p", { class: "soft" },
      "There are several ways to add up what the model says, and most of the sums are no probabilities. Choose one to colour the sentence by it."),
    h("table", {}, head, rows));
  let [params, texts, names] = [null, [], []];
  const wanted = new Set();
  const failed = new Map();

  const body = (method, text) => ["explorer/score", app.body({ text, method })];
  const key = (method) => JSON.stringify([app.model, method, texts]);

  async function show(given, said) {
    [params, texts] = [given, said];
    names = (await ask("methods")).scores;
    render();
    const own = key("");
    for (const { name } of names) {
      if (key("") !== own) return; // another sentence by now
      if (DEAR.has(name) && !wanted.has(key(name)) && name !== params.method) continue;
      await fetched(name);
      if (key("") === own) render();
    }
  }

  async function fetched(name) {
    const of = key(name);
    try {
      const found = await Promise.all(texts.map((text) => ask(...body(name, text))));
      const refused = found.find((one) => one.refused)?.refused;
      if (refused) failed.set(of, refused);
    } catch (problem) {
      if (problem.name !== "AbortError") failed.set(of, problem.message);
    }
  }

  function render() {
    const columns = texts.length > 1 ? ["A", "B", "B − A"] : ["bits"];
    head.replaceChildren(h("tr", {}, ["method", ...columns, "a probability?"].map((name) => h("th", { scope: "col" }, name))));
    const usable = (one) => !failed.has(key(one.name));
    rows.replaceChildren(...[...names].sort((a, b) => usable(b) - usable(a)).map(row));
  }

  function row({ name, title }) {
    const found = texts.map((text) => known(...body(name, text))?.result);
    const seen = params.method === name;
    const label = h("label", {}, h("input", { type: "radio", name: "method", value: name, checked: seen, onchange: () => pick(name) }),
      h("code", {}, name), h("span", { class: "soft" }, title));
    const why = failed.get(key(name));
    const span = texts.length > 1 ? 4 : 2;
    if (why) {
      label.firstChild.disabled = true;
      return h("tr", { class: "not" }, h("th", { scope: "row" }, label), h("td", { colspan: span, class: "soft why" }, why));
    }
    if (!found.every(Boolean)) {
      const go = h("button", { type: "button", class: "quiet", onclick: async () => (wanted.add(key(name)), await fetched(name), render()) }, "ask (takes a while)");
      const waits = DEAR.has(name) && !wanted.has(key(name)) ? go : "…";
      return h("tr", {}, h("th", { scope: "row" }, label), h("td", { colspan: span }, waits));
    }
    const totals = found.map((score) => h("td", { class: "number", "data-total": score.total },
      fixed(score.total), score.standard_error ? h("span", { class: "soft" }, ` ± ${fixed(score.standard_error)}`) : null));
    if (found.length > 1) totals.push(h("td", { class: "number" }, difference(found[1].total - found[0].total)));
    const [score] = found;
    const mark = score.normalised ? h("b", { class: "yes" }, "yes") : h("b", { class: "no" }, "no");
    return h("tr", { class: seen ? "seen" : null }, h("th", { scope: "row" }, label), totals,
      h("td", { class: "meaning" }, mark, score.normalised ? `, ${score.meaning}` : null));
  }

  return { element, show };
}
