// Files by the time they were waited for: ten thousand rows of which only those in view are elements.
import * as address from "./address.js";
import { byVolume, get } from "./api.js";
import { h, refill, s, setText, trouble } from "./dom.js";
import { histogram } from "./histogram.js";
import { rate, throughput, time } from "./units.js";

const ROW = 32;
/** Rows drawn above and below those in view. */
const SPARE = 8;

/** @typedef {{key: string, words: string, wide: number, write: (file: any) => any, value: (file: any) => any, class?: string}} Column */

/** @type {Column[]} */
const COLUMNS = [
  { key: "path", words: "file", wide: 0, value: ({ path }) => path, write: ({ path }) => path },
  { key: "waited_share", words: "waited on", wide: 0, value: ({ waited_share }) => waited_share, write: () => null },
  {
    key: "trail",
    words: "last minute",
    wide: 560,
    value: ({ trail }) => trail.findLast((/** @type {number | null} */ at) => at !== null),
    write: ({ trail }) => sparkline(trail),
  },
  {
    key: "read_latency_ns",
    words: "read latency",
    wide: 0,
    value: ({ read_latency_ns }) => read_latency_ns,
    write: ({ read_latency_ns }) => time(read_latency_ns),
  },
  {
    key: "write_latency_ns",
    words: "write latency",
    wide: 0,
    value: ({ write_latency_ns }) => write_latency_ns,
    write: ({ write_latency_ns }) => time(write_latency_ns),
  },
  {
    key: "reads_per_second",
    words: "reads/s",
    wide: 760,
    value: ({ reads_per_second }) => reads_per_second,
    write: ({ reads_per_second }) => rate(reads_per_second),
  },
  {
    key: "writes_per_second",
    words: "writes/s",
    wide: 760,
    value: ({ writes_per_second }) => writes_per_second,
    write: ({ writes_per_second }) => rate(writes_per_second),
  },
  {
    key: "read_bytes_per_second",
    words: "read",
    wide: 960,
    value: ({ read_bytes_per_second }) => read_bytes_per_second,
    write: ({ read_bytes_per_second }) => throughput(read_bytes_per_second),
  },
  {
    key: "written_bytes_per_second",
    words: "written",
    wide: 960,
    value: ({ written_bytes_per_second }) => written_bytes_per_second,
    write: ({ written_bytes_per_second }) => throughput(written_bytes_per_second),
  },
];

/** A line of what was outstanding; unknown stretches are left out. @param {(number | null)[]} trail */
function sparkline(trail) {
  const highest = Math.max(...trail.map((value) => value ?? 0), 1e-9);
  let path = "";
  let pen = "M";
  trail.forEach((value, at) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${((at / Math.max(1, trail.length - 1)) * 98 + 1).toFixed(1)} ${(19 - (value / highest) * 17).toFixed(1)}`;
    pen = "L";
  });
  return s(
    "svg",
    { class: "sparkline", viewBox: "0 0 100 20", width: 100, height: 20, "aria-hidden": "true" },
    s("path", { d: path }),
  );
}

/** @param {HTMLElement} root */
export function filesPanel(root) {
  /** @type {any[]} */
  let all = [];
  /** @type {any[]} */
  let rows = [];
  let volume = "";
  let unknown = "";
  let first = -1;
  let active = 0;
  let waited = 1;
  /** The file whose histogram was asked for. */
  let asked = { path: "", list: all };
  const search = /** @type {HTMLInputElement} */ (
    h("input", {
      type: "search",
      placeholder: "search paths and databases",
      "aria-label": "search files",
      spellcheck: "false",
      autocomplete: "off",
    })
  );
  const count = h("span", { class: "small", role: "status" });
  const head = h("tr", { "aria-rowindex": "1" });
  const body = h("tbody", {});
  const table = h("table", { class: "files", "aria-label": "files by time waited" }, h("thead", {}, head), body);
  const view = h("div", { class: "view", role: "region", tabindex: "0", "aria-label": "list of files" }, table);
  const detail = h("div", { class: "detail" });
  const message = h("div", {});
  const whole = h("div", {}, h("div", { class: "toolbar" }, search, count), view, detail);
  root.append(message, whole);

  const shown = () => COLUMNS.filter(({ wide }) => view.clientWidth >= wide);

  function select() {
    const { search: wanted, sort } = address.state();
    const key = sort.replace(/^-/, "");
    const column = COLUMNS.find((column) => column.key === key) ?? COLUMNS[1];
    const side = sort.startsWith("-") ? -1 : 1;
    const parts = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    rows = parts.length
      ? all.filter(({ path, database, object }) =>
          parts.every((part) => `${path} ${database ?? ""} ${object ?? ""}`.toLowerCase().includes(part)),
        )
      : [...all];
    rows.sort((a, b) => {
      const [x, y] = [column.value(a) ?? null, column.value(b) ?? null];
      // Unknown values come last in both directions.
      if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
      return (x < y ? -1 : x > y ? 1 : 0) * side;
    });
    waited = Math.max(1e-9, ...all.map(({ waited_share }) => waited_share ?? 0));
    setText(
      count,
      rows.length === all.length ? `${rate(all.length)} files` : `${rate(rows.length)} of ${rate(all.length)} files`,
    );
    active = Math.max(0, Math.min(active, rows.length - 1));
    drawHead();
    draw(true);
    open();
  }

  function drawHead() {
    const { sort } = address.state();
    refill(
      head,
      shown().map(({ key, words }) => {
        const isSorted = sort.replace(/^-/, "") === key;
        const order = isSorted ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
        const next = sort === `-${key}` ? key : sort === key ? `-${key}` : key === "path" ? key : `-${key}`;
        return h(
          "th",
          { scope: "col", class: key, "aria-sort": order },
          h(
            "button",
            { type: "button", "data-key": `sort-${key}`, click: () => address.set({ sort: next }, { quietly: true }) },
            words,
            h(
              "span",
              { class: "order", "aria-hidden": "true" },
              order === "none" ? "" : order === "ascending" ? " ▲" : " ▼",
            ),
          ),
        );
      }),
    );
    table.setAttribute("aria-rowcount", String(rows.length + 1));
  }

  /** @param {boolean} [again] */
  function draw(again = false) {
    const from = Math.max(0, Math.floor(view.scrollTop / ROW) - SPARE);
    if (from === first && !again) return;
    first = from;
    const to = Math.min(rows.length, from + Math.ceil((view.clientHeight || 400) / ROW) + 2 * SPARE);
    const columns = shown();
    const spacer = (/** @type {number} */ count) => {
      if (!count) return null;
      const row = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns.length }));
      /** @type {HTMLElement} */ (row.firstChild).style.height = `${count * ROW}px`;
      return row;
    };
    const empty = all.length ? "No file has this in its path." : unknown || "No file was read or written.";
    refill(
      body,
      spacer(from),
      rows.slice(from, to).map((file, at) => row(file, from + at, columns)),
      spacer(rows.length - to),
      rows.length ? null : h("tr", { class: "empty" }, h("td", { colspan: columns.length }, empty)),
    );
    view.style.height = `${Math.min(13, Math.max(1, rows.length) + 1) * ROW + 10}px`;
  }

  /** @param {any} file @param {number} at @param {Column[]} columns */
  function row(file, at, columns) {
    const isOpen = address.state().file === file.path;
    return h(
      "tr",
      {
        class: `${isOpen ? "open" : ""}${at % 2 ? " odd" : ""}`,
        "aria-rowindex": at + 2,
        click: () => toggle(file, at),
      },
      columns.map((column) => {
        if (column.key === "path") {
          const button = h(
            "button",
            {
              type: "button",
              class: "path",
              title: file.path,
              "data-key": `file-${file.path}`,
              "data-row": at,
              tabindex: at === active ? 0 : -1,
              "aria-expanded": String(isOpen),
            },
            h("bdi", {}, file.path),
          );
          return h("th", { scope: "row", class: "path" }, button);
        }
        return h(
          "td",
          { class: column.key },
          column.key === "waited_share" ? bar(file.waited_share) : column.write(file),
        );
      }),
    );
  }

  /** @param {number | null} value */
  function bar(value) {
    const fill = h("i", {});
    fill.style.width = `${Math.min(100, ((value ?? 0) / waited) * 100)}%`;
    return [h("span", { class: "number" }, rate(value)), h("span", { class: "bar" }, fill)];
  }

  /** @param {any} file @param {number} at */
  function toggle(file, at) {
    active = at;
    address.set({ file: address.state().file === file.path ? "" : file.path }, { quietly: true });
  }

  function open() {
    const wanted = address.state().file;
    const file = wanted ? all.find(({ path }) => path === wanted) : null;
    if (!wanted) detail.replaceChildren();
    else if (!file) refill(detail, h("p", {}, `${wanted} is not among the files of this volume now.`));
    else {
      refill(detail, histogram(file, close));
      // Once for each list: the search may change with every key.
      if (!file.histogram && (asked.path !== wanted || asked.list !== all)) openWhole(file);
    }
  }

  const close = () => address.set({ file: "" }, { quietly: true });

  /** The list carries the histograms of the busiest files; that of another is asked for. @param {any} file */
  async function openWhole(file) {
    asked = { path: file.path, list: all };
    try {
      const { files } = await get(`files?${byVolume(volume)}&path=${encodeURIComponent(file.path)}`);
      if (files[0]?.histogram && address.state().file === file.path) refill(detail, histogram(files[0], close));
    } catch {
      // The figures of the list stay.
    }
  }

  /** Moves the focus to a row, which may be out of view. @param {number} to */
  function focus(to) {
    active = Math.max(0, Math.min(rows.length - 1, to));
    const top = active * ROW;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + 2 * ROW > view.scrollTop + view.clientHeight) view.scrollTop = top + 2 * ROW - view.clientHeight;
    draw(true);
    /** @type {HTMLElement | null} */ (body.querySelector(`[data-row="${active}"]`))?.focus({ preventScroll: true });
  }

  view.addEventListener("scroll", () => requestAnimationFrame(() => draw()));
  view.addEventListener("keydown", (event) => {
    const page = Math.floor(view.clientHeight / ROW) - 2;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows.length - 1,
    };
    if (
      !(event.key in moves) ||
      !(/** @type {Element} */ (event.target).matches("button.path") || event.target === view)
    )
      return;
    event.preventDefault();
    focus(event.target === view && event.key === "ArrowDown" ? active : moves[event.key]);
  });
  search.addEventListener("input", () => {
    view.scrollTop = 0;
    address.set({ search: search.value }, { quietly: true });
  });
  let width = 0;
  new ResizeObserver(() => {
    if (view.clientWidth === width) return;
    width = view.clientWidth;
    drawHead();
    draw(true);
  }).observe(view);

  return {
    search,
    /** Long lists are asked for less often. */
    every_ms: () => Math.min(60_000, all.length * 70),
    /** Another volume, or its figures of now. @param {string} id @param {string | null} missing why there may be none */
    async load(id, missing) {
      if (volume !== id) view.scrollTop = 0;
      volume = id;
      unknown = missing ?? "";
      try {
        const answer = await get(`files?${byVolume(id)}`);
        if (volume !== id) return;
        all = answer.files;
        message.replaceChildren();
        whole.hidden = false;
        select();
      } catch (problem) {
        whole.hidden = true;
        refill(message, trouble(problem));
      }
    },
    /** The address was changed. */
    changed() {
      if (search.value !== address.state().search) search.value = address.state().search;
      select();
    },
  };
}
