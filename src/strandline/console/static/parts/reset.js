// Where a group goes on: the plan with what it skips and repeats, a confirmation, and what came of it.

import { change, plan, session } from "../base/api.js";
import { h } from "../base/dom.js";
import { number } from "../base/words.js";
import { dialog } from "./dialog.js";
import { problem } from "./notes.js";
import { field, rowsTable, select } from "./rows.js";

const TARGETS = [
  ["to-earliest", "to the log's start"],
  ["to-latest", "to the log's end"],
  ["to-offset", "to an offset"],
  ["shift-by", "forward or back by so many offsets"],
  ["to-datetime", "to a time (UTC)"],
  ["by-duration", "by a duration back from now"],
  ["to-current", "to the committed offset"],
];
const EXAMPLES = { "to-offset": "100", "shift-by": "-10", "to-datetime": "2026-01-31T12:00:00.000", "by-duration": "PT1H" };

export function resetDialog(group) {
  const to = select(TARGETS, "to-earliest");
  const value = h("input", { autocomplete: "off", spellcheck: "false" });
  const scope = h("input", { placeholder: "all; or TOPIC, TOPIC:0,1", autocomplete: "off", spellcheck: "false" });
  const valueField = field("How far", value);
  const said = h("div", { class: "stack", "aria-live": "polite" });
  const box = dialog(`Reset offsets of ${group}`, [field("Reset", to), valueField, field("Only these partitions", scope), said]);
  to.onchange = () => {
    valueField.hidden = !(to.value in EXAMPLES);
    value.placeholder = EXAMPLES[to.value] ?? "";
  };
  to.onchange();

  async function look() {
    const places = scope.value.trim().split(/\s+/).filter(Boolean);
    const wanted = { group, to: to.value, value: to.value in EXAMPLES ? value.value.trim() : "", scope: places };
    try {
      const found = await plan("reset-offsets", wanted);
      said.replaceChildren(...planned(found));
      const go = session.allow_changes && found.can_reset;
      box.buttons([["Cancel", box.close], ["Plan", look, ""], ...(go ? [["Reset", () => reset(wanted, found), "danger"]] : [])]);
    } catch (error) {
      said.replaceChildren(problem(error));
    }
  }

  async function reset(wanted, found) {
    box.buttons([]);
    const offsets = found.rows.map((row) => ({ topic: row.topic, partition: row.partition, offset: row.new_offset }));
    try {
      const done = await change("reset-offsets", { ...wanted, planned: offsets });
      said.replaceChildren(table("What came of it", [...COLUMNS.slice(0, 3), ["Outcome", (row) => row.error ?? row.outcome]], done.rows));
    } catch (error) {
      said.replaceChildren(problem(error));
    }
    box.buttons([["Close", box.close], ["Plan", look]]);
  }

  box.buttons([["Cancel", box.close], ["Plan", look, ""]]);
}

const COLUMNS = [
  ["Partition", (row) => `${row.topic}-${row.partition}`],
  ["Old", (row) => number(row.old_offset), true],
  ["New", (row) => number(row.new_offset), true],
  ["Consequence", (row) => row.consequence],
];

const table = (label, columns, rows) => rowsTable(label, columns, rows, "There is nothing to reset: the group has committed no offsets there.");

function planned(found) {
  const [why, advice] = found.in_the_way;
  return [
    table("The plan", COLUMNS, found.rows),
    ...found.unplanned.map((text) => h("p", { class: "problem" }, text)),
    why ? h("p", { class: "problem" }, `${why}. ${advice}`) : null,
    session.allow_changes ? null : h("p", { class: "hint" }, "This console is read-only. Start it with --allow-changes to reset, or use `strandline groups reset-offsets`."),
  ].filter(Boolean);
}
