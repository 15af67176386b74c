// SPDX-License-Identifier: Apache-2.0
// How weir itself is: how far the roles are, which zones are in force, what this process says of itself.

import { get } from "./api.js";
import { empty, figures, h, table } from "./dom.js";
import { duration, limit, number, time } from "./words.js";

export const name = "system";
export const title = "System";
export const refresh_ms = 5000;

export const fields = () => [
  { name: "refresh", label: "Refresh", options: [["on", "every 5 s"], ["off", "off"]], standard: "on" },
];

export const load = (_, { zones }, signal) => get("status", {}, signal).then((status) => ({ status, zones }));

// Those that are read first, by a person's words.
const TOLD = [
  ["weir_buckets", "Buckets in memory"],
  ["weir_buckets_spilled", "Buckets only in the store"],
  ["weir_checkpoint_age_seconds", "Checkpoint age", (seconds) => duration(1000 * seconds)],
  ["weir_archiver_waiting_rows", "Rows not stored yet"],
];

/** How far each archiver's partition is behind its limiter's. */
function lags(partitions) {
  const limiter = new Map(partitions.filter((one) => one.role === "limiter").map((one) => [one.partition, one]));
  return new Map(partitions.filter((one) => one.role === "archiver" && limiter.has(one.partition))
    .map((one) => [one.partition, Math.max(0, limiter.get(one.partition).next_offset - one.next_offset)]));
}

function partition_table(status) {
  const behind = lags(status.partitions);
  return table("Partitions in the store", [
    { name: "Partition", cell: (row) => `${row.role} ${row.partition}` },
    { name: "Age", cell: (row) => (row.clock_ms > 0 ? duration(Math.max(0, status.now_ms - row.clock_ms)) : "–") },
    { name: "Lag (records)", number: true, cell: (row) => (row.role === "archiver" ? number(behind.get(row.partition)) : "–") },
    { name: "Newest data", cell: (row) => (row.clock_ms > 0 ? time(row.clock_ms) : "none yet") },
    { name: "Next offset", number: true, cell: (row) => number(row.next_offset) },
    { name: "Checkpoint", number: true, cell: (row) => number(row.checkpoint) },
    { name: "Taken", number: true, cell: (row) => number(row.epoch) },
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
    { name: "Key", cell: (row) => row.key.join(", ") || "one for all events" },
    { name: "Limits", cell: (row) => row.limits.map(limit).join("; ") || "–" },
    { name: "Blocks for", cell: blocks_for },
    { name: "Mode", cell: (row) => (row.live ? row.mode : "removed") },
    { name: "History", cell: (row) => (row.history ? "yes" : "no") },
  ], zones, { hidden_caption: true });
}

export function draw({ status, zones }) {
  const parts = [figures([
    ["weir", status.version], ["Store", status.store], ["Schema", number(status.schema_version)],
    ["Policy", status.policy_version > 0 ? number(status.policy_version) : "none yet"], ["Clock", time(status.now_ms)],
  ])];
  parts.push(h("h2", {}, "Roles"), status.partitions.length > 0 ? partition_table(status) :
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
  parts.push(h("h2", {}, "Zones"), zones.length > 0 ? zone_table(zones) :
    empty("There are no zones yet.", "Give weir a policy: set “zones” in its configuration, or run weir policy apply."));
  return parts.filter(Boolean);
}
