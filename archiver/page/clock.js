// SPDX-License-Identifier: Apache-2.0
// The one time zone of all that is shown: the reader's own, or UTC where they choose so. Its name stands in the head.

const KEPT = "weir-zone";
const UTC = "UTC";
const HERE = new Intl.DateTimeFormat().resolvedOptions().timeZone || UTC;

export const HOUR_MS = 3600_000;
export const DAY_MS = 24 * HOUR_MS;

// Storage may be forbidden: the choice then lasts as long as the page.
let zone = HERE;
try {
  if (localStorage.getItem(KEPT) === UTC) zone = UTC;
} catch { /* as without a choice */ }

export const zone_name = () => zone;

/** What counts are by, but for "hour" and "day": days of UTC, where those of the zone cannot be told. */
export const UTC_DAY = "UTC day";

/** The zone in which an hour or day of counts is named. */
export const zone_of = (grain) => (grain === UTC_DAY ? UTC : zone);

const made = new Map();

/** The formatter of these options, in the zone of all times or in another. */
export function formatter(options, timeZone = zone) {
  const name = timeZone + JSON.stringify(options);
  if (!made.has(name)) made.set(name, new Intl.DateTimeFormat(undefined, { ...options, timeZone }));
  return made.get(name);
}

const readings = new Map();

/** What a clock on the wall shows at an instant, as the instant at which UTC's shows the same. */
function wall(ms) {
  if (zone === UTC) return ms;
  if (!readings.has(zone))
    readings.set(zone, new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric",
      day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" }));
  const part = Object.fromEntries(readings.get(zone).formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) + (((ms % 1000) + 1000) % 1000);
}

/**
 * The first instant at which the clock on the wall shows it: an hour comes twice where a summer ends. One that a summer's
 * beginning leaves out is the one after.
 */
function instant(shown) {
  const both = [shown - DAY_MS, shown + DAY_MS].map((near) => shown - (wall(near) - near)).sort((a, b) => a - b);
  return both.find((one) => wall(one) === shown) ?? both[1];
}

const begin = (shown, unit) => Math.floor(shown / unit) * unit;

/** The first moment of the day in which an instant is, or of one so many days later. */
export const day_begin = (ms, later = 0) => instant(begin(wall(ms), DAY_MS) + later * DAY_MS);

/** Whether each day of a time begins with an hour of UTC, so that its hours are whole ones. */
export function days_are_whole_hours(from, to) {
  for (let at = from; at < to; at = day_begin(at, 1))
    if (at % HOUR_MS !== 0) return false;
  return to % HOUR_MS === 0;
}

export const hour_begin = (ms) => begin(ms, HOUR_MS);
export const hour_end = (ms) => begin(ms + HOUR_MS - 1, HOUR_MS);
export const is_midnight = (ms) => wall(ms) % DAY_MS === 0;

/** A day that was typed, 2026-11-21, as its first moment; NaN where it is none. */
export const day_start = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? instant(Date.parse(`${text}T00:00Z`)) : NaN);

/** The day of an instant, as it is typed. */
export const day_text = (ms) => new Date(wall(ms)).toISOString().slice(0, 10);

/** An instant as a field for dates and times has it, and back; "" and NaN where there is none. */
export const field_text = (ms) => (Number.isNaN(ms) ? "" : new Date(wall(ms)).toISOString().slice(0, 16));
export const field_time = (text) => instant(Date.parse(`${text}Z`));

/** For uPlot: a Date whose own reading is the zone's, or another zone's. */
export const shifted = (UPlot, other = zone) => (other === HERE ? undefined : (ms) => UPlot.tzDate(new Date(ms), other));

/** Puts the zone's name on the button, which changes between the reader's own and UTC; changed() is called after that. */
export function start_clock(button, changed) {
  const show = () => {
    button.textContent = zone;
    button.setAttribute("aria-label", `Times are in ${zone}.${HERE === UTC ? "" : ` Change to ${zone === UTC ? HERE : UTC}`}`);
  };
  button.disabled = HERE === UTC;
  button.title = HERE === UTC ? "All times are in UTC" : "The time zone of all times: press to change";
  button.addEventListener("click", () => {
    zone = zone === UTC ? HERE : UTC;
    try {
      localStorage.setItem(KEPT, zone === UTC ? UTC : "");
    } catch { /* see above */ }
    show();
    changed();
  });
  show();
}
