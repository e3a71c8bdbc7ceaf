// Numbers, times and lists for people.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export const number = (value) => (value === null || value === undefined || value < 0 ? "–" : whole.format(value));
export const compact = (value) => (value === null || value === undefined ? "–" : short.format(value));
export const list = (values) => (values.length ? values.join(", ") : "–");
export const count = (value, word) => `${whole.format(value)} ${word}${value === 1 ? "" : "s"}`;

export function bytes(value) {
  if (value === null || value === undefined || value < 0) return "–";
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit ? value.toFixed(1) : value} ${UNITS[unit]}`;
}

export function clock(ms) {
  return ms < 0 ? "(no time)" : new Date(ms).toLocaleTimeString("en-GB");
}

export function when(ms) {
  return ms < 0 ? "(no time)" : new Date(ms).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}
