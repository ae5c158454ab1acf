// Asks the agent, or the data within a saved page. Nothing else of the page does.

/** Why a figure is missing, and what to do. */
export class Problem extends Error {
  /** @param {string} message @param {string | null} remedy @param {number} status 0 where nothing answered */
  constructor(message, remedy, status) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

/** An agent that hangs must not hold the few connections of a browser. */
const PATIENCE_MS = 20_000;
/** Requests of one figure, where the agent is busy and says when to ask again. */
const TRIES = 4;

/** What a saved page carries: answers by path; null on a live page. @type {Record<string, any> | null} */
export const saved = readSaved();

function readSaved() {
  const element = document.getElementById("saved");
  return element ? JSON.parse(element.textContent ?? "{}") : null;
}

/** A saved page has one range of each series, whatever range is asked for. @param {string} path */
export const savedKey = (path) => path.replace(/&(from|to|points)=.*$/, "");

/**
 * The answer to a path: "state", "curve?volume=a1c4".
 * @param {string} path
 * @returns {Promise<any>}
 */
export async function get(path) {
  if (saved) {
    const answer = saved.answers[savedKey(path)];
    if (answer === undefined)
      throw new Problem("not part of this file: it was saved with another volume chosen", null, 404);
    if (answer.error) throw new Problem(answer.error, answer.try ?? null, 404);
    return answer;
  }
  const response = await answer(path);
  /** @type {any} */
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Problem(`the answer cannot be read (status ${response.status})`, null, response.status);
  }
  if (!response.ok) throw new Problem(body.error ?? `status ${response.status}`, body.try ?? null, response.status);
  return body;
}

/**
 * The response of an agent, which may be busy for a moment.
 * @param {string} path
 */
async function answer(path) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    for (let tries = 1; ; tries += 1) {
      const response = await fetch(`api/v1/${path}`, { signal });
      const seconds = Number(response.headers.get("retry-after"));
      if (response.status !== 503 || !seconds || tries === TRIES) return response;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  } catch {
    throw new Problem("the agent does not answer", null, 0);
  }
}

/** The parameter of a volume. @param {string} id */
export const byVolume = (id) => `volume=${encodeURIComponent(id)}`;
