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

const label_of = ({ name, label }) => label ?? (typeof name === "string" ? name : "");

// A row may become a stack of lines, which would be no table for a reader's program without the roles.
function row_of(columns, row) {
  return h("tr", { role: "row" }, columns.map((column, number) => h(number === 0 ? "th" : "td",
    { role: number === 0 ? "rowheader" : "cell", scope: number === 0 && "row", class: kind(column), "data-label": label_of(column) },
    column.cell(row))));
}

/** Rows as they come, one below the other. */
function plain(element, columns) {
  const body = element.appendChild(h("tbody", { role: "rowgroup" }));
  return (rows) => body.append(...rows.map((row) => row_of(columns, row)));
}

/** Rows below a line for each group; of those that are alike in one the first stands for all, until they are asked for. */
function grouped(element, columns, { of, title, alike }) {
  const groups = new Map();
  const body_of = (row) => {
    const name = of(row);
    if (!groups.has(name)) {
      const body = element.appendChild(h("tbody", { role: "rowgroup" }, h("tr", { role: "row", class: "group" },
        h("td", { role: "cell", colspan: columns.length }, title(row)))));
      groups.set(name, { body, first: new Map() });
    }
    return groups.get(name);
  };
  return (rows) => rows.forEach((row) => {
    const { body, first } = body_of(row);
    const shown = row_of(columns, row);
    const same = first.get(alike(row));
    if (!same) {
      first.set(alike(row), { rows: [shown], button: null });
      body.append(shown);
      return;
    }
    if (!same.button) {
      same.button = h("button", { type: "button", class: "times", "aria-expanded": "false", onclick: () => {
        const open = same.button.getAttribute("aria-expanded") !== "true";
        same.button.setAttribute("aria-expanded", String(open));
        for (const one of same.rows.slice(1)) one.hidden = !open;
      } });
      same.rows[0].cells[0].append(same.button);
    }
    shown.hidden = same.button.getAttribute("aria-expanded") !== "true";
    shown.classList.add("again");
    same.rows.at(-1).after(shown);
    same.rows.push(shown);
    same.button.textContent = `×${same.rows.length}`;
    same.button.setAttribute("aria-label", `${same.rows.length} times: show all`);
  });
}

const widths = new WeakMap();

/** Rows stand beside their names where they fit, and become stacks of lines where they do not: in any language. */
function fit(box) {
  widths.set(box, box.clientWidth);
  box.classList.remove("stacked");
  if (box.scrollWidth > box.clientWidth) box.classList.add("stacked");
}

/** The same for all tables within, before they are painted for the first time. */
export const fit_tables = (within) => within.querySelectorAll(".scroll").forEach(fit);

// Heights change with it: only another width is a reason to look again, and a frame later, as a browser wants it.
const sizes = new ResizeObserver((entries) => requestAnimationFrame(() => {
  for (const { target } of entries)
    if (target.clientWidth > 0 && target.clientWidth !== widths.get(target)) fit(target);
}));

/**
 * A table with a caption, in a box of its own that scrolls sideways by pointer and keyboard.
 *
 * columns: {name, label: what is read for it where the name is no text, cell(row) → a node or text, number: to the
 * right, wide: not in a stack, sort: what a press on its name does, sorted: it is in this order}; the first names its
 * row. groups: {of(row): its group's name, title(row): its group's line, alike(row): rows of a group that say the same}
 */
export function table(caption, columns, rows, { hidden_caption = false, groups = null } = {}) {
  const head = (column) => h("th", { scope: "col", role: "columnheader", class: kind(column),
    "aria-sort": column.sorted ? "descending" : null },
  column.sort ? h("button", { type: "button", class: "sort", onclick: column.sort }, column.name) : column.name);
  const element = h("table", { role: "table" },
    h("caption", { class: hidden_caption && "unseen" }, h("span", {}, caption)),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map(head))));
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, element);
  const add = groups ? grouped(element, columns, groups) : plain(element, columns);
  box.add = (more) => {
    add(more);
    if (box.isConnected) fit(box);
  };
  box.add(rows);
  sizes.observe(box);
  return box;
}

/** A few headline figures: [name, node or text, a smaller node or text below] each. */
export function figures(list) {
  return h("dl", { class: "figures" }, list.map(([name, value, below]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value), below && h("dd", { class: "below" }, below))));
}

/** What stands where there is nothing to show: what that means, and what to do. */
export function empty(title, ...words) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), words.filter(Boolean).map((text) => h("p", {}, text)));
}
