// The page: navigation, the view that is open, and what concerns all views.

import { begin, session } from "./base/api.js";
import { h, patch } from "./base/dom.js";
import { live } from "./base/live.js";
import { place } from "./base/place.js";
import * as theme from "./base/theme.js";
import { clock } from "./base/words.js";

const main = document.getElementById("main");
const banner = document.getElementById("banner");
let open = null; // { view, close(), update(channel) }
let isConnected = true;
let opening = 0;

async function start() {
  theme.begin(document.getElementById("theme"));
  try {
    await begin();
  } catch (problem) {
    patch(main, h("h1", {}, "The console cannot be opened"), h("p", {}, problem.message), h("p", {}, problem.advice));
    return;
  }
  const mode = document.getElementById("mode");
  mode.textContent = session.allow_changes ? "may change the cluster" : "read-only";
  mode.classList.toggle("warning", session.allow_changes);
  mode.hidden = false;
  live.onchange = (channel) => (channel === "status" ? warn() : open?.update(channel));
  live.onconnection = (is) => {
    isConnected = is;
    warn();
  };
  addEventListener("hashchange", show);
  await show();
  live.open();
}

/** A view's module exports open(root, { parts, query }), which returns { channels, update(channel), close() }. */
async function show() {
  const { view: name, parts, query } = place();
  const view = session.views.find((one) => one.name === name) ?? session.views[0];
  const turn = ++opening;
  const module = await import(`./views/${view.name}.js`);
  if (turn !== opening) return; // somebody went on meanwhile
  open?.close?.();
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  open = null;
  main.replaceChildren();
  navigate(view.name);
  document.title = `${view.title} – Strandline`;
  open = { close() {}, update() {}, channels: [], ...module.open(main, { parts, query }) };
  live.watch(open.channels, open.places ?? []);
  for (const channel of open.channels) if (live.has(channel)) open.update(channel); // what the view before showed too
}

function navigate(current) {
  const links = session.views.map((view) =>
    h("a", { href: `#/${view.name}`, "aria-current": view.name === current ? "page" : null }, view.title),
  );
  patch(document.getElementById("nav"), links);
  document.querySelector("#nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** What does not answer. The views show what was known last. */
function warn() {
  const lines = isConnected
    ? [...live.rows("status")].map(([source, row]) => `${source}: no answer since ${clock(row.since_ms)}: ${row.problem}`)
    : ["The console does not answer. Is `strandline console` still running?"];
  patch(banner, lines.map((line) => h("div", {}, line)));
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
start();
