// The kinds of verdict: their words, how bad they are, and a shape for each, so that no one depends on colour.
import { s } from "./dom.js";

/** @typedef {"good" | "warning" | "bad" | "neutral"} Tone */

const CIRCLE = "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13z";
const TRIANGLE = "M8 1.2L15.3 14.3H.7z";
const DIAMOND = "M8 .8L15.2 8L8 15.2L.8 8z";
const SQUARE = "M2 2h12v12H2z";
const OCTAGON = "M5.2 1.2h5.6l4 4v5.6l-4 4H5.2l-4-4V5.2z";

/**
 * The shape of the ground and what is drawn on it.
 * @type {Record<string, {words: string, tone: Tone, ground: string, sign: string, rank: number}>}
 */
const KINDS = {
  "demand-exceeds-capability": {
    words: "saturated",
    tone: "bad",
    ground: TRIANGLE,
    sign: "M8 5.6v4.2M8 11.6v1",
    rank: 0,
  },
  "storage-degraded": { words: "storage degraded", tone: "bad", ground: DIAMOND, sign: "M8 4.4v4.4M8 10.8v1", rank: 0 },
  throttled: { words: "throttled", tone: "bad", ground: OCTAGON, sign: "M4.6 8h6.8", rank: 1 },
  burst: { words: "burst", tone: "warning", ground: SQUARE, sign: "M4 11.5h2.4L8 4.5l1.6 7H12", rank: 2 },
  serialized: { words: "serialized", tone: "warning", ground: SQUARE, sign: "M4.4 8h.6M7.7 8h.6M11 8h.6", rank: 2 },
  "not-storage": { words: "not storage", tone: "warning", ground: CIRCLE, sign: "M4.8 11.2l6.4-6.4", rank: 2 },
  "cannot-say": {
    words: "cannot say",
    tone: "neutral",
    ground: CIRCLE,
    sign: "M6.2 6.4c0-2.6 3.6-2.4 3.6-.2c0 1.4-1.8 1.5-1.8 3.1M8 11v1",
    rank: 4,
  },
  "nobody-waits": { words: "nobody waits", tone: "good", ground: CIRCLE, sign: "M5 6.6h6M5 9.4h6", rank: 5 },
  healthy: { words: "healthy", tone: "good", ground: CIRCLE, sign: "M4.9 8.3l2.2 2.2l4.2-4.8", rank: 6 },
};

/** @param {string} kind */
const entry = (kind) => KINDS[kind] ?? { ...KINDS["cannot-say"], words: kind };

/** "storage degraded". @param {string} kind */
export const words = (kind) => entry(kind).words;

/** @param {string} kind */
export const tone = (kind) => entry(kind).tone;

/** 0 is the worst. @param {string} kind */
export const rank = (kind) => entry(kind).rank;

/** Whether someone should act. @param {string} kind */
export const isBad = (kind) => ["bad", "warning"].includes(tone(kind));

/** The shape of a kind, in its colour. @param {string} kind @param {number} [size] */
export function shape(kind, size = 16) {
  const { ground, sign, tone } = entry(kind);
  return s(
    "svg",
    { class: `shape ${tone}`, viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" },
    s("path", { class: "ground", d: ground }),
    s("path", { class: "sign", d: sign }),
  );
}
