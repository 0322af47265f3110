// A table as colours, drawn as it is taken along: tokens on two sides, their marginals as bars where there are any.

import { SANS, SERIF, svg, width } from "./dom.js";

const FONT = `13.5px ${SERIF}`;

// rows, columns: names. colour(i, j): of a cell, or null. bars: [shares of rows, of columns]; "none" leaves
// room for them. Returns an SVG.
export function heat({ rows, columns, colour, bars, colours, title, cell = 26, chosen, pick, hover, label }) {
  const left = Math.ceil(Math.max(24, ...rows.map((name) => width(name, FONT)))) + 12;
  const top = Math.ceil(Math.max(24, ...columns.map((name) => width(name, FONT))) * 0.8) + 14;
  const [beside, above] = bars ? [46, 40] : [10, 0];
  const head = title ? 24 : 0;
  const [x0, y0] = [left, head + above + top];
  const lean = 0.62 * Math.max(24, width(columns.at(-1) ?? "", FONT));
  const size = [x0 + cell * columns.length + Math.max(beside, lean + 8), y0 + cell * rows.length + 8];
  const parts = [];
  if (title) parts.push(svg("text", { x: 2, y: 15, "font-size": 13, "font-family": SANS, "font-weight": 600, fill: colours.ink }, title));
  rows.forEach((name, i) => {
    parts.push(svg("text", { x: x0 - 7, y: y0 + cell * (i + 0.5) + 4, "text-anchor": "end", "font-size": 13.5, "font-family": SERIF, fill: colours.ink }, name));
    columns.forEach((_, j) => {
      const fill = colour(i, j);
      if (fill === null) return;
      const box = { x: x0 + cell * j, y: y0 + cell * i, width: cell - 1.5, height: cell - 1.5, rx: 2, fill };
      parts.push(svg("rect", { ...box, class: "cell", onpointermove: hover && (() => hover(i, j)), onclick: pick && (() => pick(i, j)) }));
    });
  });
  columns.forEach((name, j) => {
    const [x, y] = [x0 + cell * (j + 0.5) + 4, y0 - 7];
    parts.push(svg("text", { x, y, transform: `rotate(-52 ${x} ${y})`, "font-size": 13.5, "font-family": SERIF, fill: colours.ink }, name));
  });
  if (bars && bars !== "none") {
    const most = Math.max(...bars.flat());
    bars[0].forEach((share, i) => parts.push(svg("rect", { x: x0 + cell * columns.length + 3, y: y0 + cell * i + 5, width: Math.max(0.5, (40 * share) / most), height: cell - 11, rx: 1, fill: colours.soft })));
    bars[1].forEach((share, j) => {
      const high = Math.max(0.5, (36 * share) / most);
      parts.push(svg("rect", { x: x0 + cell * j + 5, y: head + above - high, width: cell - 11, height: high, rx: 1, fill: colours.soft }));
    });
  }
  if (chosen) {
    const [i, j] = chosen;
    const at = { x: x0 + cell * j - 1, y: y0 + cell * i - 1, width: cell + 0.5, height: cell + 0.5, rx: 3 };
    parts.push(svg("rect", { ...at, class: "ring", fill: "none", stroke: colours.ink, "stroke-width": 2, "pointer-events": "none" }));
  }
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], role: "img", "aria-label": label }, parts);
}

// Several pictures in one.
export function together(pictures, colours, told = []) {
  const size = (one, side) => Number(one.getAttribute(side));
  const [gap, margin] = [24, 16];
  const wide = pictures.reduce((sum, one) => sum + size(one, "width") + gap, 2 * margin - gap);
  const high = Math.max(...pictures.map((one) => size(one, "height"))) + 2 * margin + 18 * told.length;
  let x = margin;
  for (const one of pictures) {
    one.setAttribute("x", x);
    one.setAttribute("y", margin);
    x += size(one, "width") + gap;
  }
  const lines = told.map((text, at) =>
    svg("text", { x: margin, y: high - 18 * (told.length - at) + 8, "font-size": 12, "font-family": SANS, fill: colours.soft }, text));
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high },
    svg("rect", { width: wide, height: high, fill: colours.paper }), pictures, lines);
}

// Arrow keys over the cells of a picture.
export function steered(container, shape, at, pick) {
  container.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const [m, k] = shape();
    const [i, j] = at();
    pick(Math.max(0, Math.min(m - 1, i + down)), Math.max(0, Math.min(k - 1, j + right)));
  });
}
