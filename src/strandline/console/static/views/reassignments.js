// Partitions that move to other brokers: what each move waits for, how far it is; and the way back.

import { change, plan, session } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link } from "../base/place.js";
import { count, list } from "../base/words.js";
import { dialog } from "../parts/dialog.js";
import { lines, problem } from "../parts/notes.js";
import { BigTable } from "../parts/table.js";

export function open(root) {
  const said = h("p", { class: "soft", role: "status" });
  root.append(h("h1", {}, "Reassignments"), said);
  const table = new BigTable(root, { label: "Reassignments", columns: session.allow_changes ? [...COLUMNS, CANCEL] : COLUMNS, link: (row) => link("partitions", [row.topic, row.partition]) });

  function update() {
    const rows = [...live.rows("moves").values()];
    if (!live.has("moves")) said.textContent = "Asking the controller…";
    else said.textContent = rows.length ? `${count(rows.length, "partition")} on the way to other brokers.` : "No partition is being reassigned.";
    table.show(rows);
  }

  patch(said, "Asking the controller…");
  update();
  return { channels: ["moves"], update, close: () => table.close() };
}

const COLUMNS = [
  { key: "place", title: "Partition", value: (row) => `${row.topic}-${row.partition}` },
  { key: "adding", title: "Adding", width: "90px", value: (row) => list(row.adding) },
  { key: "removing", title: "Removing", width: "90px", wide: true, value: (row) => list(row.removing) },
  { key: "progress", title: "Copied", width: "130px", value: (row) => row.progress ?? -1, cell: progress },
  { key: "waits", title: "Waits for", wide: true, value: (row) => row.waits_for ?? "", cell: (row) => h("span", { title: row.waits_for ?? "" }, row.waits_for ?? "–") },
  { key: "behind", title: "Behind", wide: true, value: (row) => row.behind_words.join("; "), cell: (row) => h("span", { title: row.behind_words.join("\n") }, row.behind_words.join("; ") || "–") },
];
const CANCEL = {
  key: "cancel",
  title: "Way back",
  width: "100px",
  value: () => "",
  cell: (row) => h("button", { type: "button", class: "quiet small", "aria-label": `Cancel ${row.topic}-${row.partition}`, onclick: () => cancelDialog(row) }, "Cancel"),
};

function progress(row) {
  if (row.progress === null) return h("span", { class: "soft" }, "unknown");
  const part = `${Math.round(row.progress * 100)} %`;
  return h("span", { class: "bar", role: "img", "aria-label": `${part} copied`, title: part }, h("i", { style: { width: part.replace(" ", "") } }));
}

async function cancelDialog({ topic, partition }) {
  const wanted = { topic, partition };
  const box = dialog(`Cancel the move of ${topic}-${partition}`, h("p", { class: "hint" }, "Asking the controller…"));
  const go = async () => {
    box.buttons([]);
    try {
      box.show(lines((await change("cancel-move", wanted)).lines, "What came of it"));
    } catch (error) {
      box.show(problem(error));
    }
    box.buttons([["Close", box.close]]);
  };
  try {
    box.show(lines((await plan("cancel-move", wanted)).lines, "The plan"));
    box.buttons([["Go on moving", box.close], ["Cancel the move", go, "danger"]]);
  } catch (error) {
    box.show(problem(error));
  }
}
