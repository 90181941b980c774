// Compare: a recording and synthetic windows, by the evaluation of the package.

import { evaluate, fullReport } from "./api.js";
import { drawBars, drawMainSequence, drawMarginals, hasMainSequence, sequenceNote } from "./charts.js";
import { $, create, onTheme, say } from "./dom.js";
import { acceptFiles } from "./drop.js";
import { describeReal, readReal, realForm, loadReal } from "./real.js";
import { store } from "./state.js";
import { currentTab, onTab } from "./tabs.js";

const status = $("#compare-status");
const family = $("#family");
let results = null;

// The fields of a request: the settings of the form, with the number of windows stated here.
function requestForm() {
  const { model, task, seed, quality } = store.get("settings");
  return realForm(store.get("real").files, { model, task, seed, quality, n: $("#compare-n").value });
}

// During long work buttons are disabled, the seconds are counted, and errors are shown.
async function during(words, work) {
  const buttons = [$("#evaluate"), $("#report")];
  const start = performance.now();
  const count = () => say(status, `${words} ${Math.round((performance.now() - start) / 1000)} s`);
  const timer = setInterval(count, 1000);
  count();
  for (const button of buttons) button.disabled = true;
  try {
    await work();
    say(status, "");
  } catch (error) {
    say(status, error.message, true);
    if (/screen/i.test(error.message)) $("#screen-details").open = true;
  } finally {
    clearInterval(timer);
    for (const button of buttons) button.disabled = !store.get("real");
  }
}

async function readFiles(files) {
  await during("Reading…", () => readReal(files));
  if (store.get("real")?.files === files) await compare();
}

const compare = () => during("Generating and comparing…", async () => {
  results = await evaluate(requestForm());
  const families = [...new Set(results.quantities.map((one) => one.family))];
  const before = family.value;
  family.replaceChildren(...families.map((one) => create("option", { value: one }, one)));
  if (families.includes(before)) family.value = before;
  $("#compare-results").hidden = false;
  await draw();
});

async function draw() {
  if (!results || currentTab() !== "compare") return;
  drawBars($("#bars"), results.headline.synthetic, results.ratios);
  $("#headline").textContent = headlineOf(results.headline.synthetic);
  const notes = [results.compared, ...results.warnings, ...results.notes];
  $("#compare-notes").replaceChildren(...notes.map((note) => create("li", {}, sentence(note))));
  $("#sequence-note").textContent = sequenceNote(results.main_sequence);
  $("#sequence").hidden = !hasMainSequence(results.main_sequence);
  await drawFamily();
  if (hasMainSequence(results.main_sequence)) await drawMainSequence($("#sequence"), results.main_sequence);
}

const drawFamily = () =>
  drawMarginals($("#marginals"), results.quantities.filter((one) => one.family === family.value && one.histogram), results.n_synthetic);

// The headline in words; percentages are against recorded windows.
function headlineOf({ ratio, n_above: above, n_distances: total, ...counts }) {
  if (!Number.isFinite(ratio?.value)) return "No floor can be computed from this recording.";
  const names = {
    saccade_count_percent: "saccades", path_length_percent: "path length", main_sequence_percent: "slope of the main sequence",
  };
  const percent = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(0)}\u00a0%`;
  const known = Object.entries(names).filter(([key]) => Number.isFinite(counts[key]?.value));
  const against = known.map(([key, name]) => `${name} ${percent(counts[key].value)}`);
  return `Median ratio to the floor ${ratio.value.toFixed(2)}; ${above.value} of ${total} distances exceed 1.5` +
    `${against.length ? `. Against recorded windows: ${against.join(", ")}` : ""}.`;
}

const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}${note.endsWith(".") ? "" : "."}`;

// A tab must be opened by the click itself; the report is loaded into it when it is written.
async function report() {
  const tab = window.open("", "_blank");
  if (tab) tab.document.title = "Writing the report…";
  await during("Writing the full report…", async () => {
    try {
      const url = URL.createObjectURL(await fullReport(requestForm()));
      if (tab) tab.location = url;
      else create("a", { href: url, target: "_blank" }).click();
    } catch (error) {
      tab?.close();
      throw error;
    }
  });
}

function showReal() {
  const real = store.get("real");
  say($("#real-summary"), real ? describeReal(real) : "No recording yet.");
  for (const id of ["evaluate", "report"]) $(`#${id}`).disabled = !real;
}

export function startCompare() {
  acceptFiles($("#compare-drop"), $("#compare-files"), readFiles);
  $("#evaluate").addEventListener("click", compare);
  $("#report").addEventListener("click", report);
  family.addEventListener("change", drawFamily);
  store.on("real", showReal);
  onTheme(draw);
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) > 40 && results) draw();
    width = entry.contentRect.width;
  }).observe($("#compare-results"));
  onTab(async (name) => {
    if (name !== "compare") return;
    await loadReal().catch((error) => say(status, error.message, true));
    draw();
  });
}
