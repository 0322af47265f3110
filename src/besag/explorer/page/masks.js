// Two masks: what each would say alone, what both say together, and the difference.

import { ask } from "./ask.js";
import { cut, difference, fixed, h, MASK, mix, palette, percent } from "./dom.js";
import { call, exports, program } from "./exports.js";
import { choice, examples, latest, line, refusal } from "./fields.js";
import { heat, steered, together } from "./heat.js";

export const title = "Two masks";
export const defaults = { text: `The ${MASK} ${MASK} very tired.`, method: "ag", candidates: "10", at: "", model: "" };
const EXAMPLES = [
  { text: `The ${MASK} ${MASK} very tired.` },
  { text: `She was born in the United ${MASK} of ${MASK}.` },
  { text: `He lives in ${MASK} ${MASK}.` },
];
const ALONE = "mlm";

export function create(app) {
  let params = defaults;
  let found = null;
  let at = [0, 0]; // the pair of words that is looked at

  const text = line("Sentence with two masks", { masks: true });
  const method = choice("Together by", [["ag"]], (name) => app.go({ ...params, method: name }));
  const candidates = choice("Words a place", ["6", "8", "10", "14", "20"].map((n) => [n]), (n) => app.go({ ...params, candidates: n, at: "" }));
  const form = h("form", { class: "ask", onsubmit: submit }, text.element,
    h("div", { class: "row" }, h("button", { class: "go" }, "Look"), method.element, candidates.element),
    examples(EXAMPLES, (one) => {
      text.value = one.text;
      app.go({ ...params, ...one, at: "" });
    }));
  const told = refusal();
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const maps = h("div", { class: "maps three", tabindex: "0", role: "group", "aria-label": "Tables of word pairs: arrow keys move from pair to pair" });
  const lists = h("div", { class: "pairs" });
  const facts = h("p", { class: "soft facts" });
  const take = exports("two-masks", { svg: () => together(pictures(false), palette(), [`${params.text} · a probability of ${found.normalised} · ${found.model}`]), json: () => ({ view: "masks", ...found }), python });
  const result = h("div", { class: "result", hidden: true }, lists, h("h2", {}, "Every pair of words"), caption(), maps, readout, facts, take.element);
  const element = h("section", { class: "view", "aria-label": title },
    h("h1", {}, "What stands at two places together?"),
    h("p", { class: "lede" },
      "Hide two words, and ask. Looked at one by one, each place has its favourites, and the two may not fit: “children was”. ",
      "Looked at together, they agree. That law of pairs, the joint, is what fill-mask does not have."),
    form, told.element, result);
  const run = latest(told);
  steered(maps, () => found.tokens.map((side) => side.length), () => at, pick);

  function caption() {
    return h("p", { class: "soft" },
      "A row is a word at the first mask, a column a word at the second; bars on the sides say how likely each is there. ",
      h("span", { class: "key less" }), " less likely together than apart, ", h("span", { class: "key more" }), " more likely together.");
  }

  function submit(event) {
    event.preventDefault();
    app.go({ ...params, text: text.value, at: "" });
  }

  const body = () => app.body({ text: params.text, candidates: Number(params.candidates) });

  async function show(given) {
    params = given;
    text.sync(params.text);
    candidates.select.value = params.candidates;
    method.select.value = params.method;
    const answer = await run((signal) => ask("explorer/pair", body(), signal));
    if (!answer || given !== params) return;
    found = answer.result;
    at = said();
    method.fill(found.laws.filter((one) => one.method !== ALONE).map((one) => [one.method, `${one.method}: ${one.title}`]));
    method.select.value = params.method;
    result.hidden = false;
    render();
  }

  const law = (of, name = params.method) => of.laws.find((one) => one.method === name) ?? of.laws.find((one) => one.method === "ag");
  const prob = (of, i, j) => Math.exp(Number(of.matrix[i][j]));
  function pick(i, j) {
    app.go({ ...params, at: `${i}-${j}` }, { replace: true });
  }

  // The pair that the address names, or the likeliest.
  function said() {
    const [m, k] = found.tokens.map((side) => side.length);
    const [i, j] = params.at.split("-").map(Number);
    if (params.at && i < m && j < k) return [i, j];
    const flat = law(found).matrix.flat().map(Number);
    const top = flat.indexOf(Math.max(...flat));
    return [Math.floor(top / k), top % k];
  }

  function look(i, j) {
    if (at[0] === i && at[1] === j) return;
    at = [i, j];
    for (const [place, one] of pictures(true).entries()) maps.children[place].replaceWith(one);
    tell();
  }

  function pictures(live) {
    const colours = palette();
    const [alone, joint] = [law(found, ALONE), law(found)];
    const most = Math.max(...[alone, joint].map((one) => Math.exp(Math.max(...one.matrix.flat().map(Number)))));
    const apart = Math.max(1e-9, ...joint.matrix.flatMap((row, i) => row.map((_, j) => Math.abs(prob(joint, i, j) - prob(alone, i, j)))));
    const shared = { rows: found.tokens[0], columns: found.tokens[1], colours, cell: params.candidates > 14 ? 17 : params.candidates > 10 ? 21 : 25, chosen: live ? at : null, pick, hover: look };
    const one = (of, name) => heat({ ...shared, title: name, label: name, bars: of.marginals.map((side) => side.map((x) => Math.exp(Number(x)))),
      colour: (i, j) => mix(colours.card, colours.cool, Math.sqrt(prob(of, i, j) / most)) });
    const gap = heat({ ...shared, title: "Difference", label: "Difference", bars: "none",
      colour: (i, j) => {
        const value = (prob(joint, i, j) - prob(alone, i, j)) / apart;
        return mix(colours.card, value > 0 ? colours.warm : colours.cool, Math.sqrt(Math.abs(value)));
      } });
    return [one(alone, "Each mask alone"), one(joint, `Both together (${joint.method})`), gap];
  }

  function tell() {
    const [[i, j], alone, joint] = [at, law(found, ALONE), law(found)];
    const [a, b] = [found.tokens[0][i], found.tokens[1][j]];
    const [p, q] = [prob(alone, i, j), prob(joint, i, j)];
    readout.replaceChildren(h("b", {}, `${a} … ${b}`), ": alone ", h("span", { "data-p": p }, percent(p)), ", together ", h("span", { "data-p": q }, percent(q)),
      `, ${q > p ? `${(q / p).toPrecision(2)} times as likely` : `${(p / q).toPrecision(2)} times less likely`} (${difference(100 * (q - p))} points)`);
  }

  function render() {
    maps.replaceChildren(...pictures(true));
    const [alone, joint] = [law(found, ALONE), law(found)];
    lists.replaceChildren(listed(alone, "Each mask for itself", "what fill-mask would say"), listed(joint, "Both together", joint.title));
    facts.replaceChildren(`Knowing the one word tells `, h("b", { "data-mi": joint.mutual_information }, fixed(joint.mutual_information / Math.LN2, 2)),
      ` bits about the other. ${joint.formula}. A probability of ${found.normalised}.`);
    tell();
    take.refresh();
  }

  function listed(of, name, about) {
    return h("section", {}, h("h2", {}, name), h("p", { class: "soft" }, about),
      h("ol", { class: "sentences" }, of.top.slice(0, 6).map((one) =>
        h("li", { "--size": `${(100 * one.prob) / of.top[0].prob}%` }, h("span", { class: "p", "data-p": one.prob }, percent(one.prob)), filledIn(one)))));
  }

  // The sentence with what stands at the masks in bold; pieces that go on a word may have moved a space.
  function filledIn(one) {
    const pieces = cut(params.text);
    let rest = one.text;
    const shown = [];
    for (const [place, piece] of pieces.entries()) {
      if (piece !== MASK) {
        if (!rest.startsWith(piece)) return h("span", { class: "text" }, one.text);
        shown.push(piece);
        rest = rest.slice(piece.length);
        continue;
      }
      const next = pieces[place + 1];
      const end = next === undefined ? rest.length : rest.indexOf(next);
      if (end < 0) return h("span", { class: "text" }, one.text);
      shown.push(h("b", {}, rest.slice(0, end)));
      rest = rest.slice(end);
    }
    return h("span", { class: "text" }, shown);
  }

  function python() {
    const of = (name) => call("lm.joint", [params.text], { method: name, candidates: Number(params.candidates) });
    return program(found.model, app.model, `alone = ${of(ALONE)}`, `joint = ${of(law(found).method)}`,
      "print(joint)  # joint.matrix() and joint.marginals are what the tables show, as logarithms");
  }

  return { element, show, repaint: () => found && render() };
}
