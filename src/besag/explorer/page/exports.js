// A view taken along: as a picture, as data, and as the lines of Python that give the same numbers.

import { h } from "./dom.js";

export function exports(name, { svg, json, python }) {
  const code = h("code", {});
  const shown = h("div", { class: "python", hidden: true }, h("pre", { tabindex: "0" }, code), copier(code));
  const toggle = h("button", { type: "button", "aria-expanded": "false", onclick: show }, "Python");
  const bar = h(
    "div",
    { class: "exports", role: "group", "aria-label": "Take this along" },
    h("span", { class: "soft" }, "Take this along"),
    h("button", { type: "button", onclick: () => save(`${name}.svg`, "image/svg+xml", picture(svg())) }, "SVG"),
    h("button", { type: "button", onclick: () => save(`${name}.json`, "application/json", data(json())) }, "JSON"),
    toggle,
  );
  function show() {
    shown.hidden = !shown.hidden;
    toggle.setAttribute("aria-expanded", String(!shown.hidden));
    code.textContent = python();
  }
  const refresh = () => {
    if (!shown.hidden) code.textContent = python();
  };
  return { element: h("section", { class: "take" }, bar, shown), refresh };
}

function copier(code) {
  const button = h("button", { type: "button", onclick: copy }, "Copy");
  async function copy() {
    getSelection().selectAllChildren(code); // where nothing may be copied, it is at least selected
    await navigator.clipboard?.writeText(code.textContent).catch(() => {});
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }
  return button;
}

export const picture = (drawn) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(drawn)}\n`;

const data = (value) => `${JSON.stringify(value, null, 1)}\n`;

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// ---- Python

// JSON writes strings, numbers and lists as Python does.
const literal = (value) => (value === null ? "None" : value === true ? "True" : value === false ? "False" : JSON.stringify(value));

export const call = (verb, given, options = {}) => {
  const words = Object.entries(options).filter(([, value]) => value !== undefined);
  return `${verb}(${[...given.map(literal), ...words.map(([name, value]) => `${name}=${literal(value)}`)].join(", ")})`;
};

export const EMBEDDED = "small-en";

// The embedded model is loaded; any other is asked where it is served.
export const program = (model, served, ...lines) => {
  const where = location.origin;
  const lm = model === EMBEDDED ? "besag.load()" : call("besag.connect", served ? [where, served] : [where]);
  return ["import besag", "", `lm = ${lm}`, ...lines].join("\n");
};
