// SPDX-License-Identifier: Apache-2.0
// What happens at a glance: who is blocked, how that differs from before, who comes most; then zone by zone.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { day_text } from "./clock.js";
import { counts_of } from "./counts.js";
import { decision_columns, story } from "./decisions.js";
import { empty, figures, fit_tables, h, table } from "./dom.js";
import { custom_span, span_fields, span_of, span_query } from "./span.js";
import { change, digits, named_time, number, percent } from "./words.js";

// Each zone is a sum over all of its keys: so many at a time, the others when they are asked for.
const ZONES = 8;
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

/** What reads many rows where a zone has many keys: when the counts are there, and one zone after the other. */
async function one_by_one(counts, zones, ask) {
  await Promise.allSettled(counts);
  const answers = [];
  for (const zone of zones) answers.push(await ask(zone));
  return answers;
}

export async function load(parameters, { zones, status }, signal) {
  const span = span_of(parameters, status);
  const shown = order(zones).slice(0, ZONES * (Number(parameters.pages) || 1));
  const before = { ...span, from: span.from - (span.to - span.from), to: span.from };
  const { from, to } = span;
  const counts = shown.map((zone) => later_said(counts_of({ zone: zone.name }, span, signal)));
  return {
    span, zones, shown,
    counts,
    before: span.grain === "hour" ? shown.map((zone) => later_said(counts_of({ zone: zone.name }, before, signal))) : [],
    top: later_said(one_by_one(counts, shown, ({ name: zone }) =>
      get("top", { zone, by: "blocked", from, to, grain: "hour", limit: TOP }, signal))),
    blocks: later_said(get("blocks", { limit: BLOCKS_MAX }, signal)),
    newest: later_said(get("decisions", { from, to, limit: NEWEST }, signal)),
  };
}

/* ---- the headline ---- */

const sum = (all, name) => all.reduce((total, one) => total + one.total[name], 0);

async function headline({ counts, before, blocks }) {
  const [now, past, { blocks: held, more }] = await Promise.all([Promise.all(counts), Promise.all(before), blocks]);
  const figure = (words, name) => {
    const trend = change(sum(now, name), sum(past, name));
    return [words, number(sum(now, name)), trend && h("span", {}, trend, " ", h("span", { class: "soft" }, "against the span before"))];
  };
  const all = sum(now, "passed") + sum(now, "blocked");
  const keys = new Set(held.map((row) => row.zone)).size;
  return figures([
    ["Blocked now", h("a", { href: "#/blocks" }, more ? `more than ${digits(BLOCKS_MAX)}` : number(held.length)),
      held.length > 0 && h("span", { class: "soft" }, `in ${digits(keys)} ${keys === 1 ? "zone" : "zones"}`)],
    figure("Requests passed", "passed"), figure("Requests blocked", "blocked"),
    ["Blocked share", percent(sum(now, "blocked"), all)],
  ]);
}

async function newest_decisions({ newest }, parameters) {
  const { decisions } = await newest;
  const more = h("a", { href: `#/decisions?${new URLSearchParams(span_query(parameters))}` }, "All decisions of this time");
  if (decisions.length === 0) return [h("p", { class: "soft" }, "No decisions in this time range.")];
  return [table("Newest decisions", decision_columns("key", "zone", "action", "when"), decisions, { hidden_caption: true }),
    h("p", { class: "more" }, more)];
}

async function most_blocked({ top }, parameters) {
  const all = (await top).flatMap(({ zone, top: keys }) => keys.map((one) => ({ zone, ...one })));
  const rows = all.sort((a, b) => b.blocked - a.blocked).slice(0, TOP);
  if (rows.length === 0) return [h("p", { class: "soft" }, "Nobody was blocked in this time range.")];
  const span = span_query(parameters);
  const more = h("a", { href: `#/top?${new URLSearchParams({ zone: rows[0].zone, by: "blocked", ...span })}` }, `All talkers of ${rows[0].zone}`);
  return [table("Most blocked keys", [
    { name: "Key", cell: (row) => h("a", { href: story(row.zone, row.key, span), class: "key" }, row.key || "(empty)") },
    { name: "Zone", cell: (row) => row.zone },
    { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
    { name: "Share", number: true, cell: (row) => percent(row.blocked, row.total) },
  ], rows, { hidden_caption: true }), h("p", { class: "more" }, more)];
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
    zone.description && h("p", { class: "soft" }, zone.description),
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
    h("p", { class: "soft" }, "From ", named_time(span.from), " to ", named_time(span.to), `, by ${span.grain}.`),
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
