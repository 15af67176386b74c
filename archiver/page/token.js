// SPDX-License-Identifier: Apache-2.0
// The API's token: asked for when the archiver wants one, kept until the tab is closed.

const KEPT = "weir-token";

// Where the browser keeps nothing for pages.
let kept = null;

export function token() {
  try {
    return sessionStorage.getItem(KEPT) ?? kept;
  } catch {
    return kept;
  }
}

function keep(text) {
  kept = text;
  try {
    sessionStorage.setItem(KEPT, text);
  } catch {
    // Then it is kept until the page is loaded again.
  }
}

let asking = null;

/** Waits for a token other than the one that was refused. Several callers at a time wait for the same answer. */
export function ask_token(refused) {
  if (token() !== refused && token() !== null) return Promise.resolve();
  asking ??= ask(refused).finally(() => { asking = null; });
  return asking;
}

function ask(refused) {
  const dialog = document.getElementById("token");
  const field = document.getElementById("token-text");
  const refuse = (words) => { document.getElementById("token-why").textContent = words; };
  if (refused) refuse("The archiver does not accept this token. Enter another one.");
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    // Without a token there is nothing to show, so that the dialog is not left without one.
    dialog.oncancel = (event) => event.preventDefault();
    dialog.onclose = () => {
      const text = field.value.trim();
      if (/^[\x20-\x7e]+$/.test(text)) {
        keep(text);
        return resolve();
      }
      // Chats add unseen letters and other quotes, which no request can carry.
      if (text) refuse("A token has only letters, digits and signs of ASCII. Enter it again.");
      field.value = "";
      return dialog.showModal();
    };
  });
}
