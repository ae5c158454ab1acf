// Elements are made here and nowhere else: text goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// Control characters and those that turn the direction of writing; a name could hide behind them.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * A text with its invisible characters written out: "\u{1b}[2J".
 * @param {unknown} text
 */
export function visible(text) {
  return String(text).replace(HIDDEN, (letter) => `\\u{${/** @type {number} */ (letter.codePointAt(0)).toString(16)}}`);
}

/**
 * @param {Element} element
 * @param {Record<string, any>} properties attributes; a function is a listener, null and false are left out
 * @param {any[]} children
 */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : typeof value === "string" ? visible(value) : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

/**
 * An HTML element.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {any[]} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  fill(element, properties, children);
  return element;
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {any[]} children
 * @returns {SVGElement}
 */
export function s(tag, properties = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  fill(element, properties, children);
  return element;
}

/**
 * A table that scrolls where it is wider than its place.
 * @param {string[][]} heads the words and the class of each column
 * @param {any[]} rows
 * @param {string | null} [label]
 */
export function table(heads, rows, label = null) {
  const head = heads.map(([words, kind]) => h("th", { scope: "col", class: kind }, words));
  return h(
    "div",
    { class: "scroll" },
    h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
  );
}

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * Changes a text only where it differs, so that a selection survives.
 * @param {Element} element
 * @param {unknown} text
 */
export function setText(element, text) {
  const shown = visible(text ?? "");
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * Replaces what an element holds. The focus stays on the element with the same `data-key`.
 * @param {Element} element
 * @param {any[]} children
 */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement)
    ? /** @type {HTMLElement} */ (document.activeElement).dataset.key
    : undefined;
  element.replaceChildren();
  fill(element, {}, children);
  if (focused === undefined) return;
  const again = [...element.querySelectorAll("[data-key]")].find(
    (child) => /** @type {HTMLElement} */ (child).dataset.key === focused,
  );
  /** @type {HTMLElement | undefined} */ (again)?.focus({ preventScroll: true });
}

/**
 * A message where figures are missing: what is wrong and what to do.
 * @param {any} problem
 */
export function trouble(problem) {
  const remedy = problem.remedy
    ? h("p", { class: "remedy" }, h("span", {}, "Try: "), h("code", {}, problem.remedy))
    : null;
  const message = String(problem.message ?? problem);
  return h("div", { class: "trouble" }, h("p", {}, message[0].toUpperCase() + message.slice(1)), remedy);
}
