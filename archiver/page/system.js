// SPDX-License-Identifier: Apache-2.0
// How weir itself is: one verdict, how far the roles are, which zones are in force, what this process says of itself.

import { get } from "./api.js";
import { empty, figures, h, table } from "./dom.js";
import { seen } from "./seen.js";
import { duration, limit, named_time, number, time } from "./words.js";

export const name = "system";
export const title = "System";
export const refresh_ms = 5000;
export const keeps = [];
export const alone = true; // it is looked at most while the store is away

export const fields = () => [
  { name: "refresh", label: "Refresh", options: [["on", "every 5 s"], ["off", "off"]], standard: "on" },
];

export const load = (_, { zones }, signal) => get("status", {}, signal).then((status) => ({ status, zones }));

// Those that are read first, by a person's words.
const TOLD = [
  ["weir_limiter_buckets", "Buckets in memory"],
  ["weir_limiter_buckets_spilled", "Buckets only in the store"],
  ["weir_limiter_unsaved_age_seconds", "Checkpoint age", (seconds) => duration(1000 * seconds)],
  ["weir_archiver_waiting_rows", "Rows not stored yet"],
];

/* ---- the verdict ---- */

// What is older than this is not on its way any more.
const LATE_S = 60;
const STORE_LATE_S = 300;

/** How far each archiver's partition is behind its limiter's: in numbers of records, which a recreated topic continues. */
function lags(partitions) {
  const known = partitions.filter((one) => one.next_number !== null);
  const limiter = new Map(known.filter((one) => one.role === "limiter").map((one) => [one.partition, one]));
  return new Map(known.filter((one) => one.role === "archiver" && limiter.has(one.partition))
    .map((one) => [one.partition, Math.max(0, limiter.get(one.partition).next_number - one.next_number)]));
}

/** What is wrong, in a sentence each. */
function troubles({ store_error, troubles: own_words = [], partitions, policy_version, figures: own = {} }) {
  const told = [...own_words];
  if (store_error) return [`What is archived cannot be read: ${store_error}.`, ...told, ...lateness(own)];
  const limiters = partitions.filter((one) => one.role === "limiter");
  const archived = new Set(partitions.filter((one) => one.role === "archiver").map((one) => one.partition));
  // A run that reads once archives beside its partitions, with no state of an archiver.
  const missing = archived.size === 0 && Object.keys(own).length === 0 ? [] : limiters.filter((one) => !archived.has(one.partition));
  if (policy_version === 0) told.push("No policy is in force: set “zones”, or run weir policy apply.");
  if (partitions.length === 0) told.push("Nothing is stored yet.");
  if (missing.length > 0) told.push(`${missing.length} of ${limiters.length} partitions have no archiver.`);
  told.push(...lateness(own));
  // Without figures nobody works here, and it is as it was left: then what the rows say counts.
  const behind = Math.max(0, ...lags(partitions).values());
  if (Object.keys(own).length === 0 && behind > 0) told.push(`The archiver has not stored the last ${behind} records of a partition.`);
  return told;
}

/** The same of what the process says of itself, with the store or without. */
function lateness(own) {
  const told = [];
  const late = [
    ["weir_archiver_lag_seconds", LATE_S, "The archiver is behind its topics by"],
    ["weir_archiver_waiting_seconds", STORE_LATE_S, "The oldest row that is not stored yet waits for"],
    ["weir_limiter_unsaved_age_seconds", STORE_LATE_S, "The last checkpoint is of before"],
  ];
  for (const [figure, most_s, words] of late)
    if (own[figure] > most_s) told.push(`${words} ${duration(1000 * own[figure])}.`);
  for (const [figure, value] of Object.entries(own))
    if (/^weir_\w+_partitions_stuck$/.test(figure) && value > 0)
      told.push(`${value} partitions need an operator: /healthz and the log say why (${figure}).`);
  return told;
}

function verdict(status) {
  const told = troubles(status);
  const data = status.newest_hour_ms !== null &&
    h("p", {}, "The newest counts are of the hour from ", named_time(status.newest_hour_ms), " on.");
  const next = told.length > 0 && h("p", {}, "What to do: type ", h("code", {}, "weir doctor --config FILE"),
    " where its configuration is; what it names is an entry of the runbook, ", h("code", {}, "/usr/share/doc/weir/RUNBOOK.md"), ".");
  const shown = !status.figures && h("p", {}, "No running part of weir reports here: this is what the store has.");
  return h("section", { class: `verdict ${told.length > 0 ? "bad" : "good"}`, "aria-label": "Verdict" },
    h("p", { class: "verdict-title" }, told.length > 0 ? "✗ Not well" : "✓ All is well"), told.map((one) => h("p", {}, seen(one))), next, data, shown);
}

/* ---- the tables ---- */

// A server's time in ms where the store is one; else how often.
const FIRST_TIME_MS = 1e12;
const taken = (epoch) => (epoch >= FIRST_TIME_MS ? time(epoch) : `${epoch} ${epoch === 1 ? "time" : "times"}`);

function partition_table(status) {
  const behind = lags(status.partitions);
  return table("Partitions in the store", [
    { name: "Partition", cell: (row) => `${row.role} ${row.partition}` },
    { name: "Age", cell: (row) => (row.clock_ms > 0 ? duration(Math.max(0, status.now_ms - row.clock_ms)) : "–") },
    { name: "Lag (records)", number: true, cell: (row) => (row.role === "archiver" ? number(behind.get(row.partition)) : "–") },
    { name: "Newest data", cell: (row) => (row.clock_ms > 0 ? time(row.clock_ms) : "none yet") },
    { name: "Next offset", number: true, cell: (row) => number(row.next_offset) },
    { name: "Checkpoint", number: true, cell: (row) => number(row.checkpoint) },
    { name: "Taken", cell: (row) => taken(row.epoch) },
    { name: "Policy", number: true, cell: (row) => number(row.policy_version) },
  ], status.partitions);
}

/** Of a list each one, as a key's blocks get longer. */
function blocks_for({ block_for_ms, block_list_ms }) {
  if (block_list_ms.length > 0) return block_list_ms.map(duration).join(", then ");
  return block_for_ms > 0 ? duration(block_for_ms) : "while over the limit";
}

function zone_table(zones) {
  return table("Zones", [
    { name: "Zone", cell: (row) => h("a", { href: `#/top?${new URLSearchParams({ zone: row.name })}` }, row.name) },
    { name: "Key", cell: (row) => seen(row.key.join(", ")) || "one for all events" },
    { name: "Limits", cell: (row) => h("span", { class: "words" }, row.limits.map(limit).join("; ") || "–") },
    { name: "Blocks for", cell: blocks_for },
    { name: "Mode", cell: (row) => (row.live ? row.mode : "removed") },
    { name: "History", cell: (row) => (row.history ? "yes" : "no") },
  ], zones, { hidden_caption: true });
}

export function draw({ status, zones }) {
  const parts = [verdict(status), figures([
    ["weir", status.version], ["Store", status.store_error ? `${status.store}, away` : status.store],
    ["Schema", number(status.schema_version)],
    ["Policy", status.policy_version === 0 ? "none yet" : number(status.policy_version)], ["Clock", named_time(status.now_ms)],
  ])];
  parts.push(h("h2", {}, "Roles"), status.partitions.length > 0 ? partition_table(status) : status.store_error ?
    empty("Not known while the store is away.", "The page looks again every 5 seconds.") :
    empty("Nothing is stored yet.", "Limiters and archivers store their positions with their first checkpoint."));
  const own = Object.entries(status.figures ?? {});
  const told = TOLD.filter(([figure]) => status.figures?.[figure] !== undefined);
  if (own.length > 0)
    parts.push(h("h2", {}, "This process"),
      told.length > 0 && figures(told.map(([figure, words, show = number]) => [words, show(status.figures[figure])])),
      table("Metrics, by their names in /metrics", [
      { name: "Figure", cell: ([figure]) => h("code", {}, figure) },
      { name: "Value", number: true, cell: ([, value]) => number(value) },
    ], own));
  if (zones !== null) parts.push(h("h2", {}, "Zones"), zones.length > 0 ? zone_table(zones) :
    empty("There are no zones yet.", "Give weir a policy: set “zones” in its configuration, or run weir policy apply."));
  return parts.filter(Boolean);
}
