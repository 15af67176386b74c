// SPDX-License-Identifier: Apache-2.0
// What the axes of every chart have in common: the page's colours, and whole numbers beside a scale.

import { h } from "./dom.js";
import { compact } from "./words.js";

// The page's colours as a canvas takes them, for as long as the theme is the same.
const colours = new Map();
document.addEventListener("weir-theme", () => colours.clear());

/** A colour of the page's, by its variable's name, as a canvas takes it. */
export function colour(name) {
  if (!colours.has(name)) {
    const probe = document.body.appendChild(h("span", { hidden: true }));
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colours.get(name);
}

const FONT = "12px system-ui, sans-serif";

/** An axis of uPlot's in the page's colours. */
export function axis(more) {
  return {
    stroke: colour("--soft"),
    font: FONT,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    ...more,
  };
}

const ruler = document.createElement("canvas").getContext("2d");

/** How wide the widest of some words is: other languages write the same in more letters. */
export function widest(words) {
  ruler.font = FONT;
  return Math.ceil(Math.max(0, ...words.map((one) => ruler.measureText(one).width)));
}

// Requests come whole.
export const WHOLE = [1, 2, 5].flatMap((digit) => Array.from({ length: 15 }, (_, power) => digit * 10 ** power)).sort((a, b) => a - b);

// A scale reaches so far at least, also where nothing is counted.
const LEAST = 4;

/** How far a scale reaches that has so much at most. */
export const reach = (most) => Math.max((most || 0) * 1.05, LEAST);

/** What may stand beside a scale that has so much at most: uPlot chooses the steps. */
export function labels_of(highest) {
  const most = Math.max(highest, LEAST);
  const steps = WHOLE.filter((step) => step <= most && most / step <= 12);
  return steps.flatMap((step) => Array.from({ length: Math.floor((most * 1.05) / step) + 1 }, (_, times) => compact(times * step)));
}
