// SPDX-License-Identifier: Apache-2.0
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

/** The limit that was over; or who ordered it, in whose words. */
function why({ limit: over, held, ordered_by, reason, nth }) {
  if (over !== null)
    return h("span", {}, limit(over), h("span", { class: "soft" }, ", held ", number(held), nth !== null && `, block ${nth}`));
  if (ordered_by === null) return "–";
  return h("span", { class: "words" }, `ordered by ${ordered_by}`, reason !== null && `: ${reason}`);
}

const shadow = (row) => row.mode === "shadow" && h("span", { class: "tag" }, "shadow");

const columns = {
  when: { name: "When", cell: (row) => time(row.at_ms) },
  key: { name: "Key", cell: (row) => (row.key === null ? "all keys" :
    h("a", { href: story(row.zone, row.key), class: "key" }, row.key || "(empty)")) },
  zone: { name: "Zone", cell: (row) => h("span", {}, row.zone, shadow(row)) },
  action: { name: "Action", cell: (row) => h("span", {}, h("span", { class: `action ${row.action}` }, row.action), shadow(row)) },
  until: { name: "Until", cell: (row) => (row.action === "lift" ? "–" : time(row.until_ms)) },
  lasting: { name: "For", cell: lasting },
  why: { name: "Limit that was over", cell: why },
};

/** Columns by name. */
export const decision_columns = (...names) => names.map((one) => columns[one]);
