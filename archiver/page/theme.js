// SPDX-License-Identifier: Apache-2.0
// Dark or light: as the system has it until a reader chooses.

const KEPT = "weir-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

// Storage may be forbidden: the choice then lasts as long as the page.
let chosen = null;
try {
  chosen = localStorage.getItem(KEPT);
} catch { /* as without a choice */ }

const is_dark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";

/** Puts the theme in force and gives the button its function; changed() is called after each change. */
export function start_theme(button, changed) {
  const show = () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    button.textContent = is_dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", is_dark() ? "Light colours" : "Dark colours");
  };
  button.addEventListener("click", () => {
    chosen = is_dark() ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, chosen);
    } catch { /* see above */ }
    show();
    changed();
  });
  system.addEventListener("change", () => {
    show();
    changed();
  });
  show();
}
