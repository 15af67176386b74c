// SPDX-License-Identifier: Apache-2.0
// Which time a view shows: so much of it, up to a day or to the newest data.

import { DAY_MS, HOUR_MS } from "./words.js";

// Long spans by day: the API sums all keys of at most 31 days by hour.
const SPANS = {
  "24h": { words: "24 hours", ms: DAY_MS, grain: "hour" },
  "7d": { words: "7 days", ms: 7 * DAY_MS, grain: "hour" },
  "31d": { words: "31 days", ms: 31 * DAY_MS, grain: "hour" },
  "365d": { words: "365 days", ms: 365 * DAY_MS, grain: "day" },
};

export const span_fields = [
  { name: "span", label: "Span", options: Object.entries(SPANS).map(([value, { words }]) => [value, words]),
    standard: "7d" },
  { name: "until", label: "Until (day, UTC)", type: "date", standard: "" },
];

/** The end of what is shown where no day is chosen: the present, or the newest data where that is long ago. */
export function newest(status) {
  const clocks = status.partitions.filter((one) => one.role === "archiver").map((one) => one.clock_ms);
  const data = Math.max(0, ...clocks);
  return data > 0 && data < status.now_ms - DAY_MS ? data + 1 : status.now_ms;
}

/** A day that was typed, as its first moment; NaN where it is none. */
export const day_start = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00Z`) : NaN);

/** {from, to, grain} in whole hours or days. */
export function span_of({ span, until }, status) {
  const { ms, grain } = SPANS[span] ?? SPANS["7d"];
  const unit = grain === "day" ? DAY_MS : HOUR_MS;
  const typed = day_start(until);
  const end = Number.isNaN(typed) ? newest(status) : typed + DAY_MS;
  const to = Math.ceil(end / unit) * unit;
  return { from: to - ms, to, grain };
}
