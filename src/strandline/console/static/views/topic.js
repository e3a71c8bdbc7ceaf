// One topic: its rates and replicas, its settings with where they come from, its records.

import { read, session } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link } from "../base/place.js";
import { bytes, number } from "../base/words.js";
import { fact, problem } from "../parts/notes.js";
import { plot } from "../parts/plot.js";
import { rowsTable, tabs } from "../parts/rows.js";
import { BigTable } from "../parts/table.js";
import { produceDialog } from "../parts/produce.js";
import { recordBrowser } from "./records.js";
import { chip, perSecond, wholeBytes } from "./topics.js";

export function oneTopic(root, topic, page, query) {
  const pages = [
    [link("topics", [topic]), "Replicas"],
    [link("topics", [topic, "records"]), "Records"],
    [link("topics", [topic, "settings"]), "Settings"],
  ];
  const current = { records: "Records", settings: "Settings" }[page] ?? "Replicas";
  const produce = session.allow_changes ? h("button", { type: "button", class: "quiet", onclick: () => produceDialog(topic) }, "Write a record") : null;
  root.append(h("div", { class: "row" }, h("h1", {}, topic), ...(produce ? [produce] : [])), tabs(`Pages of ${topic}`, pages, current));
  if (current === "Records") return recordBrowser(root, topic, query);
  if (current === "Settings") return settings(root, topic);
  return replicas(root, topic);
}

function replicas(root, topic) {
  let points = [];
  const head = h("div", { class: "stack" });
  const box = h("section", { class: "panel", "aria-label": "Replicas" }, h("h2", {}, "Replicas"));
  root.append(head, box);
  const table = new BigTable(box, { label: `Partitions of ${topic}`, columns: COLUMNS, link: (row) => link("partitions", [row.topic, row.partition]) });

  /** The console knows them already: this asks no broker. What is wrong stands in the banner. */
  async function look() {
    points = await read("topic-rates", { topic }).catch(() => points);
    update("topics");
  }

  function update(channel) {
    if (channel === "rates-looked") return look();
    if (channel === "replica-sizes") return table.show([...live.rows("replica-sizes").values()].filter((row) => row.topic === topic));
    const row = live.rows("topics").get(topic);
    if (!live.has("topics")) return patch(head, h("p", { class: "hint" }, "Asking the cluster…"));
    if (!row) return patch(head, h("p", { class: "problem" }, "There is no such topic (any more)."));
    return patch(
      head,
      h(
        "dl",
        { class: "facts panel" },
        fact("Condition", chip(row)),
        fact("Partitions", `${number(row.partitions)}, with ${number(row.replicas)} replica${row.replicas === 1 ? "" : "s"} each`),
        fact("Size of all replicas", bytes(row.size_bytes)),
        fact("Growth", perSecond(row.bytes_per_s, wholeBytes)),
      ),
      h("div", { class: "panel" }, plot("Records per second", [{ name: "", points }])),
    );
  }

  update("topics");
  update("replica-sizes");
  return { channels: ["topics", "replica-sizes", "rates-looked"], update, close: () => table.close() };
}

const largest = (row) => Math.max(-1, ...row.replicas.map((one) => one.size_bytes));
const COLUMNS = [
  { key: "partition", title: "Partition", width: "90px", value: (row) => row.partition },
  { key: "leader", title: "Leader", width: "80px", number: true, value: (row) => row.leader, cell: (row) => number(row.leader) },
  { key: "end", title: "High watermark", width: "130px", number: true, wide: true, value: (row) => row.high_watermark ?? -1, cell: (row) => number(row.high_watermark) },
  { key: "records", title: "Records/s", width: "100px", number: true, wide: true, value: (row) => row.records_per_s ?? -1, cell: (row) => perSecond(row.records_per_s) },
  { key: "size", title: "Size", width: "100px", number: true, value: largest, cell: (row) => bytes(largest(row)) },
  { key: "replicas", title: "Replicas", value: largest, cell: sizes },
];

function sizes(row) {
  const text = row.replicas.map((one) => `${one.broker}: ${bytes(one.size_bytes)}${one.is_future ? " (moving to another directory)" : one.is_in_sync ? "" : " (out of sync)"}`);
  const where = row.replicas.map((one) => `broker ${one.broker}: ${one.log_dir}`).join("\n");
  return h("span", { title: where }, text.join(", ") || "–");
}

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "set for this topic",
  DYNAMIC_BROKER_CONFIG: "set for the broker",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "set for all brokers",
  STATIC_BROKER_CONFIG: "the broker's file",
  DEFAULT_CONFIG: "default",
};

function settings(root, topic) {
  const box = h("section", { class: "panel", "aria-label": "Settings" }, h("p", { class: "hint" }, "Asking a broker…"));
  root.append(box);
  read("topic-settings", { topic }).then((rows) => {
    const columns = [
      ["Setting", (row) => h("span", { title: row.documentation ?? "" }, row.name)],
      ["Value", (row) => h("code", {}, row.value ?? (row.sensitive ? "(hidden)" : "–"))],
      ["From", (row) => h("span", { class: row.source === "DYNAMIC_TOPIC_CONFIG" ? "chip warning" : "soft" }, SOURCES[row.source] ?? row.source)],
      ["Otherwise", (row) => row.synonyms.slice(1).map((one) => `${one.value} (${SOURCES[one.source] ?? one.source})`).join(", ") || "–"],
    ];
    box.replaceChildren(rowsTable(`Settings of ${topic}`, columns, rows));
  }, (error) => box.replaceChildren(problem(error)));
  return { channels: [] };
}
