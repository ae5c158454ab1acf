// Incidents, the newest first; the opened one with its worst moment.
import * as address from "./address.js";
import { get } from "./api.js";
import { h, refill, table, trouble } from "./dom.js";
import { databaseName, moment, rate, share, span, time, times, withUnit } from "./units.js";
import { shape, words } from "./verdicts.js";

/** @param {any} incident */
function range(incident) {
  const begin = moment(incident.started_unix_ns / 1e9);
  return incident.ended_unix_ns === null
    ? `since ${begin} UTC, still open`
    : `${begin} to ${moment(incident.ended_unix_ns / 1e9)} UTC`;
}

/** What was observed beside what was expected. @param {any[]} facts */
function evidenceTable(facts) {
  const figure = (/** @type {any} */ value, /** @type {string} */ unit) => (value === null ? "" : withUnit(value, unit));
  const heads = [
    ["what", ""],
    ["observed", "n"],
    ["expected", "n"],
    ["ratio", "n"],
  ];
  const rows = facts.map((fact) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", title: fact.expected_source ?? fact.source }, fact.what),
      h("td", { class: "n" }, figure(fact.value, fact.unit)),
      h("td", { class: "n" }, figure(fact.expected, fact.unit)),
      h("td", { class: "n" }, fact.ratio === null ? "" : times(fact.ratio)),
    ),
  );
  return table(heads, rows);
}

/** @param {any} incident */
function opened(incident) {
  const worst = incident.worst;
  const mounts = (incident.also_mounts ?? []).map((/** @type {string} */ mount) => `${mount} (the same device)`);
  const also = [...(incident.also ?? []).map(databaseName), ...mounts];
  const list = (/** @type {string} */ name, /** @type {any[]} */ items) =>
    items?.length
      ? [
          h("dt", {}, name),
          h(
            "dd",
            {},
            h(
              "ul",
              {},
              items.map((item) => h("li", {}, item)),
            ),
          ),
        ]
      : null;
  return h(
    "div",
    { class: "opened" },
    incident.next_step ? h("p", {}, h("b", {}, "Next: "), incident.next_step) : null,
    h(
      "dl",
      { class: "facts" },
      h("dt", {}, "held"),
      h(
        "dd",
        {},
        `${span(incident.held_ns / 1e9)}${incident.occurrences > 1 ? `, ${incident.occurrences} times` : ""}${incident.period_ns ? `, every ${span(incident.period_ns / 1e9)}` : ""}`,
      ),
      h("dt", {}, "utilisation"),
      h("dd", {}, `${share(incident.utilisation_mean)} on average, ${share(incident.utilisation_max)} at most`),
      also.length ? [h("dt", {}, "also affected"), h("dd", {}, also.join(", "))] : null,
      worst
        ? [
            h("dt", {}, "worst moment"),
            h(
              "dd",
              {},
              `${moment(worst.at_unix_ns / 1e9, true)} UTC: latency ${time(worst.latency_ns)}, expected ${time(worst.expected_ns)}, ${rate(worst.outstanding)} outstanding`,
            ),
            worst.evidence?.length ? [h("dt", {}, "evidence"), h("dd", {}, evidenceTable(worst.evidence))] : null,
            list(
              "files",
              (worst.files ?? []).map(
                (/** @type {any} */ file) =>
                  `${file.path}: ${rate(file.operations_per_s)} I/Os a second, ${rate(file.outstanding)} outstanding`,
              ),
            ),
            list(
              "programs",
              (worst.processes ?? []).map(
                (/** @type {any} */ process) =>
                  `${process.command} (${process.pid}): ${share(process.share)} of the I/Os${process.device ? ` of ${process.device}` : ""}`,
              ),
            ),
            list(
              "waits",
              (worst.waits ?? []).map((/** @type {any} */ wait) => `${wait.event}: ${rate(wait.sessions)} sessions`),
            ),
          ]
        : null,
    ),
    h(
      "p",
      {},
      h(
        "button",
        { type: "button", "data-key": `show-${incident.id}`, click: () => showTime(incident) },
        "show this stretch in the charts",
      ),
    ),
  );
}

/** @param {any} incident */
function showTime(incident) {
  const [from, to] = [incident.started_unix_ns / 1e9, (incident.ended_unix_ns ?? Date.now() * 1e6) / 1e9];
  const around = Math.max(60, (to - from) * 0.25);
  address.set({ from: Math.round(from - around), to: Math.round(Math.min(Date.now() / 1000, to + around)) });
  document.getElementById("time")?.scrollIntoView();
}

/** @param {any} incident @param {boolean} isOpen */
function item(incident, isOpen) {
  const title = h(
    "button",
    {
      type: "button",
      class: "incident-title",
      "data-key": `incident-${incident.id}`,
      "aria-expanded": String(isOpen),
      click: () => address.set({ incident: isOpen ? 0 : incident.id }),
    },
    shape(incident.verdict, 18),
    h("b", {}, words(incident.verdict)),
    h("span", { class: "what" }, `${databaseName(incident.database)} on ${incident.mount}`),
    h("span", { class: "when" }, range(incident)),
  );
  return h(
    "li",
    { class: `incident${incident.ended_unix_ns === null ? " ongoing" : ""}`, "data-incident": incident.id },
    h("h3", {}, title),
    h("p", { class: "summary" }, incident.summary),
    isOpen ? opened(incident) : null,
  );
}

/** More than these are behind a button. */
const FIRST = 20;

/** @param {HTMLElement} root */
export function incidentsPanel(root) {
  /** @type {any[]} */
  let incidents = [];
  let whole = false;

  function draw() {
    const wanted = address.state().incident;
    const at = incidents.findIndex(({ id }) => id === wanted);
    const seen = whole || at >= FIRST ? incidents : incidents.slice(0, FIRST);
    const missing = wanted && at < 0 ? h("p", {}, `Incident ${wanted} is not in the history.`) : null;
    refill(
      root,
      missing,
      incidents.length
        ? h(
            "ol",
            { class: "incidents" },
            seen.map((incident) => item(incident, incident.id === wanted)),
          )
        : h("p", {}, "None is recorded."),
      seen.length < incidents.length
        ? h(
            "button",
            {
              type: "button",
              "data-key": "all-incidents",
              click: () => {
                whole = true;
                draw();
              },
            },
            `all ${incidents.length} incidents`,
          )
        : null,
    );
  }

  return {
    async load() {
      try {
        incidents = (await get("incidents")).incidents;
        draw();
      } catch (problem) {
        refill(root, trouble(problem));
      }
    },
    /** The address names another incident. @param {boolean} seek */
    changed(seek) {
      draw();
      const wanted = address.state().incident;
      if (wanted && seek) root.querySelector(`[data-incident="${wanted}"]`)?.scrollIntoView({ block: "center" });
    },
  };
}
