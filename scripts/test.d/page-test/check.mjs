// Looks at every page of a directory in a browser: `node check.mjs DIRECTORY`.
//
// Before that, a page on which everything is wrong must be found wrong in everything: a check that cannot
// fail says nothing.
import { readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { axe } from "./axe.mjs";
import { open } from "./browser.mjs";
import { belowTheFold, darkGrounds, look } from "./look.mjs";

const directory = resolve(process.argv[2] ?? ".");
const WINDOWS = [
  { name: "1280 light", width: 1280, height: 900, colorScheme: "light", media: "screen" },
  { name: "1280 dark", width: 1280, height: 900, colorScheme: "dark", media: "screen" },
  { name: "420 light", width: 420, height: 900, colorScheme: "light", media: "screen" },
  { name: "420 dark", width: 420, height: 900, colorScheme: "dark", media: "screen" },
  // A4 within the margins that Chromium prints with, on a computer that is set to dark.
  { name: "paper", width: 718, height: 1000, colorScheme: "dark", media: "print" },
];

/// Everything that is asked of a page in each window, and what is wrong with it. The page is loaded once for each width; its
/// colours follow the reader's settings.
async function* findings(browser, file, windows) {
  const widths = new Set(windows.map(({ width }) => width));
  for (const width of widths) {
    const same = windows.filter((window) => window.width === width);
    const [{ height, colorScheme, media }] = same;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    const url = pathToFileURL(file).href;
    const [errors, requests] = [[], []];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("request", (request) => request.url() !== url && requests.push(request.url()));
    await page.emulateMedia({ media, colorScheme });
    await page.goto(url, { waitUntil: "load" });
    for (const window of same) {
      await page.emulateMedia({ media: window.media, colorScheme: window.colorScheme });
      yield [window, await answers(page, file, window, { errors, requests })];
    }
    await context.close();
  }
}

async function answers(page, file, { width, media }, { errors, requests }) {
  const seen = await page.evaluate(look);
  const result = {
    "no error in the console": errors,
    "asks for nothing but itself": requests,
    "fits the width": seen.overflow,
    "charts are seen at a readable size": seen.charts,
    "labels stand inside their charts": seen.labels,
    "labels do not overlap": seen.overlaps,
    "contrast is enough to read": seen.contrast,
  };
  if (width !== 420) {
    result["tables are seen whole"] = seen.tables;
  }
  if (width === 1280) {
    result["the answer is in the first window"] = await page.evaluate(belowTheFold, basename(file).startsWith("check"));
  }
  if (media === "screen") {
    result["axe finds no violation"] = await axe(page);
    result["charts show their figures under the pointer"] = await pointed(page);
  }
  if (media === "print") {
    result["paper stays white"] = await page.evaluate(darkGrounds);
  }
  return result;
}

/// Points at a value of the first charts, and asks whether it is shown, within the window.
async function pointed(page) {
  const wrong = [];
  const charts = [...(await page.$$("svg[data-points]")).slice(0, 6), ...(await page.$$("svg[data-cells]")).slice(0, 3)];
  for (const chart of charts) {
    if (!(await chart.isVisible())) continue;
    await chart.scrollIntoViewIfNeeded();
    const [x, y, text] = await chart.evaluate((svg) => {
      const middle = (all) => all[Math.floor(all.length / 2)];
      const ofLine = ({ at, lines: [{ points }] }) => {
        const [index, top, text] = middle(points);
        return [at[index][0], top, text];
      };
      const ofCell = ({ across, down, values, cells }) => {
        const [column, row, value] = middle(cells);
        const [[left, right], [top, bottom]] = [across[column], down[row]];
        return [(left + right) / 2, (top + bottom) / 2, values[value]];
      };
      const [left, top, text] = svg.dataset.points ? ofLine(JSON.parse(svg.dataset.points)) : ofCell(JSON.parse(svg.dataset.cells));
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      return [box.left + left * scale, box.top + top * scale, text];
    });
    await page.mouse.move(x, y);
    const tip = await page.evaluate(() => {
      const tip = document.querySelector(".tip:not([hidden])");
      const box = tip?.getBoundingClientRect();
      return tip && { text: tip.textContent, isInside: box.left >= 0 && box.right <= innerWidth && box.width > 20 };
    });
    if (!tip?.text.includes(text)) wrong.push(`“${text}” is not in “${tip?.text}”`);
    else if (!tip.isInside) wrong.push(`“${tip.text}” is outside the window`);
    await page.mouse.move(0, 0);
    await chart.focus();
    await page.keyboard.press("ArrowRight");
    if (await page.evaluate(() => !document.querySelector(".tip:not([hidden])"))) wrong.push("an arrow key shows nothing");
    await page.keyboard.press("Escape");
  }
  await page.mouse.move(0, 0);
  // The page is looked at again.
  await page.evaluate(() => scrollTo(0, 0));
  return wrong;
}

const EVERYTHING_WRONG = `<!doctype html><html><body style="background:#111;color:#222">
<script>console.error("wrong")</script><img src="missing.png">
<div style="width:2000px;height:1000px">wide and high</div><h1>low</h1>
<div class="scroll" style="width:90px;overflow-x:auto"><table><tr><td>as_wide_as_ten_thousand</td></tr></table></div>
<figure class="card"><figcaption><b>tiny</b></figcaption>
<svg viewBox="0 0 40 20" width="40" height="20" data-points='{"at":[[20,"one"]],"lines":[{"points":[[0,10,"two"]]}]}'><rect width="40" height="20" fill="#333"/>
<text x="0" y="10" fill="#444">one</text><text x="3" y="12" fill="#444">two</text><text x="90" y="9">three</text>
</svg></figure></body></html>`;

let [passed, failed] = [0, 0];
const count = (name, wrong) => {
  if (wrong.length === 0) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAILED  ${name}\n${wrong.slice(0, 6).map((line) => `          ${line}`).join("\n")}`);
  }
};

const browser = await open();
try {
  const wrong = join(directory, "everything-wrong.html");
  writeFileSync(wrong, EVERYTHING_WRONG);
  for await (const [window, asked] of findings(browser, wrong, WINDOWS.filter(({ width }) => width !== 420))) {
    for (const [question, found] of Object.entries(asked)) {
      count(`a page that is wrong in everything passes “${question}” (${window.name})`,
        found.length > 0 ? [] : ["this check cannot fail"]);
    }
  }
  const pages = readdirSync(directory).filter((name) => name.endsWith(".html") && join(directory, name) !== wrong);
  for (const name of pages.sort()) {
    const before = failed;
    for await (const [window, asked] of findings(browser, join(directory, name), WINDOWS)) {
      for (const [question, found] of Object.entries(asked)) {
        count(`${name} ${window.name}: ${question}`, found);
      }
    }
    if (failed === before) console.log(`ok      ${name}`);
  }
  if (pages.length === 0) count(directory, ["there is no page in it"]);
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
