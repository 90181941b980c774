// The recording to compare with: that of the server, or chosen files, with a form for what they do
// not state. Compare and the blind test share both; the form is shown in the tab that is open.

import { getReal, postReal } from "./api.js";
import { $, create, say } from "./dom.js";
import { acceptFiles } from "./drop.js";
import { screenInWords } from "./gaze.js";
import { fieldOf, fieldsIn } from "./labels.js";
import { modelOf, store } from "./state.js";
import { currentTab, onTab } from "./tabs.js";

const TABS = ["compare", "blind"];
const ABOUT = ["screen", "screen_cm", "distance_cm", "unit", "origin", "source_rate", "columns", "override_screen"];
const MAX_FILES = 1000; // of one form, as the server accepts it
const form = $("#recording");
const status = $("#recording-status");
let chosen = null; // the files, kept also where they could not be read
let reading = null; // {model, abort} of the last reading

// What the form states of chosen files.
function stated() {
  const given = new FormData(form);
  return Object.fromEntries(ABOUT.map((name) => [name, given.get(name)]).filter(([, value]) => value));
}

// The fields of a request about the recording; those of the server are not sent.
export function realForm(fields) {
  const data = new FormData();
  for (const { file, path } of chosen || []) data.append("files", file, path);
  for (const [name, value] of Object.entries({ ...(chosen ? stated() : {}), ...fields })) {
    if (value !== null && value !== undefined && value !== "") data.append(name, value);
  }
  return data;
}

function requireSize(files) {
  const { max_upload_mb: most } = store.get("server").limits;
  const size = files.reduce((sum, { file }) => sum + file.size, 0) / 2 ** 20;
  if (size > most) throw new Error(`${size.toFixed(0)} MB exceed the ${most} MB that this server accepts.`);
  if (files.length > MAX_FILES) throw new Error(`${files.length} files exceed the ${MAX_FILES} that this server accepts.`);
}

const nameOf = (files) => (files.length > 3 ? `${files.length} files` : files.map(({ path }) => path).join(", "));

// Read the chosen files, or those of the server; a reading that is still running is ended.
async function read() {
  const { model } = store.get("settings");
  reading?.abort.abort();
  const own = { model, abort: new AbortController() };
  reading = own;
  store.set({ real: null });
  $("#read-again").disabled = true;
  say(status, "Reading…");
  try {
    if (chosen) requireSize(chosen);
    const summary = chosen ? await postReal(realForm({ model }), own.abort.signal) : await getReal(model);
    if (own !== reading) return;
    say(status, "");
    $("#about-recording").open = false;
    store.set({ real: { summary, model, task: null, name: chosen ? nameOf(chosen) : "The recording given to the server" } });
  } catch (error) {
    if (own !== reading) return;
    say(status, error.message, true);
    showNeeded(error.message);
  } finally {
    if (own === reading) $("#read-again").disabled = !chosen;
  }
}

// Open the fields that an error names, and mark them.
function showNeeded(line) {
  const fields = fieldsIn(line).map((name) => fieldOf(name, form)).filter((field) => field && form.contains(field));
  for (const field of fields) field.setAttribute("aria-invalid", "true");
  if (!fields.length) return;
  $("#about-recording").open = true;
  fields[0].focus();
}

// Recorded tasks that the model does not have. A model without tasks generates windows of one kind.
function unknownTasks(real) {
  if (!modelOf(real.model).tasks.length) return [];
  return Object.entries(real.summary.model_tasks).filter(([, task]) => !task).map(([name]) => name);
}

export const isReady = (real) => Boolean(real) && (unknownTasks(real).length === 0 || Boolean(real.task));

// The model's task for a recorded one.
export const taskOf = (real, recorded) => real.summary.model_tasks[recorded] || real.task;

const plain = (task) => (task === "unknown" ? "not stated" : task.replaceAll("_", " "));

function describeReal({ summary, name }) {
  const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
  const tasks = summary.tasks.map(plain);
  const some = tasks.length > 4 ? `${tasks.slice(0, 4).join(", ")} and ${tasks.length - 4} more` : tasks.join(", ");
  const screens = summary.screens.length === 1 ? screenInWords(summary.screens[0]) : `${summary.screens.length} screens`;
  return `${name}: ${count(summary.n_windows, "window")} of ${count(summary.participants.length, "participant")}, ` +
    `${Math.round(summary.rate_hz)} Hz, ${screens}, task ${some}.`;
}

function showReal() {
  const real = store.get("real");
  say($("#real-summary"), real ? describeReal(real) : chosen ? nameOf(chosen) : "No recording yet.");
  const unknown = real ? unknownTasks(real) : [];
  $("#task-ask").hidden = unknown.length === 0;
  if (!unknown.length || real.task) return;
  const named = unknown.filter((name) => name !== "unknown").map(plain);
  const which = named.length ? `This model has no task ${named.slice(0, 3).join(", ")}${named.length > 3 ? " …" : ""}.` : "The files state no task.";
  $("#task-ask span").textContent = `${which} What did the participants do? Synthetic windows will be of this task:`;
  const options = modelOf(real.model).tasks.map((task) => create("option", { value: task }, plain(task)));
  $("#recorded-task").replaceChildren(create("option", { value: "" }, "choose a task"), ...options);
}

// Where the form is shown, and what is read when a tab opens: another model needs other windows.
function open(name) {
  if (!TABS.includes(name)) return;
  $(`#${name} .recording-slot`).append(form);
  const server = store.get("server");
  if (!server || store.get("real") || reading?.model === store.get("settings").model) return;
  if (chosen || server.has_real) read();
}

export function startRecording() {
  acceptFiles($("#drop"), [$("#files"), $("#folder")], (files) => {
    chosen = files;
    read();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen) read();
  });
  form.addEventListener("input", ({ target }) => target.removeAttribute("aria-invalid"));
  // The windows that were read are no longer those that the form describes.
  form.addEventListener("change", ({ target }) => {
    if (!chosen || !ABOUT.includes(target.name)) return;
    store.set({ real: null });
    say(status, "Read again with what is stated here.");
  });
  $("#recorded-task").addEventListener("change", ({ target }) => {
    store.set({ real: { ...store.get("real"), task: target.value || null } });
  });
  store.on("real", showReal);
  store.on("settings", ({ settings, real }) => {
    if (real && real.model !== settings.model) store.set({ real: null });
    if (reading?.model !== settings.model) reading?.abort.abort();
    if (TABS.includes(currentTab())) open(currentTab());
  });
  onTab(open);
}
