// Looks at the live page in a browser, served by simulated hosts and by an agent: `HEADROOM=PROGRAM node live.mjs`.
// Structure is compared, not pixels.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { axe } from "./axe.mjs";
import { open } from "./browser.mjs";
import { darkGrounds, look } from "./look.mjs";
import { startHost } from "./simulated-host.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");
/// The agent that is away must be seen within three seconds. A loaded machine gets a second try.
const GONE_MS = 3_000;
const TRIES = 2;

let [passed, failed] = [0, 0];
function check(name, wrong) {
  const lines = wrong === true ? [] : wrong === false ? ["it is not so"] : wrong;
  if (lines.length === 0) passed += 1;
  else {
    failed += 1;
    console.log(`FAILED  ${name}\n${lines.slice(0, 6).map((line) => `          ${line}`).join("\n")}`);
  }
}
const same = (found, wanted) => JSON.stringify(found) === JSON.stringify(wanted) ? [] : [`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`];

/// A tab on a host, with what went wrong in it.
async function visit(browser, host, { width = 1280, colorScheme = "light", hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: false, acceptDownloads: true });
  const page = await context.newPage();
  const [errors, elsewhere] = [[], []];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.stack));
  page.on("dialog", (dialog) => { errors.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => !request.url().startsWith(host.url) && !/^(data|blob):/.test(request.url()) && elsewhere.push(request.url()));
  await page.goto(host.url + hash);
  await page.waitForFunction(() => document.querySelector("#databases-body")?.childElementCount && document.querySelector("#incidents-body")?.childElementCount && document.querySelector("#capability-body")?.childElementCount);
  await page.waitForFunction(() => document.querySelector("#about").hidden || (document.querySelector("#curve-body").childElementCount && document.querySelector("#time-body canvas") && document.querySelector("#devices-body").childElementCount && document.querySelector("#files-body .files tbody").childElementCount));
  return { page, errors, elsewhere, close: () => context.close() };
}

/// What is seen of the page, without its figures: headings, columns, buttons, pictures and their labels, with the parts that
/// they are in. OUTLINES=write keeps it as what is expected.
async function outline(page, name) {
  const lines = await page.evaluate(() => {
    const wanted = "h1, h2, h3, thead th, button, .figure .name, .legend li, .legend span, svg[role=img], .chart canvas, dt, .piece.gap, input";
    const line = (element) => `${element.localName.replace(/^h(?=\d)/, "heading ")} ${element.closest("svg, h1, h2, h3, button, th, dt, li, span") === element && element.localName !== "svg" ? element.textContent.replace(/\s+/g, " ").trim() : element.getAttribute("aria-label") ?? ""}`;
    return [...document.querySelectorAll("main section[id]")].flatMap((section) => [`# ${section.id}`, ...[...section.querySelectorAll(wanted)]
      .filter((element) => !element.closest("tbody, .incidents h3") && element.checkVisibility()).map((element) => line(element).replace(/(?<!^heading )\d+(,\d{3})*(\.\d+)?/g, "0").trim())]);
  });
  const file = join(here, "outlines", `${name}.txt`);
  if (process.env.OUTLINES === "write") {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${lines.join("\n")}\n`);
  }
  const expected = readFileSync(file, "utf8").trimEnd().split("\n");
  return [...lines.filter((line) => !expected.includes(line)).map((line) => `new: ${line}`), ...expected.filter((line) => !lines.includes(line)).map((line) => `missing: ${line}`),
    ...(lines.length === expected.length ? [] : [`${lines.length} parts instead of ${expected.length}`])];
}

const text = (page, selector) => page.locator(selector).first().innerText();
const texts = (page, selector) => page.locator(selector).allInnerTexts();

/// Each state of a host, in windows.
async function states(browser) {
  const windows = [
    ["well", 1280, "light"], ["well", 1280, "dark"], ["well", 420, "light"], ["well", 420, "dark"], ["hostile", 420, "dark"],
    ["wrong", 1280, "dark"], ["wrong", 420, "light"], ["empty", 420, "light"], ["many", 1280, "dark"],
  ];
  const hosts = new Map();
  for (const [scene, width, colorScheme] of windows) {
    const host = hosts.get(scene) ?? await startHost(scene);
    hosts.set(scene, host);
    const { page, errors, elsewhere, close } = await visit(browser, host, { width, colorScheme, hash: "#volume=a1c4&file=%2Fsrv%2Fpostgres%2Fbase%2F16390%2F24582&incident=12" });
    const name = `${scene} ${width} ${colorScheme}`;
    const seen = await page.evaluate(look);
    check(`${name}: fits the width`, seen.overflow);
    // What moves may lie on dots of its trail for a second; it has a halo.
    check(`${name}: contrast is enough to read`, seen.contrast.filter((line) => !/^“(now: |expected here: |.* of this limit)/.test(line)));
    check(`${name}: labels stand inside their charts`, seen.labels);
    check(`${name}: axe finds nothing`, await axe(page));
    check(`${name}: no error in the console`, errors);
    check(`${name}: asks for nothing elsewhere`, elsewhere);
    if (scene === "well" || scene === "wrong") check(`${name}: has the parts that it had`, await outline(page, `${scene}-${width}`));
    check(`${name}: one heading`, same(await page.locator("h1").count(), 1));
    if (scene === "well") check(`${name}: what was only seen of a storage has its bounds`, /seen since .*at least 2,315/s.test(await text(page, "#capability-body")));
    if (scene === "wrong") {
      const said = await text(page, "main");
      check(`${name}: says what to do`, [/GRANT pg_monitor TO headroom;/, /headroom measure \/srv\/postgres/, /password authentication failed/].filter((wanted) => !wanted.test(said)).map(String));
    }
    await close();
  }
  for (const host of hosts.values()) await host.stop();
}

/// The answer and the curve say what the API says.
async function answers(browser, host) {
  const { page, errors, close } = await visit(browser, host, { hash: "#volume=a1c4" });
  const state = await (await fetch(`${host.url}api/v1/state`)).json();
  check("the answer counts what needs attention", same(await text(page, "h1"), "1 of 3 volumes needs attention"));
  check("each volume has its card, the worst first", same(await texts(page, ".volume .choose"), ["shop on /srv/mysql", "archive on /", "orders on /srv/postgres"]));
  check("verdicts are words beside shapes", same((await texts(page, ".volume .verdict")).map((words) => words.toLowerCase()), ["saturated", "cannot say", "healthy"]));
  check("each verdict has another shape", same(new Set(await page.locator(".volume .ground").evaluateAll((all) => all.map((one) => one.getAttribute("d") + one.nextSibling.getAttribute("d")))).size, 3));
  check("the sentence is the agent's", same(await text(page, ".chosen .sentence"), state.volumes[0].sentence));
  check("what is unknown is a dash", same((await texts(page, ".volume:nth-child(2) .value")).slice(0, 2), ["-", "-"]));
  check("the parts come in their order", same(await texts(page, "main h2[id]"),
    ["Demand on the measured curve", "Over time", "Files by time waited", "Waits", "Who uses the device", "Devices", "Incidents", "Databases", "Measured capability"]));
  const labels = await page.locator("#curve-body svg:first-child text").allTextContents();
  for (const wanted of [/^now: .* at .* outstanding$/, /^expected here: /, /^knee at 6\.0/, /^service level: 5\.00 ms$/, /^more load costs little time$/, /^more load waits longer$/]) {
    check(`the curve is labelled ${wanted}`, labels.some((label) => wanted.test(label)) ? [] : labels);
  }
  const place = () => page.locator("#curve-body svg:first-child .now").getAttribute("cx");
  const before = await place();
  check("the point moves", await page.waitForFunction((before) => document.querySelector("#curve-body svg .now")?.getAttribute("cx") !== before, before).then(() => true, () => false));
  check("the trail has minutes of dots", (await page.locator("#curve-body svg:first-child .trail circle").count()) > 200);
  check("one stream a tab", same(host.streams.size, 1));
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: true, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await until(() => host.streams.size === 0);
  check("a hidden tab has no stream", same(host.streams.size, 0));
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: false, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await until(() => host.streams.size === 1);
  check("one that is shown again has one", same(host.streams.size, 1));
  await page.locator(".volume .pieces button").last().click();
  await page.waitForSelector(".incident .opened");
  check("a bad stretch of the strip leads to its incident", /incident=13/.test(page.url()) ? [] : [page.url()]);
  check("evidence is observed, expected and their ratio", same(await texts(page, ".incident .opened thead th.n"), ["observed", "expected", "ratio"]));
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  check("paper stays white", await page.evaluate(darkGrounds));
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  check("devices are a tree", same(await page.locator("#devices-body th.device").evaluateAll((all) => all.map((name) => [Number(name.style.getPropertyValue("--depth")),
    [...name.childNodes].find(({ nodeType }) => nodeType === 3).textContent])), [[0, "dm-3"], [1, "md0"], [2, "nvme0n1"], [2, "nvme1n1"]]));
  check("no error on the way", errors);
  await close();
}

/// Figures are written as in the terminal (crates/show/charts/src/number.rs); lines and labels keep their promises.
async function modules(browser, host) {
  const { page, close } = await visit(browser, host, {});
  const units = await page.evaluate(async () => {
    const { databaseName, rate, share, span, throughput, time, times } = await import("./units.js");
    return [rate(0.25), rate(14.2), rate(8), rate(12_696), rate(null), rate(Number.NaN), time(85_300), time(999_600), time(5e6), time(950), share(0.004), share(0.97), share(0), times(1.03), throughput(149_000_000), throughput(0),
      span(45), span(720), span(11_100), span(518_400), databaseName("postgres:dbname=shop host=/run port=5433 user=a"), databaseName("postgres:dbname=shop host=db1"), databaseName("sqlite:/a b.db"), databaseName("mysql://root@localhost/?socket=/run/s"), databaseName("postgres://u@db1:5433/shop"), databaseName("shop")];
  });
  check("figures are written as in the terminal", same(units, ["0.250", "14.2", "8", "12,696", "-", "-", "85.3 us", "1.00 ms", "5.00 ms", "950 ns", "0.4 %", "97 %", "0 %", "1.03 x", "142 MiB/s", "0 B/s",
    "45 s", "12 min", "3 h 5 min", "6 days", "shop, port 5433", "shop at db1", "sqlite:/a b.db", "mysql", "shop at db1, port 5433", "shop"]));
  const wrong = await page.evaluate(async () => {
    const { bend, freePlace, linear, logarithmic } = await import("./scales.js");
    const found = [];
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", bend([[0, 100], [10, 99], [20, 20], [30, 20], [40, 60]]));
    const heights = Array.from({ length: 200 }, (_, at) => path.getPointAtLength(path.getTotalLength() * at / 199).y);
    if (Math.min(...heights) < 19.9 || Math.max(...heights) > 100.1) found.push(`the line reaches from ${Math.min(...heights)} to ${Math.max(...heights)}`);
    const frame = { left: 50, right: 650, top: 50, bottom: 400 };
    for (let x = 50; x <= 650; x += 40) {
      for (let y = 50; y <= 400; y += 35) {
        const label = freePlace({ x, y }, 260, frame, [], null);
        if (label.x < 50 || label.x + 260 > 650 || label.y < 50 || label.y + 40 > 400) found.push(`a label at ${x}, ${y} leaves the frame`);
        if (x > label.x && x < label.x + 260 && y > label.y && y < label.y + 40) found.push(`a label covers its point at ${x}, ${y}`);
      }
    }
    const crowd = [];
    for (let left = 60; left < 640; left += 8) for (let top = 235; top < 400; top += 10) crowd.push([left, top, 3]);
    const free = freePlace({ x: 140, y: 380 }, 260, frame, crowd, null);
    if (crowd.some(([left, top]) => left > free.x && left < free.x + 260 && top > free.y && top < free.y + 40)) found.push("a label covers others where there is free space above them");
    const scale = logarithmic([80, 9_000], [400, 50], 10);
    if (scale.at(80) !== 400 || Math.abs(scale.at(9_000) - 50) > 1e-9 || scale.ticks.some((tick) => tick < 80 || tick > 9_000)) found.push("the logarithmic scale misses its ends");
    const rates = linear([0, 83_000], [400, 50]);
    if (rates.at(0) !== 400 || JSON.stringify(rates.ticks) !== "[0,20000,40000,60000,80000]") found.push(`ticks ${rates.ticks}`);
    return found;
  });
  check("scales, lines and labels keep their promises", wrong);
  const reasons = await page.evaluate(async () => {
    const { CHARTS, findUnknown } = await import("./charts.js");
    const latency = CHARTS.find(({ title }) => title === "Latency");
    const data = [[10, 11, 12, 13, 14, 15, 16, 17], [], [1, null, null, null, 2, 3, null, 4]];
    const found = (iops, gaps = []) => findUnknown(latency, data, gaps, iops).map(({ from_unix_ns, to_unix_ns, reason }) => [from_unix_ns / 1e9, to_unix_ns / 1e9, reason]);
    return [found([5, 0, 0, 0, 5, 5, 5, 5]), found([5, 5, 0, 0, 5, 5, 5, 5]), found([5, 0, 0, 0, 5, 5, 5, 5], [{ from_unix_ns: 9e9, to_unix_ns: 20e9 }])];
  });
  check("a figure that is unknown alone has its reason", same(reasons, [[[11, 14, "no I/O"]], [[11, 14, "not known"]], []]));
  await close();
}

async function until(condition, limit_ms = 5_000) {
  for (const end = Date.now() + limit_ms; !condition() && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 50));
}

/// Moves the pointer to an instant and returns what the charts say of it.
async function hover(page, unix_s, from, to) {
  const over = await page.locator("#time-body .u-over").first().boundingBox();
  const found = [];
  for (const shift of [-1, 0, 1]) {
    await page.mouse.move(over.x + (unix_s - from) / (to - from) * over.width + shift, over.y + 40);
    found.push(`${await text(page, ".readout")} | ${await text(page, "#time-body .values")}`);
  }
  return found;
}

/// A spike of one second and a gap, at each zoom.
async function overTime(browser, host) {
  const { page, errors, close } = await visit(browser, host, { hash: "#volume=a1c4" });
  const spike = host.host.volumes[0].spike_at + 0.5;
  const gap = host.host.volumes[0].gaps[0];
  for (const span of [200, 900, 3_600, 21_600, 86_400, 604_800]) {
    // Not at the right edge, to which a chart moves a pointer that is near: what follows is not known yet.
    const end = spike + span * 0.1;
    const begin = end - span;
    const answered = page.waitForResponse((response) => response.url().includes("/series?"));
    await page.evaluate((hash) => { location.hash = hash; }, `volume=a1c4&from=${begin.toFixed(1)}&to=${end.toFixed(1)}`);
    await answered;
    await page.waitForTimeout(150);
    await page.locator("#time-body .stack").scrollIntoViewIfNeeded();
    const said = await hover(page, spike, begin, end);
    const highest = Math.max(...said.flatMap((line) => [...line.matchAll(/(\d+) %/g)].map(([, percent]) => Number(percent))));
    // Over a week a pixel is ten minutes, and may be that of the gap three minutes before.
    const isGaps = span > 86_400 && said.some((line) => /unknown: the source did not answer/.test(line));
    check(`a spike of one second is in the figures over ${span} s`, highest >= 80 || isGaps ? [] : said);
    let isDrawn = false;
    for (let tries = 0; tries < 10 && !isDrawn; tries += 1) {
      isDrawn = await page.evaluate(isDrawnHigh, { share: (spike - begin) / span });
      // A busy browser draws later.
      if (!isDrawn) await page.waitForTimeout(100);
    }
    check(`it is drawn over ${span} s`, isDrawn);
    if (span === 900) {
      const unknown = await hover(page, (gap.from + gap.to) / 2, begin, end);
      check("a gap has its reason and no figure", unknown.every((line) => /unknown: the source did not answer/.test(line) && /\| unknown$/.test(line)) ? [] : unknown);
    }
  }
  await page.evaluate(() => { location.hash = "volume=a1c4"; });
  await page.waitForTimeout(400);
  const over = await page.locator("#time-body .u-over").nth(2).boundingBox();
  await page.mouse.move(over.x + 300, over.y + 40);
  await page.mouse.down();
  await page.mouse.move(over.x + 500, over.y + 40, { steps: 4 });
  await page.mouse.up();
  const range = () => ["from", "to"].map((key) => Number(new URLSearchParams(new URL(page.url()).hash.slice(1)).get(key)));
  const [from, to] = range();
  check("dragging to the right shows what was before", Math.abs(to - from - 900) < 1 && to < Date.now() / 1000 - 100 ? [] : [page.url()]);
  await page.mouse.wheel(0, -300);
  await page.waitForTimeout(200);
  check("the wheel zooms where the charts were clicked", range()[1] - range()[0] < to - from ? [] : [page.url()]);
  check("no error over time", errors);
  await close();
}

/// Whether the utilisation chart has ink near its top at a share of its width.
function isDrawnHigh({ share }) {
  const canvas = document.querySelector("#time-body canvas");
  const over = document.querySelector("#time-body .u-over").getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const left = (over.left - box.left + share * over.width) * scale;
  const [top, height] = [(over.top - box.top) * scale, over.height * scale];
  const [red, green, blue] = getComputedStyle(document.documentElement).getPropertyValue("--curve").match(/\w\w/g).map((hex) => parseInt(hex, 16));
  const { data } = canvas.getContext("2d").getImageData(left - 4, top + height * 0.12, 9, height * 0.2);
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] > 40 && Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue) < 90) return true;
  }
  return false;
}

/// How long ten thousand rows take to be sorted and scrolled, until they are drawn; the quickest of four, as others use the machine.
async function lags(page) {
  const LAG_MS = 150;
  const took = await page.evaluate(async () => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const view = document.querySelector("#files-body .view");
    const timed = async (change) => {
      const begin = performance.now();
      change();
      await drawn();
      return performance.now() - begin;
    };
    const quickest = async (change) => {
      const took = [];
      for (const place of [1, 2, 3, 0]) took.push(await timed(() => change(place)));
      return Math.min(...took);
    };
    return { sort: await quickest(() => document.querySelectorAll("#files-body thead button")[1].click()), scroll: await quickest((place) => { view.scrollTop = place * view.scrollHeight / 3; }) };
  });
  return Object.entries(took).filter(([, ms]) => ms > LAG_MS).map(([what, ms]) => `${what} takes ${ms.toFixed(0)} ms`);
}

/// All by keyboard, and each state in the address.
async function keyboard(browser, host) {
  const { page, errors, close } = await visit(browser, host, { hash: "#volume=a1c4" });
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.key || document.activeElement.className);
  await page.keyboard.press("Tab");
  check("the first stop is the skip link", same(await focused(), "skip"));
  await page.keyboard.press("Enter");
  check("it leads to the answer", same(await focused(), "answer"));
  for (const [key, id] of [["2", "curve"], ["3", "time"], ["4", "files"], ["5", "devices"], ["6", "incidents"], ["7", "databases"], ["1", "answer"]]) {
    await page.keyboard.press(key);
    check(`${key} leads to ${id}`, same(await focused(), id));
  }
  await page.keyboard.press("]");
  check("] chooses the next volume", same(await text(page, ".chosen .choose"), "shop on /srv/mysql"));
  await page.keyboard.press("[");
  await page.waitForFunction(() => /10,000 files/.test(document.querySelector("#files-body").innerText));
  await page.keyboard.press("/");
  await page.keyboard.type("16385 24584");
  check("search finds what has all words", same(await texts(page, "#files-body .path bdi"), ["/srv/postgres/base/16385/24584"]));
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  check("ten thousand rows are sorted and scrolled without a lag", await lags(page));
  check("ten thousand rows are few elements", (await page.locator("#files-body tbody tr").count()) < 60);
  await page.locator("#files-body .view").focus();
  await page.keyboard.press("End");
  check("End leads to the last row", same(await page.evaluate(() => document.activeElement.dataset.row), "9999"));
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  check("arrows move among the rows", same(await page.evaluate(() => document.activeElement.dataset.row), "1"));
  await page.keyboard.press("Enter");
  check("Enter opens the row", same(await page.locator(".detail .histogram, .detail .small").count(), 1));
  check("the row keeps the focus", same(await page.evaluate(() => document.activeElement.dataset.row), "1"));
  await page.locator("#files-body thead button").first().focus();
  await page.keyboard.press("Enter");
  check("a column is sorted by its button", same(await page.locator("#files-body th[aria-sort=ascending]").innerText(), "file ▲"));
  await page.locator(".stack").focus();
  await page.keyboard.press("ArrowLeft");
  check("an arrow shows the values of an instant", /UTC/.test(await text(page, ".readout")) && !/^now/.test(await text(page, ".readout")));
  await page.keyboard.press("-");
  check("minus zooms out", /span=1500/.test(page.url()) ? [] : [page.url()]);
  await page.keyboard.press("Shift+ArrowLeft");
  check("Shift and an arrow move the range", /from=\d+/.test(page.url()) ? [] : [page.url()]);
  await page.keyboard.press("0");
  check("0 follows the present", /from=/.test(page.url()) ? [page.url()] : []);
  await page.keyboard.press("?");
  check("? opens the list of keys", await page.locator("#keys").evaluate((dialog) => dialog.open));
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  check("t changes the theme", same(await page.evaluate(() => document.documentElement.dataset.theme), "light"));
  const url = page.url();
  await page.goto("about:blank");
  await page.goto(url);
  await page.waitForSelector(".detail .histogram, .detail .small");
  check("the address shows the same again", same([await text(page, ".chosen .choose"), await page.locator("#files-body th[aria-sort=ascending]").innerText(), await page.evaluate(() => document.documentElement.dataset.theme)],
    ["orders on /srv/postgres", "file ▲", "light"]));
  check("no error by keyboard", errors);
  await close();
}

/// Names that are markup stay text.
async function hostile(browser) {
  const host = await startHost("hostile");
  const { page, errors, elsewhere, close } = await visit(browser, host, { hash: "#volume=a1c4&file=%2Fsrv%2Fpostgres%2F%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E" });
  const main = await page.evaluate(() => document.body.textContent);
  for (const wanted of ["<img src=x onerror=alert(1)>", "<b onmouseover=alert(3)>orders</b>", "<script>alert(4)</script>", "<i onclick=alert(6)>postgres</i>", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}.dat", "\\u{202e}gnp.exe", "line\\u{a}break"]) {
    check(`${wanted} is text`, main.includes(wanted));
  }
  check("no element was made of a name", same(await page.evaluate(() => [document.querySelectorAll("main img, main script, main b[onmouseover], main i[onclick]").length, document.querySelectorAll("script").length]), [0, 2]));
  check("no control character is shown", !/[\u0000-\u0008\u000b-\u001f\u202e]/.test(main));
  check("no error, no request of a name", [...errors, ...elsewhere]);
  await close();
  await host.stop();
}

/// Whether the page shows within three seconds that the agent is away.
const gone = (page) => page.waitForSelector("body.is-gone", { timeout: GONE_MS }).then(() => true, () => false);

/// The agent ends, hangs, and comes back.
async function away(browser) {
  const host = await startHost("well");
  const { page, close } = await visit(browser, host, { hash: "#volume=a1c4" });
  await page.evaluate(() => { globalThis.neverReloaded = true; });
  for (const [how, leave, back] of [["that was ended", () => host.stop(), () => host.start()], ["that hangs", () => { host.silent = true; }, () => { host.silent = false; }]]) {
    let isGone = false;
    for (let left = TRIES; left > 0 && !isGone; left -= 1) {
      const begin = Date.now();
      await leave();
      isGone = await gone(page);
      console.log(`an agent ${how} is ${isGone ? "seen" : "not seen"} after ${Date.now() - begin} ms`);
      if (!isGone && left > 1) {
        await back();
        // By then it was seen to be away, and to be back.
        await page.waitForTimeout(2 * GONE_MS);
      }
    }
    check(`an agent ${how} is seen to be away within 3 s`, isGone);
    check(`an agent ${how} is shown as away, with the reason`, /The agent is away: .* What is shown is of/.test(await text(page, "#gone")) ? [] : [await text(page, "#gone")]);
    await back();
    const isBack = () => globalThis.neverReloaded && !document.body.classList.contains("is-gone") && document.querySelector("#gone").hidden && /^live/.test(document.querySelector("#link").textContent);
    check(`an agent ${how} is back without a reload`, await page.waitForFunction(isBack, null, { timeout: 20_000 }).then(() => true, () => false));
  }
  await close();
  await host.stop();
}

/// The agent itself, which watches this program: its answers are what the page expects.
async function agent(browser, program, place) {
  const start = (listen) => new Promise((resolve, reject) => {
    const child = spawn(program, ["agent", "--source", `process:${process.pid}`, "--listen", listen, "--every", "1s", "--window", "10s"], { env: { ...process.env, HOME: place, XDG_DATA_HOME: place } });
    let said = "";
    child.on("exit", () => reject(new Error(said)));
    child.stderr.on("data", (data) => {
      said += data;
      const url = /page at (\S+)/.exec(said)?.[1];
      if (url) resolve({ child, url });
    });
  });
  const end = (child, signal) => new Promise((resolve) => child.once("exit", resolve).kill(signal));
  const first = await start("127.0.0.1:0");
  const state = async () => (await fetch(`${first.url}api/v1/state`)).json();
  const isJudged = async () => (await state()).volumes.some(({ judged_unix_ns }) => judged_unix_ns);
  for (const limit = Date.now() + 60_000; !await isJudged() && Date.now() < limit;) await new Promise((resolve) => setTimeout(resolve, 200));
  const { page, errors, elsewhere, close } = await visit(browser, first, {});
  const { volumes, version } = await state();
  check("an agent's volumes have their cards", same((await texts(page, ".volume .choose")).sort(), volumes.map(({ database, mount }) => `${database} on ${mount}`).sort()));
  check("an agent's page names its version", (await text(page, "footer")).includes(`Headroom ${version}`));
  check("an agent's moments move the page", /^live, \d\d:\d\d:\d\d UTC$/.test(await text(page, "#link")));
  check("storage that was never measured has the command", (await text(page, "#curve-body")).includes(volumes[0].measure_command));
  check("axe finds nothing on an agent's page", await axe(page));
  check("no error on an agent's page", [...errors, ...elsewhere]);
  await end(first.child, "SIGKILL");
  check("an agent that was killed is shown as away within 3 s", await gone(page));
  const second = await start(new URL(first.url).host);
  check("the next agent goes on with the same page", await page.waitForFunction(() => !document.body.classList.contains("is-gone"), null, { timeout: 20_000 }).then(() => true, () => false));
  await close();
  await end(second.child);
}

/// The page as one file, and the curve as a picture.
async function saved(browser, host, place) {
  const { page, errors, close } = await visit(browser, host, { hash: "#volume=a1c4" });
  const keep = async (selector, name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(selector).click()]);
    const path = join(place, name);
    await download.saveAs(path);
    return path;
  };
  const file = await keep("#save", "saved.html");
  const picture = await keep("#picture", "picture.svg");
  check("the picture carries its colours", !/var\(--|class=/.test(readFileSync(picture, "utf8").replace(/font-family="[^"]*"/g, "")));
  const offline = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true });
  const again = await offline.newPage();
  const requests = [];
  again.on("request", (request) => !/^data:/.test(request.url()) && request.url() !== pathToFileURL(file).href && requests.push(request.url()));
  again.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  again.on("pageerror", (error) => errors.push(error.stack));
  await again.goto(pathToFileURL(file).href);
  await again.waitForSelector("#time-body canvas");
  check("the saved file shows the same answer", same(await text(again, ".chosen .sentence"), await text(page, ".chosen .sentence")));
  check("the saved file has the curve, the charts and the files", same([await again.locator("#curve-body svg").count(), await again.locator("#time-body canvas").count(), await text(again, "#files-body .toolbar")], [2, 5, "10,000 files"]));
  check("the saved file says when it was saved", /^saved .* UTC$/.test(await text(again, "#link")));
  check("the saved file asks for nothing", requests);
  check("no error when saved", errors);
  await offline.close();
  await close();
}

/// A page that is wrong must be found wrong: a check that cannot fail says nothing.
async function wrongPage(browser) {
  const page = await browser.newPage({ viewport: { width: 420, height: 900 } });
  await page.setContent("<html><body style='background:#111;color:#222'><img src='data:,'><div style='width:2000px'>wide</div><button></button></body></html>");
  check("axe finds what is wrong", (await axe(page)).length > 2);
  const seen = await page.evaluate(look);
  check("a page that is too wide is found", seen.overflow.length === 1 && seen.contrast.length > 0);
  await page.close();
}

/// The colours of the page are those of the charts.
function colours() {
  const palette = readFileSync(join(root, "crates/show/charts/src/palette.rs"), "utf8");
  const styles = readFileSync(join(root, "crates/export/serve/page/style.css"), "utf8");
  const wanted = new Map([...palette.matchAll(/\("(--[a-z0-9-]+)", 0x([0-9a-f]{6}), 0x([0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name, [light, dark, dark]]));
  const found = new Map();
  for (const [, name, colour] of styles.matchAll(/(--[a-z0-9-]+): #([0-9a-f]{6});/g)) found.set(name, [...found.get(name) ?? [], colour]);
  check("colours are those of the charts", [...found].filter(([name, values]) => JSON.stringify(values) !== JSON.stringify(wanted.get(name))).map(([name, values]) => `${name} is ${values}, not ${wanted.get(name)}`));
  check("colours were found", found.size > 10);
}

const browser = await open();
const place = mkdtempSync(join(tmpdir(), "headroom-live-page-"));
try {
  colours();
  await wrongPage(browser);
  await states(browser);
  const host = await startHost("well");
  await modules(browser, host);
  await answers(browser, host);
  await overTime(browser, host);
  await keyboard(browser, host);
  await saved(browser, host, place);
  await host.stop();
  await hostile(browser);
  await away(browser);
  if (process.env.HEADROOM) await agent(browser, process.env.HEADROOM, place);
} finally {
  await browser.close();
  rmSync(place, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
