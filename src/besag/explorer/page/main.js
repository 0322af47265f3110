// The frame of the page: which view is seen, which model is asked, light or dark.

import * as address from "./address.js";
import { ask } from "./ask.js";
import * as dependence from "./dependence.js";
import { h } from "./dom.js";
import * as masks from "./masks.js";
import * as sentence from "./sentence.js";
import * as write from "./write.js";

const VIEWS = { sentence, masks, dependence, write };
const main = document.getElementById("main");
const made = {}; // views, once they were seen: what was typed there stays
const last = {}; // what was looked at in each
let now = null; // the view that is seen

const app = {
  model: "", // as the server calls it; "" is its first
  // Look at something else in this view; `replace`, where going back should not come here again.
  go(params, { replace = false } = {}) {
    const hash = address.write(now, { ...params, ...asked() }, VIEWS[now].defaults);
    history[replace ? "replaceState" : "pushState"](null, "", hash);
    show();
  },
  body: (given) => (app.model ? { ...given, model: app.model } : given),
};
const asked = () => (app.model ? { model: app.model } : {});

function show() {
  const { name, params } = address.read(VIEWS);
  now = name;
  last[name] = location.hash;
  choose(params.model ?? "");
  if (!made[name]) {
    made[name] = VIEWS[name].create(app);
    main.append(made[name].element);
  }
  for (const [other, view] of Object.entries(made)) view.element.hidden = other !== name;
  for (const link of nav.children) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[name].title} · besag explorer`;
  made[name].show(params);
}

// ---- views

const nav = document.querySelector("nav");
for (const [name, view] of Object.entries(VIEWS)) {
  const go = (event) => {
    event.preventDefault();
    history.pushState(null, "", last[name] ?? address.write(name, asked(), view.defaults));
    show();
    scrollTo(0, 0);
  };
  nav.append(h("a", { href: `#${name}`, "data-view": name, onclick: go }, view.title));
}

// ---- models

const models = h("select", { "aria-label": "Model", hidden: true, onchange: () => switchTo(models.value) });
const only = h("span", { class: "model" });

function switchTo(name) {
  app.model = name === models.options[0].value ? "" : name;
  for (const view of Object.keys(last)) delete last[view];
  const { params } = address.read(VIEWS);
  delete params.model;
  app.go(params);
}

function choose(name) {
  app.model = name;
  if (models.options.length) models.value = name || models.options[0].value;
}

async function list() {
  const found = (await ask("models")).models.map((one) => one.name);
  models.replaceChildren(...found.map((name) => h("option", { value: name }, name)));
  models.hidden = found.length < 2;
  only.textContent = found.length < 2 ? found[0] : "";
  choose(app.model);
}

// ---- light and dark

const THEMES = { auto: "◐", light: "○", dark: "●" };
const root = document.documentElement;
const theme = h("button", { type: "button", class: "theme", onclick: turn });

function turn() {
  const names = Object.keys(THEMES);
  paint(names[(names.indexOf(root.dataset.theme) + 1) % names.length]);
}

function paint(name) {
  root.dataset.theme = name in THEMES ? name : "auto";
  try {
    localStorage.setItem("besag-theme", root.dataset.theme);
  } catch {} // a browser that keeps nothing
  theme.textContent = THEMES[root.dataset.theme];
  theme.title = `Colours: ${root.dataset.theme}`;
  theme.setAttribute("aria-label", `Colours: ${root.dataset.theme}. Press to change.`);
  for (const view of Object.values(made)) view.repaint?.();
}

function remembered() {
  try {
    return localStorage.getItem("besag-theme") ?? "auto";
  } catch {
    return "auto";
  }
}

document.querySelector(".tools").append(only, models, theme);
document.querySelector(".foot").append(
  "Every number is what ", h("code", {}, "lm"), " answers in Python. Nothing that is typed leaves the machine that serves this page.",
);
document.querySelector(".mark").addEventListener("click", (event) => {
  event.preventDefault();
  nav.firstElementChild.click();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(root.dataset.theme));
addEventListener("popstate", show);
paint(remembered());
show();
list().catch(() => {});
