// Keys that work anywhere on the page, the list of them, and the theme.
import * as address from "./address.js";
import { byId } from "./dom.js";

const PARTS = ["answer", "curve", "time", "files", "devices", "incidents", "databases"];
const THEMES = ["", "light", "dark"];
const REMEMBERED = "headroom-theme";

/** Shows the theme of the address, or the one chosen last. */
export function showTheme() {
  const theme = address.state().theme || remembered();
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = `Theme: ${theme || "system"}`;
}

function remembered() {
  try {
    return localStorage.getItem(REMEMBERED) ?? "";
  } catch {
    return "";
  }
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(address.state().theme || remembered()) + 1) % THEMES.length];
  try {
    localStorage.setItem(REMEMBERED, next);
  } catch {
    // A browser that keeps nothing has the theme in the address.
  }
  address.set({ theme: next }, { quietly: true });
  showTheme();
}

/** @param {string} id */
export function jump(id) {
  const part = byId(id);
  part.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  part.focus({ preventScroll: true });
}

/** @param {{volume: (step: number) => void, search: HTMLElement}} how */
export function listen({ volume, search }) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("keys"));
  byId("help").addEventListener("click", () => dialog.showModal());
  byId("theme").addEventListener("click", nextTheme);
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    jump("answer");
  });
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || target.matches("input, textarea, select")) {
      if (event.key === "Escape" && target === search) search.blur();
      return;
    }
    const part = PARTS[Number(event.key) - 1];
    if (part) jump(part);
    else if (event.key === "[" || event.key === "]") volume(event.key === "]" ? 1 : -1);
    else if (event.key === "/") {
      byId("files").scrollIntoView();
      search.focus();
    } else if (event.key === "t") nextTheme();
    else if (event.key === "?") dialog.showModal();
    else return;
    event.preventDefault();
  });
}
