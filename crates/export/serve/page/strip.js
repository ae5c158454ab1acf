// The verdicts of the last day as a strip: the worse, the higher. A bad stretch leads to its incident.
import * as address from "./address.js";
import { byVolume, get } from "./api.js";
import { h, refill } from "./dom.js";
import { clock, moment, span } from "./units.js";
import { isBad, tone, words } from "./verdicts.js";

const DAY_S = 86_400;

/** @param {number} from @param {number} to */
function hours(from, to) {
  const marks = [];
  for (let hour = Math.ceil(from / 3600) * 3600; hour < to; hour += 3600) {
    if ((hour / 3600) % 6 !== 0) continue;
    const mark = h("span", {}, clock(hour, false));
    mark.style.left = `${((hour - from) / (to - from)) * 100}%`;
    const edge = (hour - from) / (to - from);
    if (edge > 0.1 && edge < 0.92) marks.push(mark);
  }
  return marks;
}

/** @param {any} stretch @param {number} from @param {number} to */
function piece(stretch, from, to) {
  const [begin, end] = [Math.max(from, stretch.from_unix_ns / 1e9), Math.min(to, stretch.to_unix_ns / 1e9)];
  const isGap = Boolean(stretch.reason);
  const what = isGap ? `unknown: ${stretch.reason}` : words(stretch.verdict);
  const title = `${what}, ${moment(begin)} to ${clock(end, false)} UTC (${span(end - begin)})${stretch.incident ? `, incident ${stretch.incident}` : ""}`;
  const look = isGap ? "gap" : tone(stretch.verdict);
  const element = stretch.incident
    ? h("button", {
        type: "button",
        class: `piece ${look}`,
        title,
        "aria-label": title,
        "data-key": `strip-${stretch.incident}-${begin}`,
        click: () => address.set({ incident: stretch.incident }),
      })
    : h("span", { class: `piece ${look}`, title });
  element.style.left = `${((begin - from) / (to - from)) * 100}%`;
  element.style.width = `${((end - begin) / (to - from)) * 100}%`;
  return element;
}

/** What a reader who does not see the strip gets. @param {any[]} stretches */
function spoken(stretches) {
  const bad = stretches.filter(({ verdict, reason }) => !reason && isBad(verdict));
  return bad.length
    ? `Last day: ${bad.map(({ verdict, from_unix_ns }) => `${words(verdict)} at ${clock(from_unix_ns / 1e9, false)}`).join(", ")}.`
    : "Last day: no bad verdict.";
}

/** @param {string} id of a volume */
export function strip(id) {
  const root = h("div", { class: "strip" });
  async function refresh() {
    try {
      const { stretches } = await get(`verdicts?${byVolume(id)}`);
      const to = Math.max(...stretches.map((/** @type {any} */ stretch) => stretch.to_unix_ns / 1e9));
      const from = to - DAY_S;
      const seen = stretches.filter((/** @type {any} */ stretch) => stretch.to_unix_ns / 1e9 > from);
      refill(
        root,
        h("span", { class: "unseen" }, stretches.length ? spoken(seen) : "Nothing is recorded of the last day."),
        h(
          "div",
          { class: "pieces" },
          stretches.length ? seen.map((/** @type {any} */ stretch) => piece(stretch, from, to)) : null,
        ),
        h(
          "div",
          { class: "hours", "aria-hidden": "true" },
          h("span", { class: "first" }, "24 h ago"),
          stretches.length ? hours(from, to) : null,
          h("span", { class: "last" }, "now"),
        ),
      );
    } catch (problem) {
      refill(
        root,
        h("p", { class: "small" }, `The verdicts of the last day: ${/** @type {Error} */ (problem).message}.`),
      );
    }
  }
  refresh();
  return { root, refresh };
}
