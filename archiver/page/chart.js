// SPDX-License-Identifier: Apache-2.0
// Passed and blocked over time, as a chart and as the table that says the same.

import { h, table } from "./dom.js";
import { compact, digits, number, period, period_text, tick, HOUR_MS, DAY_MS } from "./words.js";
import UPlot from "./uPlot.js"; // null in a build without charts

const plots = new WeakMap();

/** The uPlot of a chart's box, null where there is none. */
export const plot_of = (box) => plots.get(box) ?? null;

/** The counts with the hours or days without a request, which the API leaves out: uPlot's columns. */
function columns_of({ from_ms, to_ms, grain, counts }) {
  const step = grain === "day" ? DAY_MS : HOUR_MS;
  const known = new Map(counts.map((count) => [count.at_ms, count]));
  const [times, both, passed] = [[], [], []];
  for (let at = from_ms; at < to_ms; at += step) {
    const count = known.get(at) ?? { passed: 0, blocked: 0 };
    times.push(at);
    both.push(count.passed + count.blocked);
    passed.push(count.passed);
  }
  return [times, both, passed];
}

// The page's colours as a canvas takes them, for as long as the theme is the same.
const colours = new Map();
document.addEventListener("weir-theme", () => colours.clear());

function colour(name) {
  if (!colours.has(name)) {
    const probe = document.body.appendChild(h("span", { hidden: true }));
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colours.get(name);
}

function axis(more) {
  return {
    stroke: colour("--soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    ...more,
  };
}

// Blocked stands on top of passed: drawn first, at the height of both.
function options_of(box, { grain, readout, held }) {
  const bars = UPlot.paths.bars({ size: [0.9, 60], align: 1 });
  const series = (label, name) => ({ label, fill: colour(name), width: 0, paths: bars, points: { show: false } });
  return {
    width: Math.max(box.clientWidth, 120),
    height: box.clientHeight,
    ms: 1,
    legend: { show: false },
    padding: [8, 20, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most * 1.05, 4)] } },
    series: [{}, series("Blocked", "--blocked"), series("Passed", "--passed")],
    axes: [
      axis({ values: (_, splits) => splits.map((at) => tick(at, grain)), space: 70, size: 30 }),
      axis({ values: (_, splits) => splits.map(compact), space: 36, size: 48, incrs: WHOLE }),
    ],
    hooks: { setCursor: [(plot) => readout(plot.cursor.idx)], drawClear: [(plot) => shade(plot, held)] },
  };
}

// Requests come whole.
const WHOLE = [1, 2, 5].flatMap((digit) => Array.from({ length: 15 }, (_, power) => digit * 10 ** power)).sort((a, b) => a - b);

/** Behind the bars: the times that it was blocked, two pixels wide at least. */
function shade(plot, held) {
  const { ctx: canvas, bbox: box } = plot;
  canvas.save();
  canvas.fillStyle = colour("--held");
  canvas.beginPath();
  canvas.rect(box.left, box.top, box.width, box.height);
  canvas.clip();
  for (const [from, to] of held) {
    const [left, right] = [from, to].map((at) => plot.valToPos(at, "x", true));
    canvas.fillRect(left, box.top, Math.max(right - left, 2), box.height);
  }
  canvas.restore();
}

function draw(box, data, more) {
  plots.get(box)?.destroy();
  plots.set(box, new UPlot(options_of(box, more), data, box));
}

/** The chart alone, which follows its box's width until the signal ends it. */
function canvas(data, counts, signal, held) {
  const line = h("p", { class: "readout", "aria-hidden": "true" }, "\u00a0");
  const box = h("div", { class: "plot", role: "img", "aria-label": summary(counts) });
  const readout = (index) => {
    line.textContent = index == null ? "\u00a0" : `${period_text(data[0][index], counts.grain)}: ` +
      `${digits(data[2][index])} passed, ${digits(data[1][index] - data[2][index])} blocked`;
  };
  const more = { grain: counts.grain, readout, held };
  const size = new ResizeObserver(() => {
    const plot = plots.get(box);
    if (box.clientWidth === 0) return;
    if (!plot) draw(box, data, more);
    else if (plot.width !== box.clientWidth) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  });
  size.observe(box);
  const repaint = () => draw(box, data, more);
  document.addEventListener("weir-theme", repaint, { signal });
  signal.addEventListener("abort", () => {
    size.disconnect();
    plots.get(box)?.destroy();
  });
  return [box, h("div", { class: "legend" },
    h("span", { class: "passed" }, "passed"), h("span", { class: "blocked" }, "blocked"),
    held.length > 0 && h("span", { class: "held" }, "block in force"), line)];
}

function summary({ counts, total, grain }) {
  const most = counts.reduce((best, one) => (one.passed + one.blocked > best.passed + best.blocked ? one : best),
    { passed: 0, blocked: -1 });
  const peak = most.at_ms === undefined ? "" :
    `; the most in one ${grain}: ${digits(most.passed + most.blocked)}, ${period_text(most.at_ms, grain)}`;
  const sums = `${digits(total.passed)} passed, ${digits(total.blocked)} blocked`;
  return `Chart: ${sums} by ${grain}${peak}. The table below has all numbers.`;
}

function numbers({ counts, grain }, name) {
  return table(`${name}: requests by ${grain}`, [
    { name: grain === "day" ? "Day" : "Hour", cell: (row) => period(row.at_ms, grain) },
    { name: "Passed", number: true, cell: (row) => number(row.passed) },
    { name: "Blocked", number: true, cell: (row) => number(row.blocked) },
    { name: "Late", number: true, cell: (row) => number(row.late) },
  ], counts, { hidden_caption: true });
}

/** The counts of /api/v1/counts; held: [from, to) of blocks, to be seen behind them. The table is made when it is opened. */
export function chart(counts, name, signal, held = []) {
  const alternative = h("details", { class: "numbers", open: UPlot === null }, h("summary", {}, `Table of ${name}`));
  const fill = () => {
    if (alternative.open && alternative.childElementCount === 1) alternative.append(numbers(counts, name));
  };
  alternative.addEventListener("toggle", fill);
  fill();
  return h("div", { class: "chart" }, UPlot && canvas(columns_of(counts), counts, signal, held), alternative);
}
