// How figures are written: as in the terminal and on the offline pages.

/** Stands for what is not known. */
export const NONE = "-";

/**
 * @param {number | null | undefined} value
 * @param {(value: number) => string} write
 */
function known(value, write) {
  return value === null || value === undefined || !Number.isFinite(value) ? NONE : write(value);
}

/** @param {number} value */
function grouped(value) {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** @param {number} value */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return grouped(value);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return size === 0 ? "0" : size < 0.0005 ? "< 0.001" : value.toFixed(3);
}

/** A rate, a count or a ratio: "0.250", "14.2", "12,696". @param {number | null | undefined} value */
export const rate = (value) => known(value, (known) => (Number.isInteger(known) ? grouped(known) : digits(known)));

/** A time: "85.3 us". @param {number | null | undefined} ns */
export const time = (ns) =>
  known(ns, (ns) => {
    const [unit, name] =
      Math.abs(ns) >= 999.5e6
        ? [1e9, "s"]
        : Math.abs(ns) >= 999.5e3
          ? [1e6, "ms"]
          : Math.abs(ns) >= 999.5
            ? [1e3, "us"]
            : [1, "ns"];
    return `${digits(ns / unit)} ${name}`;
  });

/** A share as percent: "0.4 %", "97 %". @param {number | null | undefined} value */
export const share = (value) =>
  known(value, (value) => {
    const percent = value * 100;
    if (percent > 0 && percent < 0.05) return "< 0.1 %";
    return `${percent > 0 && percent < 9.95 ? percent.toFixed(1) : grouped(percent)} %`;
  });

/** How many times: "1.03 x". @param {number | null | undefined} value */
export const times = (value) => known(value, (value) => `${rate(value)} x`);

/** Bytes a second: "142 MiB/s". @param {number | null | undefined} value */
export const throughput = (value) =>
  known(value, (value) => {
    const steps = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"];
    let at = 0;
    while (value >= 1000 && at + 1 < steps.length) {
      value /= 1024;
      at += 1;
    }
    return `${at === 0 ? rate(Math.round(value)) : digits(value)} ${steps[at]}`;
  });

/** A number of the evidence with its unit, as `--json` names units. @param {number} value @param {string} unit */
export function withUnit(value, unit) {
  /** @type {Record<string, (value: number) => string>} */
  const writers = { ns: time, share, times, "1/s": (value) => `${rate(value)}/s`, "B/s": throughput };
  return (writers[unit] ?? ((value) => `${rate(value)} ${unit}`))(value);
}

/** A span: "45 s", "12 min", "3 h 5 min", "6 days". @param {number | null | undefined} seconds */
export const span = (seconds) =>
  known(seconds, (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 90) return `${whole} s`;
    const minutes = Math.round(whole / 60);
    if (minutes < 90) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 36) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
    return `${Math.round(hours / 24)} days`;
  });

/**
 * What a database is called on the page, where a source is named by its connection: "shop, port 5433", "shop at db1".
 * @param {string | null | undefined} source
 */
export function databaseName(source) {
  const [, engine, rest] = /^(postgres|mysql|sqlserver):(.*)$/s.exec(source ?? "") ?? [];
  if (!engine) return source ?? "";
  const url = /^\/\/(?:[^@/]*@)?([^/:?]*)(?::(\d+))?(?:\/([^?]*))?/.exec(rest);
  const facts = Object.fromEntries(
    [...rest.matchAll(/(\w+)=('[^']*'|[^\s&]+)/g)].map(([, key, value]) => [key, value.replace(/^'|'$/g, "")]),
  );
  // A directory of sockets is written with escapes in a URL.
  const host = url ? url[1].replace(/%2f/gi, "/") : (facts.host ?? "");
  const port = url?.[2] ?? facts.port;
  const where = host && host !== "localhost" && !host.startsWith("/") ? ` at ${host}` : "";
  return `${facts.dbname || url?.[3] || engine}${where}${port && !["5432", "3306", "1433"].includes(port) ? `, port ${port}` : ""}`;
}

/** @param {number} value */
const two = (value) => String(value).padStart(2, "0");

/** The time of day in UTC: "17:23:50". @param {number} unix_s @param {boolean} [seconds] */
export function clock(unix_s, seconds = true) {
  const date = new Date(unix_s * 1000);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${seconds ? `:${two(date.getUTCSeconds())}` : ""}`;
}

/** The day in UTC: "2026-11-21". @param {number} unix_s */
export const day = (unix_s) => new Date(unix_s * 1000).toISOString().slice(0, 10);

/** A day and a time in UTC, without the day where it is today. @param {number} unix_s @param {boolean} [seconds] */
export function moment(unix_s, seconds = false) {
  const isToday = day(unix_s) === day(Date.now() / 1000);
  return `${isToday ? "" : `${day(unix_s)} `}${clock(unix_s, seconds)}`;
}

/** A number at an axis: "2.5k", "10k", "2M". @param {number} value */
export function tick(value) {
  const [unit, name] = value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${Number((value / unit).toPrecision(4))}${name}`;
}

/** A time at an axis: "50 us". @param {number} ns */
export function tickTime(ns) {
  const [unit, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${Number((ns / unit).toPrecision(4))} ${name}`;
}

/** Bytes a second at an axis: "64M". @param {number} value */
export function tickBytes(value) {
  const [unit, name] =
    value >= 2 ** 30
      ? [2 ** 30, " GiB/s"]
      : value >= 2 ** 20
        ? [2 ** 20, " MiB/s"]
        : value >= 1024
          ? [1024, " KiB/s"]
          : [1, " B/s"];
  return `${Number((value / unit).toPrecision(3))}${name}`;
}
