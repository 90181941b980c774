// The real recording: given to the server at its start, or dropped here. One for all parts.

import { getReal, postReal } from "./api.js";
import { $ } from "./dom.js";
import { store } from "./state.js";

// The fields of a request about the recording: its files, and its screen where they do not say.
export function realForm(files, fields = {}) {
  const form = new FormData();
  for (const file of files || []) form.append("files", file, file.name);
  const screen = { screen: $("#screen").value, screen_cm: $("#screen-cm").value, distance_cm: $("#distance-cm").value };
  for (const [name, value] of Object.entries({ ...(files ? screen : {}), ...fields })) {
    if (value !== null && value !== undefined && value !== "") form.append(name, value);
  }
  return form;
}

export async function readReal(files) {
  const { max_upload_mb: most } = store.get("server").limits;
  const size = files.reduce((sum, file) => sum + file.size, 0) / 2 ** 20;
  if (size > most) throw new Error(`${size.toFixed(0)} MB are more than the ${most} MB that this server takes.`);
  const { model } = store.get("settings");
  const summary = await postReal(realForm(files, { model }));
  store.set({ real: { summary, files, name: files.map((file) => file.name).join(", ") } });
}

// The recording given with --real, read once somebody wants to see it.
export async function wantReal() {
  if (store.get("real") || !store.get("server")?.has_real) return;
  store.set({ real: { summary: await getReal(), files: null, name: "The recording given to the server" } });
}

export function describeReal({ summary, name }) {
  const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
  const people = Array.isArray(summary.participants) ? summary.participants.length : summary.participants;
  const tasks = (summary.tasks || []).map((task) => task.replaceAll("_", " ")).join(", ");
  return `${name}: ${count(summary.n_windows, "window")} of ${count(people, "person").replace("persons", "people")}` +
    `${tasks ? `, ${tasks}` : ""}, ${Math.round(summary.rate_hz)} Hz.`;
}
