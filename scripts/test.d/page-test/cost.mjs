// What tabs with the live page cost, for `scripts/bench page`: `node cost.mjs URL TABS SECONDS` prints "open" once all tabs are
// open, and at the end a JSON array with a row a tab.
import { open } from "./browser.mjs";

/// Until a tab has what it shows, and its heap is as large as it will be.
const SETTLED_MS = 30_000;

const [url, tabs, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

/// A collection finds up to a third more alive right after an event was handled: the least of so many counts.
const COLLECTIONS = 7;

/// Bytes of living objects: garbage is collected first.
async function heapBytes(session) {
  let least = Infinity;
  for (let count = 0; count < COLLECTIONS; count += 1) {
    await session.send("HeapProfiler.collectGarbage");
    least = Math.min(least, (await session.send("Runtime.getHeapUsage")).usedSize);
    await new Promise((done) => setTimeout(done, 300));
  }
  return least;
}

async function openTab(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const tab = { page, session, bytes: 0 };
  await session.send("Network.enable");
  // What comes over the network: compressed, with headers.
  session.on("Network.dataReceived", ({ encodedDataLength, dataLength }) => { tab.bytes += encodedDataLength || dataLength; });
  await page.goto(url);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  tab.paintMs = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  await page.waitForFunction(() => document.querySelector(".volume .value")?.textContent);
  // At most a frame late.
  tab.figuresMs = await page.evaluate(() => performance.now());
  return tab;
}

const browser = await open();
const opened = [];
for (let number = 0; number < tabs; number += 1) opened.push(await openTab(browser));
console.log("open");
// One tab shows the files, whose list is asked for again and again while it is in view.
await opened[0].page.locator("#files").scrollIntoViewIfNeeded();
await new Promise((done) => setTimeout(done, SETTLED_MS));
for (const tab of opened) [tab.heapBefore, tab.bytes, tab.since] = [await heapBytes(tab.session), 0, Date.now()];
await new Promise((done) => setTimeout(done, seconds * 1e3 - SETTLED_MS - 10_000));
const rows = [];
for (const tab of opened) {
  const elapsed = (Date.now() - tab.since) / 1e3;
  const kb_s = tab.bytes / 1e3 / elapsed;
  rows.push({ paint_ms: tab.paintMs, figures_ms: tab.figuresMs, heap_before: tab.heapBefore, heap_after: await heapBytes(tab.session), kb_s });
}
console.log(JSON.stringify(rows));
await browser.close();
