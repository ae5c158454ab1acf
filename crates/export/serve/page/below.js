// Tables beside and below the files: the waits of sessions, the devices as a tree, and their other users.
import { byVolume, get } from "./api.js";
import { h, refill, table, trouble } from "./dom.js";
import { rate, share, throughput, time } from "./units.js";

/**
 * A value with a bar of its share of the largest.
 * @param {string} text
 * @param {number | null} part
 */
function bar(text, part) {
  const fill = h("i", {});
  fill.style.width = `${Math.min(100, Math.max(0, (part ?? 0) * 100))}%`;
  return [h("span", { class: "number" }, text), h("span", { class: "bar" }, fill)];
}

/** @param {any[]} waits @param {string | null} missing */
function waitsTable(waits, missing) {
  if (!waits.length) return h("p", { class: "small" }, missing ?? "No session waits for I/O, a log or a lock.");
  const highest = Math.max(1e-9, ...waits.map(({ sessions }) => sessions ?? 0));
  const heads = [
    ["wait", ""],
    ["sessions", "n"],
  ];
  const rows = waits.map(({ name, class: kind, sessions, what }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name, h("small", {}, [kind, what].filter(Boolean).join(": "))),
      h("td", { class: "n" }, bar(rate(sessions), sessions / highest)),
    ),
  );
  return table(heads, rows);
}

/** The devices with those that each consists of under it. @param {any[]} devices */
function tree(devices) {
  const byName = new Map(devices.map((device) => [device.name, device]));
  const below = new Set(devices.flatMap(({ parents }) => parents));
  /** @type {{device: any, depth: number, isLast: boolean}[]} */
  const rows = [];
  /** @param {any} device @param {number} depth @param {boolean} isLast @param {Set<string>} above */
  const walk = (device, depth, isLast, above) => {
    rows.push({ device, depth, isLast });
    const parts = device.parents.filter((/** @type {string} */ name) => byName.has(name) && !above.has(name));
    parts.forEach((/** @type {string} */ name, /** @type {number} */ at) =>
      walk(byName.get(name), depth + 1, at === parts.length - 1, new Set([...above, name])),
    );
  };
  const tops = devices.filter(({ name }) => !below.has(name));
  (tops.length ? tops : devices).forEach((device) => walk(device, 0, true, new Set([device.name])));
  return rows;
}

/** @param {any[]} devices @param {string | null} missing */
function devicesTable(devices, missing) {
  if (!devices.length) return h("p", { class: "small" }, missing ?? "No device is known below this volume.");
  const sum = (/** @type {number | null} */ a, /** @type {number | null} */ b) =>
    a === null || b === null ? null : a + b;
  const heads = [
    ["device", ""],
    ["busy", "n"],
    ["outstanding", "n"],
    ["latency", "n"],
    ["I/Os a second", "n wide"],
    ["throughput", "n wide"],
  ];
  const rows = tree(devices).map(({ device, depth, isLast }) => {
    const name = h(
      "th",
      { scope: "row", class: "device" },
      depth ? h("span", { class: "branch", "aria-hidden": "true" }, isLast ? "└ " : "├ ") : null,
      device.name,
      device.mount ? h("small", {}, device.mount) : null,
    );
    name.style.setProperty("--depth", String(depth));
    return h(
      "tr",
      {},
      name,
      h("td", { class: "n" }, bar(share(device.busy), device.busy)),
      h("td", { class: "n" }, rate(device.outstanding)),
      h("td", { class: "n" }, time(device.latency_ns)),
      h("td", { class: "n wide" }, rate(sum(device.reads_per_second, device.writes_per_second))),
      h("td", { class: "n wide" }, throughput(sum(device.read_bytes_per_second, device.written_bytes_per_second))),
    );
  });
  return table(heads, rows, "devices, those below indented");
}

/** @param {any[]} users @param {string | null} missing */
function usersTable(users, missing) {
  if (!users.length) return h("p", { class: "small" }, missing ?? "No other program uses this device.");
  const heads = [
    ["program", ""],
    ["share of the I/Os", "n"],
    ["I/Os a second", "n"],
  ];
  const rows = users.map(({ program, pid, ios_per_second, share: part }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, program, pid === null ? null : h("small", {}, `process ${pid}`)),
      h("td", { class: "n" }, bar(share(part), part)),
      h("td", { class: "n" }, rate(ios_per_second)),
    ),
  );
  return table(heads, rows);
}

/** @param {{waits: HTMLElement, devices: HTMLElement, users: HTMLElement}} roots */
export function belowPanel(roots) {
  let volume = "";
  return {
    /** @param {string} id @param {string | null} missing why there may be nothing */
    async load(id, missing) {
      volume = id;
      const [waits, devices] = await Promise.allSettled([get(`waits?${byVolume(id)}`), get(`devices?${byVolume(id)}`)]);
      if (volume !== id) return;
      refill(
        roots.waits,
        waits.status === "fulfilled" ? waitsTable(waits.value.waits, missing) : trouble(waits.reason),
      );
      refill(
        roots.devices,
        devices.status === "fulfilled" ? devicesTable(devices.value.devices, missing) : trouble(devices.reason),
      );
      refill(
        roots.users,
        devices.status === "fulfilled" ? usersTable(devices.value.users, missing) : trouble(devices.reason),
      );
    },
  };
}
