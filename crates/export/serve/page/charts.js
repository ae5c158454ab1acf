// The charts over time: drawn by uPlot on one shared axis, with grey stretches where nothing is known.
import { h, visible } from "./dom.js";
import { clock, day, rate, share, throughput, tick, tickBytes, tickTime, time } from "./units.js";

/** @type {any} */
const uPlot = /** @type {any} */ (globalThis).uPlot;

/**
 * @typedef {{key: string, ink: string, words: string, dashed?: boolean}} Line
 * @typedef {{title: string, lines: Line[], write: (value: number | null) => string, axis: (value: number) => string, binary?: boolean, whole?: number}} Chart
 */

/** @type {Chart[]} */
export const CHARTS = [
  {
    title: "Utilisation",
    lines: [{ key: "utilisation", ink: "--curve", words: "" }],
    write: share,
    axis: share,
    whole: 1,
  },
  { title: "Outstanding I/Os", lines: [{ key: "outstanding", ink: "--demand", words: "" }], write: rate, axis: tick },
  {
    title: "Latency",
    write: time,
    axis: tickTime,
    lines: [
      { key: "latency_ns", ink: "--demand", words: "measured" },
      { key: "expected_latency_ns", ink: "--curve", words: "expected at this load", dashed: true },
    ],
  },
  { title: "I/Os a second", lines: [{ key: "iops", ink: "--series-2", words: "" }], write: rate, axis: tick },
  {
    title: "Throughput",
    write: throughput,
    axis: tickBytes,
    binary: true,
    lines: [
      { key: "read_bytes_per_second", ink: "--series-0", words: "read" },
      { key: "written_bytes_per_second", ink: "--series-1", words: "written", dashed: true },
    ],
  },
];

/** Space for the labels of the y axis, the same for all, so that the charts lie under each other. */
export const AXIS_WIDTH = 66;
export const RIGHT = 12;
const HEIGHT = 118;
const AXIS_HEIGHT = 28;

/** The colour of a CSS variable. @param {string} name */
export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";

/** "#1f5fd0" with an opacity. @param {string} colour @param {number} opacity */
const faint = (colour, opacity) =>
  `${colour}${Math.round(opacity * 255)
    .toString(16)
    .padStart(2, "0")}`;

/** Ticks of bytes lie at powers of two. */
const BINARY_STEPS = Array.from({ length: 44 }, (_, power) => 2 ** power);
const TIME_STEPS = [
  1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
  2_592_000,
];

/** The stretches where nothing is known, hatched, with or without their reasons. @param {any} plot @param {any[]} gaps @param {boolean} withReasons */
function drawGaps(plot, gaps, withReasons) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const colour = ink("--gap");
  for (const gap of gaps) {
    const left = plot.valToPos(gap.from_unix_ns / 1e9, "x", true);
    const width = Math.max(1, plot.valToPos(gap.to_unix_ns / 1e9, "x", true) - left);
    ctx.fillStyle = faint(colour, 0.35);
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour;
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    const [from, to] = [Math.max(left, bbox.left) - bbox.height, Math.min(left + width, bbox.left + bbox.width)];
    for (let x = from; x < to; x += 9 * devicePixelRatio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    if (withReasons)
      drawReason(
        ctx,
        gap.reason,
        Math.max(left, bbox.left),
        Math.min(left + width, bbox.left + bbox.width),
        bbox.top + bbox.height / 2,
      );
    ctx.restore();
  }
  ctx.restore();
}

/** @param {CanvasRenderingContext2D} ctx @param {string} reason @param {number} left @param {number} right @param {number} middle */
function drawReason(ctx, reason, left, right, middle) {
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const words = visible(reason);
  const width = ctx.measureText(words).width;
  if (width > right - left - 16 * devicePixelRatio) return;
  const [x, height] = [(left + right - width) / 2, 22 * devicePixelRatio];
  ctx.fillStyle = ink("--surface");
  ctx.fillRect(x - 8 * devicePixelRatio, middle - height / 2, width + 16 * devicePixelRatio, height);
  ctx.fillStyle = ink("--text");
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillText(words, x, middle);
}

/** @param {any} plot @param {any[]} marks */
function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.unix_ns / 1e9, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ink(mark.kind === "incident" ? "--bad" : "--knee");
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** @param {Line} line @param {number} [alone] */
function series(line, alone = 1) {
  const colour = ink(line.ink);
  const band = { stroke: faint(colour, 0.55), width: 1, points: { show: false }, spanGaps: false };
  return [
    { ...band },
    {
      stroke: colour,
      width: 1.8 * alone,
      dash: line.dashed ? [6, 4] : undefined,
      points: { show: false },
      spanGaps: false,
    },
    { ...band },
  ];
}

/** @param {boolean} isLast */
function timeAxis(isLast) {
  return {
    show: true,
    size: isLast ? AXIS_HEIGHT : 0,
    stroke: ink("--muted"),
    font: "12px system-ui, sans-serif",
    incrs: TIME_STEPS,
    space: 84,
    grid: { stroke: ink("--grid"), width: 1 },
    ticks: { show: isLast, stroke: ink("--axis"), width: 1, size: 5 },
    values: (
      /** @type {any} */ _,
      /** @type {number[]} */ splits,
      /** @type {number} */ __,
      /** @type {number} */ ___,
      /** @type {number} */ step,
    ) =>
      isLast
        ? splits.map((split) =>
            step >= 86_400 || split % 86_400 === 0 ? day(split).slice(5) : clock(split, step < 60),
          )
        : splits.map(() => ""),
  };
}

/**
 * A chart of uPlot.
 * @param {Chart} chart
 * @param {HTMLElement} place
 * @param {{data: any, gaps: any[], marks: any[]}} shown shared by all charts
 * @param {{width: number, isLast: boolean, sync: any, hover: (unix_s: number | null, nearest?: number | null) => void}} how
 */
export function draw(chart, place, shown, { width, isLast, sync, hover }) {
  const bands = chart.lines.map((line, at) => ({ series: [3 * at + 1, 3 * at + 3], fill: faint(ink(line.ink), 0.2) }));
  const highest = (/** @type {number} */ max) =>
    chart.whole ? Math.max(chart.whole, max * 1.05) : max > 0 ? max * 1.1 : 1;
  return new uPlot(
    {
      width,
      height: HEIGHT + (isLast ? AXIS_HEIGHT : 0),
      padding: [8, RIGHT, isLast ? 0 : 4, 0],
      legend: { show: false },
      pxAlign: 0,
      scales: {
        x: { time: true },
        y: {
          range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [0, highest(max ?? 0)],
        },
      },
      axes: [
        timeAxis(isLast),
        {
          size: AXIS_WIDTH,
          stroke: ink("--muted"),
          font: "12px system-ui, sans-serif",
          space: 22,
          gap: 6,
          grid: { stroke: ink("--grid"), width: 1 },
          ticks: { show: false },
          incrs: chart.binary ? BINARY_STEPS : undefined,
          values: (/** @type {any} */ plot, /** @type {number[]} */ splits) =>
            splits.map((split) => (split === 0 ? "0" : isEmpty(plot) ? "" : chart.axis(split))),
        },
      ],
      series: [{}, ...chart.lines.flatMap((line) => series(line))],
      bands,
      cursor: {
        sync: { key: sync.key, setSeries: false },
        drag: { x: false, y: false, setScale: false },
        y: false,
        points: { size: 7, show: true },
      },
      hooks: {
        drawClear: [
          (/** @type {any} */ plot) => {
            // The first chart has the reasons that all share.
            drawGaps(plot, shown.gaps, chart === CHARTS[0]);
            drawGaps(plot, findUnknown(chart, plot.data, shown.gaps, shown.data.series.iops.mean), true);
          },
        ],
        draw: [
          (/** @type {any} */ plot) => {
            drawWhole(plot, chart);
            drawMarks(plot, shown.marks);
          },
        ],
        setCursor: [
          (/** @type {any} */ plot) =>
            hover(plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null, plot.cursor.idx),
        ],
      },
    },
    columns(chart, shown.data),
    place,
  );
}

/** Whether nothing of what a chart shows is known. @param {any} plot */
const isEmpty = (plot) =>
  plot.data.slice(1).every((/** @type {any[]} */ column) => column.every((value) => value === null));

/** The line at 100 %. @param {any} plot @param {Chart} chart */
function drawWhole(plot, chart) {
  if (!chart.whole) return;
  const y = plot.valToPos(chart.whole, "y", true);
  plot.ctx.save();
  plot.ctx.strokeStyle = ink("--bad");
  plot.ctx.lineWidth = 1.2 * devicePixelRatio;
  plot.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  plot.ctx.beginPath();
  plot.ctx.moveTo(plot.bbox.left, y);
  plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
  plot.ctx.stroke();
  plot.ctx.restore();
}

/** What uPlot draws of an answer: the times, and for each line its maximum, mean and minimum. @param {Chart} chart @param {any} data */
export function columns(chart, data) {
  return [
    data.times,
    ...chart.lines.flatMap(({ key }) => [data.series[key].max, data.series[key].mean, data.series[key].min]),
  ];
}

/** One or two points may lack a moment that came late. */
const HOLE_POINTS = 3;

/**
 * The stretches of several points that are unknown and in no gap: their first point, and the one after them.
 * @param {number[]} times
 * @param {number} step_s
 * @param {any[]} gaps
 * @param {(number | null)[]} values
 * @returns {[number, number][]}
 */
function unknownStretches(times, step_s, gaps, values) {
  const isCovered = (/** @type {number} */ at) =>
    gaps.some(({ from_unix_ns, to_unix_ns }) => (at + step_s) * 1e9 > from_unix_ns && at * 1e9 < to_unix_ns);
  /** @type {[number, number][]} */
  const found = [];
  let from = -1;
  for (let index = 0; index <= times.length; index += 1) {
    const isUnknown = index < times.length && values[index] === null && !isCovered(times[index]);
    if (isUnknown && from < 0) from = index;
    if (isUnknown || from < 0) continue;
    if (index - from >= HOLE_POINTS) found.push([from, index]);
    from = -1;
  }
  return found;
}

/**
 * Stretches without any figure that are in no gap of the answer: between two starts of an agent. They are grey as well. One that
 * reaches to the end may still be filled.
 * @param {any} answer
 */
export function holes({ times_unix_s: times, step_ns, series, gaps }) {
  return unknownStretches(times, step_ns / 1e9, gaps, series.outstanding.mean)
    .filter(([, to]) => to < times.length)
    .map(([from, to]) => ({
      from_unix_ns: times[from] * 1e9,
      to_unix_ns: times[to] * 1e9,
      reason: "nothing was kept of this time",
    }));
}

/** Figures that need I/O to be known. */
const OF_IO = ["utilisation", "latency_ns"];

/**
 * The stretches in which a chart's own figure is unknown, outside of the gaps of all.
 * @param {Chart} chart
 * @param {any[]} data as uPlot draws it
 * @param {any[]} gaps
 * @param {(number | null)[]} iops
 */
export function findUnknown(chart, [times, , mean], gaps, iops) {
  if (times.length < 2) return [];
  const step_s = (times.at(-1) - times[0]) / (times.length - 1);
  return unknownStretches(times, step_s, gaps, mean).map(([from, to]) => {
    const isIdle = OF_IO.includes(chart.lines[0].key) && iops.slice(from, to).every((rate) => rate === 0);
    return {
      from_unix_ns: times[from] * 1e9,
      to_unix_ns: (times[to - 1] + step_s) * 1e9,
      reason: isIdle ? "no I/O" : "not known",
    };
  });
}

/** The lines of a chart of several, in words. @param {Chart} chart */
export function legend(chart) {
  return chart.lines.length < 2
    ? null
    : h(
        "span",
        { class: "legend" },
        chart.lines.map(({ ink, words, dashed }) => {
          const sample = h("i", { class: dashed ? "dashed" : "line" });
          sample.style.setProperty("--c", `var(${ink})`);
          return h("span", {}, sample, words);
        }),
      );
}
