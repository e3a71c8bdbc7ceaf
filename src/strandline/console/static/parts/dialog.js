// A dialog that is asked, answered and gone. Escape closes it.

import { h } from "../base/dom.js";

/** Shows `content` and buttons; `onanswer(value)` for each of [label, value, class]. Returns { close, body }. */
export function dialog(title, content, buttons = []) {
  const body = h("div", { class: "stack" }, content);
  const bar = h("div", { class: "row end" });
  const heading = h("h2", { id: "dialog-title" }, title);
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, heading, body, bar);
  const shown = {
    body,
    close: () => box.close(),
    show: (...nodes) => body.replaceChildren(...nodes.flat()),
    buttons: (rows) =>
      bar.replaceChildren(
        ...rows.map(([label, onclick, kind = "quiet"]) => h("button", { type: "button", class: kind, onclick }, label)),
      ),
  };
  shown.buttons(buttons.length ? buttons : [["Close", shown.close]]);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return shown;
}
