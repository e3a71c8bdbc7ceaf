// All partitions as a table, or one of them with its logs, its history and what can be done.

import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link, refine } from "../base/place.js";
import { count, list, number } from "../base/words.js";
import { brief } from "../parts/logs.js";
import { choice } from "../parts/notes.js";
import { BigTable } from "../parts/table.js";
import { onePartition } from "./partition.js";

const CONDITIONS = [
  ["", "all"],
  ["leaderless", "without a leader"],
  ["under-min-isr", "under min ISR"],
  ["out-of-sync", "with replicas out of sync"],
  ["recovering", "recovering"],
  ["moving", "being reassigned"],
];
const WORDS = {
  leaderless: ["no leader", "bad"],
  "under-min-isr": ["under min ISR", "bad"],
  "out-of-sync": ["out of sync", "warning"],
  recovering: ["recovering", "warning"],
  moving: ["moving", "warning"],
};

export function open(root, { parts, query }) {
  if (parts.length === 2) return onePartition(root, parts[0], Number(parts[1]));
  return allPartitions(root, { show: query.show ?? "", topic: query.topic ?? "", internal: query.internal ?? "" });
}

function allPartitions(root, wanted) {
  let places = [];
  const filters = h("div", { class: "filters" });
  const total = h("span", { class: "soft", role: "status" });
  root.append(h("h1", {}, "Partitions"), filters);
  const table = new BigTable(root, {
    label: "Partitions",
    columns: COLUMNS,
    link: (row) => link("partitions", [row.topic, row.partition]),
    tone: (row) => WORDS[row.condition]?.[1] ?? "",
    onvisible: watch,
  });
  const controls = () =>
    patch(
      filters,
      h("label", {}, "Topic", h("input", { type: "search", value: wanted.topic, size: 16, oninput: (event) => set("topic", event.target.value) })),
      choice("Show", wanted.show, CONDITIONS, (value) => set("show", value)),
      h("label", {}, h("input", { type: "checkbox", checked: wanted.internal === "yes", onchange: (event) => set("internal", event.target.checked ? "yes" : "") }), "internal topics"),
      total,
    );

  function set(key, value) {
    wanted[key] = value;
    refine(wanted);
    update("partitions");
  }

  function update(channel) {
    if (channel === "logs") return table.draw();
    const every = [...live.rows("partitions").values()];
    const rows = every.filter((row) => matches(row, wanted));
    total.textContent = live.has("partitions") ? `${number(rows.length)} of ${count(every.length, "partition")}` : "Asking the cluster…";
    table.show(rows);
  }

  /** Only partitions that are seen have their replicas asked for their logs. */
  function watch(rows) {
    const next = rows.map((row) => [row.topic, row.partition]);
    if (JSON.stringify(next) === JSON.stringify(places)) return;
    places = next;
    live.watch(["partitions", "logs"], places);
  }

  controls();
  return { channels: ["partitions", "logs"], update, close: () => table.close() };
}

function matches(row, wanted) {
  if (wanted.internal !== "yes" && !wanted.show && row.topic.startsWith("__")) return false;
  if (wanted.topic && !row.topic.includes(wanted.topic)) return false;
  if (wanted.show === "out-of-sync") return row.isr.length < row.replicas.length;
  if (wanted.show === "recovering") return row.leader_recovery_state === "recovering";
  return !wanted.show || row.condition === wanted.show;
}

const log = (row) => live.rows("logs").get(`${row.topic}:${row.partition}`);

const COLUMNS = [
  { key: "place", title: "Partition", value: (row) => `${row.topic}-${row.partition}` },
  { key: "condition", title: "Condition", width: "120px", value: (row) => row.condition || "~", cell: chip },
  { key: "leader", title: "Leader", width: "76px", number: true, value: (row) => row.leader, cell: (row) => number(row.leader) },
  { key: "epoch", title: "Epoch", width: "76px", number: true, wide: true, value: (row) => row.leader_epoch },
  { key: "isr", title: "ISR", width: "100px", wide: true, value: (row) => list(row.isr) },
  { key: "elr", title: "ELR", width: "70px", wide: true, value: (row) => list(row.elr) },
  { key: "known", title: "LastKnownElr", width: "126px", wide: true, value: (row) => list(row.last_known_elr) },
  { key: "hw", title: "High watermark", width: "142px", number: true, wide: true, value: (row) => log(row)?.high_watermark ?? -1, cell: (row) => number(log(row)?.high_watermark) },
  { key: "ends", title: "Log ends", width: "110px", wide: true, value: (row) => log(row)?.high_watermark ?? -1, cell: (row) => brief(log(row)) },
];

function chip(row) {
  const [text, tone] = WORDS[row.condition] ?? ["healthy", "good"];
  return h("span", { class: `chip ${tone}` }, text);
}
