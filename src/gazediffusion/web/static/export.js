// Take home: the shown set as files, and the lines that make the same data elsewhere.

import { generateFile } from "./api.js";
import { $, make, say } from "./dom.js";
import { store } from "./state.js";

const status = $("#takehome-status");

function save({ blob, name }) {
  const url = URL.createObjectURL(blob);
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function sizeOf(bytes) {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} kB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

async function take(button) {
  const buttons = [...$("#formats").children];
  for (const one of buttons) one.disabled = true;
  button.classList.add("busy");
  say(status, `Writing ${$("b", button).textContent}…`);
  try {
    const file = await generateFile(store.get("made").settings, button.dataset.format);
    save(file);
    say(status, `Saved ${file.name}, ${sizeOf(file.blob.size)}.`);
  } catch (error) {
    say(status, error.message, true);
  } finally {
    for (const one of buttons) one.disabled = false;
    button.classList.remove("busy");
    button.focus();
  }
}

async function copy(button) {
  const text = $(`#${button.dataset.copy}`).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure address there is no clipboard to ask: select the text the old way.
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function show() {
  const made = store.get("made");
  $("#takehome-empty").hidden = Boolean(made);
  $("#takehome-body").hidden = !made;
  if (!made) return;
  $("#command").textContent = made.command;
  $("#python").textContent = made.python;
  say(status, `The ${made.n} windows you are looking at, seed ${made.settings.seed}.`);
}

export function startTakeHome() {
  for (const button of $("#formats").children) button.addEventListener("click", () => take(button));
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  store.on("made", show);
}
