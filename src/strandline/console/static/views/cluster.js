// Nodes, roles, quorum, who leads what, racks; health as one sentence and the list behind it.

import { h, patch } from "../base/dom.js";
import { live } from "../base/live.js";
import { number } from "../base/words.js";
import { fact } from "../parts/notes.js";

export function open(root) {
  const update = () => live.has("summary") && patch(root, ...page());
  patch(root, h("h1", {}, "Cluster"), h("p", { class: "hint" }, "Asking the cluster…"));
  return { channels: ["summary", "nodes"], update };
}

function page() {
  const summary = live.rows("summary");
  const cluster = summary.get("cluster");
  const nodes = [...live.rows("nodes").values()].sort((a, b) => a.node - b.node);
  return [
    h("h1", {}, "Cluster"),
    health(summary.get("health")),
    h(
      "dl",
      { class: "facts panel" },
      fact("Cluster id", h("code", {}, cluster.id)),
      fact("Metadata quorum", quorum(cluster.quorum)),
      fact("Topics", number(cluster.topics)),
      fact("Partitions", number(cluster.partitions)),
      fact("Racks", cluster.racks ? number(cluster.racks) : "none named"),
    ),
    h("div", { class: "panel" }, h("h2", {}, "Nodes"), h("div", { class: "columns" }, nodes.map((node) => card(node, nodes)))),
  ];
}

function health({ level, sentence, troubles }) {
  const items = troubles.map(({ level: of, what, path }) =>
    h("li", {}, chip(of), " ", path ? h("a", { href: `#/${path}` }, what) : what),
  );
  return h(
    "section",
    { class: `panel health ${level}`, "aria-label": "Health" },
    h("p", { class: "sentence", role: "status" }, sentence),
    items.length ? h("ul", {}, items) : null,
  );
}

function card(node, nodes) {
  const most = Math.max(1, ...nodes.map((one) => one.leads));
  return h(
    "article",
    { class: "node", "data-node": node.node },
    h(
      "div",
      { class: "row" },
      h("strong", {}, `Node ${node.node}`),
      node.state ? h("span", { class: `chip ${node.state === "running" ? "good" : "bad"}` }, node.state) : null,
      node.roles.map((role) => h("span", { class: "chip" }, role)),
      node.is_leader ? h("span", { class: "chip warning" }, "active controller") : null,
    ),
    h(
      "dl",
      { class: "facts small" },
      node.address ? fact("Address", h("code", {}, node.address)) : null,
      node.rack ? fact("Rack", node.rack) : null,
      fact("Leads", number(node.leads)),
      fact("In sync", `${number(node.in_sync)} of ${number(node.hosts)}`),
      fact("Metadata", node.metadata_offset < 0 ? "unknown" : `offset ${number(node.metadata_offset)}${behind(node)}`),
    ),
    h("span", { class: "bar", role: "img", "aria-label": `leads ${node.leads} partitions` }, share(node.leads / most)),
  );
}

const behind = (node) => (node.metadata_behind > 0 ? `, ${number(node.metadata_behind)} behind` : "");
const share = (part) => h("i", { style: { width: `${Math.round(part * 100)}%` } });
const chip = (level) => h("span", { class: `chip ${level}` }, level);


function quorum(found) {
  if (!found) return "unknown";
  return found.leader < 0 ? `no leader, epoch ${found.epoch}` : `node ${found.leader} leads in epoch ${found.epoch}`;
}
