// All topics as a table, or one of them.

import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link, refine } from "../base/place.js";
import { bytes, compact, count, number } from "../base/words.js";
import { BigTable } from "../parts/table.js";
import { oneTopic } from "./topic.js";

export const perSecond = (value, words = compact) => (value === null || value === undefined ? "–" : `${words(value)}/s`);
export const wholeBytes = (value) => bytes(value === null || value === undefined ? value : Math.round(value));

export function open(root, { parts, query }) {
  if (parts.length) return oneTopic(root, parts[0], parts[1] ?? "", query);
  return allTopics(root, { topic: query.topic ?? "", internal: query.internal ?? "" });
}

function allTopics(root, wanted) {
  const filters = h("div", { class: "filters" });
  const total = h("span", { class: "soft", role: "status" });
  root.append(h("h1", {}, "Topics"), filters);
  const table = new BigTable(root, {
    label: "Topics",
    columns: COLUMNS,
    link: (row) => link("topics", [row.topic]),
    tone: (row) => (row.leaderless ? "bad" : row.out_of_sync ? "warning" : ""),
  });
  patch(
    filters,
    h("label", {}, "Topic", h("input", { type: "search", value: wanted.topic, size: 16, oninput: (event) => set("topic", event.target.value) })),
    h("label", {}, h("input", { type: "checkbox", checked: wanted.internal === "yes", onchange: (event) => set("internal", event.target.checked ? "yes" : "") }), "internal topics"),
    total,
  );

  function set(key, value) {
    wanted[key] = value;
    refine(wanted);
    update();
  }

  function update() {
    const every = [...live.rows("topics").values()];
    const rows = every.filter((row) => (wanted.internal === "yes" || !row.is_internal) && row.topic.includes(wanted.topic));
    total.textContent = live.has("topics") ? `${number(rows.length)} of ${count(every.length, "topic")}` : "Asking the cluster…";
    table.show(rows);
  }

  update();
  return { channels: ["topics"], update, close: () => table.close() };
}

const COLUMNS = [
  { key: "topic", title: "Topic", value: (row) => row.topic },
  { key: "condition", title: "Condition", width: "150px", wide: true, value: (row) => -2 * row.leaderless - row.out_of_sync, cell: chip },
  { key: "partitions", title: "Partitions", width: "100px", number: true, value: (row) => row.partitions, cell: (row) => number(row.partitions) },
  { key: "replicas", title: "Replicas", width: "90px", number: true, wide: true, value: (row) => row.replicas },
  { key: "size", title: "Size", width: "100px", number: true, value: (row) => row.size_bytes ?? -1, cell: (row) => bytes(row.size_bytes) },
  { key: "records", title: "Records/s", width: "100px", number: true, value: (row) => row.records_per_s ?? -1, cell: (row) => perSecond(row.records_per_s) },
  { key: "bytes", title: "Growth", width: "110px", number: true, wide: true, value: (row) => row.bytes_per_s ?? -1, cell: (row) => perSecond(row.bytes_per_s, wholeBytes) },
];

export function chip(row) {
  if (row.leaderless) return h("span", { class: "chip bad" }, `${number(row.leaderless)} without a leader`);
  if (row.out_of_sync) return h("span", { class: "chip warning" }, `${number(row.out_of_sync)} out of sync`);
  return h("span", { class: "chip good" }, "healthy");
}
