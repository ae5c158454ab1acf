// The live page: joins the stream of the agent, the address and the parts of the page.
//
//   live.js     state and moments as the agent sends them    api.js    everything else, by request
//   address.js  what is chosen                               overview, curve, overtime, files, below, incidents, sources: the parts
import * as address from "./address.js";
import { byVolume, get, saved } from "./api.js";
import { belowPanel } from "./below.js";
import { curvePanel } from "./curve.js";
import { byId, h, refill, setText, trouble } from "./dom.js";
import { filesPanel } from "./files.js";
import { incidentsPanel } from "./incidents.js";
import { jump, listen, showTheme } from "./keys.js";
import { Live } from "./live.js";
import { overview } from "./overview.js";
import { timePanel } from "./overtime.js";
import { savePage, savePicture } from "./save.js";
import { sourcesPanel } from "./sources.js";
import { clock, databaseName, moment as instant, span } from "./units.js";
import { words } from "./verdicts.js";

/** Lists are asked for again after so long at the earliest, and only while they are in view. */
const LISTS_MS = 10_000;
const STRIPS_MS = 60_000;

const answer = overview(byId("volumes"), byId("answer-title"));
const curve = curvePanel(byId("curve-body"), (at) => address.set({ curve: at }));
const time = timePanel(byId("time-body"));
const files = filesPanel(byId("files-body"));
const below = belowPanel({ waits: byId("waits-body"), devices: byId("devices-body"), users: byId("users-body") });
const incidents = incidentsPanel(byId("incidents-body"));
const sources = sourcesPanel({ databases: byId("databases-body"), capabilities: byId("capability-body") });

/** The newest state. @type {any} */
let latest = null;
/** The volume that is shown. @type {any} */
let volume = null;
let loaded_at = 0;
let strips_at = 0;
let heard_s = 0;

const live = new Live({ state: become, moment, link, again: () => reload() });

/** @param {any} state */
function become(state) {
  const isFirst = latest === null;
  const before = latest;
  latest = state;
  heard_s = state.now_unix_ns / 1e9;
  answer.update(state);
  sources.update(state);
  header();
  const chosen = answer.chosen(state);
  byId("about").hidden = !chosen;
  if (chosen?.id !== volume?.id) choose(chosen);
  const isMeasured = chosen?.capability?.measured_unix_ns !== volume?.capability?.measured_unix_ns;
  volume = chosen;
  if (chosen && isMeasured) loadCurve(chosen.id);
  if (isFirst || before.incidents_open !== state.incidents_open) incidents.load();
  if (isFirst || JSON.stringify(before.volumes.map(measured)) !== JSON.stringify(state.volumes.map(measured)))
    sources.load(state);
  lists(false);
  if (performance.now() - strips_at > STRIPS_MS || before?.incidents_open !== state.incidents_open) {
    if (strips_at) answer.refresh();
    strips_at = performance.now();
  }
}

/** @param {any} volume */
const measured = (volume) => [volume.id, volume.capability?.measured_unix_ns ?? null];

/** @param {any} chosen */
function choose(chosen) {
  volume = chosen;
  live.follow(chosen?.id ?? "", latest.live);
  if (!chosen) return;
  curve.leave();
  loadCurve(chosen.id);
  time.follow(chosen.id);
  lists(true);
}

/** @param {string} id */
async function loadCurve(id) {
  if (!volume.capability) {
    curve.fail(
      trouble({
        message: `${volume.mount} was never measured, so that there is no curve to place the demand on. At a quiet hour:`,
        remedy: volume.measure_command,
      }),
    );
    return;
  }
  try {
    const next = await get(`curve?${byVolume(id)}`);
    if (volume?.id === id) curve.show(next, address.state().curve, latest.live);
  } catch (problem) {
    if (volume?.id === id) curve.fail(trouble(problem));
  }
}

/** The lists of the volume, where they are in view or were never filled. @param {boolean} anyhow */
function lists(anyhow) {
  const age_ms = performance.now() - loaded_at;
  if (!volume || (!anyhow && age_ms < Math.max(LISTS_MS, files.every_ms()))) return;
  loaded_at = performance.now();
  if (anyhow || inView("files")) files.load(volume.id, missing());
  if (anyhow || inView("waits") || inView("devices")) below.load(volume.id, missing());
}

/** Why a list may be empty that is not: null where it is all that there is. */
function missing() {
  if (!latest.live) return "A stored history does not keep this; a live agent shows it.";
  return volume.gap ? `Not known now: ${volume.gap}.` : null;
}

/** @param {string} id */
function inView(id) {
  const box = byId(id).getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

/** Asks for everything again: the agent was away. */
function reload() {
  if (!volume) return;
  loadCurve(volume.id);
  time.load();
  lists(true);
  incidents.load();
  answer.refresh();
}

/** @param {any} moment */
function moment(moment) {
  heard_s = moment.unix_ns / 1e9;
  curve.moment(moment);
  time.moment(moment);
  setText(byId("link"), `live, ${clock(heard_s)} UTC`);
}

function header() {
  const { host, version, live: isLive, started_unix_ns } = latest;
  setText(byId("host"), host);
  const bad = answer.chosen(latest);
  document.title = bad
    ? `${words(bad.gap ? "cannot-say" : bad.verdict)}: ${databaseName(bad.database)} on ${host}`
    : `Headroom on ${host}`;
  if (saved) setText(byId("link"), `saved ${instant(saved.saved_unix_s)} UTC`);
  else if (!isLive) setText(byId("link"), "a stored history");
  else if (!volume) setText(byId("link"), `live, ${clock(heard_s)} UTC`);
  setText(
    byId("footer"),
    `Headroom ${version}, ${isLive ? `watching ${host} since` : `a history of ${host} from`} ${instant(started_unix_ns / 1e9)} UTC. ${isLive ? `A verdict is judged every ${span(latest.every_ns / 1e9)}, of the last ${span(latest.window_ns / 1e9)}.` : ""}`,
  );
}

/** The agent is away, or back. @param {string | null} reason */
function link(reason) {
  const gone = byId("gone");
  document.body.classList.toggle("is-gone", reason !== null);
  gone.hidden = reason === null;
  if (reason === null) return;
  setText(byId("link"), "not connected");
  const since = heard_s ? `What is shown is of ${clock(heard_s)} UTC. ` : "";
  refill(
    gone,
    h("b", {}, `The agent is away: ${reason}. `),
    since,
    "The page asks again each second and goes on by itself. On the host: ",
    h("code", {}, "systemctl status headroom-agent"),
  );
  if (!latest) setText(byId("answer-title"), "The agent does not answer");
}

address.onChange((_, changed) => {
  if (latest) {
    answer.update(latest);
    const chosen = answer.chosen(latest);
    if (chosen?.id !== volume?.id) choose(chosen);
  }
  if (changed.has("curve") && volume) loadCurve(volume.id);
  if (changed.has("span") || changed.has("from") || changed.has("to")) time.ranged();
  if (changed.has("search") || changed.has("sort") || changed.has("file")) files.changed();
  if (changed.has("incident")) incidents.changed(true);
  if (changed.has("theme")) {
    showTheme();
    time.build();
  }
});

/** @param {number} step */
function step(step) {
  if (!latest) return;
  const ids = answer.ids(latest);
  if (ids.length)
    address.set({ volume: ids[(ids.indexOf(volume?.id) + step + ids.length) % ids.length], curve: -1, file: "" });
}

async function start() {
  showTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => time.build());
  listen({ volume: step, search: files.search });
  byId("picture").addEventListener("click", () => savePicture(byId("curve-body"), volume));
  byId("save").addEventListener("click", () => savePage(latest, volume));
  byId("save").hidden = Boolean(saved);
  files.changed();
  try {
    become(await get("state"));
    if (!volume) live.follow("", latest.live);
  } catch (problem) {
    link(/** @type {any} */ (problem).status ? /** @type {Error} */ (problem).message : "it does not answer");
    live.down = true;
    live.follow("", true);
  }
  if (address.state().incident) setTimeout(() => incidents.changed(true), 300);
}

// A place of the page in the address of a link from outside: /#files.
if (/^#[a-z]+$/.test(location.hash) && document.getElementById(location.hash.slice(1))) jump(location.hash.slice(1));
start();
