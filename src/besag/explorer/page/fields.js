// What is typed and chosen: a text, a few choices, a button, and what the server refuses.

import { h, MASK } from "./dom.js";

// A line for a sentence that grows with it; Enter asks.
export function line(label, { masks = false, placeholder = "" } = {}) {
  const area = h("textarea", { rows: "1", spellcheck: "false", placeholder, "aria-label": label, oninput: grow, onkeydown: enter });
  const mask = h("button", { type: "button", class: "quiet", onclick: put, title: `Put ${MASK} where the cursor stands` }, "Hide a word");
  const element = h("div", { class: "line" }, area, masks && mask);
  function grow() {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  }
  function enter(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    area.form.requestSubmit();
  }
  // The selected words are hidden, or the word in which the cursor stands.
  function put() {
    let [start, end] = [area.selectionStart, area.selectionEnd];
    if (start === end) {
      while (start > 0 && /[\p{L}\p{N}'’]/u.test(area.value[start - 1])) start -= 1;
      while (end < area.value.length && /[\p{L}\p{N}'’]/u.test(area.value[end])) end += 1;
    }
    area.setRangeText(MASK, start, end, "end");
    area.focus();
    grow();
  }
  new ResizeObserver(() => area.offsetParent && grow()).observe(element);
  let synced = null;
  return {
    element,
    area,
    get value() {
      return area.value;
    },
    set value(text) {
      area.value = synced = text;
      requestAnimationFrame(grow);
    },
    // What the address says, unless it says what it said before: then what was typed since is left alone.
    sync(text) {
      if (text !== synced) this.value = text;
    },
  };
}

export function choice(label, options, onchange) {
  const element = h("select", { onchange: () => onchange(element.value) });
  const fill = (given) => element.replaceChildren(...given.map(([value, text]) => h("option", { value }, text ?? value)));
  fill(options);
  return { element: h("label", { class: "choice" }, h("span", {}, label), element), select: element, fill };
}

export function number(label, { min, max, step = 1, width = 4 }) {
  const input = h("input", { type: "number", min, max, step, "--width": `${width}em` });
  return { element: h("label", { class: "choice" }, h("span", {}, label), input), input };
}

export function examples(texts, pick) {
  const chip = (one) => h("button", { type: "button", class: "chip", onclick: () => pick(one) }, one.name ?? one.text);
  return h("div", { class: "examples", role: "group", "aria-label": "Examples" }, texts.map(chip));
}

// Why there is no answer: beside what was typed, which stays.
export function refusal() {
  const element = h("p", { class: "refusal", role: "alert", hidden: true });
  return {
    element,
    show(problem) {
      element.hidden = !problem;
      element.textContent = problem?.message ?? "";
    },
  };
}

// Run the latest question only: an older one is given up. What was stopped by hand is no fault.
export function latest(told) {
  let controller = null;
  return async (work) => {
    controller?.abort();
    const own = (controller = new AbortController());
    told.show(null);
    try {
      return await work(own.signal);
    } catch (problem) {
      if (problem.name !== "AbortError" && own === controller) told.show(problem);
      return undefined;
    }
  };
}

// Arrow keys within a row of buttons of which one can be tabbed to.
export function arrows(container, selector, move) {
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !event.target.matches(selector)) return;
    event.preventDefault();
    const all = [...container.querySelectorAll(selector)];
    const at = Math.max(0, Math.min(all.length - 1, all.indexOf(event.target) + step));
    all[at].focus();
    move?.(all[at]);
  });
}
