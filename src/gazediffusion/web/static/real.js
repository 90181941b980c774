// The recording to compare with: that of the server, or a dropped one. All tabs share it.

import { getReal, postReal } from "./api.js";
import { $ } from "./dom.js";
import { store } from "./state.js";

// The fields of a request about the recording: its files, and its screen if they do not state it.
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
  if (size > most) throw new Error(`${size.toFixed(0)} MB exceed the ${most} MB that this server accepts.`);
  const { model } = store.get("settings");
  const summary = await postReal(realForm(files, { model }));
  store.set({ real: { summary, files, name: files.map((file) => file.name).join(", ") } });
}

// The recording of --real, read when a tab needs it.
export async function loadReal() {
  if (store.get("real") || !store.get("server")?.has_real) return;
  store.set({ real: { summary: await getReal(), files: null, name: "The recording given to the server" } });
}

export function describeReal({ summary, name }) {
  const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
  const tasks = (summary.tasks || []).map((task) => task.replaceAll("_", " ")).join(", ");
  return `${name}: ${count(summary.n_windows, "window")} of ${count(summary.participants.length, "participant")}` +
    `${tasks ? `, ${tasks}` : ""}, ${Math.round(summary.rate_hz)} Hz.`;
}
