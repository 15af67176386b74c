// SPDX-License-Identifier: Apache-2.0
// Elements in a line each. Everything that comes from outside becomes text, never markup.

/** An element: attributes (functions become listeners; false, null and undefined are left out), then its children. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(key.replace(/^on/, ""), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const kind = ({ number, wide }) => (number ? "number" : wide ? "wide" : null);

/**
 * A table with a caption, in a box of its own that scrolls sideways by pointer and keyboard.
 *
 * columns: {name, cell(row) → a node or text, number: to the right, wide: not on a phone}; the first names its row.
 */
export function table(caption, columns, rows, { hidden_caption = false } = {}) {
  const body = h("tbody");
  const element = h("table", {},
    h("caption", { class: hidden_caption && "unseen" }, h("span", {}, caption)),
    h("thead", {}, h("tr", {}, columns.map((column) =>
      h("th", { scope: "col", class: kind(column) }, column.name)))),
    body);
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, element);
  box.add = (more) => body.append(...more.map((row) => h("tr", {}, columns.map((column, number) =>
    h(number === 0 ? "th" : "td", { scope: number === 0 && "row", class: kind(column) },
      column.cell(row))))));
  box.add(rows);
  return box;
}

/** A few headline figures: [name, node or text] each. */
export function figures(list) {
  return h("dl", { class: "figures" }, list.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** What stands where there is nothing to show: what that means, and what to do. */
export function empty(title, ...words) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), words.filter(Boolean).map((text) => h("p", {}, text)));
}
