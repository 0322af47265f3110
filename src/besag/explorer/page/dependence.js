// Dependence: which words would have to be guessed together. Arcs over the sentence, and a map.

import { ask } from "./ask.js";
import { fixed, h, mix, palette, SERIF, svg, width } from "./dom.js";
import { call, exports, program } from "./exports.js";
import { choice, examples, latest, line, refusal } from "./fields.js";
import { heat, steered, together } from "./heat.js";

export const title = "Dependence";
export const defaults = { text: "The woman lost her way.", candidates: "8", least: "0.1", at: "", model: "" };
const EXAMPLES = [
  { text: "The woman lost her way." },
  { text: "The keys to the cabinet are here." },
  { text: "He lives in New York." },
];
const FONT = `22px ${SERIF}`;

export function create(app) {
  let params = defaults;
  let found = null;
  let names = []; // of tokens
  let begins = []; // does a space stand before each?
  let over = null; // the pair under the pointer

  const text = line("Sentence");
  const candidates = choice("Words a place", ["5", "8", "12", "20"].map((n) => [n]), (n) => app.go({ ...params, candidates: n, at: "" }));
  const form = h("form", { class: "ask", onsubmit: submit }, text.element,
    h("div", { class: "row" }, h("button", { class: "go" }, "Look"), candidates.element),
    examples(EXAMPLES, (one) => {
      text.value = one.text;
      app.go({ ...params, ...one, at: "" });
    }));
  const told = refusal();
  const least = h("input", { type: "range", min: "0", max: "1", step: "0.01", "aria-label": "Weakest arc that is drawn, in bits", 
    oninput: () => ((params = { ...params, least: least.value }), render()), onchange: () => app.go(params, { replace: true }) });
  const shown = h("output", {});
  const arcs = h("div", { class: "arcs" });
  const map = h("div", { class: "maps", tabindex: "0", role: "group", "aria-label": "Map of word pairs: arrow keys move from pair to pair" });
  const strongest = h("ol", { class: "sentences strongest" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const facts = h("p", { class: "soft facts" });
  const take = exports("dependence", { svg: () => together([drawn(null), mapped(null)], palette(), [`mutual information given the rest, in bits · ${found.method} · ${found.model}`]), json: () => ({ view: "dependence", ...found }), python });
  const result = h("div", { class: "result", hidden: true },
    h("label", { class: "choice least" }, h("span", {}, "Draw arcs from"), least, shown), arcs, readout,
    h("div", { class: "split even" },
      h("section", {}, h("h2", {}, "Every pair"), h("p", { class: "soft" }, "The stronger the colour, the more the one word says about the other."), map),
      h("section", {}, h("h2", {}, "Strongest"), h("p", { class: "soft" }, "In bits: 0 is none, 1 is a coin toss settled."), strongest)),
    facts, take.element);
  const element = h("section", { class: "view", "aria-label": title },
    h("h1", {}, "Which words depend on each other?"),
    h("p", { class: "lede" },
      "Hide two words of the sentence. If knowing the one would help to guess the other, they depend on each other, and an arc ",
      "joins them: the thicker, the more it helps. Words that the rest gives away have no arcs, however close they stand."),
    form, told.element, result);
  const run = latest(told);
  steered(map, () => [names.length, names.length], () => pair() ?? [1, 0], pick);

  function submit(event) {
    event.preventDefault();
    app.go({ ...params, text: text.value, at: "" });
  }

  const body = () => app.body({ text: params.text, candidates: Number(params.candidates) });
  const bits = (i, j) => (found.matrix[i][j] === null ? null : Number(found.matrix[i][j]) / Math.LN2);
  const pairs = () => names.flatMap((_, i) => names.slice(i + 1).map((__, over) => [i, i + 1 + over])).filter(([i, j]) => bits(i, j) !== null);
  const pair = () => {
    const [i, j] = params.at.split("-").map(Number);
    return params.at && i < names.length && j < names.length && i !== j ? [i, j] : null;
  };
  function pick(i, j) {
    if (i !== j) app.go({ ...params, at: `${i}-${j}` }, { replace: true });
  }
  function look(i, j) {
    if (i === j || (over && over[0] === i && over[1] === j)) return;
    over = [i, j];
    render();
  }

  async function show(given) {
    params = given;
    text.sync(params.text);
    over = null;
    candidates.select.value = params.candidates;
    const answer = await run((signal) => ask("dependence", body(), signal));
    if (!answer || given !== params) return;
    found = answer.result;
    spell();
    result.hidden = false;
    render();
  }

  // Tokens as they stand in the text: in its order, each from where the last one ended.
  function spell() {
    const text = found.text.toLowerCase();
    let from = 0;
    [names, begins] = [[], []];
    for (const token of found.tokens) {
      const word = token.replace(/^(##|▁|Ġ|Ċ)+/, "") || "␣";
      const start = text.indexOf(word.toLowerCase(), from);
      names.push(word);
      begins.push(start !== from);
      if (start >= 0) from = start + word.length;
    }
  }

  function drawn(chosen) {
    const colours = palette();
    const sizes = names.map((name) => width(name, FONT));
    const starts = [];
    let x = 16;
    sizes.forEach((size, at) => {
      x += at === 0 ? 0 : begins[at] ? 16 : 2;
      starts.push(x);
      x += size;
    });
    const middle = (at) => starts[at] + sizes[at] / 2;
    const wide = Math.max(x + 16, 240);
    const drawnPairs = pairs().filter(([i, j]) => bits(i, j) >= Number(params.least)).sort((a, b) => bits(...a) - bits(...b));
    const tall = 46 + 0.42 * Math.max(0, ...drawnPairs.map(([i, j]) => middle(j) - middle(i)));
    const ground = Math.min(tall, 260);
    const most = Math.max(0.01, ...pairs().map(([i, j]) => bits(i, j)));
    const parts = drawnPairs.map(([i, j]) => {
      const [a, b, value] = [middle(i), middle(j), bits(i, j)];
      const high = ground - Math.min(ground - 10, 18 + 0.42 * (b - a));
      const own = chosen && ((chosen[0] === i && chosen[1] === j) || (chosen[0] === j && chosen[1] === i));
      const path = `M${a} ${ground - 4} C${a} ${high - (ground - high) * 0.18} ${b} ${high - (ground - high) * 0.18} ${b} ${ground - 4}`;
      return svg("path", { d: path, class: "arc", fill: "none", stroke: own ? colours.warm : colours.cool, "stroke-width": 1 + (7 * value) / most,
        "stroke-linecap": "round", "stroke-opacity": chosen && !own ? 0.3 : 0.35 + (0.65 * value) / most, onpointermove: () => look(i, j), onclick: () => pick(i, j) },
        svg("title", {}, `${names[i]} – ${names[j]}: ${fixed(value, 2)} bits`));
    });
    const words = names.map((name, at) => svg("text", { x: starts[at], y: ground + 22, "font-size": 22, "font-family": SERIF,
      fill: chosen?.includes(at) ? colours.warm : colours.ink }, name));
    return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${wide} ${ground + 34}`, width: wide, height: ground + 34, role: "img",
      "aria-label": `Arcs between the words of: ${found.text}` }, parts, words);
  }

  function mapped(chosen) {
    const colours = palette();
    const most = Math.max(0.01, ...pairs().map(([i, j]) => bits(i, j)));
    return heat({ rows: names, columns: names, colours, label: "Mutual information of every pair", cell: names.length > 16 ? 18 : 25, chosen, pick, hover: look,
      colour: (i, j) => (bits(i, j) === null ? null : mix(colours.card, colours.cool, Math.sqrt(Math.max(0, bits(i, j)) / most))) });
  }

  function render() {
    const ranked = pairs().sort((a, b) => bits(...b) - bits(...a));
    const chosen = over ?? pair() ?? ranked[0] ?? null;
    const most = bits(...(ranked[0] ?? [0, 0])) ?? 0;
    least.max = String(Math.max(0.2, Math.ceil(most * 10) / 10));
    least.value = params.least;
    shown.textContent = `${fixed(Number(params.least), 2)} bits`;
    arcs.replaceChildren(drawn(chosen));
    map.replaceChildren(mapped(chosen));
    strongest.replaceChildren(...ranked.slice(0, 6).map(([i, j]) =>
      h("li", { "--size": `${(100 * bits(i, j)) / most}%` }, h("button", { type: "button", class: "plain", onclick: () => pick(i, j) },
        h("span", { class: "p", "data-mi": found.matrix[i][j] }, fixed(bits(i, j), 2)), h("span", { class: "text" }, h("b", {}, names[i]), " … ", h("b", {}, names[j]))))));
    readout.replaceChildren(...(chosen ? [h("b", {}, `${names[chosen[0]]} … ${names[chosen[1]]}`), `: knowing the one tells ${fixed(bits(...chosen), 2)} bits about the other.`] : []));
    facts.textContent = `Mutual information, given the rest of the text: ${found.facts.slice(1).join(" · ")}. Not syntax, not attention, not cause: how much one guess would help the other.`;
    take.refresh();
  }

  function python() {
    const asked = call("lm.dependence", [params.text], { candidates: Number(params.candidates) });
    return program(found.model, app.model, `found = ${asked}`, "print(found)  # found.matrix is what the map shows, in nats");
  }

  return { element, show, repaint: () => found && render() };
}
