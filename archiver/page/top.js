// SPDX-License-Identifier: Apache-2.0
// The keys that came most, in some days of a zone.

import { get, save } from "./api.js";
import { empty, h, table } from "./dom.js";
import { day_start, newest } from "./span.js";
import { DAY_MS, number, percent, period_text } from "./words.js";

export const name = "top";
export const title = "Top talkers";
export const short = "Talkers";

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: zones.map((zone) => [zone.name, zone.name]), standard: zones[0]?.name ?? "" },
  { name: "by", label: "Sorted by", options: [["total", "all requests"], ["passed", "passed"], ["blocked", "blocked"]],
    standard: "total" },
  { name: "days", label: "Span", options: [["1", "1 day"], ["7", "7 days"], ["31", "31 days"]], standard: "1" },
  { name: "until", label: "Until (day, UTC)", type: "date", standard: "" },
];

function question({ zone, by, days, until }, status) {
  const typed = day_start(until);
  const last = Number.isNaN(typed) ? newest(status) - 1 : typed;
  const to = (Math.floor(last / DAY_MS) + 1) * DAY_MS;
  return { zone, by, from: to - Number(days) * DAY_MS, to };
}

export async function load(parameters, { zones, status }, signal) {
  if (zones.length === 0) return null;
  const asked = question(parameters, status);
  return { asked, ...await get("top", asked, signal) };
}

/** The address of a user's story. */
export const story = (zone, key) => `#/user?${new URLSearchParams({ zone, key })}`;

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

export function draw(data, parameters, { report }) {
  if (data === null) return [empty("There are no zones yet.", "Top talkers are listed per zone: give weir a policy first.")];
  const { asked, zone, by, top, from_ms, to_ms } = data;
  const days = [from_ms, to_ms - DAY_MS].map((at) => period_text(at, "day"));
  const span = days[0] === days[1] ? days[0] : `${days[0]} to ${days[1]}`;
  if (top.length === 0)
    return [empty(`No requests in ${zone}: ${span}.`, "Choose a longer range, an earlier day or another zone above.")];
  const most = Math.max(...top.map((row) => row[by]));
  return [
    table(`The ${top.length === 1 ? "busiest key" : `${top.length} busiest keys`} in ${zone}, ${span}`, [
      { name: "Key", cell: (row) => h("a", { href: story(zone, row.key), class: "key" }, row.key || "(empty)") },
      { name: h("span", { class: "unseen" }, "Bar"), wide: true, cell: (row) => bar(row, by, most) },
      { name: "All", number: true, cell: (row) => number(row.total) },
      { name: "Passed", number: true, cell: (row) => number(row.passed) },
      { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
      { name: "Blocked share", number: true, cell: (row) => percent(row.blocked, row.total) },
      { name: "Late", number: true, cell: (row) => number(row.late) },
    ], top),
    h("button", { type: "button", onclick: report(() => save("top", asked, `top-${zone}.csv`), "Saved.") }, "Save as CSV"),
  ];
}
