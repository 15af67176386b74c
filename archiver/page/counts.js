// SPDX-License-Identifier: Apache-2.0
// Counts over a span: by hour as the API has them, or by the zone's days, which are the API's own where the zone is UTC.

import { get } from "./api.js";
import { DAY_MS, HOUR_MS, day_begin, zone_name } from "./clock.js";

// So many hours the API gives at once; of a longer time UTC's days are shown, in whatever zone.
const HOURS_MAX = 10_000;
const NAMES = ["passed", "blocked", "late"];

/** {from_ms, to_ms, grain, counts, total}: counts as the API's, by the span's grain. */
export async function counts_of(asked, { from, to, grain }, signal) {
  const summed = grain === "day" && zone_name() !== "UTC" && to - from <= HOURS_MAX * HOUR_MS;
  const answer = await get("counts", { ...asked, from, to, grain: summed ? "hour" : grain }, signal);
  return summed ? { ...answer, grain, from_ms: from, to_ms: to, counts: by_day(answer.counts) } : answer;
}

function by_day(hours) {
  const days = new Map();
  let [begin, end] = [0, 0];
  for (const hour of hours) {
    if (hour.at_ms >= end) [begin, end] = [day_begin(hour.at_ms), day_begin(hour.at_ms, 1)];
    const day = days.get(begin) ?? { at_ms: begin, passed: 0, blocked: 0, late: 0 };
    for (const name of NAMES) day[name] += hour[name];
    days.set(begin, day);
  }
  return [...days.values()];
}

/** Where the hours or days of counts begin, also those without a request, which the API leaves out; and the last one's end. */
export function begins_of({ from_ms, to_ms, grain, counts }) {
  const begins = [];
  const utc = counts.every(({ at_ms }) => at_ms % DAY_MS === 0);
  const next = grain === "hour" ? (at) => at + HOUR_MS : utc ? (at) => at + DAY_MS : (at) => day_begin(at, 1);
  for (let at = from_ms; at < to_ms; at = next(at)) begins.push(at);
  return [...begins, to_ms];
}
