// Small pieces that several views show.

import { h } from "../base/dom.js";

export const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];

/** What went wrong, and what to do next. */
export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, h("p", {}, error.message), error.advice ? h("p", { class: "soft" }, error.advice) : null);
}

export function lines(texts, label = "") {
  return h("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": label || "Text" }, texts.join("\n"));
}

/** A value from a small set, with what it is called. */
export function choice(label, value, options, onchange) {
  const items = options.map(([key, text]) => h("option", { value: key, selected: key === value }, text));
  return h("label", {}, label, h("select", { onchange: (event) => onchange(event.target.value) }, items));
}
