// Checks files against the schemas of those who read them: `node check.mjs DASHBOARDS MANIFEST`.
//
// Dashboards against @grafana/schema (the dashboard, its panels and variables) and Grafana's foundation SDK (queries of
// Prometheus), the manifest against types and JSON schemas made from Kubernetes' OpenAPI. A literal of TypeScript may have no field
// that its type does not know. What is made wrong here must be found: a check that cannot fail says nothing.
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { DaemonSet } from "kubernetes-models/apps/v1";
import { Namespace } from "kubernetes-models/v1";
import ts from "typescript";
import { parseAllDocuments } from "yaml";

const [dashboards, manifest] = process.argv.slice(2);
const KINDS = { DaemonSet, Namespace };
const modules = join(dirname(fileURLToPath(import.meta.url)), "node_modules");

const dashboardSource = (dashboard) => `
import type { Dashboard } from "@grafana/schema";
import type { Dataquery, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";
type Query = Omit<Dataquery, "_implementsDataqueryVariant" | "format"> & { format?: \`\${PromQueryFormat}\` };
export const dashboard: Dashboard = ${JSON.stringify(dashboard, null, 1)};
export const queries: Query[] = ${JSON.stringify(
  (dashboard.panels ?? []).flatMap((panel) => panel.targets ?? []),
  null,
  1,
)};
`;

const manifestSource = (document) => `
import type { I${document.kind} } from "kubernetes-models/${document.apiVersion}";
export const document: I${document.kind} = ${JSON.stringify(document, null, 1)};
`;

/// What the compiler says of each source, by its name.
function compile(sources) {
  const place = mkdtempSync(join(tmpdir(), "headroom-fleet-types-"));
  try {
    symlinkSync(modules, join(place, "node_modules"));
    const files = Object.entries(sources).map(([name, text]) => {
      const file = join(place, `${name}.ts`);
      writeFileSync(file, text);
      return file;
    });
    const program = ts.createProgram(files, {
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      noEmit: true,
      skipLibCheck: true,
      strict: true,
      target: ts.ScriptTarget.ES2022,
    });
    const found = Object.fromEntries(Object.keys(sources).map((name) => [name, []]));
    for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
      const name = file ? basename(file.fileName, ".ts") : "";
      (found[name] ??= []).push(ts.flattenDiagnosticMessageText(messageText, " "));
    }
    return found;
  } finally {
    rmSync(place, { recursive: true });
  }
}

/// A copy in which something is wrong.
function spoiled(value, spoil) {
  const copy = structuredClone(value);
  spoil(copy);
  return copy;
}

const [right, wrong] = [{}, {}];
for (const file of readdirSync(dashboards).filter((name) => name.endsWith(".json"))) {
  const dashboard = JSON.parse(readFileSync(join(dashboards, file), "utf8"));
  const name = basename(file, ".json");
  right[name] = dashboardSource(dashboard);
  const panel = (spoil) => dashboardSource(spoiled(dashboard, (it) => spoil(it.panels[0])));
  wrong[`${name}-field`] = panel((it) => (it.titel = "x"));
  wrong[`${name}-type`] = panel((it) => (it.gridPos.w = "12"));
  wrong[`${name}-query`] = panel((it) => (it.targets[0].format = "tabular"));
}
const documents = parseAllDocuments(readFileSync(manifest, "utf8")).map((document) => document.toJS());
for (const document of documents) {
  right[document.kind] = manifestSource(document);
  wrong[`${document.kind}-field`] = manifestSource(spoiled(document, (it) => (it.metadata.nmae = "x")));
}
const agent = documents.find((document) => document.kind === "DaemonSet");
const pod = (spoil) => manifestSource(spoiled(agent, (it) => spoil(it.spec.template.spec)));
wrong["pod-field"] = pod((it) => (it.hostPid = true));
wrong["container-type"] = pod((it) => (it.containers[0].ports[0].containerPort = "metrics"));

let failed = false;
const report = (text) => {
  failed = true;
  console.error(text);
};
// In one program: most of the time is that of the types.
for (const [name, found] of Object.entries(compile({ ...right, ...wrong }))) {
  if (!(name in wrong)) found.forEach((text) => report(`${name || "the check itself"}: ${text}`));
  else if (found.length === 0) report(`the check finds nothing wrong in ${name}`);
}
for (const document of documents) {
  try {
    new KINDS[document.kind](document).validate();
  } catch (error) {
    report(`${document.kind}: ${error.message}`);
  }
}
try {
  new DaemonSet(spoiled(agent, (it) => delete it.spec.selector)).validate();
  report("the schema of Kubernetes finds a DaemonSet without a selector right");
} catch {
  // As it must be.
}
if (failed) process.exit(1);
const names = Object.keys(right);
console.log(`${names.length} files are as their schemas say, ${Object.keys(wrong).length} wrong ones were found: ${names.join(", ")}`);
