// SPDX-License-Identifier: Apache-2.0
// Numbers and times in the reader's own language; each time has its UTC instant in the title.

import { h } from "./dom.js";

export const HOUR_MS = 3600_000;
export const DAY_MS = 24 * HOUR_MS;

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const hour = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const day_here = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
// The archiver's days are UTC's.
const day_utc = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

export const digits = (value) => whole.format(value);
export const compact = (value) => short.format(value);
export const percent = (part, all) => (all > 0 ? share.format(part / all) : "–");

/** A number as an element, which has it exactly. */
export const number = (value) => (value == null ? "–" : h("data", { value: String(value) }, digits(value)));

const iso = (ms) => new Date(ms).toISOString();

function time_element(ms, text) {
  return h("time", { datetime: iso(ms), title: `${iso(ms)} (UTC)` }, text);
}

// Beyond what a date can be, as the end of a block without end is, there is no instant to show.
const is_date = (ms) => Number.isFinite(ms) && Math.abs(ms) < 8.64e15;

export const time = (ms) => (is_date(ms) ? time_element(ms, moment.format(ms)) : "no end");

/** An hour or a day of counts. */
export const period = (ms, grain) => time_element(ms, period_text(ms, grain));
export const period_text = (ms, grain) => (grain === "day" ? `${day_utc.format(ms)} UTC` : hour.format(ms));

/** A place on a time axis: the day where one begins, else the hour. */
export function tick(ms, grain) {
  if (grain === "day") return day_utc_short.format(ms);
  const date = new Date(ms);
  return date.getHours() === 0 && date.getMinutes() === 0 ? day_here.format(ms) : clock.format(ms);
}
const day_utc_short = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });

const UNITS = [["d", DAY_MS], ["h", HOUR_MS], ["min", 60_000], ["s", 1000], ["ms", 1]];

/** "1 min 30 s": the two largest units. */
export function duration(ms) {
  if (ms === 0) return "0 s";
  const parts = [];
  let left = Math.abs(Math.round(ms));
  for (const [name, unit] of UNITS) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0 && parts.length < 2) parts.push(`${digits(count)} ${name}`);
    else if (parts.length > 0) break;
    if (name === "s" && parts.length > 0) break; // milliseconds are for what is shorter than a second
  }
  return (ms < 0 ? "−" : "") + parts.join(" ");
}

/** A limit as a person says it. */
export function limit(one) {
  const name = one.algorithm.replaceAll("_", " ");
  if (one.algorithm === "queue") return `queue of ${digits(one.rate)}, held ${duration(one.window_ms)}`;
  if (one.algorithm === "uniform") return `one every ${duration(one.window_ms)} (uniform)`;
  const burst = one.burst ? `, burst ${digits(one.burst)}` : "";
  const late = one.lateness_ms ? `, up to ${duration(one.lateness_ms)} late` : "";
  return `${digits(one.rate)} in ${duration(one.window_ms)}${burst}${late} (${name})`;
}
