// The databases of the host with what each lacks, and the measured capabilities with the command that measures again.
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

/** @param {any[]} capabilities */
function capabilityTable(capabilities) {
  const heads = [
    ["directory", ""],
    ["measured", "n"],
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
      h("td", { class: "n" }, `${span(one.age_ns / 1e9)} ago`, h("small", {}, day(one.measured_unix_ns / 1e9))),
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
  return table(heads, rows);
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
        const { capabilities } = await get("capabilities");
        const never = state.volumes.filter((/** @type {any} */ volume) => !volume.capability && volume.measure_command);
        refill(
          roots.capabilities,
          capabilities.length
            ? capabilityTable(capabilities)
            : h(
                "p",
                {},
                "No storage of this host was measured. Until then no utilisation and no headroom can be given.",
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
