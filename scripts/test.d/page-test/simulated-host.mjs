// A simulated host for the live page: it serves crates/export/serve/page and answers the page's API from a demand that is
// computed, not measured. For states that a live agent cannot make quickly: gaps, incidents, thousands of files, hostile names.
//
//   node simulated-host.mjs PORT [well|wrong|hostile|many]
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SCENES } from "./simulated-scenes.mjs";

const PAGE = join(dirname(fileURLToPath(import.meta.url)), "../../../crates/export/serve/page");
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const HEADERS = {
  "Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
};
const SECOND_NS = 1e9;

/// Starts the host on a port of 127.0.0.1 (0: a free one). `stop` and `start` are an agent that ends and comes back;
/// `silence` keeps its connections and answers nothing.
export async function startHost(scene = "well", port = 0) {
  const host = SCENES[scene](Math.floor(Date.now() / 1000));
  const control = { requests: [], silent: false, streams: new Set(), port: 0, url: "", stop, start, host };
  let server;

  async function start(on = control.port) {
    server = createServer((request, response) => answer(control, request, response));
    await new Promise((resolve) => server.listen(on, "127.0.0.1", resolve));
    control.port = server.address().port;
    control.url = `http://127.0.0.1:${control.port}/`;
  }
  async function stop() {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }
  await start(port);
  return control;
}

function answer(control, request, response) {
  const url = new URL(request.url, "http://127.0.0.1");
  control.requests.push(url.pathname + url.search);
  if (control.silent) return;
  const send = (status, type, body) => {
    response.writeHead(status, { ...HEADERS, "Content-Type": type });
    response.end(body);
  };
  if (request.method !== "GET") return send(405, "text/plain", "GET only\n");
  if (!url.pathname.startsWith("/api/")) return sendFile(url.pathname, send);
  if (url.pathname === "/api/v1/stream") return stream(control, url, response);
  const [status, body] = route(control.host, url);
  send(status, "application/json", JSON.stringify(body));
}

function sendFile(path, send) {
  if (path === "/healthz") return send(200, "text/plain", "ok\n");
  const name = path === "/" ? "index.html" : path.slice(1);
  try {
    if (!/^[a-z-]+\.(html|js|css|svg)$/.test(name)) throw new Error(name);
    send(200, TYPES[extname(name)], readFileSync(join(PAGE, name)));
  } catch {
    send(404, "text/plain", "no such file\n");
  }
}

function route(host, url) {
  const [, , , name, number] = url.pathname.split("/");
  const now = Date.now() / 1000;
  if (name === "state") return [200, host.state(now)];
  if (name === "capabilities") return [200, { capabilities: host.capabilities(now), seen: host.seen(now) }];
  if (name === "incidents") {
    const incidents = host.incidents(now);
    if (!number) return [200, { incidents }];
    const one = incidents.find(({ id }) => String(id) === number);
    return one ? [200, one] : [404, { error: `there is no incident ${number}`, try: "headroom history incidents" }];
  }
  const volume = host.volumes.find(({ id }) => id === url.searchParams.get("volume"));
  if (!volume) return [404, { error: "there is no such volume", try: "/api/v1/state lists them" }];
  const at = (key, otherwise) => {
    const value = url.searchParams.get(key);
    if (value === null) return otherwise;
    return Number(value) < 0 ? now + Number(value) / SECOND_NS : Number(value) / SECOND_NS;
  };
  const answers = {
    curve: () => volume.curve(now),
    series: () => volume.series(at("from", now - 900), at("to", now), Number(url.searchParams.get("points") ?? 900), now),
    verdicts: () => volume.verdicts(at("from", now - 86_400), at("to", now)),
    files: () => {
      const { files, total_files } = volume.files(now);
      const path = url.searchParams.get("path");
      return { total_files, files: path ? files.filter((file) => file.path === path) : files };
    },
    waits: () => volume.waits(now),
    devices: () => volume.devices(now),
  };
  if (!answers[name]) return [404, { error: `there is no ${url.pathname}`, try: "/api/v1/state" }];
  const body = answers[name]();
  return [body.error ? 404 : 200, body];
}

function stream(control, url, response) {
  response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream" });
  response.write("retry: 2000\n\n");
  const volume = control.host.volumes.find(({ id }) => id === url.searchParams.get("volume"));
  const beat = () => {
    if (control.silent) return;
    const now = Date.now() / 1000;
    response.write(`event: state\ndata: ${JSON.stringify(control.host.state(now))}\n\n`);
    if (volume) response.write(`event: moment\ndata: ${JSON.stringify(volume.moment(now))}\n\n`);
  };
  beat();
  const timer = setInterval(beat, 1000);
  control.streams.add(response);
  response.on("close", () => {
    clearInterval(timer);
    control.streams.delete(response);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startHost(process.argv[3] ?? "well", Number(process.argv[2] ?? 0));
  console.log(url);
}
