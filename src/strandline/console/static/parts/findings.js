// What `explain` says: findings with their reasons, and the ways out with their price.

import { h } from "../base/dom.js";
import { fact } from "./notes.js";

export function findings(rows) {
  return rows.map((finding) =>
    h(
      "article",
      { class: "finding" },
      h("p", {}, h("strong", {}, finding.what)),
      finding.why.length ? h("ul", {}, finding.why.map((text) => h("li", {}, text))) : null,
      finding.waits_for ? h("p", {}, h("span", { class: "soft" }, "It waits for: "), finding.waits_for) : null,
      finding.ways.map((way) =>
        h(
          "div",
          { class: "way" },
          h("p", {}, h("span", { class: "soft" }, "Way out: "), way.what),
          h("dl", { class: "facts small" }, fact("Costs", way.costs), fact("Command", h("code", { class: "wrap" }, way.command))),
        ),
      ),
    ),
  );
}
