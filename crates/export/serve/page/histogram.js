// One file opened: its figures and how long its reads and writes took.
import { h, s } from "./dom.js";
import { rate, throughput, tickTime, time } from "./units.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [600, 190, 64, 26];

/** The upper end of a band, short. @param {number} ns */
const bound = (ns) => tickTime(Number(ns.toPrecision(2)));

/** @param {{upper_ns: number, reads: number, writes: number}[]} bands */
function bars(bands) {
  const highest = Math.max(1, ...bands.flatMap(({ reads, writes }) => [reads, writes]));
  const step = (WIDTH - LEFT - 8) / bands.length;
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / highest) * (HEIGHT - BOTTOM - 26);
  const every = Math.ceil(bands.length / 9);
  return s(
    "svg",
    {
      class: "histogram",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `Histogram of latency: ${bands.map(({ upper_ns, reads, writes }) => `up to ${bound(upper_ns)} ${reads} reads, ${writes} writes`).join("; ")}`,
    },
    s("line", { class: "axis", x1: LEFT, x2: WIDTH - 8, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    s("text", { class: "tick", x: LEFT - 6, y: y(highest) + 4, "text-anchor": "end" }, rate(highest)),
    s("text", { class: "tick", x: LEFT - 6, y: y(0) + 4, "text-anchor": "end" }, "0"),
    s("text", { class: "title", x: 0, y: 12 }, "I/Os by their latency, up to"),
    bands.map(({ upper_ns, reads, writes }, at) => {
      const left = LEFT + at * step;
      return s(
        "g",
        {},
        s("title", {}, `up to ${bound(upper_ns)}: ${rate(reads)} reads, ${rate(writes)} writes`),
        s("rect", {
          class: "read",
          x: left + step * 0.1,
          width: step * 0.38,
          y: y(reads),
          height: HEIGHT - BOTTOM - y(reads),
        }),
        s("rect", {
          class: "write",
          x: left + step * 0.52,
          width: step * 0.38,
          y: y(writes),
          height: HEIGHT - BOTTOM - y(writes),
        }),
        at % every === 0
          ? s("text", { class: "tick", x: left + step / 2, y: HEIGHT - 8, "text-anchor": "middle" }, bound(upper_ns))
          : null,
      );
    }),
  );
}

/** @param {any} file @param {() => void} close */
export function histogram(file, close) {
  const facts = [
    ["waited on, mean outstanding I/Os", rate(file.waited_share)],
    [
      "reads",
      `${rate(file.reads_per_second)}/s, ${throughput(file.read_bytes_per_second)}, ${time(file.read_latency_ns)} each`,
    ],
    [
      "writes",
      `${rate(file.writes_per_second)}/s, ${throughput(file.written_bytes_per_second)}, ${time(file.write_latency_ns)} each`,
    ],
    ["database", file.database ?? "-"],
    ["object", file.object ?? "-"],
  ];
  return h(
    "section",
    { class: "opened", "aria-label": "the opened file" },
    h(
      "div",
      { class: "opened-head" },
      h("h3", {}, h("bdi", {}, file.path)),
      h("button", { type: "button", "data-key": "close-file", click: close }, "close"),
    ),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
    file.histogram?.length
      ? [
          h(
            "p",
            { class: "legend" },
            h("span", {}, h("i", { class: "area read" }), "reads"),
            h("span", {}, h("i", { class: "area write" }), "writes"),
          ),
          bars(file.histogram),
        ]
      : h("p", { class: "small" }, "The source keeps no histogram of this file's latency."),
  );
}
