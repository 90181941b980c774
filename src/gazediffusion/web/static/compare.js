// Compare: a real recording beside synthetic gaze, by the package's own evaluation.

import { evaluate, fullReport } from "./api.js";
import { drawBars, drawMainSequence, drawMarginals, hasMainSequence, overallRatio, sequenceNote } from "./charts.js";
import { $, make, onTheme, say } from "./dom.js";
import { acceptFiles } from "./drop.js";
import { describeReal, readReal, realForm, wantReal } from "./real.js";
import { store } from "./state.js";
import { currentTab, onTab } from "./tabs.js";

const status = $("#compare-status");
const family = $("#family");
let results = null;

// What the server is asked for: the form's settings, but as many windows as stated here.
function order() {
  const { model, task, seed, quality } = store.get("settings");
  return realForm(store.get("real").files, { model, task, seed, quality, n: $("#compare-n").value });
}

// Run something long: buttons rest, the seconds count, errors are shown as the server says them.
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

async function takeFiles(files) {
  await during("Reading…", () => readReal(files));
  if (store.get("real")?.files === files) await compare();
}

const compare = () => during("Generating and comparing…", async () => {
  results = await evaluate(order());
  const families = [...new Set(results.quantities.map((one) => one.family))];
  const before = family.value;
  family.replaceChildren(...families.map((one) => make("option", { value: one }, one)));
  if (families.includes(before)) family.value = before;
  $("#compare-results").hidden = false;
  await draw();
});

async function draw() {
  if (!results || currentTab() !== "compare") return;
  drawBars($("#bars"), results.ratios);
  $("#verdict").textContent = judged(overallRatio(results.ratios));
  $("#compare-notes").textContent = (results.notes || []).map(sentence).join(" ");
  $("#sequence-note").textContent = sequenceNote(results.main_sequence);
  $("#sequence").hidden = !hasMainSequence(results.main_sequence);
  await drawFamily();
  if (hasMainSequence(results.main_sequence)) await drawMainSequence($("#sequence"), results.main_sequence);
}

const drawFamily = () =>
  drawMarginals($("#marginals"), results.quantities.filter((one) => one.family === family.value && one.histogram), results.n_synthetic);

function judged(ratio) {
  const few = results.n_real < 30 || results.n_synthetic < 30 ? " Few windows: take the numbers as a hint." : "";
  if (!Number.isFinite(ratio)) return `No floor could be computed from this recording.${few}`;
  const [made, people] = [`The ${results.n_synthetic} synthetic windows are`, `the ${results.n_real} real ones`];
  return ratio <= 1.2
    ? `${made} as near to ${people} as people are to people.${few}`
    : `${made} ${ratio.toFixed(1)} times as far from ${people} as people are from people.${few}`;
}

const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}.`;

// A tab must be opened by the click itself; the page goes into it when it is there.
async function report() {
  const tab = window.open("", "_blank");
  if (tab) tab.document.title = "Making the report…";
  await during("Making the full report…", async () => {
    try {
      const url = URL.createObjectURL(await fullReport(order()));
      if (tab) tab.location = url;
      else make("a", { href: url, target: "_blank" }).click();
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
  acceptFiles($("#compare-drop"), $("#compare-files"), takeFiles);
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
    await wantReal().catch((error) => say(status, error.message, true));
    draw();
  });
}
