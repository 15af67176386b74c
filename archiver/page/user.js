// SPDX-License-Identifier: Apache-2.0
// One user's story: passes and blocks over time, every decision, and every request where the zone keeps them.

import { get, save } from "./api.js";
import { chart } from "./chart.js";
import { decision_columns } from "./decisions.js";
import { empty, figures, h, table } from "./dom.js";
import { span_fields, span_of } from "./span.js";
import { number, percent, time } from "./words.js";

const PAGE = 50;

export const name = "user";
export const title = "One user";
export const short = "User";

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: zones.map((zone) => [zone.name, zone.name]), standard: zones[0]?.name ?? "" },
  { name: "key", label: "Key", type: "text", standard: "" },
  ...span_fields,
];

// Where keys are kept as hashes, lists lead here with one, and people type what it is of.
const named = (key, { hash_keys }) => (hash_keys && /^[0-9a-f]{32}$/.test(key) ? { bucket: key } : { key });

export async function load(parameters, { zones, status }, signal) {
  const { zone, key } = parameters;
  const known = zones.find((one) => one.name === zone);
  // A zone without key fields has one bucket, whose key is empty.
  if (!known || (!key && known.key.length > 0)) return null;
  const span = span_of(parameters, status);
  const asked = { zone, ...named(key, status), from: span.from, to: span.to };
  const [counts, decisions, events] = await Promise.all([
    get("counts", { ...asked, grain: span.grain }, signal),
    get("decisions", { ...asked, limit: PAGE }, signal),
    known.history ? get("events", { ...asked, limit: PAGE }, signal) : null,
  ]);
  return { asked, span, counts, decisions, events };
}

/** When it was blocked, as far as the first page of decisions says. */
const held = (decisions) => decisions.filter((one) => one.action === "block").map((one) => [one.at_ms, one.until_ms]);

/** A table that grows by pages: `rows` is the member of a page that has them. */
function paged(caption, columns, path, asked, first, rows, { report, signal }) {
  const box = table(caption, columns, first[rows]);
  let next = first.next;
  const more = h("button", { type: "button", hidden: next === null, onclick: report(async () => {
    const page = await get(path, { ...asked, limit: PAGE, after: next }, signal);
    box.add(page[rows]);
    next = page.next;
    more.hidden = next === null;
    return `${page[rows].length} more rows.`;
  }) }, "Show older");
  const csv = h("button", { type: "button", onclick: report(() => save(path, asked, `${path}-${asked.zone}.csv`), "Saved.") },
    "Save as CSV");
  return [box, h("div", { class: "row" }, more, csv)];
}

const event_columns = [
  { name: "When", cell: (row) => time(row.at_ms) },
  { name: "Verdict", cell: (row) => h("span", { class: `action ${row.blocked ? "block" : "pass"}` },
    row.blocked ? "blocked" : "passed") },
  { name: "Position in the log", cell: (row) => h("code", {}, row.id) },
];

export function draw(data, parameters, tools) {
  if (data === null)
    return [empty("Which user?", "Choose a zone and type a key above: an address, a user name, or whatever the zone counts by " +
      "(several values are joined by “|”). Keys in Top talkers and Live blocks link here too.")];
  const { asked, span, counts, decisions, events } = data;
  const { total } = counts;
  const came = total.passed + total.blocked;
  const parts = [
    h("p", { class: "soft" }, h("span", { class: "key" }, parameters.key), ` in ${asked.zone}, from `, time(span.from), " to ",
      time(span.to), "."),
    figures([["Passed", number(total.passed)], ["Blocked", number(total.blocked)],
      ["Blocked share", percent(total.blocked, came)], ["Late", number(total.late)]]),
    h("h2", {}, "Requests over time"),
    came > 0 ? chart(counts, "requests", tools.signal, held(decisions.decisions)) :
      empty("No requests of this user in this time range.", "Choose a longer range or an earlier day above, or check that the key is " +
        "written as in Top talkers."),
    h("h2", {}, "Decisions"),
    decisions.decisions.length === 0 ? h("p", { class: "soft" }, "No decisions about this user in this time range.") :
      paged("Decisions, newest first", decision_columns("when", "action", "why", "lasting", "until"),
        "decisions", asked, decisions, "decisions", tools),
  ];
  if (events !== null && events.events.length > 0)
    parts.push(h("h2", {}, "Every request"),
      paged("Requests, newest first", event_columns, "events", asked, events, "events", tools));
  return parts.flat();
}
