// A sentence as coloured words, each a button; two sentences in columns, with the difference below.

import { align } from "./align.js";
import { difference, fixed, h, mix, palette, SANS, SERIF, slice, strength, svg, width } from "./dom.js";
import { arrows } from "./fields.js";

export const words = (score) => score.tokens.map((one) => slice(score.text, one.start, one.end) || "␣");

const columnsOf = (scores) => {
  const [a, b] = scores.map(words);
  return b ? align(a, b) : a.map((_, at) => ({ a: at, b: null, same: true }));
};

// Does the token at a column go on the word of the column before?
const goesOn = (scores, columns, at) =>
  at > 0 &&
  scores.every((score, which) => {
    const [before, here] = ["ab"[which]].flatMap((side) => [columns[at - 1][side], columns[at][side]]);
    return before === null || here === null ? before === here : score.tokens[before].word === score.tokens[here].word;
  });

export function figure(pick) {
  const row = h("div", { class: "words", role: "group", "aria-label": "The sentence, word by word: arrow keys move" });
  const totals = h("div", { class: "totals" });
  const element = h("figure", { class: "sentence" }, legend(), row, totals);
  arrows(row, ".word", (button) => pick(button.dataset.at));

  function show(scores, [which, place], params) {
    const columns = columnsOf(scores);
    const focused = row.contains(document.activeElement);
    const buttons = columns.map((column, at) =>
      h("span", { class: `column${goesOn(scores, columns, at) ? " on" : ""}` },
        scores.map((score, side) => token(score, side, column["ab"[side]], which === side && place === column["ab"[side]])),
        scores.length > 1 && gap(scores, column)));
    row.replaceChildren(...buttons);
    totals.replaceChildren(...summary(scores, params));
    if (focused) row.querySelector("[aria-pressed=true]")?.focus();
  }

  function token(score, side, at, pressed) {
    if (at === null) return h("span", { class: "word none", "aria-hidden": "true" }, h("span", { class: "letters" }, "–"));
    const bits = -score.tokens[at].log_prob;
    const letters = words(score)[at];
    return h("button", {
      type: "button", class: "word", "data-at": `${"ab"[side]}${at}`, tabindex: pressed ? "0" : "-1", "aria-pressed": String(pressed),
      "aria-label": `${letters}: ${fixed(bits)} bits`, "--amount": `${Math.round(100 * strength(bits))}%`,
      onclick: (event) => pick(event.currentTarget.dataset.at),
    }, h("span", { class: "letters" }, letters), h("span", { class: "bits" }, fixed(bits)));
  }

  return { element, show };
}

const gapOf = (scores, { a, b }) => (a === null || b === null ? null : scores[0].tokens[a].log_prob - scores[1].tokens[b].log_prob);

function gap(scores, column) {
  const value = gapOf(scores, column);
  if (value === null) return h("span", { class: "gap" });
  const more = value > 0;
  const size = `${Math.min(100, 10 * Math.abs(value))}%`;
  return h("span", { class: `gap ${more ? "more" : "less"}`, title: "the second against the first, in bits" },
    h("span", { class: "bar", "--size": size }), difference(value));
}

function summary(scores, { method }) {
  const line = (score, at) =>
    h("p", {}, scores.length > 1 && h("b", {}, "AB"[at], " "),
      h("span", { class: "total", "data-total": score.total }, fixed(score.total)), " bits in all, ", h("code", {}, method), ": ",
      h("b", {}, score.meaning), ".");
  if (scores.length < 2) return scores.map(line);
  const more = scores[1].total - scores[0].total;
  const better = Math.abs(more) < 0.05 ? "Both score the same." : `The model prefers ${more > 0 ? "B" : "A"}, by ${fixed(Math.abs(more))} bits.`;
  return [...scores.map(line), h("p", {}, h("b", {}, better))];
}

function legend() {
  const steps = [0, 1, 2, 4, 8, 12];
  return h("figcaption", { class: "legend" },
    h("span", {}, "expected"),
    h("span", { class: "ramp", "aria-hidden": "true" }, steps.map((bits) => h("i", { "--amount": `${Math.round(100 * strength(bits))}%` }, bits))),
    h("span", {}, "surprising"),
    h("span", { class: "soft" }, "Numbers are bits: 1 is a coin toss, 10 are ten tosses that all had to come up heads."));
}

// ---- the picture to take along

export function drawn(scores) {
  const colours = palette();
  const columns = columnsOf(scores);
  const [font, wide, high] = [`20px ${SERIF}`, 900, 46];
  let [x, y, lines] = [20, 20, []];
  const block = high * scores.length + (scores.length > 1 ? 26 : 12);
  columns.forEach((column, at) => {
    const letters = scores.map((score, side) => (column["ab"[side]] === null ? "–" : words(score)[column["ab"[side]]]));
    const size = Math.max(...letters.map((one) => width(one, font)), 26) + 12;
    if (x + size > wide - 20 && !goesOn(scores, columns, at)) [x, y] = [20, y + block];
    scores.forEach((score, side) => {
      const place = column["ab"[side]];
      if (place === null) return;
      const bits = -score.tokens[place].log_prob;
      const top = y + side * high;
      lines.push(
        svg("rect", { x, y: top, width: size - 2, height: high - 4, rx: 4, fill: mix(colours.card, colours.warm, 0.85 * strength(bits)) }),
        svg("text", { x: x + size / 2 - 1, y: top + 23, "text-anchor": "middle", "font-size": 20, "font-family": SERIF, fill: colours.ink }, letters[side]),
        svg("text", { x: x + size / 2 - 1, y: top + 37, "text-anchor": "middle", "font-size": 10, "font-family": SANS, fill: colours.ink }, fixed(bits)));
    });
    const value = scores.length > 1 ? gapOf(scores, column) : null;
    if (value !== null)
      lines.push(svg("text", { x: x + size / 2, y: y + 2 * high + 10, "text-anchor": "middle", "font-size": 11, "font-family": SANS, fill: value > 0 ? colours.warm : colours.cool }, difference(value)));
    x += size + (at + 1 < columns.length && goesOn(scores, columns, at + 1) ? -1 : 5);
  });
  const told = scores.map((score) => `${fixed(score.total)} bits · ${score.method}: ${score.meaning} · ${score.model}`);
  const height = y + block + 16 * told.length + 12;
  told.forEach((one, at) => lines.push(svg("text", { x: 20, y: y + block + 16 * (at + 1), "font-size": 12, "font-family": SANS, fill: colours.soft }, one)));
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${wide} ${height}`, width: wide, height },
    svg("rect", { width: wide, height, fill: colours.paper }), lines);
}
