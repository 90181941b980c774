// The replay: the selected window on its own screen, with controls of time and layers.

import { Clock } from "./clock.js";
import { $, colours, fitted, onTheme, say, prefersReducedMotion } from "./dom.js";
import { drawFixations, drawPoint, drawPursuits, drawSaccades, drawScreen, drawTrail } from "./draw.js";
import { acceptFiles } from "./drop.js";
import { durationOf, factsOf, ratioOf, screenInWords } from "./gaze.js";
import { isCoarse } from "./plots.js";
import { modelOf, screensOf, store } from "./state.js";

export const clock = new Clock();

const canvas = $("#replay");
const scrub = $("#scrub");
const STEP_MS = 100;
let palette = null;
let image = null;
let gaze = null;

const seconds = (time) => `${(time / 1000).toFixed(2)} s`;
const isShown = (layer) => $(`#show-${layer}`).checked;

// The ratios of screens that may be shown.
function ratios() {
  const { model, task } = store.get("generated")?.settings || store.get("settings") || {};
  return model ? screensOf(modelOf(model), task).map(ratioOf) : [16 / 9];
}

function draw() {
  palette ||= colours();
  const possible = ratios();
  const ratio = gaze ? ratioOf(gaze.screen) : possible[0];
  // The frame keeps its size while windows of different screens are shown in it.
  $(".replay").style.setProperty("--widest", Math.max(...possible, ratio));
  $(".replay").style.setProperty("--ratio", ratio);
  const surface = fitted(canvas, ratio);
  if (!surface.width) return;
  drawScreen(surface, palette, image);
  if (!gaze) return;
  const { first, time } = clock;
  if (isShown("saccades")) drawSaccades(surface, gaze, first, time, palette);
  if (isShown("pursuits")) drawPursuits(surface, gaze, first, time, palette);
  if (isShown("fixations")) drawFixations(surface, gaze, first, time, palette);
  if (isShown("trail")) drawTrail(surface, gaze, first, time, palette);
  drawPoint(surface, gaze, time, palette);
}

function showTime() {
  scrub.value = clock.time;
  scrub.setAttribute("aria-valuetext", seconds(clock.time));
  $("#time").textContent = seconds(clock.time);
  draw();
}

function showState() {
  const play = $("#play");
  play.classList.toggle("playing", clock.isPlaying);
  play.setAttribute("aria-label", clock.isPlaying ? "Pause" : "Play");
  scrub.max = clock.duration || 8000;
  const share = (time) => `${(100 * time) / (clock.duration || 1)}%`;
  scrub.parentElement.style.setProperty("--from", share(clock.first));
  scrub.parentElement.style.setProperty("--to", share(clock.last));
  $("#loop").textContent = !gaze
    ? ""
    : clock.isWhole
      ? `${isCoarse() ? "Zoom with + and −" : "Drag to zoom"}; the replay loops.`
      : `Looping ${seconds(clock.first)} to ${seconds(clock.last)}.`;
}

function showWindow() {
  const selected = store.get("selected");
  gaze = selected === null ? null : store.get("windows")[selected] || null;
  $("#nothing").hidden = gaze !== null;
  for (const id of ["play", "scrub", "zoom-in", "zoom-out", "zoom-all"]) $(`#${id}`).disabled = !gaze;
  $("#show-pursuits").disabled = !gaze?.labels;
  $("#pursuits-label").title = gaze && !gaze.labels ? "Pursuits are known with event labels." : "";
  const facts = gaze ? factsOf(gaze) : ["–", "–", "–", "–", "–"];
  document.querySelectorAll("#facts dd").forEach((cell, i) => (cell.textContent = facts[i]));
  $("#window-title").textContent = gaze ? `Window ${selected + 1}` : "Window";
  $("#window-task").textContent = gaze?.task ? gaze.task.replaceAll("_", " ") : "";
  $("#window-screen").textContent = gaze ? screenInWords(gaze.screen) : "";
  $("#no-traces").hidden = gaze !== null;
  if (gaze && matchMedia("(max-width: 760px)").matches) $("#stage").scrollIntoView({ block: "nearest" });
  if (!gaze) {
    clock.pause();
    clock.load(0);
    return;
  }
  clock.load(durationOf(gaze));
  // With reduced motion the whole path is shown at once and plays on demand.
  if (prefersReducedMotion()) clock.seek(clock.duration);
  else clock.play();
}

const pictureNote = $(".background .note");
const NO_PICTURE = "Or drop one on the screen. It is not sent to the server.";

async function showImage(files) {
  const file = files.map((one) => one.file).find((one) => one.type.startsWith("image/"));
  if (!file) {
    say(pictureNote, "This is not an image that the browser can show.", true);
    return;
  }
  const url = URL.createObjectURL(file);
  const loaded = new Image();
  loaded.src = url;
  try {
    await loaded.decode();
  } catch {
    say(pictureNote, `${file.name} cannot be shown by this browser.`, true);
    return;
  } finally {
    URL.revokeObjectURL(url);
  }
  image = loaded;
  $("#background-off").hidden = false;
  say(pictureNote, `The gaze does not follow this picture: no model here has seen it. ${file.name} is kept in this browser, not sent.`);
  draw();
}

function hideImage() {
  image = null;
  $("#background-off").hidden = true;
  say(pictureNote, NO_PICTURE);
  draw();
  $("#background").focus();
}

// Keys of the replay, unless the focused element uses them itself.
export function handleReplayKey(event) {
  if (!gaze) return false;
  const moves = { ArrowLeft: -STEP_MS, ArrowRight: STEP_MS, Home: -Infinity, End: Infinity };
  if (event.key === " ") clock.toggle();
  else if (event.key in moves) {
    const step = event.shiftKey ? moves[event.key] / 10 : moves[event.key];
    clock.seek(Math.min(Math.max(clock.time + step, clock.first), clock.last));
  } else return false;
  return true;
}

export function startReplay() {
  clock.addEventListener("tick", showTime);
  clock.addEventListener("change", showState);
  $("#play").addEventListener("click", () => clock.toggle());
  canvas.addEventListener("click", () => clock.toggle());
  scrub.addEventListener("input", () => clock.seek(Number(scrub.value)));
  $("#speed").addEventListener("change", (event) => clock.setSpeed(Number(event.target.value)));
  for (const layer of ["trail", "fixations", "saccades", "pursuits"]) $(`#show-${layer}`).addEventListener("change", draw);
  acceptFiles($("#stage"), [$("#background")], showImage);
  say(pictureNote, NO_PICTURE);
  $("#background-off").addEventListener("click", hideImage);
  store.on("selected", showWindow);
  store.on("settings", () => gaze || draw());
  onTheme(() => {
    palette = null;
    draw();
  });
  new ResizeObserver(draw).observe($("#stage"));
  draw();
}
