// All groups as a table, or one of them.

import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link, refine } from "../base/place.js";
import { count, list, number } from "../base/words.js";
import { BigTable } from "../parts/table.js";
import { oneGroup } from "./group.js";

export function open(root, { parts, query }) {
  if (parts.length) return oneGroup(root, parts[0]);
  return allGroups(root, { group: query.group ?? "" });
}

function allGroups(root, wanted) {
  const filters = h("div", { class: "filters" });
  const total = h("span", { class: "soft", role: "status" });
  const silent = h("div", {});
  root.append(h("h1", {}, "Groups"), silent, filters);
  const table = new BigTable(root, { label: "Groups", columns: COLUMNS, link: (row) => link("groups", [row.group]), tone: (row) => (row.problem ? "bad" : "") });
  patch(filters, h("label", {}, "Group", h("input", { type: "search", value: wanted.group, size: 16, oninput: (event) => set(event.target.value) })), total);

  function set(value) {
    wanted.group = value;
    refine(wanted);
    update();
  }

  function update() {
    const every = [...live.rows("groups").values()];
    const rows = every.filter((row) => row.group.includes(wanted.group));
    total.textContent = live.has("groups") ? `${number(rows.length)} of ${count(every.length, "group")}` : "Asking the coordinators…";
    patch(silent, [...live.rows("silent-coordinators")].map(([node, why]) => h("p", { class: "problem" }, `Broker ${node} ${why}; it may coordinate more groups.`)));
    table.show(rows);
  }

  update();
  return { channels: ["groups", "silent-coordinators"], update, close: () => table.close() };
}

export function chip(state) {
  const tone = { Stable: "good", PreparingRebalance: "warning", CompletingRebalance: "warning", Assigning: "warning", Reconciling: "warning" }[state] ?? "";
  return h("span", { class: `chip ${tone}` }, state);
}

const COLUMNS = [
  { key: "group", title: "Group", value: (row) => row.group },
  { key: "state", title: "State", width: "160px", value: (row) => row.state, cell: (row) => chip(row.state) },
  { key: "members", title: "Members", width: "90px", number: true, value: (row) => row.members ?? -1, cell: (row) => number(row.members) },
  { key: "lag", title: "Lag", width: "110px", number: true, value: (row) => row.lag ?? -1, cell: (row) => number(row.lag) },
  { key: "topics", title: "Topics", wide: true, value: (row) => list(row.topics) },
  { key: "type", title: "Protocol", width: "100px", wide: true, value: (row) => row.type },
  { key: "coordinator", title: "Coordinator", width: "110px", number: true, wide: true, value: (row) => row.coordinator },
];
