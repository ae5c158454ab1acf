// Scales of the curve's axes and the shape of its line.

/**
 * A logarithmic scale with its ticks: powers of two, or 1, 2 and 5 in each decade.
 * @param {[number, number]} domain
 * @param {[number, number]} range pixels
 * @param {2 | 10} base
 */
export function logarithmic([low, high], [begin, end], base) {
  if (base === 2) [low, high] = [2 ** Math.floor(Math.log2(low)), 2 ** Math.ceil(Math.log2(high))];
  const [from, to] = [Math.log(low), Math.log(high)];
  const at = (/** @type {number} */ value) =>
    begin + ((Math.log(Math.max(value, low / 1e6)) - from) / (to - from || 1)) * (end - begin);
  let ticks = [];
  if (base === 2) for (let value = low; value <= high * 1.001; value *= 2) ticks.push(value);
  else {
    for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10) {
      ticks.push(...[decade, 2 * decade, 5 * decade].filter((value) => value >= low && value <= high));
    }
  }
  // Labels of many powers of two would touch.
  const most = Math.max(2, Math.floor(Math.abs(end - begin) / (base === 2 ? 34 : 30)));
  while (ticks.length > most) ticks = ticks.filter((_, index) => (ticks.length - 1 - index) % 2 === 0);
  return { at, ticks };
}

/**
 * A linear scale with round ticks.
 * @param {[number, number]} domain
 * @param {[number, number]} range pixels
 */
export function linear([low, high], [begin, end]) {
  const raw = (high - low) / 5 || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 2.5, 5, 10].find((factor) => factor * size >= raw) ?? 10);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value);
  return { at: (/** @type {number} */ value) => begin + ((value - low) / (high - low || 1)) * (end - begin), ticks };
}

/**
 * A smooth line through points that invents no extremes: a monotone cubic, after Fritsch and Carlson (1980).
 * @param {number[][]} points with rising x
 */
export function bend(points) {
  if (points.length < 2) return "";
  const slopes = points.slice(1).map(([x, y], at) => (y - points[at][1]) / (x - points[at][0] || 1));
  const tangents = points.map((_, at) => {
    const [before, after] = [slopes[at - 1] ?? slopes[at], slopes[at] ?? slopes[at - 1]];
    if (before * after <= 0) return 0;
    return (2 * before * after) / (before + after);
  });
  let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let at = 1; at < points.length; at += 1) {
    const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
    const third = (x1 - x0) / 3;
    const numbers = [x0 + third, y0 + tangents[at - 1] * third, x1 - third, y1 - tangents[at] * third, x1, y1];
    path += `C${numbers.map((value) => value.toFixed(1)).join(" ")}`;
  }
  return path;
}

/** Height of two lines of text. */
const LABEL = 40;

/**
 * The upper left corner of a label of two lines near a point, where it covers the least; it stays where it was while that is
 * about as good.
 * @param {{x: number, y: number}} point
 * @param {number} width
 * @param {{left: number, right: number, top: number, bottom: number}} frame
 * @param {number[][]} obstacles points with a weight
 * @param {{x: number, y: number, side?: string} | null} before
 */
export function freePlace(point, width, frame, obstacles, before) {
  const inside = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) =>
    Math.max(low, Math.min(high, value));
  const places = [];
  for (const [side, shift] of /** @type {[string, number][]} */ ([
    ["right", 22],
    ["middle", -width / 2],
    ["left", -width - 22],
  ])) {
    for (const lift of [-20, -46, -60, 18, -86, 44, -116, 74, -160, -210]) {
      if (side === "middle" && lift === -20) continue;
      const x = inside(point.x + shift, frame.left + 4, Math.max(frame.left + 4, frame.right - width));
      const y = inside(point.y + lift, frame.top + 2, frame.bottom - LABEL - 4);
      const covers = obstacles.reduce(
        (sum, [left, top, weight]) =>
          sum + (left > x - 6 && left < x + width + 4 && top > y - 4 && top < y + LABEL + 2 ? weight : 0),
        0,
      );
      const isOnPoint = point.x > x - 14 && point.x < x + width + 14 && point.y > y - 12 && point.y < y + LABEL + 12;
      const name = `${side} ${lift}`;
      places.push({
        x,
        y,
        side: name,
        cost: covers + (isOnPoint ? 40 : 0) + Math.abs(lift + 20) / 12 - (before?.side === name ? 2 : 0),
      });
    }
  }
  return places.reduce((best, place) => (place.cost < best.cost ? place : best));
}
