// The form of a generation: filled from the server's models, read as settings.

import { $, create } from "./dom.js";
import { modelOf, store } from "./state.js";

const form = $("#generate");
const DEFAULT_WINDOWS = 6;

function fillSelect(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => create("option", { value: key }, text)));
  if (entries.some(([key]) => key === value)) select.value = value;
  select.disabled = entries.length === 0;
}

export const plainTask = (task) => (task ? task.replaceAll("_", " ") : "mixture of tasks");

function showModel() {
  const model = modelOf(form.model.value);
  const tasks = (model.tasks || []).map((task) => [task, plainTask(task)]);
  fillSelect(form.task, [["", tasks.length ? "mixture of tasks" : "no tasks"], ...tasks], form.task.value);
  fillSelect(form.quality, (model.qualities || ["default"]).map((one) => [one, one]), form.quality.value || "default");
  if (![...form.quality.options].some((one) => one.selected && one.value)) form.quality.value = "default";
  form.seconds.value = model.seconds;
  form.track_loss.disabled = !model.has_losses;
  form.track_loss.checked &&= model.has_losses;
  $("#track-loss-label").title = model.has_losses ? "" : "This model has no table of losses.";
  form.labels.disabled = !model.has_labels;
  form.labels.checked &&= model.has_labels;
  $("#labels-label").title = model.has_labels
    ? "The model's class of every sample: fixation, saccade, pursuit or noise." : "This model has no labels.";
}

// The values of the form. Nothing is corrected here: the server reports invalid values.
export function readSettings() {
  return {
    model: form.model.value,
    task: form.task.value || null,
    n: Number(form.n.value),
    seed: Number(form.seed.value),
    quality: form.quality.value,
    seconds: form.seconds.value === "" ? null : Number(form.seconds.value),
    track_loss: form.track_loss.checked,
    labels: form.labels.checked,
  };
}

export const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0] % 1_000_000;

function publish() {
  store.set({ settings: readSettings() });
}

// Show the models of the server; the chosen model stays chosen.
export function showServer() {
  const server = store.get("server");
  const before = form.model.disabled ? server.default : form.model.value;
  fillSelect(form.model, server.models.map((one) => [one.name, one.name]), before);
  form.n.max = server.limits.max_windows;
  form.n.value = Math.min(Number(form.n.value) || DEFAULT_WINDOWS, server.limits.max_windows);
  if (form.quality.disabled) {
    showModel();
    form.quality.value = "default";
  }
  $("#start").disabled = server.models.length === 0;
  publish();
}

export function startSettings() {
  form.model.addEventListener("change", showModel);
  form.addEventListener("change", publish);
  form.addEventListener("input", publish);
  $("#dice").addEventListener("click", () => {
    form.seed.value = randomSeed();
    publish();
  });
  store.on("settings", ({ settings }) => {
    for (const line of document.querySelectorAll(".settings-line")) {
      const change = create("button", { class: "link", type: "button" }, "change");
      change.addEventListener("click", () => $("#tab-explore").click());
      const seed = "fresh" in line.dataset ? "new seed" : `seed ${settings.seed}`;
      line.replaceChildren(`Synthetic windows: ${settings.model}, tasks of the recording, ${settings.quality} quality, ${seed} · `, change);
    }
  });
}
