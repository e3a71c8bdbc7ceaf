// A table of many rows. Only the rows that are seen are in the page, so 5,000 cost as much as 50.
//
//   const table = new BigTable(root, { label, columns, link, tone, onvisible });
//   table.show(rows, query)
//
// A column: { key, title, value(row) for sorting, cell(row) for showing, number, width, wide }; a `wide` one is left out on
// a narrow screen. `link(row)`: where Enter or a click leads. `tone(row)`: "bad", "warning" or "".

import { h, patch } from "../base/dom.js";

const SPARE = 8; // rows above and below those that are seen
const SETTLED_MS = 150;
const narrow = matchMedia("(max-width: 640px)");

export class BigTable {
  constructor(root, options) {
    this.options = options;
    this.rows = [];
    this.sort = options.sort ?? { key: options.columns[0].key, down: false };
    this.box = h("div", { class: "grid", tabindex: "0", role: "region", "aria-label": options.label, "data-kept": true });
    this.table = h("table", { "aria-label": options.label });
    this.box.append(this.table);
    this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.box);
    root.append(this.box);
  }

  close() {
    this.resize.disconnect();
    clearTimeout(this.settling);
  }

  get columns() {
    return this.options.columns.filter((column) => !(column.wide && narrow.matches));
  }

  show(rows) {
    this.rows = sorted(rows, this.options.columns.find((column) => column.key === this.sort.key), this.sort.down);
    this.draw();
  }

  sortBy(key) {
    this.sort = { key, down: this.sort.key === key && !this.sort.down };
    this.show(this.rows);
  }

  get seen() {
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - SPARE);
    const count = Math.ceil((this.box.clientHeight || 600) / height) + 2 * SPARE;
    return [first, Math.min(this.rows.length, first + count)];
  }

  get rowHeight() {
    return this.height ??= parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  }

  scrolled() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const [first, last] = this.seen;
    const columns = this.columns;
    patch(
      this.table,
      h("colgroup", {}, columns.map((column) => h("col", { style: column.width ? { width: column.width } : {} }))),
      h("thead", {}, h("tr", {}, columns.map((column) => this.head(column)))),
      h(
        "tbody",
        {},
        spacer(first * this.rowHeight, columns.length),
        this.rows.slice(first, last).map((row, index) => this.row(row, first + index, columns)),
        spacer((this.rows.length - last) * this.rowHeight, columns.length),
      ),
    );
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    if (this.options.onvisible) {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.options.onvisible(this.rows.slice(first, last)), SETTLED_MS);
    }
  }

  head(column) {
    const isSorted = this.sort.key === column.key;
    const order = isSorted ? (this.sort.down ? "descending" : "ascending") : "none";
    const mark = isSorted ? (this.sort.down ? " ↓" : " ↑") : "";
    return h(
      "th",
      { scope: "col", "aria-sort": order, class: column.number ? "number" : null },
      h("button", { type: "button", onclick: () => this.sortBy(column.key) }, column.title + mark),
    );
  }

  row(row, index, columns) {
    const to = this.options.link?.(row);
    const tone = this.options.tone?.(row) ?? "";
    return h(
      "tr",
      { class: `${to ? "row-link " : ""}${tone}`, "aria-rowindex": String(index + 2), "data-index": String(index) },
      columns.map((column, at) => {
        const content = column.cell ? column.cell(row) : String(column.value(row));
        return h("td", { class: column.number ? "number" : null }, at === 0 && to ? h("a", { href: to }, content) : content);
      }),
    );
  }

  /** Up and down go from row to row, also where it is not in the page yet. */
  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const current = event.target.closest?.("tr[data-index]");
    if (!steps || (!current && event.target !== this.box)) return;
    const from = current ? Number(current.dataset.index) : this.seen[0] - (steps > 0 ? 1 : 0);
    const to = Math.min(this.rows.length - 1, Math.max(0, from + steps));
    const top = to * this.rowHeight;
    const inside = this.box.clientHeight - 2 * this.rowHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + inside) this.box.scrollTop = top - inside;
    this.draw();
    this.table.querySelector(`tr[data-index="${to}"] a`)?.focus({ preventScroll: true });
    event.preventDefault();
  }
}

function spacer(height, columns) {
  return h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns, style: { height: `${height}px` } }));
}

const collator = new Intl.Collator("en", { numeric: true });

/** Each row's value is made once, and texts are compared by one collator: 5,000 rows are sorted with every change. */
function sorted(rows, column, down) {
  const way = down ? -1 : 1;
  const keyed = rows.map((row) => [column.value(row), row]);
  keyed.sort(([a], [b]) => way * (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b)));
  return keyed.map(([, row]) => row);
}
