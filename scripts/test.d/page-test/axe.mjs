// The accessibility rules of axe-core.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const AXE = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "node_modules/axe-core/axe.min.js"), "utf8");

/// What axe finds. A content security policy may let no script of another origin in: it is run by the browser's own evaluation.
export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.slice(0, 2).map((node) => `${id}: ${node.target.join(" ")} ${node.failureSummary?.split("\n")[1] ?? ""}`));
}
