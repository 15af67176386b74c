// SPDX-License-Identifier: Apache-2.0
// Passed and blocked over time, zone by zone.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { empty, figures, h } from "./dom.js";
import { span_fields, span_of } from "./span.js";
import { number, percent, time } from "./words.js";

// Each zone is a sum over all of its keys: so many at a time, the others when they are asked for.
const ZONES = 8;

export const name = "overview";
export const title = "Overview";
export const fields = () => span_fields;

/** The zones that count: those in force first. */
const order = (zones) => [...zones].sort((a, b) => b.live - a.live || a.id - b.id);

export async function load(parameters, { zones, status }, signal) {
  const span = span_of(parameters, status);
  const shown = order(zones).slice(0, ZONES * (Number(parameters.pages) || 1));
  const counts = shown.map((zone) => get("counts", { zone: zone.name, ...span }, signal));
  counts.forEach((one) => one.catch(() => {})); // said where it is drawn
  return { span, zones, shown, counts };
}

function filling({ total, ...counts }, zone, signal) {
  const came = total.passed + total.blocked;
  return [
    figures([["Passed", number(total.passed)], ["Blocked", number(total.blocked)],
      ["Blocked share", percent(total.blocked, came)], ["Late", number(total.late)]]),
    came > 0 ? chart({ total, ...counts }, zone.name, signal) : h("p", { class: "soft" }, "No requests in this time range."),
  ];
}

/** A zone's card, which keeps its place until its counts are there. */
function card(zone, counts, { signal, later }) {
  const body = h("div", { class: "pending", "aria-busy": "true" });
  later(counts.then((data) => body.replaceChildren(...filling(data, zone, signal)), (error) => {
    if (error.name !== "AbortError") body.replaceChildren(h("p", { role: "alert" }, `Not available: ${error.message}`));
  }).then(() => body.removeAttribute("aria-busy")));
  return h("section", { class: "card", "aria-labelledby": `zone-${zone.id}` },
    h("h2", { id: `zone-${zone.id}` }, h("a", { href: `#/top?${new URLSearchParams({ zone: zone.name })}` }, zone.name),
      zone.mode === "shadow" && h("span", { class: "tag" }, "shadow"),
      !zone.live && h("span", { class: "tag" }, "removed")),
    zone.description && h("p", { class: "soft" }, zone.description), body);
}

/** Where nobody came: what to do, and a way to where there is something. */
async function nobody(signal) {
  const { decisions: [newest] } = await get("decisions", { limit: 1 }, signal);
  const until = newest && new Date(newest.at_ms).toISOString().slice(0, 10);
  return h("div", {}, empty("No requests in this time range.",
    "Choose a longer range or an earlier day above. If you expected requests, System shows how far behind the archiver is.",
    until && h("a", { href: `#/overview?until=${until}`, id: "newest" }, "Go to the newest decision, ", time(newest.at_ms))));
}

export function draw({ span, zones, shown, counts }, parameters, tools) {
  if (zones.length === 0)
    return [empty("There are no zones yet.",
      "A zone defines whose requests are counted and how many may pass. weir has none until it has a policy: " +
      "set “zones” in its configuration, or run weir policy apply.")];
  const cards = h("div", { class: "cards" }, shown.map((zone, place) => card(zone, counts[place], tools)));
  const parts = [h("p", { class: "soft" }, "From ", time(span.from), " to ", time(span.to), `, by ${span.grain}.`), cards];
  tools.later(Promise.all(counts).then(async (all) => {
    if (all.every(({ total }) => total.passed + total.blocked === 0)) cards.before(await nobody(tools.signal));
  }).catch(() => {})); // the cards say it
  if (shown.length < zones.length)
    parts.push(h("button", { type: "button", id: "more-zones",
      onclick: () => tools.go({ pages: (Number(parameters.pages) || 1) + 1 }) },
    `Show more zones (${zones.length - shown.length})`));
  return parts;
}
