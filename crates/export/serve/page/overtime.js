// The time charts together: their range, panning, zooming, the exact values under the pointer, and the newest moment.
import * as address from "./address.js";
import { byVolume, get } from "./api.js";
import { AXIS_WIDTH, CHARTS, columns, draw, holes, legend, RIGHT } from "./charts.js";
import { h, refill, setText, trouble } from "./dom.js";
import { clock, moment as instant } from "./units.js";

/** @type {any} */
const uPlot = /** @type {any} */ (globalThis).uPlot;

/** What is longer than the agent's ring of seconds is asked for again after so long, and until then goes on from the stream. */
const AGAIN_MS = 60_000;
const POINTS = 900;
/** A range that is moved is asked for when it rests. */
const REST_MS = 160;
const SPANS = [
  [300, "5 min"],
  [900, "15 min"],
  [3600, "1 h"],
  [21_600, "6 h"],
  [86_400, "1 day"],
  [604_800, "7 days"],
];
const SHORTEST_S = 20;
const LONGEST_S = 400 * 86_400;

/** @param {HTMLElement} root */
export function timePanel(root) {
  /** @type {{data: any, gaps: any[], marks: any[]}} */
  const shown = { data: null, gaps: [], marks: [] };
  /** @type {any[]} */
  let plots = [];
  /** @type {HTMLElement[]} */
  const values = CHARTS.map(() => h("span", { class: "values" }));
  const readout = h("p", { class: "readout" });
  const spans = h("div", { class: "tabs", role: "group", "aria-label": "range" });
  const marks = h("div", { class: "marks" });
  const places = CHARTS.map((chart, at) =>
    h(
      "div",
      { class: "chart" },
      h("div", { class: "chart-head" }, h("h3", {}, chart.title), legend(chart), values[at]),
      h("div", { class: "plot" }),
    ),
  );
  const stack = h(
    "div",
    {
      class: "stack",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Charts over time. Left and right move the mark, with Shift the range; plus and minus zoom; 0 follows the present.",
    },
    marks,
    places,
  );
  const message = h("div", {});
  root.append(h("div", { class: "toolbar" }, spans, readout), message, stack);

  let volume = "";
  let now_s = Date.now() / 1000;
  let step_s = 1;
  let cursor = -1;
  let width = 0;
  let timer = 0;
  let serial = 0;
  let asked_at = 0;
  let loading = false;
  /** The second that was appended last, and how many seconds are in the last bucket. */
  let appended = 0;
  let inside = 1;

  const follows = () => address.state().from === 0;
  const range = () => {
    const { from, to, span } = address.state();
    return follows() ? [now_s - span, now_s] : [from, to];
  };

  function showSpans() {
    const { span } = address.state();
    refill(
      spans,
      SPANS.map(([seconds, name]) =>
        h(
          "button",
          {
            type: "button",
            "data-key": `span-${seconds}`,
            "aria-pressed": String(follows() && span === seconds),
            click: () => address.set({ span: Number(seconds), from: 0, to: 0 }),
          },
          name,
        ),
      ),
      h(
        "button",
        {
          type: "button",
          class: "now-button",
          "data-key": "span-now",
          "aria-pressed": String(follows()),
          click: () => address.set({ from: 0, to: 0 }),
        },
        "follow now",
      ),
    );
  }

  async function load() {
    if (!volume) return;
    const mine = (serial += 1);
    asked_at = performance.now();
    loading = true;
    const { span, from, to } = address.state();
    const bounds = follows()
      ? `from=${-span * 1e9}`
      : `from=${Math.round(from * 1000)}000000&to=${Math.round(to * 1000)}000000`;
    // A page that is saved keeps the stretch that is shown.
    root.dataset.asked = bounds;
    try {
      const answer = await get(`series?${byVolume(volume)}&${bounds}&points=${POINTS}`);
      if (mine !== serial) return;
      loading = false;
      message.replaceChildren();
      stack.hidden = false;
      step_s = answer.step_ns / 1e9;
      shown.data = { times: answer.times_unix_s, series: answer.series };
      shown.gaps = [...answer.gaps, ...holes(answer)];
      shown.marks = answer.marks;
      if (follows()) now_s = answer.to_unix_ns / 1e9;
      appended = Math.floor(answer.to_unix_ns / 1e9);
      inside = Math.max(1, appended - (answer.times_unix_s.at(-1) ?? appended));
      if (plots.length) update();
      else build();
    } catch (problem) {
      if (mine !== serial) return;
      loading = false;
      stack.hidden = true;
      refill(message, trouble(problem));
    }
  }

  function build() {
    for (const plot of plots) plot.destroy();
    plots = [];
    width = stack.clientWidth;
    if (!shown.data || width < 120) return;
    const sync = uPlot.sync("overtime");
    plots = CHARTS.map((chart, at) =>
      draw(chart, /** @type {HTMLElement} */ (places[at].lastElementChild), shown, {
        width,
        isLast: at === CHARTS.length - 1,
        sync,
        hover,
      }),
    );
    for (const plot of plots) listen(plot.over);
    update();
  }

  function update() {
    const [min, max] = range();
    plots.forEach((plot, at) => {
      plot.batch(() => {
        plot.setData(columns(CHARTS[at], shown.data), false);
        plot.setScale("x", { min, max });
      });
    });
    showMarks(min, max);
    if (cursor < 0) show(null);
  }

  /** @param {number} min @param {number} max */
  function showMarks(min, max) {
    const inner = width - AXIS_WIDTH - RIGHT;
    refill(
      marks,
      shown.marks.map((mark) => {
        const share = (mark.unix_ns / 1e9 - min) / (max - min);
        if (share < 0 || share > 1) return null;
        const title = `${mark.kind === "incident" ? `incident ${mark.incident ?? ""}: ` : ""}${mark.text}, ${clock(mark.unix_ns / 1e9)} UTC`;
        const sign = mark.kind === "incident" ? "▲" : mark.kind === "cap" ? "■" : "●";
        const element = mark.incident
          ? h(
              "button",
              {
                type: "button",
                class: `mark ${mark.kind}`,
                title,
                "aria-label": title,
                "data-key": `mark-${mark.unix_ns}`,
                click: () => address.set({ incident: mark.incident }),
              },
              sign,
            )
          : h("span", { class: `mark ${mark.kind}`, title, role: "img", "aria-label": title }, sign);
        element.style.left = `${AXIS_WIDTH + share * inner}px`;
        return element;
      }),
    );
  }

  /** @param {number | null} unix_s where the pointer is @param {number | null} [nearest] the bucket that the charts mark */
  function hover(unix_s, nearest) {
    if (unix_s === null || !shown.data) {
      cursor = -1;
      return show(null);
    }
    cursor = nearest ?? 0;
    show(cursor, unix_s);
  }

  /** The exact values at an instant, or of the newest one. @param {number | null} index @param {number} [unix_s] */
  function show(index, unix_s) {
    if (!shown.data) return;
    // The newest moment is not read out each second; what the pointer or a key asks for is.
    readout.setAttribute("aria-live", index === null ? "off" : "polite");
    const at = index ?? shown.data.times.length - 1;
    const start = shown.data.times[at];
    const second = unix_s ?? start;
    const gap = shown.gaps.find(
      ({ from_unix_ns, to_unix_ns }) => second >= from_unix_ns / 1e9 && second < to_unix_ns / 1e9,
    );
    const when =
      start === undefined ? "" : `${instant(start, true)}${step_s > 1 ? ` to ${clock(start + step_s)}` : ""} UTC`;
    setText(
      readout,
      gap
        ? `${instant(second, true)} UTC: unknown: ${gap.reason}`
        : `${index === null ? (follows() ? "now, " : "newest, ") : ""}${when}`,
    );
    CHARTS.forEach((chart, of) =>
      setText(values[of], gap ? "unknown" : chart.lines.map((line) => written(chart, line, at)).join("   ")),
    );
  }

  /** @param {import("./charts.js").Chart} chart @param {import("./charts.js").Line} line @param {number} at */
  function written(chart, line, at) {
    const { min, mean, max } = shown.data.series[line.key];
    if ((mean[at] ?? null) === null) return line.words ? `${line.words}: unknown` : "unknown";
    const between =
      chart.write(min[at]) === chart.write(max[at]) ? "" : ` (${chart.write(min[at])} to ${chart.write(max[at])})`;
    return `${line.words ? `${line.words} ` : ""}${chart.write(mean[at])}${between}`;
  }

  /** @param {number} from @param {number} to @param {boolean} [quietly] */
  function go(from, to, quietly = true) {
    const length = Math.min(LONGEST_S, Math.max(SHORTEST_S, to - from));
    const middle = (from + to) / 2;
    let [begin, end] = [middle - length / 2, middle + length / 2];
    if (end > now_s) [begin, end] = [begin - (end - now_s), now_s];
    address.set({ from: Math.round(begin * 10) / 10, to: Math.round(end * 10) / 10 }, { quietly });
  }

  /** Shorter or longer around a share of the range. @param {number} factor @param {number} [around] */
  function zoom(factor, around = 0.5) {
    const [from, to] = range();
    const fixed = from + (to - from) * around;
    // A range that follows the present keeps following it.
    if (follows() && around > 0.9)
      return address.set(
        { span: Math.round(Math.min(LONGEST_S, Math.max(30, (to - from) * factor))) },
        { quietly: true },
      );
    go(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  }

  /** @param {number} share of the range, to the left where negative */
  function pan(share) {
    const [from, to] = range();
    go(from + (to - from) * share, to + (to - from) * share);
  }

  /** @param {HTMLElement} over */
  function listen(over) {
    /** @type {{x: number, from: number, to: number} | null} */
    let grip = null;
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [from, to] = range();
      grip = { x: event.clientX, from, to };
      over.setPointerCapture(event.pointerId);
      stack.focus({ preventScroll: true });
    });
    over.addEventListener("pointermove", (event) => {
      if (!grip || Math.abs(event.clientX - grip.x) < 3) return;
      const seconds = ((grip.x - event.clientX) / over.clientWidth) * (grip.to - grip.from);
      go(grip.from + seconds, grip.to + seconds);
    });
    for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, () => (grip = null));
    over.addEventListener(
      "wheel",
      (event) => {
        // A page that is scrolled past the charts is not caught by them: the wheel zooms once they have the focus.
        if (!event.ctrlKey && !stack.contains(document.activeElement)) return;
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / over.clientWidth);
      },
      { passive: false },
    );
  }

  stack.addEventListener("keydown", (event) => {
    if (event.target !== stack || event.ctrlKey || event.metaKey || event.altKey || !shown.data) return;
    const side = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (side && event.shiftKey) pan(side * 0.2);
    else if (side) step(side);
    else if (event.key === "+" || event.key === "=") zoom(0.6, follows() ? 1 : 0.5);
    else if (event.key === "-") zoom(1 / 0.6, follows() ? 1 : 0.5);
    else if (event.key === "0") address.set({ from: 0, to: 0 });
    else if (event.key === "Escape") hover(null);
    else return;
    event.preventDefault();
  });

  /** Moves the mark by a hundredth of the range. @param {number} side */
  function step(side) {
    const times = shown.data.times;
    const [from, to] = range();
    const by = Math.max(1, Math.round((to - from) / step_s / 100));
    const at = Math.max(0, Math.min(times.length - 1, (cursor < 0 ? times.length : cursor) + side * by));
    const plot = plots[0];
    if (plot) plot.setCursor({ left: plot.valToPos(times[at], "x"), top: 4 });
  }

  new ResizeObserver(() => {
    if (Math.abs(stack.clientWidth - width) > 1) build();
  }).observe(stack);

  showSpans();
  return {
    load,
    build,
    /** @param {string} id */
    follow(id) {
      volume = id;
      shown.data = null;
      load();
    },
    /** The range in the address was changed. */
    ranged() {
      showSpans();
      if (shown.data && plots.length) update();
      clearTimeout(timer);
      timer = setTimeout(load, REST_MS);
    },
    /** A moment of the stream. @param {any} moment */
    moment(moment) {
      const second = Math.floor(moment.unix_ns / 1e9);
      now_s = Math.max(now_s, second + 1);
      if (!shown.data || !follows()) return;
      if (step_s > 1 && performance.now() - asked_at > Math.max(step_s * 1000, AGAIN_MS)) load();
      append(second, moment);
      update();
    },
  };

  /** The newest moment becomes a bucket, or a part of the last one. @param {number} second @param {any} moment */
  function append(second, moment) {
    const { times, series } = shown.data;
    const last = times.at(-1) ?? second - step_s;
    if (second - last > step_s + 5) return void (loading || load());
    const isNew = second >= last + step_s;
    if (!isNew && (step_s === 1 || second <= appended)) return;
    const drop = isNew
      ? Math.max(
          0,
          times.findIndex((/** @type {number} */ at) => at >= second - address.state().span),
        )
      : 0;
    inside = isNew ? 1 : inside + 1;
    appended = second;
    if (isNew) times.push(last + step_s * Math.floor((second - last) / step_s));
    times.splice(0, drop);
    for (const [key, { min, mean, max }] of Object.entries(series)) {
      const value = moment.gap ? null : (moment[key] ?? null);
      const at = mean.length - 1;
      if (isNew) for (const list of [min, mean, max]) list.push(value);
      else if (value !== null) {
        min[at] = Math.min(min[at] ?? value, value);
        max[at] = Math.max(max[at] ?? value, value);
        mean[at] = mean[at] === null ? value : mean[at] + (value - mean[at]) / inside;
      }
      for (const list of [min, mean, max]) list.splice(0, drop);
    }
    if (!moment.gap) return;
    const open = shown.gaps.at(-1);
    if (open && open.reason === moment.gap && second - open.to_unix_ns / 1e9 < 2) open.to_unix_ns = (second + 1) * 1e9;
    else shown.gaps.push({ from_unix_ns: second * 1e9, to_unix_ns: (second + 1) * 1e9, reason: moment.gap });
  }
}
