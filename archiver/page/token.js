// SPDX-License-Identifier: Apache-2.0
// The API's token: asked for when the archiver wants one, kept until the tab is closed.

const KEPT = "weir-token";

export const token = () => sessionStorage.getItem(KEPT);

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
  if (refused) document.getElementById("token-why").textContent = "The archiver does not accept this token. Enter another one.";
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    // Without a token there is nothing to show, so that the dialog is not left without one.
    dialog.oncancel = (event) => event.preventDefault();
    dialog.onclose = () => {
      const text = field.value.trim();
      if (!text) return dialog.showModal();
      sessionStorage.setItem(KEPT, text);
      resolve();
    };
  });
}
