// Where in the console a page is: #/view/part/part?key=value. Parts and values are escaped.

export function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { view, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function link(view, parts = [], query = {}) {
  const path = [view, ...parts].map((part) => encodeURIComponent(part)).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `#/${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(view, parts = [], query = {}) {
  location.hash = link(view, parts, query);
}

/** Another query for the same page, without a new entry in the history: a filter, a sorting. */
export function refine(query) {
  const { view, parts } = place();
  history.replaceState(null, "", link(view, parts, query));
}
