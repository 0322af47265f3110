// Numbers of a chain over its steps, and all of its steps as one picture.

import { fixed, h, palette, SANS, SERIF, svg, width } from "./dom.js";

// Energy as a line for each chain, with a dot where a proposal was accepted.
export function trace(rows, step) {
  const steps = rows.slice(1);
  if (!steps.length) return [];
  const { energy, accepted } = steps[0].numbers;
  const found = [];
  if (energy) found.push(curve(steps, step, "Energy: the lower, the likelier the whole sentence. Filled dots were accepted, hollow ones rejected."));
  if (accepted) {
    const all = steps.slice(0, step).flatMap((row) => row.numbers.accepted);
    const share = all.length ? all.reduce((sum, one) => sum + one, 0) / all.length : 0;
    found.push(h("p", { class: "soft" }, `Accepted so far: ${all.length ? `${Math.round(100 * share)}% of ${all.length} proposals` : "none yet"}.`));
  }
  return found;
}

function curve(steps, now, caption) {
  const colours = palette();
  const [wide, high, left, foot] = [720, 120, 44, 20];
  const values = steps.map((row) => row.numbers.energy.map(Number));
  const all = values.flat();
  const [low, top] = [Math.min(...all), Math.max(...all, Math.min(...all) + 1e-9)];
  const x = (at) => left + ((wide - left - 12) * (at + 0.5)) / steps.length;
  const y = (value) => 10 + (high - foot - 16) * (1 - (value - low) / (top - low));
  const parts = [
    svg("text", { x: left - 8, y: 14, "text-anchor": "end", "font-size": 11, "font-family": SANS, fill: colours.soft }, fixed(top)),
    svg("text", { x: left - 8, y: high - foot, "text-anchor": "end", "font-size": 11, "font-family": SANS, fill: colours.soft }, fixed(low)),
    svg("line", { x1: left, x2: wide - 6, y1: high - foot + 4, y2: high - foot + 4, stroke: colours.line }),
    svg("text", { x: wide - 6, y: high - 3, "text-anchor": "end", "font-size": 11, "font-family": SANS, fill: colours.soft }, `step ${steps.length}`),
  ];
  if (now > 0) parts.push(svg("line", { x1: x(now - 1), x2: x(now - 1), y1: 4, y2: high - foot + 4, stroke: colours.warm, "stroke-width": 1.5 }));
  values[0].forEach((_, chain) => {
    const points = values.map((row, at) => `${x(at).toFixed(1)},${y(row[chain]).toFixed(1)}`).join(" ");
    parts.push(svg("polyline", { points, fill: "none", stroke: colours.cool, "stroke-width": 1.5, "stroke-opacity": 0.8 }));
    const accepted = steps.map((row) => row.numbers.accepted?.[chain]);
    values.forEach((row, at) => parts.push(svg("circle", { cx: x(at), cy: y(row[chain]), r: 2.6, stroke: colours.cool, fill: accepted[at] === 0 ? colours.paper : colours.cool })));
  });
  return h("figure", {}, svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": caption }, parts), h("figcaption", { class: "soft" }, caption));
}

// Every step of the first chain on a line of its own; what changed there is in colour. `now` is the step that is seen.
export function ladder(rows, shown, now, pick) {
  const colours = palette();
  const [font, line] = [`17px ${SERIF}`, 25];
  let wide = 320;
  const parts = rows.map((row, step) => {
    const y = 34 + step * line;
    let x = 56;
    const words = shown(step, 0).map(({ word, hidden, fresh, given }) => {
      const size = width(hidden ? "▢▢▢" : word, font);
      const at = x;
      x += size + 6;
      if (hidden) return svg("rect", { x: at, y: y - 13, width: size, height: 16, rx: 4, fill: colours.line });
      return svg("text", { x: at, y, "font-size": 17, "font-family": SERIF, fill: fresh ? colours.warm : given ? colours.soft : colours.ink, "font-weight": fresh ? 700 : 400 }, word);
    });
    wide = Math.max(wide, x + 20);
    const number = svg("text", { x: 42, y, "text-anchor": "end", "font-size": 11, "font-family": SANS, fill: colours.soft }, row.step);
    return svg("g", { class: "step", opacity: now !== undefined && step > now ? 0.3 : 1, onclick: pick && (() => pick(step)) }, number, words,
      step === now && svg("rect", { x: 50, y: y - 14, width: 2.5, height: 19, rx: 1, fill: colours.warm }));
  });
  const high = 34 + rows.length * line;
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high }, svg("rect", { width: wide, height: high, fill: colours.paper }), parts);
}
