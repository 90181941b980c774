// Generate: send the form, show windows and progress as they arrive, cancel.

import { cancelJob, generateStream } from "./api.js";
import { $, say } from "./dom.js";
import { dropEmpty, reserve } from "./gallery.js";
import { gazeWindow, ratioOf } from "./gaze.js";
import { plainTask, readSettings } from "./settings.js";
import { modelOf, screensOf, store } from "./state.js";

const status = $("#status");
const progress = $("#progress");
let job = null; // {id, abort} while one is running

function showBusy(isBusy) {
  $("#start").disabled = isBusy;
  $("#start").textContent = isBusy ? "Generating…" : "Generate";
  $("#cancel").hidden = !isBusy;
  $("#first").disabled = isBusy;
  progress.classList.toggle("busy", isBusy);
}

function begin(settings, model) {
  store.set({ windows: [], selected: null, generated: null });
  reserve(settings.n, Math.min(...screensOf(model, settings.task).map(ratioOf)));
}

const words = (n) => `${n} ${n === 1 ? "window" : "windows"}`;

// Show one event of the stream.
function show({ name, data }, settings, model) {
  if (name === "queued") {
    job.id = data.job;
    say(status, data.ahead ? `Waiting for ${data.ahead} other jobs.` : "Starting…");
  } else if (name === "started") {
    say(status, "Generating the first window…");
  } else if (name === "progress") {
    progress.value = data.done / data.n;
  } else if (name === "window") {
    const windows = [...store.get("windows")];
    windows[data.index] = gazeWindow(data, model.rate_hz);
    store.set({ windows });
    if (store.get("selected") === null) store.set({ selected: data.index });
    say(status, `${windows.filter(Boolean).length} of ${words(settings.n)}`);
  } else if (name === "done") {
    progress.value = 1;
    store.set({ generated: { ...data, settings } });
    say(status, `${words(data.n)} in ${data.seconds_taken.toFixed(1)} s.`);
  } else if (name === "failed") {
    throw new Error(data.error);
  }
}

async function generate(event) {
  event?.preventDefault();
  if (job) return;
  const settings = readSettings();
  const model = modelOf(settings.model);
  job = { id: null, abort: new AbortController(), isCancelled: false };
  showBusy(true);
  progress.value = 0;
  say(status, "Sending the request…");
  let hasBegun = false;
  try {
    for await (const one of generateStream(settings, job.abort.signal)) {
      // The windows in view stay until the server has accepted the request.
      if (!hasBegun && one.name !== "failed") begin(settings, model);
      hasBegun = true;
      show(one, settings, model);
    }
    if (!store.get("generated") && !job.isCancelled) throw new Error("The server stopped before all windows were generated.");
  } catch (error) {
    if (!job.isCancelled) {
      progress.value = 0;
      say(status, error.message, true);
    }
  }
  if (job.isCancelled) say(status, `Cancelled after ${words(store.get("windows").filter(Boolean).length)}.`);
  if (hasBegun) dropEmpty();
  job = null;
  showBusy(false);
}

async function cancel() {
  if (!job) return;
  const { id, abort } = job;
  job.isCancelled = true;
  if (id) await cancelJob(id).catch(() => null); // It may have ended in the meantime.
  abort.abort();
}

// The windows in view stay when the form changes; the status says of which settings they are.
function showStale() {
  const generated = store.get("generated");
  if (job || !generated) return;
  const { model, task, quality, seed, track_loss, labels } = generated.settings;
  const added = [track_loss && "track loss", labels && "labels"].filter(Boolean).join(" and ");
  const isSame = JSON.stringify(generated.settings) === JSON.stringify(store.get("settings"));
  say(status, isSame ? `${words(generated.n)} in ${generated.seconds_taken.toFixed(1)} s.`
    : `The windows shown are of ${model}, ${plainTask(task)}, ${quality} quality, seed ${seed}${added && `, with ${added}`}.`);
}

export function startGenerate() {
  store.on("settings", showStale);
  $("#generate").addEventListener("submit", generate);
  $("#first").addEventListener("click", () => generate());
  $("#cancel").addEventListener("click", cancel);
}
