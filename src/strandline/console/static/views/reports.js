// Reports of `strandline sim --json` and `strandline pipeline audit --json`, opened in the browser: no server sees them.

import { h } from "../base/dom.js";
import { count, number } from "../base/words.js";
import { fact, lines } from "../parts/notes.js";
import { rowsTable } from "../parts/rows.js";

const SIZE_MAX = 64 << 20;
const LISTED_MAX = 500;

export function open(root) {
  const shown = h("div", { class: "stack", "aria-live": "polite" });
  const file = h("input", { type: "file", id: "report", accept: ".json,.jsonl,.txt,application/json", onchange: choose });
  const drop = h(
    "section",
    { class: "panel", "aria-label": "Open a report" },
    h("p", {}, "Open the output of ", h("code", {}, "strandline sim --json"), " or ", h("code", {}, "strandline pipeline audit --json"), ". The file stays in this browser."),
    h("label", { for: "report" }, "Report"),
    " ",
    file,
  );
  drop.ondragover = (event) => event.preventDefault();
  drop.ondrop = (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) opened(event.dataTransfer.files[0]);
  };
  root.append(h("h1", {}, "Reports"), drop, shown);

  /** The same file may be chosen again: it may have another content now. */
  async function choose() {
    const [chosen] = file.files;
    if (chosen) await opened(chosen);
    file.value = "";
  }

  async function opened(chosen) {
    if (chosen.size > SIZE_MAX) return refuse(`${chosen.name} is larger than ${SIZE_MAX >> 20} MiB`);
    try {
      return shown.replaceChildren(pageOf(chosen.name, await chosen.text()));
    } catch (error) {
      return refuse(`${chosen.name} cannot be shown: ${error.message}`);
    }
  }

  const refuse = (why) => shown.replaceChildren(h("p", { class: "problem", role: "alert" }, why));
  return { channels: [] };
}

/** A report, or one on each line. */
function pageOf(name, text) {
  let found;
  try {
    found = [JSON.parse(text)].flat();
  } catch {
    found = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
  if (found.length === 1 && Array.isArray(found[0]?.findings) && found[0].totals) return audit(name, found[0]);
  if (found.length && found.every(isRun)) return found.length === 1 ? simulated(name, found[0]) : campaign(name, found);
  throw new Error("it is neither a report of the simulator nor of an audit");
}

const isRun = (report) => Number.isInteger(report?.seed) && typeof report.digest === "string";
const chip = (tone, text) => h("span", { class: `chip ${tone}` }, text);
const pairs = (values) => Object.entries(values ?? {}).map(([key, value]) => ({ key, value }));
const KEYS = (title, amount) => [[title, (row) => row.key], [amount, (row) => number(row.value), true]];

function simulated(name, report) {
  const isOk = !report.check;
  return h(
    "article",
    { class: "stack", "aria-label": `Seed ${report.seed}` },
    h(
      "section",
      { class: `panel health ${isOk ? "good" : "bad"}` },
      h("p", { class: "sentence" }, isOk ? `Seed ${report.seed}: no law was broken` : `Seed ${report.seed} broke a law`),
      isOk ? null : lines([report.check], "What failed"),
    ),
    h(
      "dl",
      { class: "facts panel" },
      fact("File", name),
      fact("Digest", h("code", {}, report.digest)),
      fact("Virtual time", `${number(Math.round(report.virtual_ms / 100) / 10)} s`),
      fact("Events of nodes", number(report.events)),
      fact("Operations of clients", number(report.operations)),
      fact("Partitions beyond what is promised", number(report.exceeded)),
    ),
    report.evidence ? h("section", { class: "panel" }, h("h2", {}, "Evidence"), lines([report.evidence], "Evidence")) : null,
    report.story?.length ? h("section", { class: "panel" }, h("h2", {}, "The last of its story"), lines(report.story, "Story")) : null,
    h("section", { class: "panel" }, h("h2", {}, "What happened"), rowsTable("What happened", KEYS("What", "Times"), pairs(report.seen).sort((a, b) => b.value - a.value))),
  );
}

/** Many runs: those that broke a law first. */
function campaign(name, runs) {
  const failed = runs.filter((run) => run.check);
  const seen = {};
  for (const run of runs) for (const [what, times] of Object.entries(run.seen ?? {})) seen[what] = (seen[what] ?? 0) + times;
  const sum = (key) => runs.reduce((total, run) => total + run[key], 0);
  const verdict = failed.length ? `${count(failed.length, "run")} of ${number(runs.length)} broke a law` : `${count(runs.length, "run")}: no law was broken`;
  return h(
    "article",
    { class: "stack", "aria-label": "Campaign" },
    h("section", { class: `panel health ${failed.length ? "bad" : "good"}` }, h("p", { class: "sentence" }, verdict)),
    h(
      "dl",
      { class: "facts panel" },
      fact("File", name),
      fact("Virtual time", `${number(Math.round(sum("virtual_ms") / 1000))} s`),
      fact("Events of nodes", number(sum("events"))),
      fact("Operations of clients", number(sum("operations"))),
    ),
    h("section", { class: "panel" }, h("h2", {}, "Runs that broke a law"), rowsTable("Runs that broke a law", FAILED, failed.slice(0, LISTED_MAX))),
    h("section", { class: "panel" }, h("h2", {}, "What happened"), rowsTable("What happened", KEYS("What", "Times"), pairs(seen).sort((a, b) => b.value - a.value))),
  );
}

const FAILED = [
  ["Seed", (row) => number(row.seed), true],
  ["What failed", (row) => row.check.split("\n")[0]],
  ["Again", (row) => h("code", {}, `strandline sim --seed ${row.seed}`)],
];

function audit(name, report) {
  const tone = { clean: "good", findings: "bad", incomplete: "warning" }[report.status] ?? "";
  const columns = [
    ["Severity", (row) => chip(row.severity === "error" ? "bad" : "warning", row.severity)],
    ["Rule", (row) => row.rule],
    ["Where", (row) => `${row.topic}-${row.partition}${row.broker === undefined || row.broker === null ? "" : `, broker ${row.broker}`}`],
    ["Offset", (row) => number(row.offset), true],
    ["What", (row) => row.what],
    ["Found", (row) => number(report.counts?.[row.rule]), true],
  ];
  return h(
    "article",
    { class: "stack", "aria-label": "Audit" },
    h("section", { class: `panel health ${tone}` }, h("p", { class: "sentence" }, `Audit: ${report.verdict}`)),
    h("dl", { class: "facts panel" }, fact("File", name), pairs(report.totals).map(({ key, value }) => fact(key, number(value))), fact("losses in the ledger", number(report.losses)), report.acknowledged === null ? null : fact("acknowledged records looked for", number(report.acknowledged))),
    report.unread.length ? h("section", { class: "panel" }, h("h2", {}, "Not read"), lines(report.unread, "Not read")) : null,
    h("section", { class: "panel" }, h("h2", {}, "The first finding of each rule"), rowsTable("Findings", columns, report.findings, "No findings.")),
  );
}
