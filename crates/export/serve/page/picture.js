// One picture of a measured curve with the demand moving on it: latency or throughput against outstanding I/Os. Reports have
// the same picture from `charts`, in Rust: here labels make way for a point that moves and a trail, each second, in the browser.
import { s } from "./dom.js";
import { bend, freePlace, linear, logarithmic } from "./scales.js";
import { rate, share, tick, tickTime, time } from "./units.js";

/** Height of the words over the frame. */
const ZONE = 22;
/** The trail fades in so many steps. */
const FADES = 8;

/**
 * @typedef {{outstanding: number, iops: number, latency_ns: number}} Point
 * @typedef {{curves: {name: string, points: Point[], knee_outstanding: number | null, limit_iops: number | null}[],
 *   demand: (Point & {curve: number}) | null, trail: (Point & {unix_ns: number})[], service_level_ns: number | null, expected_latency_ns: number | null}} Answer
 * @typedef {{x: (n: number) => number, y: (value: number) => number, left: number, right: number, top: number, bottom: number, xs: number[], ys: number[]}} Frame
 */

/** @param {Point | null | undefined} at @returns {at is Point} */
export const isKnown = (at) => Boolean(at && at.outstanding > 0 && at.iops !== null && at.latency_ns > 0);

/**
 * Nine tenths of some values, as their ends: single moments far off must not make the picture of the curve small.
 * @param {number[]} values
 */
function middle(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? [sorted[Math.floor(sorted.length * 0.05)], sorted[Math.ceil(sorted.length * 0.95) - 1]] : [];
}

/** An upright line as points that a label must not cover. @param {number} x @param {number} from @param {number} to */
const upright = (x, from, to) =>
  Array.from({ length: Math.ceil(Math.abs(to - from) / 10) }, (_, at) => [x, Math.min(from, to) + at * 10, 2]);

/** @param {SVGElement} text @param {"x" | "y"} axis */
const place = (text, axis) => Number(text.getAttribute(axis));

export class Picture {
  /** @param {"latency_ns" | "iops"} what @param {number} width @param {number} height @param {Answer} answer @param {number} chosen */
  constructor(what, width, height, answer, chosen) {
    this.what = what;
    this.answer = answer;
    this.curve = answer.curves[chosen];
    this.narrow = width < 480;
    /** @type {{x: number, y: number} | null} where the label of the demand was put last */
    this.place = null;
    /** @type {number[][] | null} */
    this.covered = null;
    this.frame = this.measure(width, height);
    this.moving = s("g", { class: "moving" });
    const about = what === "iops" ? "I/Os a second" : "Mean latency";
    this.root = s(
      "svg",
      {
        class: this.narrow ? "picture narrow" : "picture",
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `${about} of ${this.curve.name} against outstanding I/Os, measured, with the demand of now`,
      },
      this.zones(),
      this.axes(),
      this.bounds(),
      this.others(),
      this.measured(),
      this.moving,
    );
  }

  /** The frame and its scales. @param {number} width @param {number} height @returns {Frame} */
  measure(width, height) {
    const frame = { left: this.narrow ? 55 : 58, right: width - 14, top: 28 + ZONE, bottom: height - 44 };
    const points = [...this.answer.curves.flatMap(({ points }) => points), this.answer.demand].filter(isKnown);
    const most = (/** @type {"outstanding" | "iops" | "latency_ns"} */ figure) =>
      middle(this.answer.trail.filter(isKnown).map((point) => point[figure]));
    const ns = [...points.map(({ outstanding }) => outstanding), ...most("outstanding")];
    const x = logarithmic([Math.min(...ns) * 0.9, Math.max(...ns) * 1.1], [frame.left, frame.right], 2);
    const values = [...points.map((point) => point[this.what]), ...most(this.what)];
    const level = this.answer.service_level_ns ?? 0;
    const y =
      this.what === "iops"
        ? linear([0, 1.18 * Math.max(...values, this.curve.limit_iops ?? 0)], [frame.bottom, frame.top])
        : logarithmic(
            [Math.min(...values) * 0.62, Math.max(...values, level <= 10 * Math.max(...values) ? level : 0) * 1.8],
            [frame.bottom, frame.top],
            10,
          );
    return { ...frame, x: x.at, y: y.at, xs: x.ticks, ys: y.ticks };
  }

  /** Whether a point lies within the frame. @param {Point} point */
  holds(point) {
    const { x, y, left, right, top, bottom } = this.frame;
    const [at, height] = [x(point.outstanding), y(point[this.what])];
    return at >= left && at <= right && height >= top && height <= bottom;
  }

  /** Left and right of the knee, in words over the frame. */
  zones() {
    const { left, right, top, bottom, x } = this.frame;
    const knee = this.curve.knee_outstanding;
    if (!knee) return null;
    const at = Math.min(right, Math.max(left, x(knee)));
    const words =
      this.what === "iops"
        ? [
            ["more load gives more I/Os", "more I/Os"],
            ["more load gives few more", "few more I/Os"],
          ]
        : [
            ["more load costs little time", "little wait"],
            ["more load waits longer", "longer waits"],
          ];
    const zone = (
      /** @type {string} */ name,
      /** @type {number} */ from,
      /** @type {number} */ to,
      /** @type {string[]} */ choice,
    ) => {
      const fitting = choice.find(({ length }) => 7.8 * length < to - from);
      return s(
        "g",
        {},
        s("rect", { class: `zone-fill ${name}`, x: from, y: top, width: to - from, height: bottom - top }),
        s("rect", { class: `zone-head ${name}`, x: from, y: top - ZONE, width: to - from, height: ZONE }),
        fitting
          ? s("text", { class: `zone ${name}`, x: (from + to) / 2, y: top - 7, "text-anchor": "middle" }, fitting)
          : null,
      );
    };
    return s("g", {}, zone("free", left, at, words[0]), zone("full", at, right, words[1]));
  }

  axes() {
    const { left, right, top, bottom, x, y, xs, ys } = this.frame;
    const write = this.what === "iops" ? tick : tickTime;
    const title = this.what === "iops" ? "I/Os a second" : "mean latency (log scale)";
    return s(
      "g",
      { class: "axes" },
      ys.map((value) => s("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) })),
      ys.map((value) => s("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, write(value))),
      s("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
      xs.map((value) => s("line", { class: "axis", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 })),
      xs
        .filter((_, at) => !this.narrow || at % 2 === 0)
        .map((value) =>
          s(
            "text",
            { class: "tick", x: x(value), y: bottom + 19, "text-anchor": "middle" },
            value < 1 ? `1/${1 / value}` : String(value),
          ),
        ),
      s("text", { class: "title", x: right, y: bottom + 37, "text-anchor": "end" }, "outstanding I/Os (log scale)"),
      s("text", { class: "title", x: 4, y: top - ZONE - 12 }, title),
    );
  }

  /** The knee, the service level, the limit. */
  bounds() {
    const { left, right, top, bottom, x, y } = this.frame;
    const { knee_outstanding: knee, limit_iops: limit } = this.curve;
    const level = this.answer.service_level_ns;
    const parts = [];
    if (knee && x(knee) > left && x(knee) < right) {
      parts.push(s("line", { class: "knee", x1: x(knee), x2: x(knee), y1: top - ZONE, y2: bottom }));
      const label = `knee at ${rate(knee)}`;
      const end = x(knee) + 8 + 7.5 * label.length > right;
      parts.push(
        s(
          "text",
          {
            class: "knee-label fixed",
            x: x(knee) + (end ? -8 : 8),
            y: bottom - 10,
            "text-anchor": end ? "end" : "start",
          },
          label,
        ),
      );
    }
    if (this.what === "iops" && limit) {
      parts.push(
        s("line", { class: "limit", x1: left, x2: right, y1: y(limit), y2: y(limit) }),
        s("text", { class: "limit-label fixed", x: left + 6, y: y(limit) - 7 }, `limit: ${rate(limit)} I/Os a second`),
      );
    }
    if (this.what === "latency_ns" && level) {
      const isInside = y(level) > top;
      const at = isInside ? y(level) : top;
      parts.push(
        isInside ? s("line", { class: "level", x1: left, x2: right, y1: at, y2: at }) : null,
        s(
          "text",
          { class: "level-label fixed", x: left + 6, y: at + (isInside && at - top > 20 ? -7 : 16) },
          `service level: ${time(level)}${isInside ? "" : " (above)"}`,
        ),
      );
    }
    return s("g", {}, parts);
  }

  /** @param {Point[]} points */
  path(points) {
    const { x, y } = this.frame;
    return bend(points.map((point) => [x(point.outstanding), y(point[this.what])]));
  }

  /** The curves of other kinds of I/O, faint. */
  others() {
    const others = this.answer.curves.filter((curve) => curve !== this.curve && curve.points.length > 1);
    /** @type {SVGElement[]} */
    const names = [];
    for (const curve of others) {
      const name = this.name(curve, "other-name");
      // Where many end together, only the first is named; the choice above has all.
      const isFree =
        name &&
        names.every(
          (other) =>
            Math.abs(place(other, "y") - place(name, "y")) > 17 || Math.abs(place(other, "x") - place(name, "x")) > 160,
        );
      if (isFree) names.push(name);
    }
    return s(
      "g",
      {},
      others.map((curve) => s("path", { class: "other", d: this.path(curve.points) }, s("title", {}, curve.name))),
      names,
    );
  }

  /** The name of a curve: of the chosen one under its line at the right, of another over its end. @param {Answer["curves"][0]} curve @param {string} look */
  name(curve, look) {
    if (this.what === "iops" || curve.points.length < 2 || this.narrow) return null;
    const { x, y, right, top, bottom } = this.frame;
    if (look === "other-name") {
      const last = curve.points[curve.points.length - 1];
      return s(
        "text",
        {
          class: `${look} fixed`,
          x: Math.min(right - 4, x(last.outstanding) + 6),
          y: Math.max(top + 16, y(last.latency_ns) - 12),
          "text-anchor": "end",
        },
        curve.name,
      );
    }
    const width = 7.3 * curve.name.length;
    const at = curve.points.findLast(({ outstanding }) => x(outstanding) + 20 + width < right);
    return at
      ? s(
          "text",
          { class: `${look} fixed`, x: x(at.outstanding) + 16, y: Math.min(bottom - 28, y(at.latency_ns) + 14) },
          curve.name,
        )
      : null;
  }

  measured() {
    const { x, y } = this.frame;
    const dots = this.curve.points.map((point) =>
      s(
        "circle",
        { class: "measured", cx: x(point.outstanding), cy: y(point[this.what]), r: 3.2 },
        s(
          "title",
          {},
          `${rate(point.outstanding)} outstanding: ${rate(point.iops)} I/Os a second, ${time(point.latency_ns)}`,
        ),
      ),
    );
    return s(
      "g",
      {},
      s("path", { class: "curve", d: this.path(this.curve.points) }),
      dots,
      this.name(this.curve, "curve-name"),
    );
  }

  /** The demand, its trail and what the curve expects. @param {(Point & {unix_ns: number})[]} trail @param {Point | null} now @param {number | null} expected_ns @param {string} why it is unknown */
  move(trail, now, expected_ns, why) {
    const { x, y, top } = this.frame;
    const parts = this.fade(trail);
    if (isKnown(now)) {
      const [at, height] = [x(now.outstanding), y(now[this.what])];
      const limit = this.curve.limit_iops;
      if (this.what === "latency_ns" && expected_ns) {
        parts.push(
          s("line", { class: "to-expected", x1: at, x2: at, y1: height, y2: y(expected_ns) }),
          s("circle", { class: "expected", cx: at, cy: y(expected_ns), r: 5 }),
        );
      }
      if (this.what === "iops" && limit && limit > now.iops * 1.04) {
        parts.push(s("path", { class: "room", d: `M${at} ${height - 10}V${y(limit) + 3}m-4 7l4-7l4 7` }));
      }
      parts.push(
        s("circle", { class: "halo", cx: at, cy: height, r: 15 }),
        s("circle", { class: "now", cx: at, cy: height, r: 7 }),
        this.label(now, trail, expected_ns, limit),
      );
    } else {
      parts.push(s("text", { class: "now-label", x: this.frame.right - 8, y: top + 16, "text-anchor": "end" }, why));
    }
    this.moving.replaceChildren(...parts.filter(Boolean).map((part) => /** @type {Node} */ (part)));
  }

  /** Dots that fade with their age, joined by a thin line. @param {(Point & {unix_ns: number})[]} trail @returns {(Node | null)[]} */
  fade(trail) {
    const { x, y } = this.frame;
    const known = trail.filter((point) => isKnown(point) && this.holds(point));
    const size = Math.ceil(known.length / FADES) || 1;
    const groups = [];
    for (let at = 0; at < known.length; at += size) {
      const group = known.slice(at, at + size + 1).map((point) => [x(point.outstanding), y(point[this.what])]);
      const strength = (at / size + 1) / FADES;
      groups.push(
        s(
          "g",
          { class: "trail", opacity: (0.08 + 0.5 * strength ** 1.6).toFixed(2) },
          group.map(([left, top]) =>
            s("circle", { cx: left.toFixed(1), cy: top.toFixed(1), r: (1.3 + 1.4 * strength).toFixed(1) }),
          ),
        ),
      );
    }
    return groups;
  }

  /** @param {Point} now @param {Point[]} trail @param {number | null} expected_ns @param {number | null} limit */
  label(now, trail, expected_ns, limit) {
    const [at, height] = [this.frame.x(now.outstanding), this.frame.y(now[this.what])];
    const dots = trail
      .filter((point, index) => index % 3 === 0 && isKnown(point))
      .map((point) => [this.frame.x(point.outstanding), this.frame.y(point[this.what]), 0.4]);
    const lines =
      this.what === "iops"
        ? [
            `now: ${rate(now.iops)} I/Os a second`,
            limit ? `${share(now.iops / limit)} of this limit` : "the limit was not reached",
          ]
        : [
            `now: ${time(now.latency_ns)} at ${rate(now.outstanding)} outstanding`,
            expected_ns ? `expected here: ${time(expected_ns)}` : "nothing to compare with",
          ];
    const size = this.narrow ? 7.9 : 9.1;
    this.place = freePlace(
      { x: at, y: height },
      size * Math.max(...lines.map(({ length }) => length)),
      this.frame,
      [...this.obstacles(), ...dots, ...upright(at, height, this.end(now, expected_ns))],
      this.place,
    );
    const { x, y } = this.place;
    return s(
      "g",
      { class: "now-text" },
      s("text", { class: "now-label", x, y: y + 15 }, lines[0]),
      s("text", { class: "now-note", x, y: y + 34 }, lines[1]),
    );
  }

  /** Where the line from the demand ends: at what is expected, or at the limit. @param {Point} now @param {number | null} expected_ns */
  end(now, expected_ns) {
    const limit = this.curve.limit_iops;
    if (this.what === "iops") return this.frame.y(limit && limit > now.iops ? limit : now.iops);
    return this.frame.y(expected_ns ?? now.latency_ns);
  }

  /** What a label must not cover: the lines of the curves and the other labels, as points. */
  obstacles() {
    if (this.covered) return this.covered;
    const { x, y } = this.frame;
    /** @type {number[][]} */
    const points = [];
    for (const curve of this.answer.curves) {
      const corners = curve.points.map((point) => [x(point.outstanding), y(point[this.what])]);
      const weight = curve === this.curve ? 3 : 0.3;
      for (let at = 1; at < corners.length; at += 1) {
        for (let part = 0; part < 1; part += 0.08)
          points.push([
            corners[at - 1][0] + part * (corners[at][0] - corners[at - 1][0]),
            corners[at - 1][1] + part * (corners[at][1] - corners[at - 1][1]),
            weight,
          ]);
      }
    }
    for (const label of /** @type {NodeListOf<SVGGraphicsElement>} */ (this.root.querySelectorAll("text.fixed"))) {
      const box = label.getBBox();
      for (let left = box.x; left < box.x + box.width; left += 8) points.push([left, box.y + box.height / 2, 3]);
    }
    if (this.root.isConnected) this.covered = points;
    return points;
  }
}
