// Records of a topic: from an end, an offset or a time on, or with a key; as JSON, text or hexadecimal, or by a schema.

import { readLong } from "../base/api.js";
import { h } from "../base/dom.js";
import { refine } from "../base/place.js";
import { bytes, count, number, when } from "../base/words.js";
import { problem } from "../parts/notes.js";
import { field, select } from "../parts/rows.js";

const STARTS = [
  ["latest", "the newest"],
  ["earliest", "the oldest"],
  ["offset", "an offset"],
  ["time", "a time"],
];
const FORMATS = [
  ["auto", "what fits"],
  ["json", "JSON"],
  ["text", "text"],
  ["hex", "hexadecimal"],
  ["avro", "Avro"],
  ["protobuf", "Protobuf"],
];
const LINE_MAX = 160;

export function recordBrowser(root, topic, query) {
  let following = null;
  let turn = 0;
  const partition = h("input", { inputmode: "numeric", placeholder: "all", value: query.partition ?? "", autocomplete: "off" });
  const start = select(STARTS, query.start ?? "latest");
  const offset = h("input", { type: "number", min: 0, value: query.offset ?? "0" });
  const time = h("input", { type: "datetime-local", step: 1, value: query.time ?? "" });
  const key = h("input", { value: query.key ?? "", placeholder: "any", autocomplete: "off", spellcheck: "false" });
  const limit = select([["50", "50"], ["200", "200"], ["500", "500"]], query.limit ?? "50");
  const values = schemaChooser("Values as", query.value_as ?? "auto");
  const keys = schemaChooser("Keys as", query.key_as ?? "auto");
  const offsetField = field("Offset", offset);
  const timeField = field("Time (yours)", time);
  const said = h("p", { class: "soft", role: "status" });
  const list = h("div", {});
  const next = h("button", { type: "button", class: "quiet", onclick: () => look(following), disabled: true }, "Next");
  const form = h(
    "form",
    { class: "form", onsubmit: (event) => (event.preventDefault(), look(null)) },
    field("Partition", partition),
    field("From", start),
    offsetField,
    timeField,
    field("Key is", key),
    field("At most", limit),
    values.choice,
    keys.choice,
    h("div", { class: "row" }, h("button", { type: "submit" }, "Read"), next),
    values.more,
    keys.more,
  );
  root.append(h("section", { class: "panel", "aria-label": "Which records" }, form), h("section", { class: "panel", "aria-label": "Records" }, said, list));
  start.onchange = arrange;
  arrange();

  function arrange() {
    offsetField.hidden = start.value !== "offset";
    timeField.hidden = start.value !== "time";
  }

  /** `positions`: of the page before; null: where the form says. */
  async function look(positions) {
    const mine = ++turn;
    const wanted = { partition: partition.value.trim(), start: start.value, key: key.value, limit: limit.value };
    refine({ ...wanted, offset: start.value === "offset" ? offset.value : "", time: start.value === "time" ? time.value : "", value_as: values.name(), key_as: keys.name() });
    said.textContent = "Reading…";
    try {
      const asked = { topic, ...wanted, number: numberOf(), ...(await values.query("value")), ...(await keys.query("key")) };
      if (positions) asked.positions = JSON.stringify(positions);
      const page = await readLong("records", asked);
      if (mine === turn) show(page);
    } catch (error) {
      if (mine !== turn) return;
      said.textContent = "";
      list.replaceChildren(problem(error));
    }
  }

  function numberOf() {
    if (start.value === "time") return String(Math.max(0, new Date(time.value || 0).getTime()));
    return start.value === "offset" ? offset.value : "0";
  }

  function show(page) {
    following = page.next;
    next.disabled = false;
    const parts = [count(page.records.length, "record")];
    if (key.value) parts.push(`${number(page.examined)} examined`);
    if (page.stopped) parts.push(`${page.stopped}: Next goes on`);
    else if (page.is_at_end) parts.push("up to the end");
    said.textContent = `${parts.join("; ")}.`;
    list.replaceChildren(...page.unread.map((text) => h("p", { class: "problem" }, `Not readable: ${text}`)), ...page.records.map(record));
  }

  look(null);
  return { channels: [], close: () => ++turn };
}

function record(row) {
  const value = row.value;
  return h(
    "details",
    { class: "record" },
    h(
      "summary",
      {},
      h("span", { class: "at" }, `${row.partition}:${row.offset}`),
      h("span", { class: "at" }, when(row.timestamp_ms)),
      row.key.form === "null" ? null : h("strong", { class: "wrap" }, line(row.key.text)),
      h("span", { class: "value" }, value.form === "null" ? "null (a tombstone)" : line(value.text)),
    ),
    h(
      "div",
      { class: "body stack" },
      content("Key", row.key),
      content("Value", value),
      row.headers.length ? h("div", {}, h("h3", {}, "Headers"), h("dl", { class: "facts" }, row.headers.map(([name, one]) => [h("dt", {}, name), h("dd", {}, one.form === "null" ? "null" : one.text)]))) : null,
      row.headers_left_out ? h("p", { class: "soft" }, `and ${count(row.headers_left_out, "more header")}`) : null,
      row.is_transactional ? h("p", { class: "soft" }, "Written in a transaction, which may have been aborted.") : null,
    ),
  );
}

const line = (text) => text.slice(0, LINE_MAX).replace(/\s+/g, " ");

function content(name, one) {
  if (one.form === "null") return h("p", { class: "soft" }, `${name}: null`);
  return h(
    "div",
    {},
    h("h3", {}, `${name}: ${one.form}, ${bytes(one.size)}${one.is_cut ? ", the beginning" : ""}`),
    one.problem ? h("p", { class: "problem" }, one.problem) : null,
    h("pre", { class: "lines", tabindex: "0", role: "region", "aria-label": name }, one.text),
  );
}

/** What bytes are shown as; for Avro and Protobuf with the schema, which is read in the browser. */
function schemaChooser(label, chosen) {
  const name = select(FORMATS, chosen);
  const schema = h("textarea", { spellcheck: "false", placeholder: '{"type": "record", …}' });
  const file = h("input", { type: "file" });
  const message = h("input", { placeholder: "package.Message", autocomplete: "off", spellcheck: "false" });
  const framed = h("input", { type: "checkbox" });
  const fileField = field("", file);
  const avro = field("Avro schema, or a file of it", schema);
  const type = field("Message type (may be empty if there is only one)", message);
  const more = h(
    "fieldset",
    { class: "whole stack" },
    h("legend", {}, label),
    avro,
    fileField,
    type,
    h("label", {}, framed, "after the header of a schema registry"),
  );
  const arrange = () => {
    more.hidden = !["avro", "protobuf"].includes(name.value);
    avro.hidden = name.value !== "avro";
    type.hidden = name.value !== "protobuf";
    fileField.firstChild.textContent = name.value === "avro" ? "A file with the schema" : "A FileDescriptorSet: protoc --include_imports --descriptor_set_out=FILE";
  };
  name.onchange = arrange;
  arrange();

  async function query(of) {
    const asked = { [`${of}_as`]: name.value };
    if (more.hidden) return asked;
    const given = file.files[0];
    if (name.value === "avro") asked[`${of}_schema`] = given ? await given.text() : schema.value;
    else asked[`${of}_schema`] = given ? base64(new Uint8Array(await given.arrayBuffer())) : "";
    return { ...asked, [`${of}_message`]: message.value.trim(), [`${of}_framed`]: framed.checked ? "yes" : "" };
  }

  return { choice: field(label, name), more, query, name: () => name.value };
}

function base64(content) {
  let text = "";
  for (let at = 0; at < content.length; at += 8192) text += String.fromCharCode(...content.subarray(at, at + 8192));
  return btoa(text);
}
