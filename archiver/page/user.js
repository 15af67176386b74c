// SPDX-License-Identifier: Apache-2.0
// One user's story: passes and blocks over time, every decision, and every request where the zone keeps them.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { command, copy_button } from "./command.js";
import { counts_of_key, is_whole } from "./counts.js";
import { by_day, decision_columns, paged, story } from "./decisions.js";
import { empty, figures, h } from "./dom.js";
import { meant_key, seen, seen_key } from "./seen.js";
import { about_days, custom_span, span_fields, span_of } from "./span.js";
import { digits, named_time, number, percent, time } from "./words.js";

const PAGE = 50;

export const name = "user";
export const title = "One user";
export const short = "User";
export const keeps = ["span", "zone"]; // of what was chosen in another view

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: zones.map((zone) => [zone.name, zone.name]), standard: zones[0]?.name ?? "" },
  { name: "key", label: "Key", type: "text", standard: "", to_field: seen, from_field: meant_key },
  ...span_fields,
];

// Where keys are kept as hashes, lists lead here with one, and people type what it is of.
const named = (key, { hash_keys }) => (hash_keys && /^[0-9a-f]{32}$/.test(key) ? { bucket: key } : { key });

export async function load(parameters, { zones, status }, signal) {
  const { zone, key } = parameters;
  const known = zones.find((one) => one.name === zone);
  // A zone without key fields has one bucket, whose key is empty.
  if (!known || (!key && known.key.length > 0)) return null;
  const chosen = span_of(parameters, status);
  const who = { zone, ...named(key, status) };
  const counts = await counts_of_key(who, chosen, signal);
  // What stands below is of the same time, also where that had to become whole days.
  const span = { ...chosen, from: counts.from_ms, to: counts.to_ms };
  const asked = { ...who, from: span.from, to: span.to };
  const asked_of_both = { ...asked, mode: "all" }; // what a zone in shadow mode would have done is marked as such
  const [decisions, events, held] = await Promise.all([
    get("decisions", { ...asked_of_both, limit: PAGE }, signal),
    get("events", { ...asked, limit: PAGE }, signal), // also of a zone that keeps them no more
    get("held", asked, signal),
  ]);
  return { asked, asked_of_both, span, counts, decisions, events, held, status, kept: known.history_fields,
    shadow: known.mode === "shadow" };
}

/** The zone's fields, and those that an earlier policy kept. */
const field_columns = (events, kept) => [...new Set([...kept, ...events.flatMap(({ fields }) => Object.keys(fields ?? {}))])]
  .map((field) => ({ name: seen(field), cell: ({ fields }) => (fields?.[field] === undefined ? "–" :
    h("span", { class: "words few", title: seen(fields[field]) }, seen(fields[field]))) }));

const event_columns = (events, kept) => [
  { name: "When", cell: (row) => time(row.at_ms) },
  { name: "Verdict", cell: (row) => h("span", { class: `action ${row.blocked ? "block" : "pass"}` },
    row.blocked ? "blocked" : "passed") },
  ...field_columns(events, kept),
  { name: "Position in the log", cell: (row) => h("code", {}, row.id) },
];

export function draw(data, parameters, tools) {
  if (data === null)
    return [empty("Which user?", "Choose a zone and type a key above: an address, a user name, or whatever the zone counts by " +
      "(several values are joined by “|”). Keys in Talkers, Decisions and Blocks link here too.")];
  const { asked, asked_of_both, span, counts, decisions, events, held, status, kept, shadow } = data;
  const { total } = counts;
  const { zone, key } = parameters;
  const came = total.passed + total.blocked;
  const zoom = { zoom: (from, to) => tools.go(custom_span(from, to)), link: (from, to) => story(zone, key, custom_span(from, to)) };
  const lines = [["lift", "Copy lift command"], ["block", "Copy block command", "--for", "1h"]]
    .map(([verb, words, ...more]) => [command(verb, zone, key, status, ...more), words]);
  const parts = [
    h("p", { class: "soft" }, h("span", { class: "key" }, seen_key(key)), ` in ${zone}, from `, named_time(span.from), " to ",
      named_time(span.to), ".", about_days(span), counts.days && " Hours of this time are deleted, so whole days of UTC are shown.",
      !is_whole(counts) && [" Counts before ", named_time(counts.kept_from_ms), " may be deleted."],
      shadow && " The zone is in shadow mode: what is called blocked would have been blocked."),
    figures([["Passed", number(total.passed)], ["Blocked", number(total.blocked)],
      ["Blocked share", percent(total.blocked, came)], ["Late", number(total.late)]]),
    lines.every(([line]) => line !== null) &&
      h("div", { class: "row" }, lines.map(([line, words]) => copy_button(line, words, tools.report))),
    h("h2", {}, "Requests over time"),
    came > 0 || held.times.length > 0 ? chart(counts, "requests", { signal: tools.signal, held: held.times, ...zoom }) :
      empty("No requests of this user in this time range.", "Choose a longer range or an earlier day above, or check that the key is " +
        "written as in Top talkers."),
    held.more && h("p", { class: "soft" }, `Only the first ${digits(held.times.length)} blocks of this time are shaded. Choose a shorter range above.`),
    h("h2", {}, "Decisions"),
    decisions.decisions.length === 0 ? h("p", { class: "soft" }, "No decisions about this user in this time range.") :
      paged("Decisions, newest first", decision_columns("at", "action", "lasting", "until", "why"),
        "decisions", asked_of_both, decisions, "decisions", tools, { groups: by_day, page: PAGE }),
  ];
  if (events.events.length > 0)
    parts.push(h("h2", {}, "Every request"),
      paged("Requests, newest first", event_columns(events.events, kept), "events", asked, events, "events", tools, { page: PAGE }));
  return parts.filter(Boolean).flat();
}
