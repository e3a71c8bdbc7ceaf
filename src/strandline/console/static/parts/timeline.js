// Events of lanes on one axis of time, as a picture; the same events stand in a table beside it.

import { svg } from "../base/dom.js";
import { when } from "../base/words.js";

const WIDTH = 900;
const LEFT = 150;
const LANE = 26;

/** lanes: [{ name, events: [{ time_ms, tone, title, onclick }] }] */
export function timeline(lanes, label) {
  const times = lanes.flatMap((lane) => lane.events.map((event) => event.time_ms));
  const first = Math.min(...times);
  const last = Math.max(...times, first + 1);
  const x = (ms) => LEFT + 14 + ((WIDTH - LEFT - 28) * (ms - first)) / (last - first);
  const height = LANE * lanes.length + 26;
  return svg(
    "svg",
    { class: "plot timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    lanes.map((lane, index) => {
      const y = LANE * index + LANE / 2;
      return [
        svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y, y2: y }),
        svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, lane.name.length > 22 ? `…${lane.name.slice(-21)}` : lane.name),
        lane.events.map((event) =>
          svg("circle", { class: `dot ${event.tone}`, cx: x(event.time_ms), cy: y, r: 6, onclick: event.onclick }, svg("title", {}, event.title)),
        ),
      ];
    }),
    svg("text", { x: LEFT, y: height - 6 }, when(first)),
    first === last - 1 ? null : svg("text", { x: WIDTH, y: height - 6, "text-anchor": "end" }, when(last)),
  );
}

const TOP = 16;

/** Half-open ranges of offsets, each a bar of its own line. An open range has an arrow's end at the right edge. */
export function offsets(ranges, label) {
  const known = ranges.filter((range) => !range.is_open).map((range) => range.end);
  const low = Math.min(...ranges.map((range) => range.start));
  const high = Math.max(...known, ...ranges.map((range) => range.start + 1));
  const span = Math.max(1, (high - low) * 1.15);
  const x = (offset) => 10 + ((WIDTH - 20) * (offset - low)) / span;
  const height = TOP * ranges.length + 30;
  return svg(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    ranges.map((range, index) => {
      const end = range.is_open ? WIDTH - 10 : x(range.end);
      const y = TOP * index + 4;
      return [
        svg("rect", { class: `dot ${range.tone}`, x: x(range.start), y, width: Math.max(3, end - x(range.start)), height: 10, rx: 3 }, svg("title", {}, range.title)),
        range.is_open ? svg("path", { class: `dot ${range.tone}`, d: `M${WIDTH - 12} ${y - 2}l10 7l-10 7z` }) : null,
      ];
    }),
    svg("line", { class: "axis", x1: 10, x2: WIDTH - 10, y1: height - 20, y2: height - 20 }),
    svg("text", { x: 10, y: height - 6 }, `offset ${low}`),
    known.length ? svg("text", { x: x(high), y: height - 6, "text-anchor": "middle" }, `${high}`) : null,
  );
}
