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

const made = new Map();

/** The formatter of these options, in the zone. */
export function formatter(options) {
  const name = zone + JSON.stringify(options);
  if (!made.has(name)) made.set(name, new Intl.DateTimeFormat(undefined, { ...options, timeZone: zone }));
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

/** The instant at which the clock on the wall shows it; an hour that a summer's beginning leaves out is the one after. */
function instant(shown) {
  const first = shown - (wall(shown) - shown);
  const second = shown - (wall(first) - first);
  return wall(second) === shown ? second : Math.max(first, second);
}

const begin = (shown, unit) => Math.floor(shown / unit) * unit;

/** The first moment of the day in which an instant is, or of one so many days later. */
export const day_begin = (ms, later = 0) => instant(begin(wall(ms), DAY_MS) + later * DAY_MS);

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

/** For uPlot: a Date whose own reading is the zone's. */
export const shifted = (UPlot) => (zone === HERE ? undefined : (ms) => UPlot.tzDate(new Date(ms), zone));

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
