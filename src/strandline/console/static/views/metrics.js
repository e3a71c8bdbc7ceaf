// What `strandline metrics` shows of every node, over time: one plot for each column, one line for each node.

import { read } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { bytes, compact } from "../base/words.js";
import { problem } from "../parts/notes.js";
import { grow, plot } from "../parts/plot.js";

const sized = (value) => bytes(Math.round(value));

export function open(root) {
  let columns = null;
  let series = {}; // by node and column
  const notes = h("div", {});
  const plots = h("div", { class: "plots" });
  root.append(h("h1", {}, "Metrics"), notes, plots);
  read("metrics-history").then((known) => {
    ({ columns, series } = known);
    update();
  }, (error) => notes.replaceChildren(problem(error)));

  function update() {
    if (!columns || !live.has("metrics")) return patch(notes, h("p", { class: "hint" }, "Asking the nodes…"));
    const nodes = [...live.rows("metrics").values()].sort((a, b) => a.node - b.node);
    for (const { node, time_ms: time, values } of nodes) {
      const of = (series[node] ??= {});
      for (const [column, value] of Object.entries(values ?? {})) of[column] = grow(of[column] ?? [], time, value);
    }
    patch(notes, silent(nodes));
    patch(plots, columns.filter(({ name }) => nodes.some(({ node }) => series[node]?.[name])).map((column) => h("div", { class: "panel", "data-key": column.name }, drawn(column, nodes))));
    return undefined;
  }

  function drawn({ name, is_rate: isRate }, nodes) {
    const lines = nodes.map(({ node }) => ({ name: `node ${node}`, points: series[node]?.[name] ?? [] }));
    const words = name.startsWith("bytes") ? sized : compact;
    return plot(isRate ? `${name}, per second` : name, lines, words);
  }

  return { channels: ["metrics"], update };
}

function silent(nodes) {
  if (!nodes.some(({ values }) => values)) {
    return [h("p", {}, "No node serves metrics. Set strandline.metrics.listener=127.0.0.1:9404 in its properties, and start it again.")];
  }
  return nodes.filter(({ values }) => !values).map(({ node, url }) => h("p", { class: "problem" }, `Node ${node} ${url ? `does not answer at ${url}` : "serves no metrics"}.`));
}
