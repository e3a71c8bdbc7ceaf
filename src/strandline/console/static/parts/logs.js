// Replicas' logs as bars: how far each of them is, with the high watermark as a mark.

import { h } from "../base/dom.js";
import { number } from "../base/words.js";

/** The offset at the right end: so that bars grow while records come, and seldom jump. */
export function scale(end) {
  if (end <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(end));
  return [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * step).find((top) => top > end) ?? 12.5 * step;
}

export function bar(end, highWatermark, top, label) {
  const at = (offset) => `${Math.max(0, Math.min(100, (100 * offset) / top))}%`;
  return h(
    "span",
    { class: "bar", role: "img", "aria-label": label },
    h("i", { style: { width: at(end) } }),
    highWatermark >= 0 ? h("b", { style: { left: at(highWatermark) } }) : null,
  );
}

/** For one cell of a table: the longest log. */
export function brief(log) {
  if (!log) return h("span", { class: "soft" }, "…");
  const ends = log.replicas.map((row) => row.end_offset ?? -1);
  const end = Math.max(...ends);
  if (end < 0) return h("span", { class: "soft" }, "no answer");
  return bar(end, log.high_watermark, scale(end), `ends ${ends.map(number).join(", ")}; high watermark ${number(log.high_watermark)}`);
}
