// The loss ledger: the cluster on one axis of time, a partition, and its offsets.

import { change, plan, session } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { link, refine } from "../base/place.js";
import { count, list, number, when } from "../base/words.js";
import { dialog } from "../parts/dialog.js";
import { lines, problem } from "../parts/notes.js";
import { BigTable } from "../parts/table.js";
import { offsets, timeline } from "../parts/timeline.js";

const LANES_MAX = 20;
const RANGES_MAX = 30;

export function open(root, { query }) {
  const wanted = { topic: query.topic ?? "", partition: query.partition ?? "", all: query.all ?? "" };
  const head = h("section", { class: "panel", "aria-label": "Summary" });
  const filters = h("div", { class: "filters" });
  const picture = h("section", { class: "panel", "aria-label": "Timeline" });
  const ranges = h("section", { class: "panel", "aria-label": "Offsets", hidden: true });
  const listed = h("section", { class: "panel", "aria-label": "Entries" });
  root.append(h("h1", {}, "Losses"), head, picture, ranges, listed);
  listed.append(filters);
  const table = new BigTable(listed, { label: "Entries of the ledger", columns: COLUMNS, sort: { key: "time", down: true }, tone: (row) => (row.acknowledged ? "" : tone(row)) });

  function choose(values) {
    Object.assign(wanted, values);
    refine(wanted);
    update();
  }

  function update() {
    if (!live.has("ledger")) return patch(head, h("p", { class: "hint" }, "Asking the cluster…"));
    const every = [...live.rows("losses").values()];
    const shown = every.filter((row) => matches(row, wanted)).sort((a, b) => a.time_ms - b.time_ms);
    patch(head, ...summary(live.rows("ledger").get("ledger"), wanted));
    patch(filters, ...controls(wanted, choose));
    picture.hidden = !shown.length;
    patch(picture, h("h2", {}, title(wanted)), shown.length ? timeline(lanes(shown, choose), `${number(shown.length)} of the ledger's entries by time`) : null);
    ranges.hidden = wanted.partition === "" || !shown.length;
    patch(ranges, ...(ranges.hidden ? [] : strip(shown, wanted)));
    listed.hidden = !every.length;
    return table.show(shown);
  }

  update();
  return { channels: ["losses", "ledger"], update, close: () => table.close() };
}

function matches(row, wanted) {
  if (row.acknowledged && wanted.all !== "yes") return false;
  if (wanted.topic && row.topic !== wanted.topic) return false;
  return wanted.partition === "" || row.partition === Number(wanted.partition);
}

function summary(ledger, wanted) {
  const open = ledger.entries - ledger.acknowledged;
  const lost = ledger.entries ? `The ledger has ${ledger.entries === 1 ? "1 entry" : `${number(ledger.entries)} entries`}; ${number(open)} not acknowledged.` : "Nothing was lost.";
  return [
    h("p", { class: "sentence" }, h("strong", {}, lost)),
    ledger.entries ? h("p", {}, `For certain, ${count(ledger.exactly_lost_records, "record")} lost. The entries say what else may be.`) : null,
    ledger.missing_copies ? h("p", {}, `${count(ledger.missing_copies, "record")} that a single replica missed; it copied them again if its leader had them.`) : null,
    ledger.gaps.map((gap) => h("p", { class: "problem" }, gap)),
    open && session.allow_changes ? h("button", { type: "button", class: "quiet", onclick: () => acknowledgeDialog(wanted.topic) }, wanted.topic ? `Acknowledge those of ${wanted.topic}` : "Acknowledge them") : null,
  ];
}

function controls(wanted, choose) {
  const place = wanted.topic ? (wanted.partition === "" ? `topic ${wanted.topic}` : `${wanted.topic}-${wanted.partition}`) : "";
  return [
    h("label", {}, h("input", { type: "checkbox", checked: wanted.all === "yes", onchange: (event) => choose({ all: event.target.checked ? "yes" : "" }) }), "acknowledged ones too"),
    place ? h("button", { type: "button", class: "quiet", onclick: () => choose({ topic: "", partition: "" }) }, `Show all, not only ${place}`) : null,
  ];
}

function title(wanted) {
  if (!wanted.topic) return "The cluster";
  return wanted.partition === "" ? `Topic ${wanted.topic}` : `Partition ${wanted.topic}-${wanted.partition}`;
}

/** One for each partition; for one partition, one for each broker. */
function lanes(rows, choose) {
  const isOne = new Set(rows.map(place)).size === 1;
  const found = new Map();
  for (const row of rows) {
    const name = isOne ? row.who : place(row);
    if (!found.has(name)) found.set(name, { name, events: [] });
    const onclick = () => choose({ topic: row.topic, partition: String(row.partition) });
    found.get(name).events.push({ time_ms: row.time_ms, tone: tone(row), title: `${when(row.time_ms)} ${place(row)}: ${row.words}`, onclick });
  }
  return [...found.values()].slice(0, LANES_MAX);
}

function strip(rows, wanted) {
  const known = rows.filter((row) => row.certainty);
  const shown = known.slice(-RANGES_MAX).map((row) => ({ ...row, tone: tone(row), title: `${row.who}: ${row.words}` }));
  return [
    h("h2", {}, "Offsets"),
    h("p", { class: "soft small" }, "Each bar is an entry, the oldest first. An arrow: what was committed from there on; nobody knows how far that was."),
    shown.length ? offsets(shown, `ranges of offsets of ${wanted.topic}-${wanted.partition}: ${shown.map((row) => row.words).join("; ")}`) : h("p", {}, "It is not known which offsets."),
    [...new Set(rows.flatMap((row) => row.means))].map((text) => h("p", { class: "soft" }, `If a record is lost: ${text}.`)),
    h("a", { href: link("partitions", [wanted.topic, wanted.partition]) }, "The partition as it is now"),
  ];
}

const place = (row) => `${row.topic}-${row.partition}`;
const tone = (row) => (row.known === "exactly" && !row.is_of_one_replica ? "bad" : "warning");

const COLUMNS = [
  { key: "time", title: "Time", width: "190px", value: (row) => row.time_ms, cell: (row) => when(row.time_ms) },
  { key: "place", title: "Partition", value: place, cell: (row) => h("a", { href: link("losses", [], { topic: row.topic, partition: row.partition }) }, place(row)) },
  { key: "what", title: "What", width: "34%", value: (row) => row.words },
  { key: "who", title: "Whose log", wide: true, value: (row) => row.who },
  { key: "epochs", title: "Epochs", width: "90px", wide: true, value: (row) => `${row.old_epoch} → ${row.new_epoch}` },
  { key: "cause", title: "Cause", wide: true, value: (row) => row.cause },
  { key: "seen", title: "Acknowledged by", width: "150px", wide: true, value: (row) => row.acknowledged_by ?? "", cell: (row) => row.acknowledged_by ?? list([]) },
];

// --- acknowledging

async function acknowledgeDialog(topic) {
  const box = dialog("Acknowledge entries of the ledger", h("p", { class: "hint" }, "Asking the brokers…"));
  try {
    confirm(box, topic, await plan("acknowledgement", { topic }));
  } catch (error) {
    box.show(problem(error));
  }
}

function confirm(box, topic, found, note = "These entries are hidden from then on. The metadata log records who has seen them.") {
  box.show(h("p", {}, note), lines(found.lines, "Entries"));
  const make = async () => {
    try {
      const done = await change("acknowledgement", { topic, count: found.count });
      if (!done.is_done) return confirm(box, topic, done, "There are other entries now. Look at them first.");
      box.close();
    } catch (error) {
      box.show(problem(error));
    }
    return undefined;
  };
  box.buttons([["Cancel", box.close], ...(found.count ? [["Acknowledge", make, ""]] : [])]);
}
