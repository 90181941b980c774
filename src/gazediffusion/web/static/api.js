// The HTTP API as functions: every request carries the page's token, every failure is one line.

const STORED = "gazediffusion-token";
const token = takeToken();

// The token of the page's address, which only starts the page: it is kept for this tab and leaves
// the address bar, the history and every further address.
function takeToken() {
  const parameters = new URLSearchParams(location.search);
  const given = parameters.get("token");
  if (given === null) return sessionStorage.getItem(STORED);
  sessionStorage.setItem(STORED, given);
  parameters.delete("token");
  const query = parameters.toString();
  history.replaceState(history.state, "", location.pathname + (query ? `?${query}` : "") + location.hash);
  return given;
}

// A header carries Latin-1: the bytes of UTF-8 are sent one by one.
const inBytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }

  get isOffline() {
    return this.status === 0;
  }
}

export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function request(path, options = {}, parameters = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${inBytes(token)}` } : {}) };
  let response;
  try {
    response = await fetch(address(path, parameters), { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not respond. Is gazediffusion serve still running?");
  }
  if (!response.ok) throw new ServerError(await errorLine(response), response.status);
  return response;
}

async function errorLine(response) {
  if (response.status === 401) {
    return "This playground needs its token: open the address that gazediffusion serve printed.";
  }
  const body = await response.json().catch(() => ({}));
  const line = typeof body.error === "string" ? body.error : `The server responded with ${response.status}.`;
  const wait = response.status === 429 && response.headers.get("Retry-After");
  return wait ? `${line} (try again in ${wait} s)` : line;
}

export const getModels = async () => (await request("api/models")).json();

export const getReal = async (model) => (await request("api/real", {}, { model })).json();

const posted = (form, signal) => ({ method: "POST", body: form, signal });

export const postReal = async (form, signal) => (await request("api/real", posted(form, signal))).json();

export const cancelJob = (id) => request(`api/jobs/${encodeURIComponent(id)}/cancel`, { method: "POST" });

// A generated set as a file: its bytes and its name.
export async function generateFile(settings, format) {
  const response = await request("api/generate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...settings, format }),
  });
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") || "");
  return { blob: await response.blob(), name: named ? named[1] : `gaze.${format}` };
}

export const generateStream = (settings, signal) => events("api/generate/stream", { signal }, settings);

// A comparison, and the report of one, with progress: events queued, progress, done or failed.
export const evaluateStream = (form, signal) => events("api/evaluate/stream", posted(form, signal));

export const reportStream = (form, signal) => events("api/report/stream", posted(form, signal));

// Server-sent events. Read by fetch and not by EventSource, which sends no token, hides the error
// line and would silently repeat a failed job.
async function* events(path, options, parameters = {}) {
  const response = await request(path, options, parameters);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).replace(/\r\n?/g, "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) yield event;
    }
  }
}

export function parseEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}
