// The answer: a card for each volume of a database, the worst first. The chosen one is open.
import * as address from "./address.js";
import { h, refill, setText } from "./dom.js";
import { strip } from "./strip.js";
import { databaseName, moment, rate, share, span, time, times } from "./units.js";
import { isBad, rank, shape, tone, words } from "./verdicts.js";

/** A capability older than this is shown with the command that measures again. */
const OLD_S = 30 * 86_400;

/** A figure under its name. @param {string} name */
function figure(name) {
  const value = h("span", { class: "value" });
  const note = h("span", { class: "note" });
  return { root: h("div", { class: "figure" }, h("span", { class: "name" }, name), value, note), value, note };
}

class Card {
  /** @param {any} volume */
  constructor(volume) {
    this.kind = "";
    this.icon = h("span", { class: "icon" });
    this.verdict = h("span", { class: "verdict" });
    this.name = h("button", {
      class: "choose",
      type: "button",
      "data-key": `volume-${volume.id}`,
      click: () => address.set({ volume: volume.id, curve: -1, file: "" }),
    });
    this.where = h("p", { class: "small where" });
    this.confidence = h("span", { class: "confidence" });
    this.sentence = h("p", { class: "sentence" });
    this.utilisation = figure("utilisation");
    this.meter = h("i");
    this.utilisation.root.append(h("span", { class: "meter" }, this.meter));
    this.headroom = figure("headroom");
    this.outstanding = figure("outstanding I/Os");
    this.latency = figure("latency");
    this.step = h("span");
    this.next = h("p", { class: "next" }, h("small", {}, "Next step"), this.step);
    this.doubts = h("ul", { class: "doubts" });
    this.hint = h("p", { class: "small hint" });
    this.strip = strip(volume.id);
    const head = h(
      "div",
      { class: "head" },
      this.icon,
      h("div", { class: "title" }, h("h2", {}, this.verdict, this.name), this.where),
      this.confidence,
    );
    const figures = h(
      "div",
      { class: "figures" },
      this.utilisation.root,
      this.headroom.root,
      this.outstanding.root,
      this.latency.root,
    );
    this.root = h(
      "li",
      { class: "volume card" },
      head,
      this.sentence,
      figures,
      h("div", { class: "advice" }, this.next, this.doubts, this.hint),
      this.strip.root,
    );
  }

  /** @param {any} volume @param {boolean} chosen @param {number} now_s */
  update(volume, chosen, now_s) {
    const kind = volume.gap ? "cannot-say" : volume.verdict;
    if (kind !== this.kind) {
      this.kind = kind;
      this.icon.replaceChildren(shape(kind, 26));
    }
    this.root.className = `volume card ${tone(kind)}${chosen ? " chosen" : ""}`;
    setText(this.verdict, words(kind));
    setText(this.name, `${databaseName(volume.database)} on ${volume.mount}`);
    this.name.title = volume.source ?? "";
    this.name.setAttribute("aria-pressed", String(chosen));
    const since = volume.since_unix_ns
      ? `since ${moment(volume.since_unix_ns / 1e9)} UTC (${span(now_s - volume.since_unix_ns / 1e9)})`
      : null;
    setText(this.where, [volume.engine, volume.device, since].filter(Boolean).join(" · "));
    setText(this.confidence, volume.confidence ? `confidence: ${volume.confidence}` : "");
    const isSaid = !volume.gap || volume.sentence?.includes(volume.gap);
    setText(this.sentence, isSaid ? volume.sentence : `Nothing is known now: ${volume.gap}. ${volume.sentence ?? ""}`);
    this.figures(volume);
    setText(this.step, volume.next_step);
    this.next.hidden = !volume.next_step;
    refill(
      this.doubts,
      (volume.doubts ?? []).map((/** @type {string} */ doubt) => h("li", {}, doubt)),
    );
    this.measure(volume, now_s);
  }

  /** @param {any} volume */
  figures(volume) {
    const { utilisation, headroom } = volume;
    setText(this.utilisation.value, share(utilisation));
    setText(
      this.utilisation.note,
      utilisation === null ? (volume.headroom_reason ?? "not known") : (volume.binding ?? "of what the storage gives"),
    );
    this.meter.style.width = `${Math.min(100, Math.max(0, (utilisation ?? 0) * 100))}%`;
    setText(this.headroom.value, times(headroom));
    const between =
      volume.headroom_low === null || volume.headroom_high === null
        ? null
        : `between ${times(volume.headroom_low)} and ${times(volume.headroom_high)}`;
    setText(
      this.headroom.note,
      headroom === null
        ? (volume.headroom_reason ?? "not known")
        : (volume.headroom_reason ?? between ?? "this demand could grow to"),
    );
    setText(this.outstanding.value, rate(volume.outstanding));
    const iops =
      volume.reads_per_second === null || volume.writes_per_second === null
        ? null
        : volume.reads_per_second + volume.writes_per_second;
    setText(this.outstanding.note, iops === null ? "" : `${rate(iops)} I/Os a second`);
    setText(this.latency.value, time(volume.latency_ns));
    setText(
      this.latency.note,
      volume.expected_latency_ns === null
        ? "no curve to compare with"
        : `expected here: ${time(volume.expected_latency_ns)}`,
    );
  }

  /** @param {any} volume @param {number} now_s */
  measure(volume, now_s) {
    const age_s = volume.capability ? now_s - volume.capability.measured_unix_ns / 1e9 : null;
    const why =
      age_s === null
        ? "Never measured. At a quiet hour: "
        : age_s > OLD_S
          ? `Measured ${span(age_s)} ago. To measure again: `
          : null;
    if (this.hinted === `${why}${volume.measure_command}`) return;
    this.hinted = `${why}${volume.measure_command}`;
    this.hint.replaceChildren();
    if (why && volume.measure_command) this.hint.append(why, h("code", {}, volume.measure_command));
  }
}

/** @param {any[]} volumes */
function summary(volumes) {
  if (!volumes.length) return "No database is watched yet";
  const bad = volumes.filter(({ verdict, gap }) => !gap && isBad(verdict)).length;
  const unknown = volumes.filter(({ verdict, gap }) => gap || verdict === "cannot-say").length;
  const isOne = volumes.length === 1;
  if (bad)
    return isOne
      ? "The volume needs attention"
      : `${bad} of ${volumes.length} volumes need${bad === 1 ? "s" : ""} attention`;
  if (unknown === volumes.length) return "Nothing can be said yet";
  if (unknown) return `No volume needs attention; nothing is known of ${unknown}`;
  return isOne
    ? "The volume has headroom"
    : `${volumes.length === 2 ? "Both" : `All ${volumes.length}`} volumes have headroom`;
}

/** The list of cards. @param {HTMLElement} list @param {HTMLElement} title */
export function overview(list, title) {
  /** @type {Map<string, Card>} */
  const cards = new Map();
  let order = "";
  return {
    /** The volume that the rest of the page is about. @param {any} state */
    chosen(state) {
      const sorted = sort(state.volumes);
      return sorted.find(({ id }) => id === address.state().volume) ?? sorted[0] ?? null;
    },
    /** The ids in the order of the list. @param {any} state */
    ids: (state) => sort(state.volumes).map(({ id }) => id),
    /** @param {any} state */
    update(state) {
      setText(title, summary(state.volumes));
      const chosen = this.chosen(state)?.id;
      const sorted = sort(state.volumes);
      for (const volume of sorted) {
        const card = cards.get(volume.id) ?? new Card(volume);
        cards.set(volume.id, card);
        card.update(volume, volume.id === chosen, state.now_unix_ns / 1e9);
      }
      const next = sorted.map(({ id }) => id).join(" ");
      if (next !== order || !list.childElementCount) {
        order = next;
        refill(
          list,
          sorted.length
            ? sorted.map(({ id }) => cards.get(id)?.root)
            : h(
                "li",
                { class: "card" },
                h(
                  "p",
                  {},
                  "The agent found no database that it can watch. What it found, and what each lacks, is listed below under “Databases”.",
                ),
              ),
        );
      }
    },
    /** Asks for the strips again. */
    refresh() {
      for (const card of cards.values()) if (card.root.isConnected) card.strip.refresh();
    },
  };
}

/** @param {any[]} volumes */
function sort(volumes) {
  const weight = (/** @type {any} */ volume) => (volume.gap ? rank("cannot-say") : rank(volume.verdict));
  return [...volumes].sort((a, b) => weight(a) - weight(b));
}
