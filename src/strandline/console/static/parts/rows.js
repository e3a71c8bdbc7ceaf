// A table of few rows, all of them in the page.

import { h } from "../base/dom.js";

/** `columns`: [title, cell(row), isNumber]. */
export function rowsTable(label, columns, rows, empty = "None.") {
  if (!rows.length) return h("p", { class: "hint" }, empty);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h(
      "table",
      { "aria-label": label },
      h("thead", {}, h("tr", {}, columns.map(([title, , isNumber]) => h("th", { scope: "col", class: isNumber ? "number" : null }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([, cell, isNumber]) => h("td", { class: isNumber ? "number" : "wrap" }, cell(row)))))),
    ),
  );
}

/** Pages of one thing: [[path, title], …]. */
export function tabs(label, pages, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    pages.map(([href, title]) => h("a", { href, "aria-current": title === current ? "page" : null }, title)),
  );
}

let fields = 0;

/** A control with its label above it. Not within it: the options of a choice would be part of its name. */
export function field(label, control) {
  control.id ||= `field-${++fields}`;
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

export function select(options, chosen, more = {}) {
  return h("select", more, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}
