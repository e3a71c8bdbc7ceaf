// One group: its members, its partitions, its lag over time, and, if it does not make progress, the words of `explain`.

import { read, session } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link } from "../base/place.js";
import { count, list, number } from "../base/words.js";
import { findings } from "../parts/findings.js";
import { fact, problem } from "../parts/notes.js";
import { plot } from "../parts/plot.js";
import { rowsTable } from "../parts/rows.js";
import { BigTable } from "../parts/table.js";
import { chip } from "./groups.js";
import { resetDialog } from "../parts/reset.js";

export function oneGroup(root, name) {
  let isAsking = false;
  let turn = 0;
  const label = session.allow_changes ? "Reset offsets" : "Plan a reset of offsets";
  const head = h("div", { class: "stack" });
  const said = h("div", { "aria-live": "polite" }, h("p", { class: "hint" }, "Asked on demand: its offsets are watched for some seconds."));
  const ask = h("button", { type: "button", class: "quiet", onclick: explain }, "Explain");
  const explained = h("section", { class: "panel", "aria-label": "Explanation" }, h("div", { class: "row" }, h("h2", {}, "Explanation"), ask), said);
  const box = h("section", { class: "panel", "aria-label": "Partitions" }, h("h2", {}, "Partitions"));
  root.append(h("div", { class: "row" }, h("h1", {}, name), h("button", { type: "button", class: "quiet", onclick: () => resetDialog(name) }, label)), head, explained, box);
  const table = new BigTable(box, { label: `Partitions of ${name}`, columns: COLUMNS, link: (row) => link("partitions", [row.topic, row.partition]) });

  /** The console knows all of it already: this asks no broker. */
  async function update() {
    if (isAsking || !live.has("groups")) return;
    isAsking = true;
    try {
      const group = await read("group", { group: name });
      patch(head, ...(group ? facts(group) : [h("p", { class: "problem" }, "There is no such group (any more).")]));
      table.show(group?.partitions ?? []);
    } catch (error) {
      patch(head, problem(error));
    } finally {
      isAsking = false;
    }
  }

  async function explain() {
    const mine = ++turn;
    ask.disabled = true;
    said.replaceChildren(h("p", { class: "hint" }, "Asking the coordinator, and watching the offsets…"));
    try {
      const found = await read("group-explained", { group: name });
      if (mine === turn) said.replaceChildren(...(found.findings.length ? findings(found.findings) : found.lines.map((text) => h("p", {}, text))));
    } catch (error) {
      if (mine === turn) said.replaceChildren(problem(error));
    }
    ask.disabled = false;
  }

  patch(head, h("p", { class: "hint" }, "Asking the coordinators…"));
  update();
  return { channels: ["groups", "lags-looked"], update, close: () => (++turn, table.close()) };
}

function facts(group) {
  const described = group.described;
  return [
    group.problem ? h("p", { class: "problem" }, `Its offsets are not known: ${group.problem}`) : null,
    h(
      "dl",
      { class: "facts panel" },
      fact("State", chip(group.state)),
      fact("Lag", number(group.lag)),
      fact("Members", number(group.members)),
      fact("Protocol", `${group.type}${described?.assignor ? `, ${described.assignor}` : ""}`),
      fact("Coordinator", `broker ${group.coordinator}`),
    ),
    h("div", { class: "panel" }, plot("Lag in offsets", [{ name: "", points: group.lags }], number)),
    h("section", { class: "panel", "aria-label": "Members" }, h("h2", {}, "Members"), rowsTable(`Members of ${group.group}`, MEMBERS, group.member_rows, "The group has no members.")),
  ];
}

const MEMBERS = [
  ["Client", (row) => row.client_id],
  ["Host", (row) => row.host.replace(/^\//, "")],
  ["Member", (row) => h("code", {}, row.instance_id ? `${row.instance_id} (${row.member_id})` : row.member_id)],
  ["Reads", (row) => (row.assigned.length > 6 ? count(row.assigned.length, "partition") : list(row.assigned))],
];

const COLUMNS = [
  { key: "place", title: "Partition", value: (row) => `${row.topic}-${row.partition}` },
  { key: "committed", title: "Committed", width: "110px", number: true, value: (row) => row.committed_offset ?? -1, cell: (row) => number(row.committed_offset) },
  { key: "end", title: "Log end", width: "110px", number: true, wide: true, value: (row) => row.log_end_offset ?? -1, cell: (row) => number(row.log_end_offset) },
  { key: "lag", title: "Lag", width: "100px", number: true, value: (row) => row.lag ?? -1, cell: (row) => number(row.lag) },
  { key: "client", title: "Read by", wide: true, value: (row) => (row.client_id === null ? "–" : `${row.client_id} at ${row.host}`) },
];
