// SPDX-License-Identifier: Apache-2.0
// What strangers wrote, so that nothing in it is unseen or changes the order of what stands beside it.

// What a terminal would act upon, or show in another order than it is; and what has no shape at all.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const bytes = (letter) => [...new TextEncoder().encode(letter)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");

/** Whether a text has letters that are not seen. */
export const has_unseen = (text) => UNSEEN.test(text);

/** A text with the bytes of such letters in their place: "\x1b". */
export const seen = (text) => [...text].map((letter) => (UNSEEN.test(letter) ? bytes(letter) : letter)).join("");

/** A key as a link or a cell shows it: one that is empty has a name. */
export const seen_key = (key) => seen(key) || "(empty)";

/**
 * The key that is meant by one as it is shown: in a key "\" stands before "\" and "|" alone, so "\x1b" is of seen().
 */
export const meant_key = (text) => text.replace(/\\[\\|]|(?:\\x[0-9a-f]{2})+/g, (part) => {
  if (part[1] !== "x") return part;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
      .decode(Uint8Array.from(part.slice(2).split("\\x"), (byte) => Number.parseInt(byte, 16)));
  } catch {
    return part;
  }
});
