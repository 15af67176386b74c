// SPDX-License-Identifier: Apache-2.0
// The archiver's API: what is asked, what its refusals mean. The contract is /api/v1/openapi.json.

import { ask_token, token } from "./token.js";

// Beside the page, also where a proxy has put both below a path of its own.
const BASE = new URL("../api/v1/", import.meta.url);

export class ApiError extends Error {
  constructor(status, message, wait_s = 0) {
    super(message);
    this.status = status; // 0: nobody answered
    this.wait_s = wait_s; // the archiver asks for so long a pause
  }

  /** Whether the same question may be answered a little later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

function address(path, parameters) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== null) url.searchParams.set(name, value);
  return url;
}

async function refusal(reply) {
  let words;
  try {
    const { error } = await reply.json();
    words = error.parameter ? `${error.parameter}: ${error.message}` : error.message;
  } catch {
    words = reply.statusText || `HTTP status ${reply.status}`;
  }
  const wait = reply.headers.get("Retry-After");
  return new ApiError(reply.status, wait ? `${words} (retry in ${wait} s)` : words, Number(wait) || 0);
}

async function send(path, parameters, { signal, accept }) {
  const used = token();
  const headers = { Accept: accept };
  if (used) headers.Authorization = `Bearer ${used}`;
  let reply;
  try {
    reply = await fetch(address(path, parameters), { headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The archiver does not answer: it is down or unreachable from here.");
  }
  if (reply.status === 401) {
    await ask_token(used);
    return send(path, parameters, { signal, accept });
  }
  if (!reply.ok) throw await refusal(reply);
  return reply;
}

/** What a path of the API answers. Throws ApiError; an AbortError where the signal says so. */
export async function get(path, parameters = {}, signal = undefined) {
  return (await send(path, parameters, { signal, accept: "application/json" })).json();
}

/** Saves what a path answers as CSV, for a spreadsheet: the keys are what strangers sent. */
export async function save(path, parameters, name) {
  const reply = await send(path, { ...parameters, format: "spreadsheet" }, { accept: "text/csv" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await reply.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// What all views need: fetched once, and again when it is old or somebody asks.
const KEPT_MS = 30_000;
let ground = null;

/** The zones, and how far the archiver is: {zones, status}. */
export function basis(signal) {
  if (ground === null || Date.now() - ground.at > KEPT_MS) {
    const both = Promise.all([get("zones"), get("status")]).then(([zones, status]) => ({ ...zones, status }));
    ground = { at: Date.now(), both };
    both.catch(() => { ground = null; });
  }
  signal?.throwIfAborted();
  return ground.both;
}
