// Compare: a recording and synthetic windows of its tasks, by the evaluation of the package. Results
// are shown as long as the settings are those they were computed with.

import { cancelJob, evaluateStream, reportStream } from "./api.js";
import { drawBars, drawMainSequence, drawMarginals, hasMainSequence, sequenceNote } from "./charts.js";
import { $, create, onTheme, say } from "./dom.js";
import { isReady, realForm } from "./recording.js";
import { store } from "./state.js";
import { currentTab, onTab } from "./tabs.js";

const status = $("#compare-status");
const progress = $("#compare-progress");
const family = $("#family");
// The share of the work that each stage begins and ends at.
const STAGES = { reading: [0, 0.1], generating: [0.1, 0.75], comparing: [0.75, 0.9], writing: [0.9, 1] };
let results = null; // with the settings they were computed with
let job = null; // {id, abort, settings} while one is running

// What a comparison is computed from, beside the files.
function fields() {
  const { model, seed, quality } = store.get("settings");
  return { model, task: store.get("real").task, n: $("#compare-n").value, seed, quality };
}

const settings = () => ({ summary: store.get("real")?.summary, words: store.get("real") && JSON.stringify(fields()) });
const isCurrent = (one) => one.summary === settings().summary && one.words === settings().words;

function showButtons() {
  for (const id of ["evaluate", "report"]) $(`#${id}`).disabled = Boolean(job) || !isReady(store.get("real"));
  $("#compare-cancel").hidden = !job;
}

// Results and jobs of other settings are not shown beside these.
function refresh() {
  if (results && !isCurrent(results.settings)) {
    results = null;
    $("#compare-results").hidden = true;
    progress.value = 0;
  }
  if (job && !isCurrent(job.settings)) cancel();
  if (!job) say(status, "");
  showButtons();
}

function showProgress({ stage, done, n }) {
  const [begin, end] = STAGES[stage];
  progress.value = begin + (n ? (done / n) * (end - begin) : 0);
  const words = {
    reading: `Reading the recording${done ? `: ${done}` : ""}…`,
    generating: `Generating: ${Math.floor(done)} of ${n} windows`,
    comparing: "Comparing…", writing: "Writing the full report…",
  };
  say(status, words[stage]);
}

// Follow the events of a job to its result; null where it was cancelled.
async function follow(stream, form) {
  const own = { id: null, abort: new AbortController(), settings: settings() };
  job = own;
  showButtons();
  say(status, "Sending…");
  try {
    for await (const { name, data } of stream(form, own.abort.signal)) {
      if (name === "queued") own.id = data.job;
      if (name === "queued" && data.ahead) say(status, `Waiting for ${data.ahead} other jobs.`);
      if (name === "progress") showProgress(data);
      if (name === "failed") throw new Error(data.error);
      if (name === "done") {
        progress.value = 1;
        say(status, "");
        return data;
      }
    }
    throw new Error("The server stopped before the end.");
  } catch (error) {
    progress.value = 0;
    if (own.isCancelled) say(status, "Cancelled.");
    else if (error.status === 404) throw error;
    else say(status, error.message, true);
    return null;
  } finally {
    job = null;
    showButtons();
  }
}

async function cancel() {
  const { id, abort } = job;
  job.isCancelled = true;
  if (id) await cancelJob(id).catch(() => null); // It may have ended in the meantime.
  abort.abort();
}

async function compare() {
  const before = settings();
  const found = await follow(evaluateStream, realForm(fields()));
  if (!found || !isCurrent(before)) return;
  results = { ...found, settings: before };
  const families = [...new Set(results.quantities.map((one) => one.family))];
  const shown = family.value;
  family.replaceChildren(...families.map((one) => create("option", { value: one }, one)));
  if (families.includes(shown)) family.value = shown;
  $("#compare-results").hidden = false;
  await draw();
}

async function draw() {
  if (!results || currentTab() !== "compare") return;
  const { no_ratio: why, headline, ratios, main_sequence: sequence } = results;
  $("#bars").hidden = Boolean(why);
  if (!why) drawBars($("#bars"), headline.synthetic, ratios);
  $("#headline").textContent = headlineOf(results);
  $("#floor").textContent = why ? "" : `Ratio: distance between synthetic and real windows, divided by the floor, the distance ` +
    `between ${results.floor}. 1 is the line; logarithmic axis.`;
  const notes = [results.compared, ...results.warnings, ...results.notes];
  $("#compare-notes").replaceChildren(...notes.map((note) => create("li", {}, sentence(note))));
  $("#sequence-note").textContent = sequenceNote(sequence);
  $("#sequence").hidden = !hasMainSequence(sequence);
  await drawFamily();
  if (hasMainSequence(sequence)) await drawMainSequence($("#sequence"), sequence);
}

const drawFamily = () =>
  drawMarginals($("#marginals"), results.quantities.filter((one) => one.family === family.value && one.histogram), results.n_synthetic);

// The verdict in words: the ratio with its interval, or why none is stated; percentages are against
// recorded windows.
function headlineOf({ no_ratio: why, n_common: n, headline: { synthetic } }) {
  const { ratio, n_above: above, n_distances: total, ...counts } = synthetic;
  const names = {
    saccade_count_percent: "saccades", path_length_percent: "path length", main_sequence_percent: "slope of the main sequence",
  };
  const percent = (value) => `${Math.round(value) < 0 ? "−" : "+"}${Math.abs(value).toFixed(0)}\u00a0%`;
  const known = Object.entries(names).filter(([key]) => Number.isFinite(counts[key]?.value));
  const against = known.length
    ? ` Against recorded windows: ${known.map(([key, name]) => `${name} ${percent(counts[key].value)}`).join(", ")}.` : "";
  if (why || !Number.isFinite(ratio?.value)) return `No ratio to the floor: ${why || "it cannot be computed"}.${against}`;
  const [low, high] = ratio.interval || [];
  const interval = ratio.interval ? ` (95 % interval ${low.toFixed(2)} to ${high.toFixed(2)})` : "";
  return `Median ratio to the floor ${ratio.value.toFixed(2)}${interval}, with ${n} windows per set; ` +
    `${above.value} of ${total} distances exceed 1.5.${against}`;
}

const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}${note.endsWith(".") ? "" : "."}`;

// The report is of the comparison in view, which is made first where there is none.
async function report() {
  const tab = window.open("", "_blank"); // It must be opened by the click itself.
  if (tab) tab.document.title = "Writing the report…";
  if (!results) await compare();
  const page = results && (await writtenReport());
  if (!page) {
    tab?.close();
    return;
  }
  const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  if (tab) tab.location = url;
  else create("a", { href: url, target: "_blank" }).click();
}

async function writtenReport() {
  const kept = new FormData();
  kept.append("comparison", results.comparison || "");
  try {
    const found = await follow(reportStream, results.comparison ? kept : realForm(fields()));
    return found?.page;
  } catch {
    return (await follow(reportStream, realForm(fields())))?.page; // The server no longer keeps the comparison.
  }
}

export function startCompare() {
  $("#evaluate").addEventListener("click", compare);
  $("#report").addEventListener("click", report);
  $("#compare-cancel").addEventListener("click", cancel);
  $("#compare-n").addEventListener("input", refresh);
  family.addEventListener("change", drawFamily);
  store.on(["real", "settings"], refresh);
  onTheme(draw);
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) > 40 && results) draw();
    width = entry.contentRect.width;
  }).observe($("#compare-results"));
  onTab((name) => name === "compare" && draw());
}
