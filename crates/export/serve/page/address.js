// The state of the page is its address: `#volume=a1c4&span=900&search=wal`. A link shows the same.
import { saved } from "./api.js";

/**
 * @typedef {object} State
 * @property {string} volume the chosen volume, or "" for the first
 * @property {number} span seconds that the time charts show up to now
 * @property {number} from unix seconds; 0 where the charts follow the present
 * @property {number} to unix seconds; 0 where the charts follow the present
 * @property {number} curve which of the measured curves, -1 for that of the demand
 * @property {number} incident the open one, or 0
 * @property {string} search of files
 * @property {string} sort of files: a column, with "-" before it for descending
 * @property {string} file the open one
 * @property {string} theme "light", "dark" or "" for that of the system
 */

/** @type {State} */
const DEFAULTS = {
  volume: "",
  span: 900,
  from: 0,
  to: 0,
  curve: -1,
  incident: 0,
  search: "",
  sort: "-waited_share",
  file: "",
  theme: "",
};

/** @type {Set<(state: State, changed: Set<string>) => void>} */
const listeners = new Set();
let current = parse(location.hash || saved?.hash || "");

/** @param {string} hash @returns {State} */
function parse(hash) {
  /** @type {any} */
  const state = { ...DEFAULTS };
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!(key in DEFAULTS)) continue;
    const number = Number(value);
    if (typeof state[key] === "string") state[key] = value;
    else if (Number.isFinite(number)) state[key] = number;
  }
  state.span = Math.min(Math.max(state.span, 30), 366 * 86_400);
  if (!(state.from > 0 && state.to > state.from)) state.from = state.to = 0;
  return state;
}

/** @param {State} state */
function write(state) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== /** @type {any} */ (DEFAULTS)[key]) parameters.set(key, String(value));
  }
  const text = parameters.toString();
  return text ? `#${text}` : location.pathname + location.search;
}

/** @returns {State} */
export const state = () => current;

/** @param {(state: State, changed: Set<string>) => void} listener */
export function onChange(listener) {
  listeners.add(listener);
}

/** @param {State} next */
function become(next) {
  const keys = /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS));
  const changed = new Set(keys.filter((key) => next[key] !== current[key]));
  current = next;
  if (changed.size) for (const listener of listeners) listener(current, /** @type {Set<string>} */ (changed));
}

/**
 * Changes a part of the state. What a reader chose can be undone with the browser's "back"; what comes many times a
 * second (`quietly`) replaces the address.
 * @param {Partial<State>} part
 * @param {{quietly?: boolean}} [how]
 */
export function set(part, { quietly = false } = {}) {
  const next = { ...current, ...part };
  const url = write(next);
  if (url !== (location.hash || location.pathname + location.search)) {
    if (quietly) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  }
  become(next);
}

addEventListener("popstate", () => become(parse(location.hash)));
addEventListener("hashchange", () => become(parse(location.hash)));
