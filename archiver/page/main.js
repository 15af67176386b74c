// SPDX-License-Identifier: Apache-2.0
// Which view is shown: the address says it behind "#", so that each can be linked, and what it shows with it.

import { basis } from "./api.js";
import * as blocks from "./blocks.js";
import { start_clock } from "./clock.js";
import * as decisions from "./decisions.js";
import { empty, fit_tables, h } from "./dom.js";
import * as overview from "./overview.js";
import { seen } from "./seen.js";
import { custom_span, span_query } from "./span.js";
import * as system from "./system.js";
import { start_theme } from "./theme.js";
import * as top from "./top.js";
import * as user from "./user.js";

const views = [overview, top, decisions, user, blocks, system];
const content = document.getElementById("content");
const news = document.getElementById("news");

// What is on the screen; `ends` those that draw it.
const shown = { view: null, fields: [], form: null, results: null, parameters: {}, span: null, kept: {}, load: null, drawing: null, timer: 0 };

const RETRY_S = 5; // between two tries at what should pass by itself

const say = (words) => { news.textContent = words; };

function address() {
  const [path, query = ""] = location.hash.replace(/^#\//, "").split("?");
  return { view: views.find((view) => view.name === path) ?? overview, query: new URLSearchParams(query) };
}

/** Goes to the same view with some parameters changed; standard ones are left out of the address. */
function go(changes) {
  const values_now = { ...shown.parameters, ...changes };
  const query = new URLSearchParams();
  for (const { name, standard } of [...shown.fields, { name: "pages", standard: "1" }])
    if (values_now[name] && String(values_now[name]) !== standard) query.set(name, values_now[name]);
  for (const { name, when } of shown.fields)
    if (when && !when(values_now)) query.delete(name);
  location.hash = `#/${shown.view.name}${query.size > 0 ? `?${query}` : ""}`;
}

/* ---- the form above a view ---- */

function control(field) {
  const id = `field-${field.name}`;
  const input = field.options ?
    h("select", { id, name: field.name }, field.options.map(([value, words]) => h("option", { value }, words))) :
    h("input", { id, name: field.name, type: field.type, step: field.step, autocomplete: "off", spellcheck: "false" });
  return h("div", { class: `field ${field.name}` }, h("label", { for: id }), input);
}

const same = (value) => value;

/** What the form says, as an address has it. What nobody has changed stays as it was: a field has no line feed. */
const values = (form) => Object.fromEntries(shown.fields.map(({ name, from_field = same }) => {
  const { value, dataset } = form.elements[name];
  return [name, value === dataset.filled ? shown.parameters[name] : from_field(value.trim())];
}));

/** Puts parameters into the form; a field that says nothing with these is not shown. */
function fill_form(parameters) {
  for (const { name, label, when, to_field = same } of shown.fields) {
    const field = shown.form.elements[name];
    field.value = to_field(parameters[name]);
    field.dataset.filled = field.value;
    field.parentNode.hidden = when !== undefined && !when(parameters);
    field.labels[0].textContent = typeof label === "function" ? label() : label;
  }
}

/** From one span that is shown to hours of the reader's choice: at first those that are shown. */
function chosen_span(chosen) {
  const begins = chosen.span === "custom" && shown.parameters.span !== "custom" && shown.span;
  return begins ? { ...chosen, ...custom_span(shown.span.from, shown.span.to) } : chosen;
}

function make_form(fields) {
  // In some zones an hour of UTC begins half past, which no step of a field has.
  const form = h("form", { class: "controls", "aria-label": "Filter", novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    go({ ...chosen_span(values(form)), pages: "" });
  } }, fields.map(control));
  // A choice counts at once; what is typed does with Enter, or when the field is left.
  form.addEventListener("change", () => form.requestSubmit());
  return form;
}

function read_parameters(query) {
  const parameters = Object.fromEntries(query);
  for (const { name, standard } of shown.fields) parameters[name] ||= standard;
  fill_form(parameters);
  return parameters;
}

/** The fields for which the address has a value that is none of theirs: such as a zone that never was. */
const unknown_fields = (parameters) => shown.fields.filter(({ name, options, standard }) =>
  parameters[name] !== standard && options && options.every(([option]) => option !== parameters[name]));

/** Nothing is shown in place of what was asked for: somebody would take it for that. */
function refuse_unknown(fields, parameters) {
  shown.load?.abort();
  shown.drawing?.abort();
  shown.span = null;
  replace(fields.map(({ name, label }) =>
    empty(`Unknown value for ${label}: “${seen(parameters[name])}”.`, "Choose one above. If it is new, load the page again.")));
  shown.results.removeAttribute("aria-busy");
  say(shown.results.textContent);
  shown.results.dataset.shown = JSON.stringify(parameters);
}

/* ---- showing ---- */

const title_of = (view) => `${view.title} – weir`;

function mark_links() {
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === shown.view.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** A reader who goes on to another view goes on with the time and the zone that were chosen. */
function lead_on() {
  const { kept, view, parameters } = shown;
  if (view.keeps.includes("span")) Object.assign(kept, { span: null, until: null, from: null, to: null }, span_query(parameters));
  if (view.keeps.includes("zone") && !unknown_fields(parameters).some(({ name }) => name === "zone")) kept.zone = parameters.zone;
  for (const link of document.querySelectorAll("#views a")) {
    const { name, keeps } = views.find((one) => one.name === link.dataset.view);
    const query = new URLSearchParams(Object.entries(kept).filter(([key, value]) =>
      value && keeps.includes(key === "zone" ? key : "span")));
    link.href = `#/${name}${query.size > 0 ? `?${query}` : ""}`;
  }
}

function frame(view, fields) {
  shown.view = view;
  shown.fields = fields;
  shown.form = make_form(fields);
  shown.results = h("div", { class: "results" });
  content.replaceChildren(h("h1", { tabindex: "-1" }, view.title), shown.form, shown.results);
  document.title = title_of(view);
  mark_links();
}

function failed(error) {
  const again = h("button", { type: "button", id: "again", onclick: show }, "Try again");
  const status = error.status ? ` (HTTP ${error.status})` : "";
  return h("div", { class: "failed", role: "alert" }, h("p", { class: "empty-title" }, "Cannot show this view."),
    h("p", {}, seen(error.message || String(error)) + status, error.passes && " The page retries automatically."), again);
}

/** Calls it after so long. What nobody looks at is not asked for: then, when somebody does. */
function later(action, ms) {
  clearTimeout(shown.timer);
  shown.timer = setTimeout(() => {
    if (document.hidden) document.addEventListener("visibilitychange", action, { once: true });
    else action();
  }, ms);
}

/** Puts what went wrong in the results' place. A later try that ends in the same words changes nothing: they are read out. */
function refuse(error) {
  const words = failed(error);
  if (shown.results.textContent !== words.textContent) replace([words]);
}

/** What a view rests on. One that shows the process itself does without the zones while the store is away. */
async function ground(view, signal) {
  try {
    return await basis(signal);
  } catch (error) {
    if (!view.alone || !error.passes) throw error;
    return { zones: null };
  }
}

const pause_ms = (error) => 1000 * Math.max(RETRY_S, error.wait_s);

/** A button's function: its end, or what went wrong, is said to the reader. */
function report(action, done = "") {
  return async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      say((await action()) ?? done);
    } catch (error) {
      if (error.name !== "AbortError") say(`Failed: ${error.message}`);
    } finally {
      button.disabled = false;
    }
  };
}

/** Puts new results in the old ones' place; the focus, open tables and their scrolling stay where they were. */
function replace(nodes) {
  const { results } = shown;
  const active = results.contains(document.activeElement) ? document.activeElement : null;
  const mark = active && (active.id ? `#${CSS.escape(active.id)}` :
    active.getAttribute("href") && `a[href="${CSS.escape(active.getAttribute("href"))}"]`);
  const lefts = [...results.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  results.replaceChildren(...nodes);
  fit_tables(results);
  results.querySelectorAll(".scroll").forEach((box, index) => { box.scrollLeft = lefts[index] ?? 0; });
  if (mark) results.querySelector(mark)?.focus({ preventScroll: true });
}

/** Draws what has come; `later` takes promises of parts that are still to come. Waits for all of them. */
async function paint(data) {
  const { view, parameters, results } = shown;
  const pending = [];
  shown.span = data?.span ?? data?.asked ?? null;
  shown.drawing?.abort();
  shown.drawing = new AbortController();
  const { signal } = shown.drawing;
  replace(view.draw(data, parameters, { signal, go, report, later: (promise) => pending.push(promise) }));
  await Promise.all(pending);
  if (!signal.aborted) results.dataset.shown = JSON.stringify(parameters);
}

async function load(spoken) {
  shown.load?.abort();
  clearTimeout(shown.timer);
  const ended = shown.load = new AbortController();
  const { view, parameters, results } = shown;
  let next_ms = parameters.refresh === "on" ? view.refresh_ms : 0;
  if (spoken) {
    say("Loading…");
    results.setAttribute("aria-busy", "true");
  }
  try {
    const data = await view.load(parameters, await ground(view, ended.signal), ended.signal);
    if (ended.signal.aborted) return;
    await paint(data);
    if (ended.signal.aborted) return;
    if (spoken) say(`${view.title}: loaded.`);
  } catch (error) {
    if (ended.signal.aborted) return;
    shown.drawing?.abort();
    refuse(error);
    if (spoken) say("");
    if (error.passes) next_ms = pause_ms(error);
  }
  results.removeAttribute("aria-busy");
  if (next_ms) later(refresh, next_ms);
}

const refresh = () => load(false);

async function show() {
  clearTimeout(shown.timer);
  const { view, query } = address();
  const changed = view !== shown.view;
  const moved = changed && shown.view !== null;
  if (changed) {
    let zones = [];
    if (shown.form === null) frame(view, []);
    try {
      ({ zones } = await ground(view));
    } catch (error) {
      if (document.title !== title_of(view)) frame(view, []);
      refuse(error);
      shown.view = null;
      if (error.passes) later(show, pause_ms(error));
      return undefined;
    }
    if (address().view !== view) return undefined; // somebody went on meanwhile
    frame(view, view.fields(zones));
  }
  shown.parameters = read_parameters(query);
  lead_on();
  if (moved) content.querySelector("h1").focus({ preventScroll: true });
  if (moved) scrollTo(0, 0);
  const unknown = unknown_fields(shown.parameters);
  if (unknown.length > 0) return refuse_unknown(unknown, shown.parameters);
  return load(true);
}

/* ---- starting ---- */

document.getElementById("views").append(h("ul", {}, views.map((view) =>
  h("li", {}, h("a", { href: `#/${view.name}`, "data-view": view.name }, view.short ?? view.title)))));
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // what is behind "#" is the view's
  content.focus();
});
start_clock(document.getElementById("zone"), () => show());
start_theme(document.getElementById("theme"), () => document.dispatchEvent(new Event("weir-theme")));
addEventListener("hashchange", show);
show();
