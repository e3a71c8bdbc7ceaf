// One partition: its logs as bars that move, its leaders and epochs, and, if it is not well, the words of `explain`.

import { read } from "../base/api.js";
import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { clock, list, number } from "../base/words.js";
import { bar, scale } from "../parts/logs.js";
import { fact, problem } from "../parts/notes.js";
import { electionDialog } from "../parts/election.js";

export function onePartition(root, topic, partition) {
  const key = `${topic}:${partition}`;
  const at = { topic, partition };
  const head = h("div", { class: "stack" });
  const logs = h("section", { class: "panel", "aria-label": "Logs" });
  const explained = h("section", { class: "panel", "aria-label": "Explanation" });
  const past = h("section", { class: "panel", "aria-label": "History" });
  let seen = ""; // the partition's state when it was explained last
  let turn = 0;
  root.append(h("h1", {}, `${topic}-${partition}`), head, explained, logs, past);

  function update(channel) {
    const row = live.rows("partitions").get(key);
    if (channel === "logs") return patch(logs, ...bars(live.rows("logs").get(key)));
    if (!live.has("partitions")) return patch(head, h("p", { class: "hint" }, "Asking the cluster…"));
    if (!row) return patch(head, h("p", { class: "problem" }, "There is no such partition (any more)."));
    patch(head, facts(row));
    const now = JSON.stringify(row);
    if (now !== seen) {
      seen = now;
      look();
    }
    return undefined;
  }

  /** Anew whenever the partition has changed; only the latest answer counts. */
  async function look() {
    const mine = ++turn;
    patch(explained, h("h2", {}, "Explanation"), h("p", { class: "hint" }, "Asking its replicas…"));
    const [why, history] = await Promise.allSettled([read("partition-explained", at), read("partition-history", at)]);
    if (mine !== turn) return;
    patch(explained, ...(why.status === "fulfilled" ? words(why.value, at, look) : [problem(why.reason)]));
    patch(past, ...(history.status === "fulfilled" ? timeline(history.value) : [problem(history.reason)]));
  }

  update("partitions");
  return { channels: ["partitions", "logs"], places: [[topic, partition]], update, close: () => ++turn };
}

function facts(row) {
  return h(
    "dl",
    { class: "facts panel" },
    fact("Leader", row.leader < 0 ? `none; broker ${number(row.last_known_leader)} led last` : `broker ${row.leader}`),
    fact("Leader epoch", number(row.leader_epoch)),
    fact("Replicas", list(row.replicas)),
    fact("In sync (ISR)", `${list(row.isr)} (min.insync.replicas: ${number(row.effective_min_isr)})`),
    fact("Eligible (ELR)", list(row.elr)),
    fact("LastKnownElr", list(row.last_known_elr)),
    row.adding.length || row.removing.length ? fact("Move", `adds ${list(row.adding)}; removes ${list(row.removing)}`) : null,
    fact("Recovery", `${row.leader_recovery_state}; unclean.recovery.strategy is ${row.recovery_strategy || "unknown"}`),
  );
}

// --- logs

function bars(log) {
  if (!log) return [h("h2", {}, "Logs"), h("p", { class: "hint" }, "Asking its replicas…")];
  const top = scale(Math.max(0, ...log.replicas.map((row) => row.end_offset ?? 0)));
  const rows = log.replicas.map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `Broker ${row.replica}`),
      row.error === undefined
        ? [
            h("td", { class: "wide-cell" }, bar(row.end_offset, row.high_watermark, top, `log end ${row.end_offset}, high watermark ${row.high_watermark}`)),
            h("td", { class: "number" }, number(row.end_offset)),
            h("td", { class: "number" }, number(row.high_watermark)),
            h("td", { class: "number" }, number(row.last_epoch)),
          ]
        : h("td", { colspan: 4, class: "problem" }, row.error),
    ),
  );
  const titles = ["Replica", "Log", "Log end", "High watermark", "Last epoch"];
  return [
    h("h2", {}, "Logs"),
    h("p", { class: "soft small" }, `The bars begin at offset 0 and end at ${number(top)}; the mark is the high watermark.`),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Logs of the replicas" },
      h("table", { class: "logs" },
        h("thead", {}, h("tr", {}, titles.map((title, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, title)))),
        h("tbody", {}, rows))),
  ];
}

// --- what `explain` says

function words(found, at, again) {
  const head = h("div", { class: "row" }, h("h2", {}, "Explanation"), h("button", { class: "quiet", type: "button", onclick: again }, "Ask again"));
  const ledger = found.ledger_entries
    ? h("p", {}, h("a", { href: `#/losses?topic=${encodeURIComponent(at.topic)}` }, `The loss ledger has ${found.ledger_entries} entries of this partition.`))
    : null;
  if (!found.findings.length) {
    return [head, h("p", {}, `Healthy: broker ${found.leader} leads, ${list(found.isr)} in sync.`), ledger];
  }
  return [
    head,
    found.findings.map((finding) =>
      h(
        "article",
        { class: "finding" },
        h("p", {}, h("strong", {}, finding.what), " ", finding.needs_action ? h("span", { class: "chip bad" }, "needs an operator") : null),
        finding.why.length ? h("ul", {}, finding.why.map((text) => h("li", {}, text))) : null,
        finding.waits_for ? h("p", {}, `It waits for ${finding.waits_for}.`) : null,
        finding.ways.map((way) => wayOut(way, at)),
      ),
    ),
    found.if_one_is_lost.map((text) => h("p", { class: "soft" }, `If a record is lost: ${text}`)),
    ledger,
  ];
}

function wayOut(way, at) {
  const election = electionIn(way.command);
  return h(
    "div",
    { class: "way" },
    h("p", {}, h("strong", {}, "Way out: "), way.what),
    h("p", {}, "It costs: ", h("span", { class: way.costs.startsWith("none") ? null : "problem" }, way.costs)),
    h("pre", { class: "lines soft" }, `$ ${way.command}`),
    election ? h("button", { type: "button", onclick: () => electionDialog(at, election) }, "Plan this election") : null,
  );
}

/** The election that a command holds: its type, and the leader that it names. */
function electionIn(command) {
  const type = /--election-type (\S+)/.exec(command)?.[1];
  const leader = /--designated-leader (\d+)/.exec(command)?.[1];
  return type ? { type, designated_leader: leader === undefined ? -1 : Number(leader) } : null;
}

// --- history

function timeline({ moments, epochs, epochs_unknown: unknown }) {
  const items = [...moments].reverse().map((moment) =>
    h(
      "li",
      {},
      h("time", { class: "mono" }, clock(moment.time_ms)),
      moment.is_first ? " (first look): " : ": ",
      moment.leader < 0 ? h("strong", { class: "problem" }, "nobody led") : `broker ${moment.leader} led`,
      ` in epoch ${moment.leader_epoch}; in sync ${list(moment.isr)}`,
      moment.elr.length ? `; eligible ${list(moment.elr)}` : "",
      moment.last_known_elr.length ? `; LastKnownElr ${list(moment.last_known_elr)}` : "",
    ),
  );
  const spans = epochs.map(({ epoch, start, end }) =>
    h("tr", {}, h("th", { scope: "row" }, `epoch ${epoch}`), h("td", { class: "number" }, start < 0 ? "before" : number(start)), h("td", { class: "number" }, number(end - 1))),
  );
  return [
    h("h2", {}, "History"),
    h("div", { class: "columns" },
      h("div", {}, h("h3", {}, "Since the console looks"), h("ul", { class: "plain" }, items)),
      h("div", {}, h("h3", {}, "Leader epochs in the log"),
        unknown ? h("p", { class: "soft" }, `Unknown: ${unknown}.`) : spans.length
          ? h("table", {}, h("thead", {}, h("tr", {}, ["Epoch", "First offset", "Last offset"].map((title, at) => h("th", { scope: "col", class: at ? "number" : null }, title)))), h("tbody", {}, spans))
          : h("p", { class: "soft" }, "The log has no records."))),
  ];
}
