// SPDX-License-Identifier: Apache-2.0
// The commands that change what a row shows. The page itself changes nothing: it is copied into a shell.

import { h } from "./dom.js";
import { has_unseen, seen } from "./seen.js";

const PLAIN = /^[A-Za-z0-9_.:/@%+,][A-Za-z0-9_.:/@%+,-]*$/;

/** A word as a shell takes it, whoever wrote it: bash, zsh and ksh; plain words in any. */
export function quoted(word) {
  if (PLAIN.test(word)) return word;
  if (!has_unseen(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  return `$'${[...word].map((letter) => (has_unseen(letter) ? seen(letter) : letter.replace(/[\\']/, "\\$&"))).join("")}'`;
}

/** The values of a key, which are joined by "|": in a value, "\" stands before that and before itself. */
export function values_of(key) {
  const values = [""];
  for (const part of key.match(/\\[\s\S]|[\s\S]/gu) ?? []) {
    if (part === "|") values.push("");
    else values[values.length - 1] += part.length > 1 && part[0] === "\\" ? part.slice(1) : part;
  }
  return values;
}

/** The line; null where a key is not known by its values: bytes that are no text, or a hash of it. */
export function command(verb, zone, key, { hash_keys }, ...more) {
  if (key === null || hash_keys || key.includes("\ufffd") || key.includes("\0")) return null;
  const values = key === "" ? [] : values_of(key);
  return ["weir", verb, "--zone", quoted(zone), ...more, ...(values.some((one) => one.startsWith("-")) ? ["--"] : []),
    ...values.map((one) => (one === "" ? "''" : quoted(one)))].join(" ");
}

/** Where a page may not write to the clipboard, a field may. */
function copy_by_field(text) {
  const field = document.body.appendChild(h("textarea", { class: "unseen", "aria-hidden": "true" }));
  field.value = text;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw Error(`copy it from here: ${text}`);
}

/** A button that copies the line. */
export function copy_button(line, name, report) {
  if (line === null) return "–";
  return h("button", { type: "button", class: "copy", title: line, "aria-label": `${name}: ${line}`, onclick: report(async () => {
    if (navigator.clipboard) await navigator.clipboard.writeText(line);
    else copy_by_field(line);
    return `Copied: ${line}`;
  }) }, name);
}
