// SPDX-License-Identifier: Apache-2.0
// What happens at a glance: who is blocked, how that differs from before, who comes most; then zone by zone.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { day_text } from "./clock.js";
import { counts_of, is_whole } from "./counts.js";
import { decision_columns, story } from "./decisions.js";
import { empty, figures, fit_tables, h, table } from "./dom.js";
import { seen, seen_key } from "./seen.js";
import { about_days, custom_span, span_fields, span_of, span_query, talkers_span } from "./span.js";
import { change, digits, named_time, number, percent } from "./words.js";

// So many zones are drawn at a time, the others when they are asked for. The headline is of all of them.
const ZONES = 8;
const AT_ONCE = 4; // questions about those that are not drawn
const BLOCKS_MAX = 1000;
const NEWEST = 5;
const TOP = 5;

export const name = "overview";
export const title = "Overview";
export const keeps = ["span"]; // of what was chosen in another view
export const fields = () => span_fields;

/** The zones that count: those in force first. */
const order = (zones) => [...zones].sort((a, b) => b.live - a.live || a.id - b.id);

/** A promise whose failure is said where it is drawn. */
function later_said(promise) {
  promise.catch(() => {});
  return promise;
}

/** An answer, also where so many questions were asked that the archiver wants a pause. */
async function patient(ask, signal) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (error.status !== 429) throw error;
      await new Promise((done) => { setTimeout(done, 1000 * Math.max(1, error.wait_s)); });
      signal.throwIfAborted();
    }
  }
}

/** A function that asks, when so many others that it was given before are answered. */
function queue_of(lanes) {
  const ends = Array.from({ length: lanes }, () => Promise.resolve());
  let next = 0;
  return (ask) => {
    const place = next++ % lanes;
    ends[place] = later_said(ends[place].then(ask, ask));
    return ends[place];
  };
}

/** A promise for each of the zones: those that are drawn are asked for at once, the others in the queue. */
const counts_of_all = (zones, shown, span, signal, queue) => zones.map(({ name: zone }, place) => {
  const ask = () => patient(() => counts_of({ zone }, span, signal), signal);
  return place < shown ? later_said(ask()) : queue(ask);
});

/**
 * The keys that were blocked most. It reads many rows where a zone has many keys: so when the counts are there, one zone
 * after the other, and none whose sum says that no key of it can be among them.
 */
async function most_blocked_keys(counts, zones, { from, to }, signal) {
  const sums = await Promise.all(counts);
  let [rows, exact, days, kept_ms] = [[], true, false, null];
  const least = () => rows[TOP - 1]?.blocked ?? 1;
  const order_of = sums.map((one, place) => ({ place, blocked: one.total.blocked, whole: is_whole(one) }))
    .sort((a, b) => b.blocked - a.blocked);
  for (const { place, blocked, whole } of order_of) {
    if (exact && whole && blocked < least()) continue;
    const { name: zone } = zones[place];
    const answer = await patient(() => get("top", { zone, by: "blocked", from, to, grain: "hour", limit: TOP }, signal), signal);
    days ||= answer.from_ms < from || answer.to_ms > to;
    if (answer.kept_from_ms > from) kept_ms = answer.kept_from_ms;
    exact &&= !days; // else a key may have more than its zone has in the span
    rows = [...rows, ...answer.top.map((one) => ({ zone, place, mode: zones[place].mode, ...one }))]
      .sort((a, b) => b.blocked - a.blocked || a.place - b.place).slice(0, TOP);
  }
  return { rows, days, kept_ms };
}

export async function load(parameters, { zones, status }, signal) {
  const span = span_of(parameters, status);
  const all = order(zones);
  const shown = all.slice(0, ZONES * (Number(parameters.pages) || 1));
  const before = { ...span, from: span.from - (span.to - span.from), to: span.from };
  const { from, to } = span;
  const queue = queue_of(AT_ONCE);
  const counts = counts_of_all(all, shown.length, span, signal, queue);
  return {
    span, zones, all, shown,
    counts,
    before: span.grain === "hour" ? counts_of_all(all, shown.length, before, signal, queue) : [],
    top: later_said(most_blocked_keys(counts, all, talkers_span(span), signal)),
    blocks: later_said(patient(() => get("blocks", { limit: BLOCKS_MAX }, signal), signal)),
    newest: later_said(patient(() => get("decisions", { from, to, limit: NEWEST }, signal), signal)),
  };
}

/* ---- the headline ---- */

const sum = (all, name) => all.reduce((total, one) => total + one.total[name], 0);

async function headline({ all: zones, counts, before, blocks }) {
  const [now, past, { blocks: held, more }] = await Promise.all([Promise.all(counts), Promise.all(before), blocks]);
  // A zone in shadow mode blocks nobody.
  const blocked_by = (mode) => (counted) => sum(counted.filter((_, place) => (zones[place].mode === "shadow") === (mode === "shadow")), "blocked");
  const [passed, blocked, shadow] = [(counted) => sum(counted, "passed"), blocked_by("enforce"), blocked_by("shadow")];
  const figure = (words, of) => {
    const trend = past.every(is_whole) && change(of(now), of(past));
    return [words, number(of(now)), trend && h("span", {}, trend, " ", h("span", { class: "soft" }, "against the span before"))];
  };
  const all = passed(now) + blocked(now) + shadow(now);
  const keys = new Set(held.map((row) => row.zone)).size;
  const lacking = now.find((one) => !is_whole(one));
  return [figures([
    ["Blocked now", h("a", { href: "#/blocks" }, more ? `more than ${digits(held.length)}` : number(held.length)),
      held.length > 0 && h("span", { class: "soft" }, `in ${digits(keys)} ${keys === 1 ? "zone" : "zones"}`)],
    figure("Requests passed", passed), figure("Requests blocked", blocked),
    ["Blocked share", percent(blocked(now), all)],
    ...(zones.some(({ mode }) => mode === "shadow") ? [figure("Would have been blocked", shadow)] : []),
  ]), lacking && h("p", { class: "soft" }, "Counts before ", named_time(lacking.kept_from_ms), " may be deleted.")].filter(Boolean);
}

async function newest_decisions({ newest }, parameters) {
  const { decisions } = await newest;
  const more = h("a", { href: `#/decisions?${new URLSearchParams(span_query(parameters))}` }, "All decisions of this time");
  if (decisions.length === 0) return [h("p", { class: "soft" }, "No decisions in this time range.")];
  return [table("Newest decisions", decision_columns("key", "zone", "action", "when"), decisions, { hidden_caption: true }),
    h("p", { class: "more" }, more)];
}

async function most_blocked({ top, span: shown }, parameters) {
  const { rows, days, kept_ms } = await top;
  const words = [days && "Hours of this time are deleted, so keys are counted by whole days of UTC.", talkers_span(shown).words,
    kept_ms !== null && [" Days before ", named_time(kept_ms), " may be deleted."]].filter(Boolean);
  const about = words.length > 0 && h("p", { class: "soft" }, words);
  if (rows.length === 0) return [h("p", { class: "soft" }, "Nobody was blocked in this time range."), about].filter(Boolean);
  const span = span_query(parameters);
  const more = h("a", { href: `#/top?${new URLSearchParams({ zone: rows[0].zone, by: "blocked", ...span })}` }, `All talkers of ${rows[0].zone}`);
  return [about, table("Most blocked keys", [
    { name: "Key", cell: (row) => h("a", { href: story(row.zone, row.key, span), class: "key" }, seen_key(row.key)) },
    { name: "Zone", cell: (row) => [row.zone, row.mode === "shadow" && h("span", { class: "tag" }, "shadow")] },
    { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
    { name: "Share", number: true, cell: (row) => percent(row.blocked, row.total) },
  ], rows, { hidden_caption: true }), h("p", { class: "more" }, more)].filter(Boolean);
}

/** A part that keeps its place until what it shows is there. */
function part_of(promise, later, attributes = {}) {
  const body = h("div", { ...attributes, "aria-busy": "true" });
  later(promise.then((nodes) => {
    body.replaceChildren(...[nodes].flat());
    fit_tables(body);
  }, (error) => {
    if (error.name !== "AbortError") body.replaceChildren(h("p", { role: "alert" }, `Not available: ${error.message}`));
  }).then(() => body.removeAttribute("aria-busy")));
  return body;
}

/* ---- zone by zone ---- */

function filling(counts, zone, { signal, go }, parameters) {
  const { total, grain } = counts;
  const came = total.passed + total.blocked;
  const talkers = (from, to) => `#/top?${new URLSearchParams({ zone: zone.name, ...span_query(custom_span(from, to)) })}`;
  // A day is looked into, an hour leads to who came in it; a brush over several is looked into, too.
  const zoom = (from, to) => {
    if (grain === "hour" && to - from <= 3600_000) location.hash = talkers(from, to);
    else go(custom_span(from, to));
  };
  return [
    figures([["Passed", number(total.passed)], ["Blocked", number(total.blocked)],
      ["Blocked share", percent(total.blocked, came)], ["Late", number(total.late)]]),
    came > 0 ? chart(counts, zone.name, { signal, zoom, link: talkers }) :
      h("p", { class: "soft" }, "No requests in this time range."),
  ];
}

function card(zone, counts, tools, parameters) {
  const body = part_of(counts.then((data) => filling(data, zone, tools, parameters)), tools.later, { class: "pending" });
  const link = `#/top?${new URLSearchParams({ zone: zone.name, ...span_query(parameters) })}`;
  return h("section", { class: "card", "aria-labelledby": `zone-${zone.id}` },
    h("h2", { id: `zone-${zone.id}` }, h("a", { href: link }, zone.name),
      zone.mode === "shadow" && h("span", { class: "tag" }, "shadow"),
      !zone.live && h("span", { class: "tag" }, "removed")),
    zone.description && h("p", { class: "soft" }, seen(zone.description)),
    zone.shadow_until && h("p", { class: "soft" },
      zone.mode === "shadow" ? "Stays in shadow: " : "Left shadow: ", zone.shadow_until), body);
}

/** Where nobody came: what to do, and a way to where there is something. */
async function nobody(signal) {
  const { decisions: [newest] } = await get("decisions", { limit: 1 }, signal);
  return h("div", {}, empty("No requests in this time range.",
    "Choose a longer range or an earlier day above. If you expected requests, System shows how far behind the archiver is.",
    newest && h("a", { href: `#/overview?until=${day_text(newest.at_ms)}`, id: "newest" },
      "Go to the newest decision, ", named_time(newest.at_ms))));
}

export function draw(data, parameters, tools) {
  const { span, zones, shown, counts } = data;
  if (zones.length === 0)
    return [empty("There are no zones yet.",
      "A zone defines whose requests are counted and how many may pass. weir has none until it has a policy: " +
      "set “zones” in its configuration, or run weir policy apply.")];
  const cards = h("div", { class: "cards" }, shown.map((zone, place) => card(zone, counts[place], tools, parameters)));
  const side = (heading, promise) =>
    h("section", { class: "card" }, h("h2", {}, heading), part_of(promise, tools.later, { class: "pending-list" }));
  const parts = [
    h("p", { class: "soft" }, "From ", named_time(span.from), " to ", named_time(span.to), `, by ${span.grain}.`, about_days(span)),
    part_of(headline(data), tools.later, { class: "headline" }),
    h("div", { class: "cards" }, side("Newest decisions", newest_decisions(data, parameters)),
      side("Most blocked", most_blocked(data, parameters))),
    h("h2", { class: "unseen" }, "Zones"), cards];
  tools.later(Promise.all(counts).then(async (all) => {
    if (all.every(({ total }) => total.passed + total.blocked === 0)) cards.before(await nobody(tools.signal));
  }).catch(() => {})); // the cards say it
  if (shown.length < zones.length)
    parts.push(h("button", { type: "button", id: "more-zones",
      onclick: () => tools.go({ pages: (Number(parameters.pages) || 1) + 1 }) },
    `Show more zones (${zones.length - shown.length})`));
  return parts;
}
