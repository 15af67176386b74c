// SPDX-License-Identifier: Apache-2.0
// Decisions: of all users in some time, and the columns and pages of every list of them.

import { get, save } from "./api.js";
import { DAY_MS, day_begin } from "./clock.js";
import { empty, h, table } from "./dom.js";
import { seen, seen_key } from "./seen.js";
import { custom_span, span_fields, span_of, span_query } from "./span.js";
import { why_button } from "./why.js";
import { clock, day_title, lasting, limit, named_time, number, time } from "./words.js";

const PAGE = 100;

export const name = "decisions";
export const title = "Decisions";
export const keeps = ["span", "zone"]; // of what was chosen in another view

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: [["", "all zones"], ...zones.map((zone) => [zone.name, zone.name])], standard: "" },
  { name: "action", label: "Action", standard: "",
    options: [["", "all"], ...["block", "lift"].map((one) => [one, one])] },
  { name: "mode", label: "Mode", standard: "", options: [["", "enforced"], ["shadow", "shadow"], ["all", "both"]] },
  ...span_fields,
];

/** The address of a user's story, in a time: parameters of a span. */
export const story = (zone, key, span = {}) => `#/user?${new URLSearchParams({ zone, key, ...span })}`;

/** The span in which a decision is to be seen, where the usual one does not have it: the day of it and its neighbours. */
const around = ({ at_ms }) => (Date.now() - at_ms < 6 * DAY_MS ? {} : span_query(custom_span(day_begin(at_ms, -1), day_begin(at_ms, 2))));

/** How long it was to last; nothing for what ends nothing. */
const whole = ({ action, at_ms, until_ms }) => (action === "lift" || until_ms <= at_ms ? "–" : lasting(at_ms, until_ms));

/** The limit that was over, or in a lift the queue that has room; or who ordered it, in whose words. */
function reason_of({ action, limit: over, held, ordered_by, reason, nth }) {
  if (over !== null)
    return h("span", { class: "words" }, limit(over),
      h("span", { class: "soft" }, action === "lift" ? ", has room again, holds " : ", held ", number(held), nth !== null && `, block ${nth}`));
  if (ordered_by === null) return "–";
  return h("span", { class: "words" }, `ordered by ${seen(ordered_by)}`, reason !== null && `: ${seen(reason)}`);
}

const shadow = (row) => row.mode === "shadow" && h("span", { class: "tag" }, "shadow");

const columns = {
  at: { name: "When", cell: (row) => clock(row.at_ms) },
  when: { name: "When", cell: (row) => time(row.at_ms) },
  key: { name: "Key", cell: (row) => (row.key === null ? "all keys" :
    h("a", { href: story(row.zone, row.key, around(row)), class: "key" }, seen_key(row.key))) },
  zone: { name: "Zone", cell: (row) => row.zone },
  action: { name: "Action", cell: (row) => h("span", {}, h("span", { class: `action ${row.action}` }, row.action), shadow(row)) },
  until: { name: "Until", cell: (row) => (row.action === "lift" ? "–" : time(row.until_ms)) },
  lasting: { name: "For", cell: whole },
  why: { name: "Why", cell: (row) => h("span", { class: "with-why" }, reason_of(row), " ", why_button(row)) },
};

/** Columns by name. */
export const decision_columns = (...names) => names.map((one) => columns[one]);

const is_alike = ({ zone, key, action, mode, limit: over, ordered_by, reason }) =>
  JSON.stringify([zone, key, action, mode, over, ordered_by, reason]);

/** By day; what happens again to the same key for the same reason is told once. */
export const by_day = {
  of: (row) => day_begin(row.at_ms),
  title: (row) => day_title(row.at_ms),
  alike: is_alike,
};

/** A table that grows by pages: `rows` is the member of a page that has them. */
export function paged(caption, shown, path, asked, first, rows, { report, signal }, { groups = null, page = PAGE } = {}) {
  const box = table(caption, shown, first[rows], { groups });
  let next = first.next;
  const more = h("button", { type: "button", hidden: next === null, onclick: report(async () => {
    const answer = await get(path, { ...asked, limit: page, after: next }, signal);
    box.add(answer[rows]);
    next = answer.next;
    more.hidden = next === null;
    return `${answer[rows].length} more rows.`;
  }) }, "Show older");
  const csv = h("button", { type: "button", onclick: report(() => save(path, asked, `${path}-${asked.zone ?? "all"}.csv`), "Saved.") },
    "Save as CSV");
  return [box, h("div", { class: "row" }, more, csv)];
}

export async function load(parameters, { zones, status }, signal) {
  const span = span_of(parameters, status);
  const { zone, action, mode } = parameters;
  const asked = { zone: zone || undefined, action: action || undefined, mode: mode || undefined, from: span.from, to: span.to };
  const is_shadow = zones.some((one) => one.name === zone && one.mode === "shadow");
  return { asked, span, is_shadow, first: await get("decisions", { ...asked, limit: PAGE }, signal) };
}

export function draw({ asked, span, is_shadow, first }, parameters, tools) {
  const about = h("p", { class: "soft" }, "From ", named_time(span.from), " to ", named_time(span.to), ".",
    parameters.mode && " Decisions in shadow mode block nobody.");
  if (first.decisions.length === 0)
    return [about, empty("No decisions in this time range.", !parameters.mode && is_shadow &&
      `Zone ${parameters.zone} is in shadow mode: what it would block is in mode “shadow”.`,
    "Choose a longer range, an earlier day, or another zone, action or mode above.")];
  const [at, key, zone, action, why_column, until, lasts] =
    decision_columns("at", "key", "zone", "action", "why", "until", "lasting");
  const linked = { ...key, cell: (row) => (row.key === null ? "all keys" :
    h("a", { href: story(row.zone, row.key, span_query(parameters)), class: "key" }, seen_key(row.key))) };
  return [about, paged("Decisions, newest first", [linked, at, zone, action, lasts, until, why_column], "decisions", asked, first,
    "decisions", tools, { groups: by_day })].flat();
}
