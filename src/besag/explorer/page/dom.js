// Elements from plain words. Texts become text nodes and never markup: whatever a sentence holds is only shown.

export const h = (tag, given, ...children) => filled(document.createElement(tag), given, children);

export const svg = (tag, given, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);

function filled(node, given, children) {
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

// ---- texts

export const MASK = "[MASK]";

// Offsets count characters as Python does, which are not JavaScript's.
export const slice = (text, start, end) => Array.from(text).slice(start, end).join("");

// Pieces of a text between masks, and the masks.
export const cut = (text) => text.split(/(\[MASK\])/).filter(Boolean);

// ---- numbers, as sentences write them

export const signed = (text) => text.replace("-", "−").replace("Infinity", "∞");
export const fixed = (value, places = 1) => {
  const text = Number(value).toFixed(places);
  return signed(Number(text) === 0 ? text.replace("-", "") : text);
};
export const difference = (value, places = 1) => (Number(value.toFixed(places)) > 0 ? "+" : "") + fixed(value, places);
export const percent = (p) => {
  if (p >= 0.0995) return `${(100 * p).toFixed(0)}%`;
  if (p >= 0.000995) return `${(100 * p).toFixed(p >= 0.00995 ? 1 : 2)}%`;
  return p > 0 ? `${(100 * p).toPrecision(1)}%`.replace("e-", "·10⁻").replace(/⁻(\d+)/, (_, n) => `⁻${raised(n)}`) : "0";
};
const raised = (digits) => [...digits].map((one) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]).join("");

// ---- faces of pictures, as the page has them

export const SERIF = '"Iowan Old Style", "Palatino Linotype", Palatino, P052, Georgia, serif';
export const SANS = '"Segoe UI", Inter, Roboto, system-ui, sans-serif';

// ---- colours, as the theme has them

export function palette() {
  const styles = getComputedStyle(document.documentElement);
  const read = (name) => styles.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["paper", "card", "ink", "soft", "line", "warm", "cool"].map((name) => [name, read(name)]));
}

export function mix(from, to, share) {
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const [a, b] = [parts(from), parts(to)];
  const t = Math.max(0, Math.min(1, share));
  return `#${a.map((one, at) => Math.round(one + (b[at] - one) * t).toString(16).padStart(2, "0")).join("")}`;
}

// Surprisal as a share of the strongest colour: a bit is seen, and 12 bits are as strong as it gets.
export const strength = (bits) => Math.min(1, Math.max(0, bits) / 12) ** 0.8;

let canvas;
export function width(text, font) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = font;
  return canvas.measureText(text).width;
}
