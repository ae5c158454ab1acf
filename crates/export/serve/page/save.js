// Takes things away from the page: the curve as a picture, and the whole page as one file.
import { byVolume, get, savedKey } from "./api.js";
import { byId, setText } from "./dom.js";

/** @param {string} name @param {string} type @param {string} text */
function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What a drawing gets from the page's styles. */
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "paint-order",
];

/** @param {Element} from @param {Element} to */
function copyStyles(from, to) {
  const style = getComputedStyle(from);
  for (const name of STYLES) to.setAttribute(name, style.getPropertyValue(name));
  to.removeAttribute("class");
  [...from.children].forEach((child, at) => copyStyles(child, to.children[at]));
}

/** The two pictures side by side as one SVG, in the colours that are shown. @param {HTMLElement} root @param {any} volume */
export function savePicture(root, volume) {
  const pictures = /** @type {SVGSVGElement[]} */ ([...root.querySelectorAll("svg.picture")]);
  if (!pictures.length) return;
  const gap = 24;
  const sizes = pictures.map((picture) => [picture.clientWidth, picture.clientHeight]);
  const width = sizes.reduce((sum, [wide]) => sum + wide + gap, gap);
  const height = Math.max(...sizes.map(([, high]) => high)) + 2 * gap;
  const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const element of [whole, ground]) {
    element.setAttribute("width", String(width));
    element.setAttribute("height", String(height));
  }
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface"));
  whole.append(ground);
  let left = gap;
  pictures.forEach((picture, at) => {
    const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
    copyStyles(picture, copy);
    copy.removeAttribute("opacity");
    copy.setAttribute("x", String(left));
    copy.setAttribute("y", String(gap));
    whole.append(copy);
    left += sizes[at][0] + gap;
  });
  download(`headroom-curve-${fileName(volume)}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(whole));
}

/** @param {any} volume */
function fileName(volume) {
  return (
    `${volume.database}-${volume.mount}`
      .replace(/[^A-Za-z0-9]+/g, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 60) || "volume"
  );
}

/** @param {string} path */
const text = async (path) => (await fetch(path)).text();

/** A text as the source of a `data:` URL. @param {string} type @param {string} content */
function dataUrl(type, content) {
  const bytes = new TextEncoder().encode(content);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return `data:${type};base64,${btoa(binary)}`;
}

/** All modules that app.js leads to, by name. */
async function modules() {
  /** @type {Map<string, string>} */
  const found = new Map();
  const wanted = ["app.js"];
  for (let name = wanted.pop(); name; name = wanted.pop()) {
    if (found.has(name)) continue;
    const source = await text(name);
    // In a file modules have no address to be relative to: they are named by the import map.
    found.set(
      name,
      source.replace(/from "\.\/([a-z]+\.js)"/g, (_, other) => {
        wanted.push(other);
        return `from "headroom/${other}"`;
      }),
    );
  }
  return found;
}

/** What the page shows of the chosen volume and of the host. @param {any} state @param {any} volume */
async function answers(state, volume) {
  const paths = [
    "incidents",
    "capabilities",
    ...state.volumes.map((/** @type {any} */ one) => `verdicts?${byVolume(one.id)}`),
  ];
  if (volume) {
    paths.push(...["curve", "files", "waits", "devices"].map((name) => `${name}?${byVolume(volume.id)}`));
    paths.push(`series?${byVolume(volume.id)}&${byId("time-body").dataset.asked}`);
  }
  /** @type {Record<string, any>} */
  const kept = { state };
  await Promise.all(
    paths.map(async (path) => {
      try {
        kept[savedKey(path)] = await get(path);
      } catch (problem) {
        const { message, remedy } = /** @type {any} */ (problem);
        kept[savedKey(path)] = { error: message, try: remedy };
      }
    }),
  );
  return kept;
}

/** The page with its data as one file that needs no network. @param {any} state @param {any} volume */
export async function savePage(state, volume) {
  const button = byId("save");
  setText(button, "Saving");
  try {
    const [page, styles, chartStyles, charts, icon, sources, kept] = await Promise.all([
      text("./"),
      text("style.css"),
      text("uplot.css"),
      text("uplot.js"),
      text("favicon.svg"),
      modules(),
      answers(state, volume),
    ]);
    const imports = Object.fromEntries(
      [...sources].map(([name, source]) => [`headroom/${name}`, dataUrl("text/javascript", source)]),
    );
    const inert = (/** @type {any} */ value) => JSON.stringify(value).replace(/</g, "\\u003c");
    // As text: a document that is made here would apply this page's content security policy to its inline styles.
    const body = page
      .slice(page.indexOf("<body>"), page.indexOf("</body>"))
      .replaceAll("favicon.svg", dataUrl("image/svg+xml", icon));
    const whole = [
      "<!doctype html>",
      '<html lang="en">',
      "<head>",
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="color-scheme" content="light dark">',
      "<title>Headroom</title>",
      `<style>${chartStyles}${styles}</style>`,
      `<script type="application/json" id="saved">${inert({ saved_unix_s: state.now_unix_ns / 1e9, hash: location.hash, answers: kept })}</script>`,
      `<script>${charts}</script>`,
      `<script type="importmap">${inert({ imports })}</script>`,
      '<script type="module">import "headroom/app.js";</script>',
      "</head>",
      body,
      "</body>",
      "</html>",
      "",
    ].join("\n");
    const name = `headroom-${volume ? fileName(volume) : "host"}-${new Date(state.now_unix_ns / 1e6).toISOString().slice(0, 16).replace(/\D/g, "")}.html`;
    download(name, "text/html", whole);
  } finally {
    setText(button, "Save as a file");
  }
}
