// SPDX-License-Identifier: Apache-2.0
// Numbers and times in the reader's own language; each time has its UTC instant in the title.

import { DAY_MS, HOUR_MS, formatter, is_midnight, zone_of } from "./clock.js";
import { h } from "./dom.js";

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const growth = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" });

const MOMENT = { dateStyle: "medium", timeStyle: "medium" };
const CLOCK = { timeStyle: "medium" };
const NAMED = { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" };
const HOUR = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" };
const TICK = { hour: "numeric", minute: "2-digit" };
const TICK_DAY = { month: "short", day: "numeric" };
const DAY = { dateStyle: "medium" };
const LONG_DAY = { weekday: "long", year: "numeric", month: "long", day: "numeric" };

export const digits = (value) => whole.format(value);
export const compact = (value) => short.format(value);
export const percent = (part, all) => (all > 0 ? share.format(part / all) : "–");

/** How much more than before: "+12%"; nothing where there was nothing. */
export const change = (now, before) => (before > 0 ? growth.format(now / before - 1) : "");

/** A number as an element, which has it exactly. */
export const number = (value) => (value == null ? "–" : h("data", { value: String(value) }, digits(value)));

const iso = (ms) => new Date(ms).toISOString();

function time_element(ms, text) {
  return h("time", { datetime: iso(ms), title: `${iso(ms)} (UTC)` }, text);
}

// The year 10000: what is in force until then has no end.
const NO_END_MS = 253402300800000;
export const is_endless = (ms) => ms >= NO_END_MS;

const said = (ms, form) => (is_endless(ms) ? "no end" : time_element(ms, formatter(form).format(ms)));

export const time = (ms) => said(ms, MOMENT);
/** The same without its day, which stands above. */
export const clock = (ms) => said(ms, CLOCK);
/** With the zone's name, for a sentence. */
export const named_time = (ms) => said(ms, NAMED);

export const day_title = (ms) => formatter(LONG_DAY).format(ms);

/** An hour or a day of counts. */
export const period = (ms, grain) => time_element(ms, period_text(ms, grain));
export const period_text = (ms, grain) => formatter(grain === "hour" ? HOUR : DAY, zone_of(grain)).format(ms);

/** A place on a time axis: the day where one begins, else the hour. */
export const tick = (ms, grain) =>
  formatter(grain !== "hour" || is_midnight(ms) ? TICK_DAY : TICK, zone_of(grain)).format(ms);

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

/** How long something lasts from one moment until another. */
export const lasting = (from, to) => (is_endless(to) ? "no end" : duration(Math.max(0, to - from)));

/** A limit as a person says it. */
export function limit(one) {
  const name = one.algorithm.replaceAll("_", " ");
  if (one.algorithm === "queue") return `queue of ${digits(one.rate)}, held ${duration(one.window_ms)}`;
  if (one.algorithm === "uniform") return `one every ${duration(one.window_ms)} (uniform)`;
  const burst = one.burst ? `, burst ${digits(one.burst)}` : "";
  const late = one.lateness_ms ? `, up to ${duration(one.lateness_ms)} late` : "";
  return `${digits(one.rate)} in ${duration(one.window_ms)}${burst}${late} (${name})`;
}
