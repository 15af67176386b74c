// SPDX-License-Identifier: Apache-2.0
// A backtest's report: what got through over time by each policy, the numbers of each zone, and where policies differ.
// It is one file, which asks nobody for anything: the report is in it.

import { WHOLE, axis, colour, labels_of, reach, widest } from "./axis.js";
import { DAY_MS, formatter, is_midnight, shifted, start_clock } from "./clock.js";
import { empty, figures, fit_tables, h, table } from "./dom.js";
import { seen } from "./seen.js";
import { start_theme } from "./theme.js";
import { compact, digits, duration, number, time } from "./words.js";
import UPlot from "./uPlot.js"; // null in a build without charts

const COLOURS = 8;
const DASHES = [[], [8, 4], [2, 3]];

const report = JSON.parse(document.getElementById("report").textContent);
const { at, bin, series } = report.over_time;

/** What a series is called: by its policy, and its zone where some policy has more than one. */
const one_each = report.policies.every(({ zones }) => zones.length === 1);
const name_of = ({ policy, zone }) => seen(one_each ? policy : `${policy}: ${zone}`);

// What a reader has chosen: it outlasts a change of the theme, or of the time zone.
const shown = series.map(() => true);
let kind = "passed";
let numbers_open = UPlot === null;
let plot = null;
let draw = () => {}; // the chart anew

// As many places in each, so that they can be compared down a column.
const share = new Intl.NumberFormat(undefined, { style: "percent", minimumFractionDigits: 3, maximumFractionDigits: 3 });
const known = (count) => (count === null ? "unknown" : number(count)); // of keys: more than memory could hold
const percent = (part, all) => (all > 0 ? share.format(part / all) : "–");

const colour_of = (place) => `--series-${place % COLOURS}`;
const dash_of = (place) => DASHES[Math.floor(place / COLOURS) % DASHES.length];

const DAY = { month: "short", day: "numeric" };
// A style of times has no milliseconds, and none stands beside single parts.
const CLOCK = bin < 1000 ? { hour: "numeric", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }
  : bin < 60_000 ? { timeStyle: "medium" } : { timeStyle: "short" };
const DATE = bin < 1000 ? { year: "numeric", month: "short", day: "numeric" } : { dateStyle: "medium" };
const tick = (ms) => formatter(bin >= DAY_MS || is_midnight(ms) ? DAY : CLOCK).format(ms);
const bin_text = (ms) => formatter({ ...DATE, ...(bin < DAY_MS ? CLOCK : {}) }).format(ms);
const bin_time = (ms) => h("time", { datetime: new Date(ms).toISOString(), title: `${new Date(ms).toISOString()} (UTC)` }, bin_text(ms));

const data_of = () => [at, ...series.map((one) => one[kind])];

function options_of(box, values) {
  const most = Math.max(0, ...series.flatMap((one, place) => (shown[place] ? one[kind] : [])));
  const time_px = widest(at.slice(0, 400).map(tick));
  const stepped = UPlot.paths.stepped({ align: 1 });
  return {
    width: Math.max(box.clientWidth, 120),
    height: box.clientHeight,
    ms: 1,
    tzDate: shifted(UPlot),
    legend: { show: false },
    padding: [8, Math.ceil(time_px / 2), 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: { time: true }, y: { range: (_, __, highest) => [0, reach(highest)] } },
    axes: [
      axis({ values: (_, splits) => splits.map(tick), space: time_px + 24 }),
      axis({ values: (_, splits) => splits.map(compact), space: 22, size: Math.max(widest(labels_of(most)) + 20, Math.ceil(time_px / 2)), incrs: WHOLE }),
    ],
    series: [{}, ...series.map((one, place) => ({ label: name_of(one), stroke: colour(colour_of(place)), width: 2,
      dash: dash_of(place), paths: stepped, points: { show: at.length === 1 }, show: shown[place] }))],
    hooks: { setCursor: [({ cursor }) => values(cursor.idx)] },
  };
}

/** A box to tick for each series, with what it has at the pointer. */
function choices(changed) {
  const values = series.map(() => h("span", { class: "value" }));
  const moment = h("span", {}, "");
  const boxes = h("fieldset", { class: "choices" }, h("legend", {}, "Policies ", moment), series.map((one, place) => {
    const line = h("span", { class: "sample", "aria-hidden": "true" });
    line.style.borderTopColor = `var(${colour_of(place)})`;
    line.style.borderTopStyle = ["solid", "dashed", "dotted"][Math.floor(place / COLOURS) % 3];
    return h("label", {}, h("input", { type: "checkbox", checked: shown[place], onchange: (event) => {
      shown[place] = event.target.checked;
      changed(place);
    } }), line, name_of(one), values[place]);
  }));
  const show = (place) => {
    moment.textContent = place == null ? "" : `at ${bin_text(at[place])}`;
    series.forEach((one, number_of) => {
      values[number_of].textContent = place == null ? "" : digits(one[kind][place]);
    });
  };
  return { boxes, show };
}

const widths = new ResizeObserver(([{ target }]) => {
  if (target.clientWidth === 0) return;
  if (plot === null) draw();
  else if (plot.width !== target.clientWidth) plot.setSize({ width: target.clientWidth, height: target.clientHeight });
});

function chart() {
  const box = h("div", { class: "plot", role: "img",
    "aria-label": `Chart: requests by ${series.length} series, ${duration(bin)} each. The table below has all numbers.` });
  const { boxes, show } = choices((place) => plot?.setSeries(place + 1, { show: shown[place] }));
  draw = () => {
    plot?.destroy();
    plot = new UPlot(options_of(box, show), data_of(), box);
  };
  const select = h("select", { id: "kind", onchange: (event) => {
    kind = event.target.value;
    draw();
  } }, [["passed", "What passed"], ["blocked", "What was blocked"]].map(([value, name]) =>
    h("option", { value, selected: value === kind }, name)));
  widths.disconnect(); // of the box of before
  widths.observe(box);
  return [h("div", { class: "controls" }, h("div", { class: "field" }, h("label", { for: "kind" }, "Requests"), select)),
    h("div", { class: "plots" }, box), boxes];
}

function over_time() {
  const heading = h("h2", {}, "What got through over time");
  if (at.length === 0) return h("section", { class: "card" }, heading, empty("No request was judged."));
  const rows = at.map((ms, place) => ({ ms, place }));
  const numbers = h("details", { class: "numbers", open: numbers_open }, h("summary", {}, "Table of requests over time"));
  const fill = () => {
    if (!numbers.open || numbers.childElementCount > 1) return;
    numbers.append(table(`Requests in ${duration(bin)}: passed, blocked`, [
      { name: "From", cell: ({ ms }) => bin_time(ms) },
      ...series.flatMap((one) => [
        { name: `${name_of(one)}, passed`, number: true, cell: ({ place }) => number(one.passed[place]) },
        { name: `${name_of(one)}, blocked`, number: true, cell: ({ place }) => number(one.blocked[place]) }]),
    ], rows, { hidden_caption: true }));
  };
  numbers.addEventListener("toggle", () => {
    numbers_open = numbers.open;
    fill();
  });
  fill();
  return h("section", { class: "card" }, heading, UPlot && chart(),
    UPlot === null && h("p", { class: "note" }, "This weir was built without charts: the table has all numbers."), numbers);
}

function zones() {
  const rows = report.policies.flatMap(({ policy, zones: own }) => own.map((zone) => ({ policy, ...zone })));
  return table("Zones", [
    { name: "Policy", cell: ({ policy }) => seen(policy) },
    { name: "Zone", cell: ({ zone, mode }) => (mode === "shadow" ? `${zone} (shadow)` : zone) },
    { name: "Requests", number: true, cell: (row) => number(row.requests) },
    { name: "Passed", number: true, cell: (row) => number(row.passed) },
    { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
    { name: "of requests", number: true, cell: (row) => percent(row.blocked, row.requests) },
    { name: "Decisions", number: true, cell: (row) => number(row.decisions) },
    { name: "Keys", number: true, cell: ({ keys }) => known(keys) },
    { name: "Keys blocked", number: true, cell: ({ blocked_keys: keys }) => known(keys) },
    { name: "of keys", number: true, cell: (row) => (report.keys_exact ? percent(row.blocked_keys, row.keys) : "unknown") },
  ], rows);
}

function difference({ policy, zone, against, requests, keys, first }) {
  const title = seen(one_each ? `${policy} against ${against}` : `${policy} against ${against}: ${zone}`);
  if (requests === 0) return [h("h2", {}, title), empty("The same verdicts.")];
  const amount = (count, name) => `${digits(count)} ${name}${count === 1 ? "" : "s"}`;
  return [h("h2", {}, title), h("p", {}, `${keys === null ? "" : `${amount(keys, "key")} and `}${amount(requests, "request")} differ. Where they begin to:`),
    table(title, [
      { name: "Key", cell: ({ key }) => h("span", { class: "key" }, seen(key.join(" | "))) },
      { name: "From", cell: ({ at: ms }) => time(ms) },
      { name: "Blocked by", cell: ({ blocked_by }) => seen(blocked_by) },
    ], first, { hidden_caption: true })];
}

function show_all() {
  const content = document.getElementById("content");
  plot?.destroy();
  plot = null;
  content.replaceChildren(...[
    h("h1", {}, report.finished ? "What each policy would have done" : "Stopped early: what each policy would have done"),
    figures("events" in report ? [["Events of the log", number(report.events)]]
      : [["Lines", number(report.lines)], ["Requests", number(report.records)], ["Malformed lines", number(report.malformed)]]),
    over_time(), h("h2", {}, "Numbers"), zones(),
    !report.keys_exact && h("p", { class: "note" }, "There were more keys than memory could hold: numbers of keys are the least that they can be, or unknown."),
    ...report.differences.flatMap(difference),
  ].filter(Boolean));
  fit_tables(content);
}

start_clock(document.getElementById("zone"), show_all);
start_theme(document.getElementById("theme"), () => draw());
show_all();
// For tests: what is drawn.
document.getElementById("report").drawn = () => plot?.data ?? null;
