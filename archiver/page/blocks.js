// SPDX-License-Identifier: Apache-2.0
// Who is blocked at this moment.

import { get } from "./api.js";
import { command, copy_button } from "./command.js";
import { decision_columns } from "./decisions.js";
import { empty, figures, h, table } from "./dom.js";
import { seen } from "./seen.js";
import { digits, lasting, named_time, number } from "./words.js";

const MOST = 1000;
const ORDERS = {
  since: ["latest first", (a, b) => b.at_ms - a.at_ms],
  until: ["longest first", (a, b) => b.until_ms - a.until_ms],
  key: ["by key", (a, b) => (a.key < b.key ? -1 : 1)],
};

export const name = "blocks";
export const title = "Live blocks";
export const short = "Blocks";
export const refresh_ms = 5000;
export const keeps = ["zone"]; // of what was chosen in another view

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: [["", "all zones"], ...zones.map((zone) => [zone.name, zone.name])], standard: "" },
  { name: "order", label: "Order", options: Object.entries(ORDERS).map(([value, [words]]) => [value, words]), standard: "since" },
  { name: "part", label: "Key has in it", type: "search", standard: "" },
  { name: "refresh", label: "Refresh", options: [["on", "every 5 s"], ["off", "off"]], standard: "on" },
];

export const load = async ({ zone }, { status }, signal) =>
  ({ ...await get("blocks", { zone: zone || undefined, limit: MOST }, signal), status });

export function draw({ now_ms, blocks, more, status }, { zone, order, part }, { report }) {
  const head = figures([["Blocked now", more ? `more than ${digits(blocks.length)}` : number(blocks.length)], ["As of", named_time(now_ms)]]);
  if (blocks.length === 0)
    return [head, empty(zone ? `Nobody is blocked in ${zone}.` : "Nobody is blocked.",
      "Everybody is within the limits. Blocks that have ended are in Decisions and in a user’s history.")];
  const [words, compare] = ORDERS[order];
  const rows = blocks.filter((row) => [row.key, seen(row.key)].some((one) => one.includes(part))).sort(compare);
  if (rows.length === 0) return [head, empty(`No blocked key has “${seen(part)}” in it.`, "Change the filter above.")];
  const left = { name: "Still", cell: (row) => lasting(now_ms, row.until_ms) };
  const lift = { name: "Lift", cell: (row) => copy_button(command("lift", row.zone, row.key, status), "Copy command", report) };
  const [key, in_zone, when, until, why] = decision_columns("key", "zone", "when", "until", "why");
  return [head, more && h("p", { class: "soft" }, `The latest ${digits(blocks.length)} are shown.`),
    table(`Blocked keys, ${words}`, [key, in_zone, left, until, { ...when, name: "Since" }, why, lift], rows)].filter(Boolean);
}
