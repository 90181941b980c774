// The start: request the models, start the tabs, pass keys to the open tab.

import { getModels } from "./api.js";
import { handleBlindKey, startBlind } from "./blind.js";
import { startCompare } from "./compare.js";
import { $, say } from "./dom.js";
import { ignoreDrops } from "./drop.js";
import { startExport } from "./export.js";
import { startGallery } from "./gallery.js";
import { startGenerate } from "./generate.js";
import { startRecording } from "./recording.js";
import { handleReplayKey, startReplay } from "./replay.js";
import { showServer, startSettings } from "./settings.js";
import { store } from "./state.js";
import { currentTab, openTab, startTabs } from "./tabs.js";
import { startTraces } from "./traces.js";

const RETRY_MS = 5000;

async function connect() {
  let server;
  try {
    server = await getModels();
  } catch (error) {
    $("#offline").hidden = false;
    $("#offline p").textContent = error.message;
    say($("#status"), "Not connected.", true);
    if (error.isOffline) setTimeout(connect, RETRY_MS);
    return;
  }
  $("#offline").hidden = true;
  store.set({ server });
  const { models, version } = server;
  $("#version").textContent = `gazediffusion ${version}`;
  say($("#status"), models.length ? "Ready." : "This server has no model; start it with --model RUN.", !models.length);
  if (!models.length) return;
  showServer();
  openTab(currentTab()); // The open tab may need the server.
}

// Space and arrows belong to the open tab, unless the focused element uses them itself: fields
// always, buttons and links when they were reached with the keyboard.
function usesKeys(element, key) {
  if (element.closest("input, select, textarea, summary, [role=listbox], [role=tab], pre")) return true;
  return key === " " && element.matches("button:focus-visible, a:focus-visible");
}

function handleKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target !== document.body && usesKeys(event.target, event.key)) return;
  const handlers = { explore: handleReplayKey, blind: handleBlindKey };
  if (handlers[currentTab()]?.(event)) event.preventDefault();
}

startSettings();
startReplay();
startTraces();
startGallery();
startGenerate();
startRecording();
startCompare();
startBlind();
startExport();
ignoreDrops();
startTabs();
document.addEventListener("keydown", handleKey);
$("#retry").addEventListener("click", connect);
connect();
