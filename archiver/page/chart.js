// SPDX-License-Identifier: Apache-2.0
// Passed and blocked over time, as a chart and as the table that says the same.

import { WHOLE, axis, colour, labels_of, reach, widest } from "./axis.js";
import { shifted, zone_of } from "./clock.js";
import { begins_of } from "./counts.js";
import { h, table } from "./dom.js";
import { compact, digits, number, percent, period, period_text, tick } from "./words.js";
import UPlot from "./uPlot.js"; // null in a build without charts

const plots = new WeakMap();

/** The uPlot of a chart's box, null where there is none. */
export const plot_of = (box) => plots.get(box) ?? null;

/** uPlot's columns, and the ends between which they stand: a bar begins at its time. */
function columns_of(counts) {
  const begins = begins_of(counts);
  const known = new Map(counts.counts.map((count) => [count.at_ms, count]));
  const [times, both, passed, blocked] = [begins.slice(0, -1), [], [], []];
  for (const at of times) {
    const count = known.get(at) ?? { passed: 0, blocked: 0 };
    both.push(count.passed + count.blocked);
    passed.push(count.passed);
    blocked.push(count.blocked);
  }
  return { begins, all: [times, both, passed], blocked: [times, blocked] };
}

/** The place of the bar in which an instant is. */
function place_in(begins, at) {
  const after = begins.findIndex((begin) => begin > at);
  return after === -1 ? begins.length - 2 : Math.max(after - 1, 0);
}

const bars = UPlot?.paths.bars({ size: [0.9, Infinity], align: 1 });
const series = (label, name) => ({ label, fill: colour(name), width: 0, paths: bars, points: { show: false } });

/** What both charts of a box have in common: one time below, one pointer. */
function options_of(box, { begins, grain, label_px, select, sync, times, ...more }) {
  // A few days have ticks within a day, too: its name stands once.
  const named = (splits) => splits.map((at) => tick(at, grain)).map((words, place, all) =>
    (grain !== "hour" && words === all[place - 1] ? "" : words));
  const time_px = widest(begins.slice(0, 400).map((at) => tick(at, grain)));
  return {
    width: Math.max(box.clientWidth, 120),
    height: box.clientHeight,
    ms: 1,
    tzDate: shifted(UPlot, zone_of(grain)),
    legend: { show: false },
    padding: [8, Math.ceil(time_px / 2), 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, sync: { key: sync } },
    scales: { x: { time: true, range: [begins[0], begins.at(-1)] }, y: { range: (_, __, most) => [0, reach(most)] } },
    axes: [
      axis({ values: (_, splits) => (times ? named(splits) : splits.map(() => "")), space: time_px + 24, size: times ? 30 : 8 }),
      axis({ values: (_, splits) => splits.map(compact), space: 22, size: Math.max(label_px + 20, Math.ceil(time_px / 2)), incrs: WHOLE }),
    ],
    ...more,
    hooks: { setSelect: [select], ...more.hooks },
  };
}

/** Behind the bars: the times that it was blocked, two pixels wide at least. */
function shade(plot, held) {
  const { ctx: canvas, bbox: box } = plot;
  canvas.save();
  canvas.fillStyle = colour("--held");
  canvas.beginPath();
  canvas.rect(box.left, box.top, box.width, box.height);
  canvas.clip();
  for (const { from_ms, to_ms } of held) {
    const [left, right] = [from_ms, to_ms].map((at) => plot.valToPos(at, "x", true));
    canvas.fillRect(left, box.top, Math.max(right - left, 2), box.height);
  }
  canvas.restore();
}

/** What is said at the pointer of the hour or day that is there. */
function readout_of(columns, grain) {
  const line = h("div", { class: "readout", "aria-hidden": "true", hidden: true });
  const show = (plot) => {
    const { left } = plot.cursor;
    line.hidden = left == null || left < 0;
    if (line.hidden) return;
    const place = place_in(columns.begins, plot.posToVal(left, "x"));
    const [both, passed] = [columns.all[1][place], columns.all[2][place]];
    line.replaceChildren(h("strong", {}, period_text(columns.begins[place], grain)),
      h("span", { class: "passed" }, `${digits(passed)} passed`),
      h("span", { class: "blocked" }, `${digits(both - passed)} blocked (${percent(both - passed, both)})`));
    // Beside the pointer, on the side that has the room.
    const before = left + 16 + line.offsetWidth > plot.over.clientWidth;
    line.style.left = `${plot.over.offsetLeft + Math.max(0, before ? left - 16 - line.offsetWidth : left + 16)}px`;
  };
  return { line, show };
}

let made = 0;

/** Both charts, which follow their box's width until the signal ends them. */
function canvases(columns, counts, { signal, held, zoom }) {
  const { grain } = counts;
  const { line, show } = readout_of(columns, grain);
  const boxes = [h("div", { class: "plot", role: "img", "aria-label": summary(counts) }),
    h("div", { class: "plot-blocked", "aria-hidden": "true" })];
  const frame = h("div", { class: "plots" }, boxes, line);
  const sync = `weir-${made++}`;
  let brushed = false;
  const select = (plot) => {
    const { left, width } = plot.select;
    brushed = width >= 4;
    if (!brushed) return;
    const [first, last] = [left, left + width].map((at) => place_in(columns.begins, plot.posToVal(at, "x")));
    zoom(columns.begins[first], columns.begins[last + 1]);
  };
  // A tap shows what is there; it is the mouse that can point without pressing.
  frame.addEventListener("click", (event) => {
    const plot = plots.get(event.target.closest(".plot, .plot-blocked"));
    if (plot && event.target === plot.over && !brushed && event.pointerType !== "touch") {
      const place = place_in(columns.begins, plot.posToVal(plot.cursor.left, "x"));
      zoom(columns.begins[place], columns.begins[place + 1]);
    }
    brushed = false;
  });
  const draw = () => {
    const label_px = widest([columns.all[1], columns.blocked[1]].flatMap((counted) => labels_of(Math.max(...counted))));
    const more = { begins: columns.begins, grain, label_px, select, sync };
    const forms = [
      { data: columns.all, times: false, series: [{}, series("Blocked", "--blocked"), series("Passed", "--passed")],
        hooks: { setCursor: [show], drawClear: [(plot) => shade(plot, held)] } },
      { data: columns.blocked, times: true, series: [{}, series("Blocked", "--blocked")] },
    ];
    boxes.forEach((box, number) => {
      const { data, ...form } = forms[number];
      plots.get(box)?.destroy();
      plots.set(box, new UPlot(options_of(box, { ...more, ...form }), data, box));
    });
  };
  const size = new ResizeObserver(() => {
    if (boxes[0].clientWidth === 0) return;
    if (!plots.has(boxes[0])) draw();
    for (const box of boxes)
      if (plots.get(box).width !== box.clientWidth) plots.get(box).setSize({ width: box.clientWidth, height: box.clientHeight });
  });
  size.observe(boxes[0]);
  document.addEventListener("weir-theme", draw, { signal });
  signal.addEventListener("abort", () => {
    size.disconnect();
    for (const box of boxes) plots.get(box)?.destroy();
  });
  return [frame, h("div", { class: "legend" },
    h("span", { class: "passed" }, "passed"), h("span", { class: "blocked" }, "blocked (below: on its own scale)"),
    held.length > 0 && h("span", { class: "held" }, "block in force"))];
}

function summary({ counts, total, grain }) {
  const most = counts.reduce((best, one) => (one.passed + one.blocked > best.passed + best.blocked ? one : best),
    { passed: 0, blocked: -1 });
  const peak = most.at_ms === undefined ? "" :
    `; the most in one ${grain}: ${digits(most.passed + most.blocked)}, ${period_text(most.at_ms, grain)}`;
  const sums = `${digits(total.passed)} passed, ${digits(total.blocked)} blocked`;
  return `Chart: ${sums} by ${grain}${peak}. The table below has all numbers.`;
}

function numbers({ counts, grain }, columns, name, link) {
  const after = new Map(columns.begins.map((at, place) => [at, columns.begins[place + 1]]));
  return table(`${name}: requests by ${grain}`, [
    { name: { hour: "Hour", day: "Day" }[grain] ?? grain,
      cell: (row) => h("a", { href: link(row.at_ms, after.get(row.at_ms)) }, period(row.at_ms, grain)) },
    { name: "Passed", number: true, cell: (row) => number(row.passed) },
    { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
    { name: "Late", number: true, cell: (row) => number(row.late) },
  ], counts, { hidden_caption: true });
}

/**
 * The counts of counts.js, as a chart and, when it is opened, as a table.
 *
 * held: {from_ms, to_ms} of blocks, to be seen behind the bars; zoom(from, to): what a press or a brush chooses;
 * link(from, to): an address that leads to the same, in the table
 */
export function chart(counts, name, { signal, held = [], zoom, link }) {
  const columns = columns_of(counts);
  const alternative = h("details", { class: "numbers", open: UPlot === null }, h("summary", {}, `Table of ${name}`));
  const fill = () => {
    if (alternative.open && alternative.childElementCount === 1) alternative.append(numbers(counts, columns, name, link));
  };
  alternative.addEventListener("toggle", fill);
  fill();
  return h("div", { class: "chart" }, UPlot && canvases(columns, counts, { signal, held, zoom }), alternative);
}
