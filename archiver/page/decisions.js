// Decisions as a table: what was decided, until when, and which limit was over.

import { h } from "./dom.js";
import { story } from "./top.js";
import { duration, limit, number, time } from "./words.js";

const NO_END_MS = 8.64e15;

/** How long it holds; nothing for what ends nothing. */
function lasting({ action, at_ms, until_ms }) {
  if (action === "lift" || until_ms <= at_ms) return "–";
  return until_ms >= NO_END_MS ? "no end" : duration(until_ms - at_ms);
}

function over(decision) {
  if (decision.limit === null) return decision.ordered_by !== null ? "an operator’s order" : "–";
  return h("span", {}, limit(decision.limit), h("span", { class: "soft" }, ", held ", number(decision.held)));
}

const columns = {
  when: { name: "When", cell: (row) => time(row.at_ms) },
  key: { name: "Key", cell: (row) => (row.key === null ? "all keys" :
    h("a", { href: story(row.zone, row.key), class: "key" }, row.key || "(empty)")) },
  zone: { name: "Zone", cell: (row) => row.zone },
  action: { name: "Action", cell: (row) => h("span", {}, h("span", { class: `action ${row.action}` }, row.action),
    row.mode === "shadow" && h("span", { class: "tag" }, "shadow")) },
  until: { name: "Until", cell: (row) => (row.action === "lift" ? "–" : time(row.until_ms)) },
  lasting: { name: "For", cell: lasting },
  limit: { name: "Limit that was over", cell: over },
  by: { name: "Ordered by", cell: (row) => row.ordered_by ?? "–" },
  reason: { name: "Reason", cell: (row) => row.reason ?? "–" },
};

/** Columns by name. */
export const decision_columns = (...names) => names.map((one) => columns[one]);
