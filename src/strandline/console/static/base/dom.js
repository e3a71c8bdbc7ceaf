// Elements from values. Data gets into the page as text or as an attribute, and never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes whose name begins with "on" are handlers; `style` is an object; false and null leave one out. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element[name] = value;
      (element.handlers ??= new Set()).add(name);
    } else if (name === "style") {
      for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Make what is in `root` equal to `children`, and leave alone what already is: focus and scroll positions stay. */
export function patch(root, ...children) {
  const wanted = document.createElement("div");
  append(wanted, children);
  children_of(root, wanted);
}

function children_of(old, wanted) {
  const news = [...wanted.childNodes];
  news.forEach((node, index) => {
    const there = old.childNodes[index];
    if (!there) old.append(node);
    else if (is_alike(there, node)) morph(there, node);
    else there.replaceWith(node);
  });
  while (old.childNodes.length > news.length) old.lastChild.remove();
}

function is_alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;
}

function morph(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) set(old, name, value);
  for (const name of old.handlers ?? []) if (!wanted.handlers?.has(name)) old[name] = null;
  for (const name of wanted.handlers ?? []) old[name] = wanted[name];
  old.handlers = wanted.handlers;
  if (old.dataset?.kept === undefined) children_of(old, wanted);
}

function set(element, name, value) {
  if (name === "style") element.style.cssText = value; // an attribute would need 'unsafe-inline'
  else element.setAttribute(name, value);
}
