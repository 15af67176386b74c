// SPDX-License-Identifier: Apache-2.0
// The keys that came most, in some hours or days of a zone.

import { get, save } from "./api.js";
import { command, copy_button } from "./command.js";
import { story } from "./decisions.js";
import { empty, h, table } from "./dom.js";
import { seen, seen_key } from "./seen.js";
import { span_fields, span_of, span_query, talkers_span } from "./span.js";
import { digits, named_time, number, percent } from "./words.js";

const BY = { total: "all requests", passed: "passed", blocked: "blocked" };

export const name = "top";
export const title = "Top talkers";
export const short = "Talkers";
export const keeps = ["span", "zone"]; // of what was chosen in another view

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: zones.map((zone) => [zone.name, zone.name]), standard: zones[0]?.name ?? "" },
  { name: "by", label: "Sorted by", options: Object.entries(BY), standard: "total" },
  ...span_fields,
  { name: "part", label: "Key has in it", type: "search", standard: "" },
];

export async function load(parameters, { zones, status }, signal) {
  if (zones.length === 0) return null;
  const span = span_of(parameters, status);
  const { from, to, words } = talkers_span(span);
  const asked = { zone: parameters.zone, by: parameters.by, from, to, grain: "hour" };
  const shadow = zones.find((zone) => zone.name === parameters.zone)?.mode === "shadow";
  return { asked, span, words, status, shadow, ...await get("top", asked, signal) };
}

function bar(row, by, most) {
  const all = h("span", { class: "bar", "aria-hidden": "true" });
  const part = (kind, count) => {
    const piece = h("span", { class: kind });
    piece.style.width = `${most > 0 ? (100 * count) / most : 0}%`;
    all.append(piece);
  };
  if (by !== "blocked") part("passed", row.passed);
  if (by !== "passed") part("blocked", row.blocked);
  return all;
}

export function draw(data, parameters, { go, report }) {
  if (data === null) return [empty("There are no zones yet.", "Top talkers are listed per zone: give weir a policy first.")];
  const { asked, words, status, shadow, zone, by, top, from_ms, to_ms, kept_from_ms } = data;
  const lacks = kept_from_ms !== null && kept_from_ms > from_ms ? [" Days before ", named_time(kept_from_ms), " may be deleted."] : [];
  const about = h("p", { class: "soft" }, "From ", named_time(from_ms), " to ", named_time(to_ms), ".", words,
    (from_ms < asked.from || to_ms > asked.to) && " Hours of this time are deleted, so whole days of UTC are counted.", ...lacks,
    shadow && " The zone is in shadow mode: what stands under Blocked would have been blocked.");
  if (top.length === 0)
    return [about, empty(`No requests in ${zone}.`, "Choose a longer range, an earlier day or another zone above.")];
  const rows = top.filter((row) => [row.key, seen(row.key)].some((one) => one.includes(parameters.part)));
  if (rows.length === 0)
    return [about, empty(`None of the ${digits(top.length)} busiest keys has “${seen(parameters.part)}” in it.`, "Change the filter above.")];
  const most = Math.max(...top.map((row) => row[by]));
  const sorted = (count, words) => ({ name: words, number: true, cell: (row) => number(row[count]),
    sorted: by === count, sort: () => go({ by: count }) });
  return [about,
    table(`The ${top.length === 1 ? "busiest key" : `${top.length} busiest keys`} in ${zone}, by ${BY[by]}`, [
      { name: "Key", cell: (row) => h("a", { href: story(zone, row.key, span_query(parameters)), class: "key" }, seen_key(row.key)) },
      { name: h("span", { class: "unseen" }, "Bar"), wide: true, cell: (row) => bar(row, by, most) },
      sorted("total", "All"), sorted("passed", "Passed"), sorted("blocked", "Blocked"),
      { name: "Blocked share", number: true, cell: (row) => percent(row.blocked, row.total) },
      { name: "Late", number: true, cell: (row) => number(row.late) },
      { name: "Block", cell: (row) => copy_button(command("block", zone, row.key, status, "--for", "1h"), "Copy command", report) },
    ], rows),
    h("button", { type: "button", onclick: report(() => save("top", { ...asked, from: from_ms, to: to_ms }, `top-${zone}.csv`), "Saved.") }, "Save as CSV"),
  ];
}
