// The databases of the host with what each lacks; what is known of each storage, with the command that measures again.
import { get } from "./api.js";
import { h, refill, s, table, trouble } from "./dom.js";
import { databaseName, day, rate, span, throughput, time } from "./units.js";

const OLD_NS = 30 * 86_400e9;

/** A shape for watched, incomplete and not watched. @param {"good" | "warning" | "neutral"} kind */
function sign(kind) {
  const paths = { good: "M3 8.5l3.4 3.4L13 4.6", warning: "M8 2.5v7M8 12v1.6", neutral: "M3.5 8h9" };
  return s(
    "svg",
    { class: `sign-only ${kind}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    s("path", { d: paths[kind] }),
  );
}

/** @param {any} database */
function databaseItem({ name, engine, pid, source, watched, lacks }) {
  const kind = !watched ? "neutral" : lacks.length ? "warning" : "good";
  const words = !watched ? "not watched" : lacks.length ? "watched, incomplete" : "watched";
  return h(
    "li",
    { class: "database" },
    h(
      "p",
      {},
      sign(kind),
      h("b", {}, databaseName(name)),
      ` ${engine ?? ""} `,
      h("span", { class: `tag ${kind}` }, words),
    ),
    h("p", { class: "small" }, [source, pid === null ? null : `process ${pid}`].filter(Boolean).join(" · ")),
    lacks.length
      ? h(
          "div",
          { class: "lacks" },
          h("span", {}, watched ? "To see all of it:" : "To watch it:"),
          lacks.map((/** @type {string} */ line) => h("code", { class: "line" }, line)),
        )
      : null,
  );
}

/** @param {any[]} capabilities @param {any[]} seen */
function capabilityTable(capabilities, seen) {
  const heads = [
    ["directory", ""],
    ["known", "n"],
    ["reads/s", "n"],
    ["writes/s", "n"],
    ["read", "n wide"],
    ["written", "n wide"],
    ["latency", "n wide"],
  ];
  const rows = capabilities.map((one) => [
    h(
      "tr",
      {},
      h("th", { scope: "row" }, one.directory),
      h("td", { class: "n" }, `${one.from} ${span(one.age_ns / 1e9)} ago`, h("small", {}, day(one.measured_unix_ns / 1e9))),
      h("td", { class: "n" }, rate(one.reads_per_second)),
      h("td", { class: "n" }, rate(one.writes_per_second)),
      h("td", { class: "n wide" }, throughput(one.read_bandwidth)),
      h("td", { class: "n wide" }, throughput(one.write_bandwidth)),
      h("td", { class: "n wide" }, time(one.latency_ns)),
    ),
    h(
      "tr",
      { class: "command" },
      h(
        "td",
        { colspan: 7 },
        one.age_ns > OLD_NS ? h("b", { class: "tag warning" }, "old: ") : null,
        "to measure again: ",
        h("code", {}, one.refresh_command),
      ),
    ),
  ]);
  return table(heads, [...rows, ...seen.map(seenRow)]);
}

/** What a storage was seen to give. @param {any} one */
function seenRow(one) {
  /** @param {string} name @param {(value: number) => string} write @param {string} kind */
  const cell = (name, write, kind) => {
    const found = one.resources.find((/** @type {any} */ resource) => resource.name === name);
    const words = found ? `${found.bound === "at-least" ? "at least " : ""}${write(found.value)}` : write(NaN);
    return h("td", { class: kind }, words);
  };
  return h(
    "tr",
    { class: "seen" },
    h("th", { scope: "row" }, one.target_path),
    h("td", { class: "n" }, `seen since ${day(one.seen.since / 1e9)}`),
    cell("read-operations", rate, "n"),
    cell("write-operations", rate, "n"),
    cell("read-bandwidth", throughput, "n wide"),
    cell("write-bandwidth", throughput, "n wide"),
    cell("read-latency", time, "n wide"),
  );
}

/** @param {{databases: HTMLElement, capabilities: HTMLElement}} roots */
export function sourcesPanel(roots) {
  let shown = "";
  return {
    /** @param {any} state */
    update(state) {
      const text = JSON.stringify(state.databases);
      if (text === shown) return;
      shown = text;
      refill(
        roots.databases,
        state.databases.length
          ? h("ul", { class: "databases" }, state.databases.map(databaseItem))
          : h(
              "p",
              {},
              "No database was found on this host. One that runs elsewhere is named at the start: ",
              h("code", {}, "headroom agent --source postgres://HOST/"),
            ),
      );
    },
    /** @param {any} state */
    async load(state) {
      try {
        const { capabilities, seen } = await get("capabilities");
        const never = state.volumes.filter((/** @type {any} */ volume) => !volume.capability && volume.measure_command);
        refill(
          roots.capabilities,
          capabilities.length || seen.length ? capabilityTable(capabilities, seen) : null,
          capabilities.length
            ? null
            : h(
                "p",
                {},
                seen.length
                  ? "No storage of this host was measured: only what was seen is known."
                  : "No storage of this host was measured. Until then no utilisation and no headroom can be given.",
              ),
          never.length
            ? h(
                "div",
                { class: "lacks" },
                h("span", {}, "Never measured. At a quiet hour:"),
                [...new Set(never.map((/** @type {any} */ volume) => volume.measure_command))].map((command) =>
                  h("code", { class: "line" }, command),
                ),
              )
            : null,
        );
      } catch (problem) {
        refill(roots.capabilities, trouble(problem));
      }
    },
  };
}
