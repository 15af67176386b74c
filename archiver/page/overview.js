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
  const counts = await Promise.all(shown.map((zone) => get("counts", { zone: zone.name, ...span }, signal)));
  return { span, zones, shown, counts };
}

function card(zone, counts, signal) {
  const { total } = counts;
  const came = total.passed + total.blocked;
  return h("section", { class: "card", "aria-labelledby": `zone-${zone.id}` },
    h("h2", { id: `zone-${zone.id}` }, h("a", { href: `#/top?${new URLSearchParams({ zone: zone.name })}` }, zone.name),
      zone.mode === "shadow" && h("span", { class: "tag" }, "shadow"),
      !zone.live && h("span", { class: "tag" }, "removed")),
    zone.description && h("p", { class: "soft" }, zone.description),
    figures([["Passed", number(total.passed)], ["Blocked", number(total.blocked)],
      ["Blocked share", percent(total.blocked, came)], ["Late", number(total.late)]]),
    came > 0 ? chart(counts, zone.name, signal) : h("p", { class: "soft" }, "No requests in this time."));
}

export function draw({ span, zones, shown, counts }, parameters, { signal, go }) {
  if (zones.length === 0)
    return [empty("There are no zones yet.",
      "A zone says whose requests are counted, and how many of them may pass. weir has none until it is given a policy: " +
      "“zones” in its configuration, or weir policy apply.")];
  const came = counts.reduce((sum, { total }) => sum + total.passed + total.blocked, 0);
  const parts = [h("p", { class: "soft" }, "From ", time(span.from), " to ", time(span.to), `, by ${span.grain}.`)];
  if (came === 0)
    parts.push(empty("Nobody came in this time.",
      "Choose a longer span or an earlier day above. If requests must have come, System shows how far the archiver is."));
  parts.push(h("div", { class: "cards" }, shown.map((zone, number_of) => card(zone, counts[number_of], signal))));
  if (shown.length < zones.length)
    parts.push(h("button", { type: "button", id: "more-zones",
      onclick: () => go({ pages: (Number(parameters.pages) || 1) + 1 }) },
    `Show more zones (${zones.length - shown.length})`));
  return parts;
}
