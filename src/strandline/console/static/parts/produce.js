// A form that writes one record: what would be written, a confirmation, and where it is.

import { change, plan } from "../base/api.js";
import { h } from "../base/dom.js";
import { link } from "../base/place.js";
import { dialog } from "./dialog.js";
import { lines, problem } from "./notes.js";
import { field, select } from "./rows.js";

const KINDS = [
  ["text", "text"],
  ["hex", "hexadecimal"],
  ["base64", "base64"],
  ["null", "null"],
];

export function produceDialog(topic) {
  const key = h("input", { autocomplete: "off", spellcheck: "false" });
  const keyAs = select(KINDS, "null");
  const value = h("textarea", { spellcheck: "false" });
  const valueAs = select(KINDS, "text");
  const partition = h("input", { inputmode: "numeric", placeholder: "by the key", autocomplete: "off" });
  const headers = h("div", { class: "stack" });
  const said = h("div", { "aria-live": "polite" });
  const add = h("button", { type: "button", class: "quiet", onclick: () => addHeader(headers) }, "Add a header");
  key.oninput = () => (keyAs.value = keyAs.value === "null" && key.value ? "text" : keyAs.value);
  const form = [
    field("Key", key),
    field("The key is given as", keyAs),
    field("Value", value),
    field("The value is given as", valueAs),
    field("Partition", partition),
    headers,
    add,
    said,
  ];
  const box = dialog(`Write a record to ${topic}`, form);

  function wanted() {
    const rows = [...headers.children].map((row) => row.given());
    const number = partition.value.trim();
    return { topic, partition: number === "" ? -1 : Number(number), key: key.value, key_as: keyAs.value, value: value.value, value_as: valueAs.value, headers: rows };
  }

  async function look() {
    const record = wanted();
    try {
      said.replaceChildren(lines((await plan("record", record)).lines, "The plan"));
      box.buttons([["Cancel", box.close], ["Write it", () => write(record), "danger"]]);
    } catch (error) {
      said.replaceChildren(problem(error));
    }
  }

  async function write(record) {
    box.buttons([]);
    try {
      const { partition: at, offset } = await change("record", record);
      const there = link("topics", [topic, "records"], { partition: at, start: "offset", offset });
      said.replaceChildren(h("p", { role: "status" }, "Written to ", h("a", { href: there, onclick: box.close }, `partition ${at}, offset ${offset}`), "."));
    } catch (error) {
      said.replaceChildren(problem(error));
    }
    box.buttons([["Close", box.close], ["Plan another", look]]);
  }

  box.buttons([["Cancel", box.close], ["Plan", look, ""]]);
  key.focus();
}

function addHeader(headers) {
  const name = h("input", { "aria-label": "Header's name", placeholder: "name", autocomplete: "off" });
  const value = h("input", { "aria-label": "Header's value", placeholder: "value", autocomplete: "off" });
  const row = h("div", { class: "row" }, name, value, h("button", { type: "button", class: "quiet", onclick: () => row.remove() }, "Remove"));
  row.given = () => ({ name: name.value, value: value.value });
  headers.append(row);
  name.focus();
}
