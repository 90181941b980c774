// Export: the shown windows as files, and the command and program that write the same files.

import { generateFile } from "./api.js";
import { $, create, say } from "./dom.js";
import { store } from "./state.js";

const status = $("#export-status");

function save({ blob, name }) {
  const url = URL.createObjectURL(blob);
  const link = create("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function sizeOf(bytes) {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} kB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

async function download(button) {
  const buttons = [...$("#formats").children];
  for (const one of buttons) one.disabled = true;
  button.classList.add("busy");
  say(status, `Writing ${$("b", button).textContent}…`);
  try {
    const file = await generateFile(store.get("generated").settings, button.dataset.format);
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
    // Without a secure address there is no clipboard API: select the text and copy it.
    const area = create("textarea");
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
  const generated = store.get("generated");
  $("#export-empty").hidden = Boolean(generated);
  $("#export-body").hidden = !generated;
  if (!generated) return;
  $("#command").textContent = generated.command;
  $("#python").textContent = generated.python;
  say(status, `The ${generated.n} windows shown in Explore, seed ${generated.settings.seed}.`);
}

export function startExport() {
  for (const button of $("#formats").children) button.addEventListener("click", () => download(button));
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  store.on("generated", show);
}
