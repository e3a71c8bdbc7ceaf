// Lines over time. The text beside a plot has its newest values, so nothing is told by colour alone.

import { h, svg } from "../base/dom.js";
import { clock, compact } from "../base/words.js";

const WIDTH = 600;
const HEIGHT = 170;
const LEFT = 48;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const COLOURS = 6;

/** `series`: [{ name, points: [[ms, value], …] }]; `words(value)`: a value for people. */
export function plot(title, series, words = compact) {
  const known = series.filter(({ points }) => points.length > 0);
  const legend = known.map(({ name, points }, index) =>
    h("span", {}, h("span", { class: `key ${colour(index)}` }), `${name ? `${name}: ` : ""}${words(points.at(-1)[1])}`),
  );
  return h(
    "figure",
    { class: "plotted" },
    h("figcaption", {}, title),
    known.length ? drawn(title, known, words) : h("p", { class: "hint" }, "Nothing was seen yet."),
    h("div", { class: "legend" }, legend),
  );
}

const colour = (index) => `s${(index % COLOURS) + 1}`;

function drawn(title, series, words) {
  const times = series.flatMap(({ points }) => points.map(([ms]) => ms));
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const top = round(Math.max(...values));
  const x = (ms) => LEFT + ((WIDTH - LEFT - RIGHT) * (ms - first)) / Math.max(1, last - first);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / top;
  const newest = series.map(({ name, points }) => `${name || title} ${words(points.at(-1)[1])}`).join(", ");
  return svg(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${newest}` },
    [0, top / 2, top].map((value) => [
      svg("line", { class: value ? "grid" : "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, words(value)),
    ]),
    svg("text", { x: LEFT, y: HEIGHT - 5 }, clock(first)),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, clock(last)),
    series.map(({ points }, index) =>
      svg("polyline", { class: colour(index), points: points.map(([ms, value]) => `${x(ms).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }),
    ),
  );
}

/** The top of the plot: a round number above all values. */
export function round(largest) {
  if (!(largest > 0)) return 1;
  const step = 10 ** Math.floor(Math.log10(largest));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * step).find((top) => top >= largest);
}

/** A point more, as the console keeps them; a time that is there already is not added. */
export function grow(points, ms, value, kept = 300) {
  if (value === null || value === undefined || (points.length && points.at(-1)[0] >= ms)) return points;
  return [...points.slice(1 - kept), [ms, value]];
}
