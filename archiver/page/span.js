// SPDX-License-Identifier: Apache-2.0
// Which time a view shows: so much of it, up to a day or to the newest data; or from one hour to another.

import { DAY_MS, HOUR_MS, UTC_DAY, day_begin, day_start, days_are_whole_hours, field_text, field_time, hour_begin, hour_end,
  zone_name } from "./clock.js";

const SPANS = {
  "24h": { words: "24 hours", ms: DAY_MS },
  "7d": { words: "7 days", ms: 7 * DAY_MS },
  "31d": { words: "31 days", ms: 31 * DAY_MS },
  "365d": { words: "365 days", ms: 365 * DAY_MS },
};
const CUSTOM = "custom";
const USUAL = "7d";
// What is longer is shown by day.
const BY_HOUR_MS = 32 * DAY_MS;
// Days of the zone are summed of hours, of which the API gives at most 10,000 at once.
const BY_ZONE_DAY_MS = 400 * DAY_MS;

const is_custom = ({ span }) => span === CUSTOM;
// In an address stands the instant: it is the same for readers in other zones.
const moment = (name, label) => ({
  name, type: "datetime-local", step: "3600", standard: "", when: is_custom,
  label: () => `${label} (${zone_name()})`,
  to_field: (value) => field_text(Date.parse(value)),
  from_field: (value) => (value ? new Date(field_time(value)).toISOString().replace(":00.000Z", "Z") : ""),
});

/** The fields of a view that shows some time. */
export const span_fields = [
  { name: "span", label: "Span", standard: USUAL,
    options: [...Object.entries(SPANS).map(([value, { words }]) => [value, words]), [CUSTOM, "from … to …"]] },
  { name: "until", label: () => `Until (day, ${zone_name()})`, type: "date", standard: "", when: (chosen) => !is_custom(chosen) },
  moment("from", "From"), moment("to", "To"),
];

/** Those of a view's parameters that say which time it shows, for a link to another view of the same time. */
export function span_query(parameters) {
  const chosen = {};
  for (const { name, standard, when } of span_fields) {
    const value = parameters[name];
    if (value && value !== standard && (when === undefined || when(parameters))) chosen[name] = value;
  }
  return chosen;
}

const in_address = (ms) => new Date(ms).toISOString().replace(/:00\.000Z$/, "Z");

/** The parameters of a span from one instant to another, in whole hours. */
export const custom_span = (from, to) =>
  ({ span: CUSTOM, from: in_address(hour_begin(from)), to: in_address(Math.max(hour_end(to), hour_begin(from) + HOUR_MS)), until: "" });

/** The end of what is shown where no day is chosen: the present, or the newest counts where those are of long ago. */
export function newest(status) {
  const data = status.newest_hour_ms === null ? status.now_ms : status.newest_hour_ms + HOUR_MS;
  return data < status.now_ms - DAY_MS ? data : status.now_ms;
}

function ends_of({ span, until, from, to }, status) {
  if (span === CUSTOM) {
    const [first, last] = [Date.parse(from), Date.parse(to)];
    if (last > first) return [first, last];
  }
  const typed = day_start(until);
  const end = Number.isNaN(typed) ? newest(status) : day_begin(typed, 1);
  const { ms } = SPANS[span] ?? SPANS[USUAL];
  return [hour_end(end) - ms, end];
}

/** {from, to, grain}, in whole hours; or whole days of the zone, or of UTC where the zone's are not of whole hours of UTC. */
export function span_of(parameters, status) {
  const [first, last] = ends_of(parameters, status);
  if (last - first <= BY_HOUR_MS) return { from: hour_begin(first), to: hour_end(last), grain: "hour" };
  // A span of so many days has as many, today's among them.
  const days = is_custom(parameters) ? null : Math.round((last - first) / DAY_MS);
  const to = day_begin(last - 1, 1);
  const from = days === null ? day_begin(first) : day_begin(to, -days);
  if (zone_name() === "UTC" || (to - from <= BY_ZONE_DAY_MS && days_are_whole_hours(from, to))) return { from, to, grain: "day" };
  const end = Math.ceil(last / DAY_MS) * DAY_MS;
  return { from: days === null ? Math.floor(first / DAY_MS) * DAY_MS : end - days * DAY_MS, to: end, grain: UTC_DAY };
}

const TALKERS_MS = 366 * DAY_MS; // of which the API lists keys

/** The part of a span of which keys are listed, and what is said where it is not all of it. */
export function talkers_span({ from, to }) {
  const first = Math.max(from, to - TALKERS_MS);
  return { from: first, to, words: first > from ? ` Keys are listed for the last ${TALKERS_MS / DAY_MS} days only.` : "" };
}

/** Why a span is by days of UTC; nothing where it is not. */
export function about_days({ from, to, grain }) {
  if (grain !== UTC_DAY) return "";
  return to - from > BY_ZONE_DAY_MS ? ` Days are those of UTC, as always beyond ${BY_ZONE_DAY_MS / DAY_MS} days.` :
    ` Days are those of UTC: requests are counted by whole hours of UTC, and days in ${zone_name()} do not begin with one.`;
}
