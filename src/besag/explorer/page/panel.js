// What else could stand at a place: the model's own guesses, from what the page already holds.

import { fixed, h, percent } from "./dom.js";
import { arrows } from "./fields.js";
import { words } from "./words.js";

const SHOWN = 12;

export function panel(choose) {
  const list = h("ol", { class: "guesses" });
  const head = h("h2", {});
  const about = h("p", { class: "soft" });
  const element = h("aside", { class: "panel", "aria-label": "What else could stand there" }, head, about, list);
  arrows(list, "button");

  function show(scores, places, [which, place]) {
    const letters = words(scores[which])[place];
    head.replaceChildren("Instead of ", h("q", {}, letters));
    const found = places[which];
    if (!found?.places.length) {
      about.textContent = found ? found.why ?? "" : "Asking what else could stand here …";
      list.replaceChildren();
      return;
    }
    const own = found.places[place];
    const p = 2 ** own.log_prob;
    about.textContent = `Shown all the rest, the model gives “${letters}” ${percent(p)}` +
      (own.rank === 1 ? ": it is its first guess." : `; ${own.rank - 1 === 1 ? "one word is" : `${(own.rank - 1).toLocaleString("en")} are`} likelier. Choose one, and the sentence changes.`);
    const top = found.places[place].likeliest.slice(0, SHOWN);
    const most = 2 ** top[0].log_prob;
    list.replaceChildren(...top.map((one) => guess(one, own, most, () => choose(which, place, one))));
    if (!top.some((one) => one.token === own.token))
      list.append(h("li", { class: "far" }, guessed({ ...own, shown: letters }, most, true)));
  }

  const guess = (one, own, most, pick) => {
    const same = one.token === own.token;
    const button = h("button", { type: "button", onclick: pick, disabled: same, title: one.text }, guessed(one, most, same));
    return h("li", {}, button);
  };

  const guessed = (one, most, same) =>
    h("span", { class: `guess${same ? " own" : ""}`, "--size": `${Math.max(0.5, (100 * 2 ** one.log_prob) / most)}%` },
      h("span", { class: "letters" }, one.shown), h("span", { class: "p", "data-p": 2 ** one.log_prob }, percent(2 ** one.log_prob)),
      h("span", { class: "sr" }, ` ${fixed(-one.log_prob)} bits${same ? ", stands there" : ""}`));

  return { element, show };
}
