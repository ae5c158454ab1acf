// The measured curve with the demand moving on it: the two pictures side by side, the choice of a curve, the trail.
import { h, refill } from "./dom.js";
import { isKnown, Picture } from "./picture.js";

/** So much of the trail is kept. */
const TRAIL_S = 300;

/** @typedef {import("./picture.js").Point} Point */
/** @typedef {import("./picture.js").Answer} Answer */

/**
 * The two pictures side by side.
 * @param {HTMLElement} root
 * @param {(curve: number) => void} choose
 */
export function curvePanel(root, choose) {
  /** @type {Answer | null} */
  let answer = null;
  /** @type {Picture[]} */
  let pictures = [];
  /** @type {(Point & {unix_ns: number})[]} */
  let trail = [];
  /** @type {(Point & {unix_ns: number, expected: number | null}) | null} */
  let now = null;
  let asked = -1;
  let why = "the demand is not known now";
  let width = 0;

  function draw() {
    if (!answer || !answer.curves.length || root.clientWidth === 0) return;
    const wide = root.clientWidth;
    const chosen = Math.min(answer.curves.length - 1, Math.max(0, asked >= 0 ? asked : (answer.demand?.curve ?? 0)));
    const beside = wide >= 900;
    const sizes = beside ? [Math.round(wide * 0.58), Math.round(wide * 0.42) - 24] : [wide, wide];
    const height = beside ? 430 : wide < 480 ? 330 : 380;
    pictures = [
      new Picture("latency_ns", sizes[0], height, answer, chosen),
      new Picture("iops", sizes[1], beside ? height : Math.round(height * 0.8), answer, chosen),
    ];
    refill(
      root,
      tabs(answer, chosen),
      h(
        "div",
        { class: "pictures" },
        pictures.map((picture) => picture.root),
      ),
    );
    move();
  }

  /** @param {Answer} answer @param {number} chosen */
  function tabs(answer, chosen) {
    if (answer.curves.length < 2) return h("p", { class: "small" }, answer.curves[0].name);
    return h(
      "div",
      { class: "tabs", role: "group", "aria-label": "measured curve" },
      answer.curves.map(({ name }, at) =>
        h(
          "button",
          { type: "button", "data-key": `curve-${at}`, "aria-pressed": String(at === chosen), click: () => choose(at) },
          name,
          answer.demand?.curve === at ? h("small", {}, " (nearest to the demand)") : null,
        ),
      ),
    );
  }

  function move() {
    for (const picture of pictures) picture.move(trail, now, now?.expected ?? null, why);
  }

  new ResizeObserver(() => {
    if (Math.abs(root.clientWidth - width) > 1) {
      width = root.clientWidth;
      draw();
    }
  }).observe(root);

  return {
    /** @param {Answer} next @param {number} curve @param {boolean} isLive */
    show(next, curve, isLive) {
      why = isLive ? "the demand is not known now" : "";
      answer = next;
      asked = curve;
      trail = next.trail;
      const newest = next.demand ?? next.trail.at(-1) ?? null;
      now = newest && { unix_ns: 0, ...newest, expected: next.expected_latency_ns };
      root.parentElement?.classList.toggle("without", !next.curves.length);
      if (next.curves.length) draw();
      else refill(root, h("p", {}, "The measurement of this storage has no curve."));
    },
    /** Another volume was chosen: what is drawn stays until its curve comes, and moves no more. */
    leave() {
      answer = null;
    },
    /** A moment of the stream. @param {any} moment */
    moment(moment) {
      if (!answer) return;
      // The place is that of the kind of I/O that the curve was measured with; without one there was too little of it.
      const at = moment.place === undefined ? moment : moment.place;
      why = moment.gap ? "the demand is not known now" : "too little I/O now";
      now =
        moment.gap || !at
          ? null
          : {
              unix_ns: moment.unix_ns,
              outstanding: at.outstanding,
              iops: at.iops,
              latency_ns: at.latency_ns,
              expected: at.expected_latency_ns,
            };
      if (isKnown(now)) trail = [...trail, now].filter(({ unix_ns }) => unix_ns > moment.unix_ns - TRAIL_S * 1e9);
      const out = isKnown(now) && pictures.some((picture) => !picture.holds(/** @type {Point} */ (now)));
      if (out) {
        answer = { ...answer, trail, demand: { curve: answer.demand?.curve ?? 0, .../** @type {Point} */ (now) } };
        draw();
      } else move();
    },
    /** @param {HTMLElement | null} message */
    fail(message) {
      answer = null;
      pictures = [];
      root.parentElement?.classList.add("without");
      refill(root, message);
    },
  };
}
