// SPDX-License-Identifier: Apache-2.0
// Who is blocked at this moment.

import { get } from "./api.js";
import { decision_columns } from "./decisions.js";
import { empty, figures, table } from "./dom.js";
import { digits, duration, number, time } from "./words.js";

const MOST = 1000;

export const name = "blocks";
export const title = "Live blocks";
export const short = "Blocks";
export const refresh_ms = 5000;

export const fields = (zones) => [
  { name: "zone", label: "Zone", options: [["", "all zones"], ...zones.map((zone) => [zone.name, zone.name])], standard: "" },
  { name: "refresh", label: "Refresh", options: [["on", "every 5 s"], ["off", "off"]], standard: "on" },
];

export const load = ({ zone }, _, signal) => get("blocks", { zone: zone || undefined, limit: MOST }, signal);

export function draw({ now_ms, blocks, more }, { zone }) {
  const head = figures([["Blocked now", more ? `more than ${digits(MOST)}` : number(blocks.length)], ["As of", time(now_ms)]]);
  if (blocks.length === 0)
    return [head, empty(zone ? `Nobody is blocked in ${zone}.` : "Nobody is blocked.",
      "Everybody is within the limits. Blocks that have ended are in a user’s history.")];
  const left = { name: "Still", cell: (row) => duration(Math.max(0, row.until_ms - now_ms)) };
  const [key, in_zone, when, until, why] = decision_columns("key", "zone", "when", "until", "why");
  return [head, table("Blocked keys, latest first",
    [key, in_zone, left, why, { ...when, name: "Since" }, until], blocks)];
}
