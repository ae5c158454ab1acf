// Takes a picture of a page: `node picture.mjs PAGE OUT.png [WIDTH [HEIGHT]] [dark] [print]`; without a
// height, of the whole page. The picture in README.md is that of `headroom check --html`, 1200 wide.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const words = process.argv.slice(2);
const [width = 1200, height] = words.filter((word) => /^\d+$/.test(word)).map(Number);
const [from, to] = words;
const browser = await open();
const page = await browser.newPage({ viewport: { width, height: height ?? 900 } });
await page.emulateMedia({
  colorScheme: words.includes("dark") ? "dark" : "light",
  media: words.includes("print") ? "print" : "screen",
});
await page.goto(pathToFileURL(resolve(from)).href);
await page.screenshot({ path: to, fullPage: !height });
await browser.close();
