// Compare: a recording and synthetic windows, by the evaluation of the package.

import { evaluate, fullReport } from "./api.js";
import { drawBars, drawMainSequence, drawMarginals, hasMainSequence, overallRatio, sequenceNote } from "./charts.js";
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
  drawBars($("#bars"), results.ratios);
  $("#verdict").textContent = summaryOf(overallRatio(results.ratios));
  $("#compare-notes").textContent = (results.notes || []).map(sentence).join(" ");
  $("#sequence-note").textContent = sequenceNote(results.main_sequence);
  $("#sequence").hidden = !hasMainSequence(results.main_sequence);
  await drawFamily();
  if (hasMainSequence(results.main_sequence)) await drawMainSequence($("#sequence"), results.main_sequence);
}

const drawFamily = () =>
  drawMarginals($("#marginals"), results.quantities.filter((one) => one.family === family.value && one.histogram), results.n_synthetic);

function summaryOf(ratio) {
  const compared = `${results.n_synthetic} synthetic windows, ${results.n_real} real windows.`;
  const few = Math.min(results.n_real, results.n_synthetic) < 100 ? " Below 100 windows chance dominates the distances." : "";
  if (!Number.isFinite(ratio)) return `${compared} No floor can be computed from this recording.${few}`;
  return `${compared} Median ratio to the floor: ${ratio.toFixed(2)}.${few}`;
}

const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}.`;

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
