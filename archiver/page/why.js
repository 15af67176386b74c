// SPDX-License-Identifier: Apache-2.0
// Why a decision was made: the events that the limit had counted, each with its line, or in words what is missing.

import { get } from "./api.js";
import { copy_button } from "./command.js";
import { fit_tables, h, table } from "./dom.js";
import { seen, seen_key } from "./seen.js";
import { digits, limit, named_time, number, time } from "./words.js";

const SHOWN = 200; // events of one answer: the newest

const REASONS = {
  403: "Lines of logs have more in them than keys, so this page shows them only to those with a token, and none is set. " +
    "Set “archiver.tokens” in the configuration and restart weir, or ask where weir runs:",
  404: "This process cannot explain decisions: it has no log of events, or keeps keys as hashes. Ask where weir runs:",
};

/** The fields that a zone keeps of a record: "path /login". */
const kept = (fields) => Object.entries(fields).map(([name, value]) =>
  h("span", { class: "kept" }, h("span", { class: "soft" }, seen(name)), " ", h("code", {}, seen(value))));

function line_of({ line, fields }) {
  if (line !== null) return h("code", { class: "line" }, seen(line));
  return h("span", { class: "line" }, h("span", { class: "soft" }, `The line is gone.${fields === null ? "" : " Kept: "}`),
    fields !== null && kept(fields));
}

function place_of({ file, stream, offset, position, source, found }) {
  if (file === null) return [h("code", {}, seen(stream ?? source)), h("span", { class: "soft" }, `, position ${position}`)];
  return [h("code", {}, seen(file)), h("span", { class: "soft" }, `, byte ${digits(offset)}`, found === "time" && ", found by time")];
}

const columns = (events) => [
  { name: "When", cell: (row) => [time(row.at), row.decided && h("span", { class: "tag" }, "decided")] },
  events.some((row) => row.cost !== 1) && { name: "Cost", number: true, cell: (row) => number(row.cost) },
  { name: "Where", cell: (row) => h("span", { class: "words" }, place_of(row)) },
  { name: "Line", cell: line_of },
].filter(Boolean);

function judged({ equal, again, decision, policy }) {
  const by = policy === null ? "" : ` Policy ${digits(policy)} was in force.`;
  if (equal) return h("p", { class: "soft" }, `Judged again from the log: the same decision, byte for byte.${by}`);
  if (again === null) return h("p", { class: "soft" }, `It could not be judged again.${by}`);
  return decision === null ? h("p", { class: "soft" }, `Judged again from the log.${by}`) :
    h("p", {}, `Judged again, the decision differs:${by} `, h("code", { class: "line" }, seen(JSON.stringify(again))));
}

function told(answer) {
  const { events, missing } = answer;
  const newest = events.slice(-SHOWN);
  return [
    judged(answer),
    events.length === 0 ? h("p", {}, "No counted events are known.") :
      table(newest.length < events.length ? `The newest ${digits(SHOWN)} of ${digits(events.length)} counted events` :
        `${digits(events.length)} counted ${events.length === 1 ? "event" : "events"}, oldest first`, columns(newest), newest),
    missing.length > 0 && h("div", { class: "missing" }, h("h3", {}, "What is missing"),
      h("ul", {}, missing.map((words) => h("li", {}, seen(words))))),
  ];
}

const refused = ({ status, message }) =>
  [h("p", { role: "alert" }, REASONS[status] ?? `Not available: ${seen(message)}.`)];

function verdict(row) {
  const who = h("span", { class: "key" }, row.key === null ? "All keys" : seen_key(row.key));
  const over = row.limit !== null ? [": ", limit(row.limit), ", held ", number(row.held)] :
    row.ordered_by !== null && `: ordered by ${seen(row.ordered_by)}`;
  return h("p", {}, who, ` in ${row.zone}, `, h("span", { class: `action ${row.action}` }, row.action), " at ", named_time(row.at_ms),
    over, ".");
}

/** Opens a dialog that says it; what comes late is left out once the dialog is closed. */
async function show(row, opener) {
  const ended = new AbortController();
  const said = h("p", { class: "soft", role: "status" });
  const results = h("div", { class: "why-results", "aria-busy": "true" }, h("p", { class: "soft" }, "Judging the log again…"));
  const say = (action) => async () => {
    try {
      said.textContent = await action();
    } catch (error) {
      said.textContent = `Failed: ${error.message}`;
    }
  };
  const line = `weir explain ${row.id}`;
  const close = h("button", { type: "button", class: "main", autofocus: true, onclick: () => dialog.close() }, "Close");
  const dialog = document.body.appendChild(h("dialog", { class: "why", "aria-labelledby": "why-title", onclose: () => {
    ended.abort();
    dialog.remove();
    opener.focus({ preventScroll: true });
  } }, h("h2", { id: "why-title" }, `Why decision ${row.id}?`), verdict(row), results,
  h("div", { class: "end" }, close, h("code", {}, line), copy_button(line, "Copy", say), said)));
  dialog.showModal();
  try {
    results.replaceChildren(...told(await get("why", { id: row.id }, ended.signal)).filter(Boolean));
    fit_tables(results);
  } catch (error) {
    if (error.name !== "AbortError") results.replaceChildren(...refused(error));
  }
  results.removeAttribute("aria-busy");
}

/** A button beside a decision. */
export const why_button = (row) => h("button", { type: "button", class: "why-button", "aria-haspopup": "dialog",
  "aria-label": `Why: decision ${row.id}`, onclick: (event) => show(row, event.currentTarget) }, "Why?");
