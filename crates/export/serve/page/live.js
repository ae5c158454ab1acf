// The stream of the agent: one for the tab, closed while the tab is hidden, and noticed within three seconds when it ends.
import { saved } from "./api.js";

/** Without an event for so long, the agent is asked whether it is there. */
const SILENCE_MS = 1_300;
/** So long may it take to say so. */
const ANSWER_MS = 700;
/** How often the silence is checked. */
const WATCH_MS = 200;
const RETRY_MS = 1_000;
/** After a longer silence everything is asked for again: requests may have failed meanwhile. */
const SHORT_MS = 5_000;

export class Live {
  /**
   * @param {object} on
   * @param {(state: any) => void} on.state
   * @param {(moment: any) => void} on.moment
   * @param {(reason: string | null) => void} on.link null: connected; else why not
   * @param {() => void} on.again connected after events were missed
   */
  constructor(on) {
    this.on = on;
    this.volume = "";
    /** @type {EventSource | null} */
    this.source = null;
    this.heard = 0;
    this.down = false;
    /** Events were missed since it went down. */
    this.missed = false;
    this.lost_at = 0;
    this.asking = false;
    this.retry = 0;
    this.changes = true;
    this.begun = false;
    if (saved) return;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.resume()));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => event.persisted && this.resume());
    setInterval(() => this.watch(), WATCH_MS);
  }

  /** @param {string} volume @param {boolean} changes a stored history has no stream */
  follow(volume, changes) {
    if (saved || (this.volume === volume && (this.source || !changes))) return;
    this.volume = volume;
    this.changes = changes;
    this.open();
  }

  close() {
    if (this.down) this.missed = true;
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  open() {
    this.close();
    if (document.hidden) return;
    this.begun = true;
    this.heard = performance.now();
    if (!this.changes) return;
    const source = new EventSource(`api/v1/stream${this.volume ? `?volume=${encodeURIComponent(this.volume)}` : ""}`);
    this.source = source;
    source.onopen = () => this.hear();
    source.onerror = () => {
      this.missed = true;
      this.lose("its connection was closed");
      this.close();
      this.retry = setTimeout(() => this.open(), RETRY_MS);
    };
    source.addEventListener("state", (event) => {
      this.hear();
      this.on.state(JSON.parse(event.data));
    });
    source.addEventListener("moment", (event) => {
      this.hear();
      this.on.moment(JSON.parse(event.data));
    });
  }

  /** The tab is seen again: what was missed is asked for. */
  resume() {
    if (!this.begun) return;
    this.open();
    this.on.again();
  }

  hear() {
    this.heard = performance.now();
    if (!this.down) return;
    this.down = false;
    this.on.link(null);
    // A stream that was only late goes on: on a busy host it often is, and asking for everything again would make it busier.
    if (!this.missed && this.source && performance.now() - this.lost_at < SHORT_MS) return;
    this.missed = false;
    this.on.again();
  }

  /** @param {string} reason */
  lose(reason) {
    if (this.down) return;
    this.down = true;
    this.lost_at = performance.now();
    this.on.link(reason);
  }

  /** A connection that stays open says nothing about a process that was stopped or a network that was cut. */
  async watch() {
    if (
      !this.begun ||
      (this.changes && !this.source) ||
      document.hidden ||
      this.asking ||
      performance.now() - this.heard < SILENCE_MS
    )
      return;
    this.asking = true;
    try {
      const response = await fetch("healthz", { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" });
      if (response.ok) this.hear();
      else this.lose(`it answers with status ${response.status}`);
    } catch {
      this.lose("it does not answer");
    } finally {
      this.asking = false;
    }
  }
}
