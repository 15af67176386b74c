// SPDX-License-Identifier: Apache-2.0
// Counts over a span: by hour or by UTC's days as the API has them, or by the zone's days, which are summed of hours.

import { get } from "./api.js";
import { DAY_MS, HOUR_MS, UTC_DAY, day_begin, zone_name } from "./clock.js";

const NAMES = ["passed", "blocked", "late"];

/** Whether days are the API's own. */
const by_utc_days = ({ grain }) => grain === UTC_DAY || (grain === "day" && zone_name() === "UTC");

/** {from_ms, to_ms, grain, counts, total}: counts as the API's, by the span's grain. */
export async function counts_of(asked, span, signal) {
  const { from, to, grain } = span;
  const ask = (by) => get("counts", { ...asked, from, to, grain: by }, signal);
  if (by_utc_days(span)) return { ...await ask("day"), grain };
  const hours = await ask("hour");
  return grain === "hour" ? hours : { ...hours, grain, from_ms: from, to_ms: to, counts: by_day(hours.counts) };
}

const came = ({ passed, blocked }) => passed + blocked;
const utc_day = (ms) => Math.floor(ms / DAY_MS) * DAY_MS;

/** Whether hours are deleted of a day that is still counted as a day. */
function lacks_hours(days, hours) {
  const sums = new Map();
  for (const hour of hours) sums.set(utc_day(hour.at_ms), (sums.get(utc_day(hour.at_ms)) ?? 0) + came(hour));
  return days.some((day) => came(day) > (sums.get(day.at_ms) ?? 0));
}

/**
 * The same of one key, whose hours may be deleted before its days are: where they are, by days of UTC, which may begin
 * before the span and end behind it. `days` says so.
 */
export async function counts_of_key(asked, span, signal) {
  if (by_utc_days(span)) return counts_of(asked, span, signal);
  // Days first: what comes meanwhile is in the hours alone.
  const days = await get("counts", { ...asked, from: span.from, to: span.to, grain: "day" }, signal);
  const hours = await get("counts", { ...asked, from: days.from_ms, to: days.to_ms, grain: "hour" }, signal);
  if (lacks_hours(days.counts, hours.counts)) return { ...days, grain: UTC_DAY, days: true };
  const within = hours.counts.filter(({ at_ms }) => at_ms >= span.from && at_ms < span.to);
  const total = Object.fromEntries(NAMES.map((name) => [name, within.reduce((sum, one) => sum + one[name], 0)]));
  return { ...hours, grain: span.grain, from_ms: span.from, to_ms: span.to, kept_from_ms: days.kept_from_ms, total,
    counts: span.grain === "hour" ? within : by_day(within) };
}

/** Whether nothing of it may be deleted. */
export const is_whole = ({ from_ms, kept_from_ms }) => kept_from_ms === null || kept_from_ms <= from_ms;

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

const NEXT = { hour: (at) => at + HOUR_MS, day: (at) => day_begin(at, 1), [UTC_DAY]: (at) => at + DAY_MS };

/** Where the hours or days of counts begin, also those without a request, which the API leaves out; and the last one's end. */
export function begins_of({ from_ms, to_ms, grain }) {
  const begins = [];
  for (let at = from_ms; at < to_ms; at = NEXT[grain](at)) begins.push(at);
  return [...begins, to_ms];
}
