// Transactions as their coordinators know them, and those that nobody is going to end.

import { read } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { count, list, number } from "../base/words.js";
import { findings } from "../parts/findings.js";
import { problem } from "../parts/notes.js";
import { BigTable } from "../parts/table.js";

const TICK_MS = 1000;

export function open(root) {
  let turn = 0;
  const said = h("p", { class: "soft", role: "status" });
  const silent = h("div", {});
  const found = h("div", { "aria-live": "polite" }, h("p", { class: "hint" }, "Asked on demand: the leaders of all partitions are asked for open transactions."));
  const minutes = h("input", { type: "number", min: 0, value: 15, size: 5, "aria-label": "Minutes without a write" });
  const ask = h("button", { type: "button", class: "quiet", onclick: look }, "Find them");
  root.append(
    h("h1", {}, "Transactions"),
    silent,
    said,
    h("section", { class: "panel", "aria-label": "Hanging transactions" }, h("h2", {}, "Hanging transactions"), h("div", { class: "row" }, "open, and not written to for ", minutes, " minutes", ask), found),
    h("h2", {}, "Transactional ids"),
  );
  const table = new BigTable(root, { label: "Transactional ids", columns: COLUMNS, sort: { key: "age", down: true } });
  const ticking = setInterval(() => table.draw(), TICK_MS); // ages grow by themselves

  function update() {
    const rows = [...live.rows("transactions").values()];
    const open = rows.filter((row) => row.started_at_ms !== null).length;
    if (!live.has("transactions")) said.textContent = "Asking the coordinators…";
    else said.textContent = rows.length ? `${count(rows.length, "transactional id")}, ${number(open)} with an open transaction.` : "No coordinator knows a transactional id.";
    patch(silent, [...live.rows("silent-transaction-coordinators")].map(([node, why]) => h("p", { class: "problem" }, `Broker ${node} ${why}; it may coordinate more.`)));
    table.show(rows);
  }

  async function look() {
    const mine = ++turn;
    found.replaceChildren(h("p", { class: "hint" }, "Asking the leaders of all partitions, and the coordinators…"));
    try {
      const { findings: rows, unknown } = await read("hanging", { minutes: minutes.value });
      if (mine !== turn) return;
      const none = unknown.length ? "None was found, but not everybody answered." : "No transaction hangs.";
      found.replaceChildren(...(rows.length ? findings(rows) : [h("p", {}, none)]), ...unknown.map((text) => h("p", { class: "problem" }, `Not known: ${text}`)));
    } catch (error) {
      if (mine === turn) found.replaceChildren(problem(error));
    }
  }

  update();
  return { channels: ["transactions", "silent-transaction-coordinators"], update, close: () => (++turn, clearInterval(ticking), table.close()) };
}

const age = (row) => (row.started_at_ms === null ? -1 : Date.now() - row.started_at_ms);

function span(ms) {
  if (ms < 0) return "–";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

const COLUMNS = [
  { key: "id", title: "Transactional id", value: (row) => row.transactional_id },
  { key: "state", title: "State", width: "150px", value: (row) => row.state, cell: (row) => h("span", { class: `chip ${row.started_at_ms === null ? "" : "warning"}` }, row.state) },
  { key: "age", title: "Open for", width: "100px", number: true, value: age, cell: (row) => span(age(row)) },
  { key: "producer", title: "Producer", width: "110px", number: true, wide: true, value: (row) => row.producer_id, cell: (row) => (row.producer_epoch === null ? number(row.producer_id) : `${number(row.producer_id)}, epoch ${row.producer_epoch}`) },
  { key: "partitions", title: "Partitions", wide: true, value: (row) => list(row.partitions), cell: (row) => h("span", { title: row.partitions.join("\n") }, list(row.partitions)) },
  { key: "coordinator", title: "Coordinator", width: "110px", number: true, wide: true, value: (row) => row.coordinator },
];
