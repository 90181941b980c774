// The gallery: a thumbnail of each window, on its own screen, in a place that is reserved before it
// arrives. A list box, so that one Tab enters it and arrows move through it.

import { $, colours, fitted, create, onTheme } from "./dom.js";
import { drawThumbnail } from "./draw.js";
import { ratioOf } from "./gaze.js";
import { store } from "./state.js";

const box = $("#gallery");
const drawn = new Set();

const options = () => [...box.children];

// Empty places for n windows; ratio: of the tallest screen, so that every window fits.
export function reserve(n, ratio) {
  drawn.clear();
  box.replaceChildren();
  for (let i = 0; i < n; i++) {
    const option = create("div", { role: "option", class: "thumb", "aria-selected": "false", "aria-disabled": "true" });
    option.style.setProperty("--place", ratio);
    option.setAttribute("aria-label", `Window ${i + 1}, not generated yet`);
    option.append(create("canvas", { "aria-hidden": "true" }));
    option.addEventListener("click", () => select(i));
    box.append(option);
  }
}

function select(index) {
  if (store.get("windows")[index]) store.set({ selected: index });
}

function fill() {
  const windows = store.get("windows");
  const palette = colours();
  windows.forEach((gaze, i) => {
    const option = box.children[i];
    if (!gaze || !option || drawn.has(i)) return;
    drawn.add(i);
    option.style.setProperty("--ratio", ratioOf(gaze.screen));
    drawThumbnail(fitted(option.firstChild, ratioOf(gaze.screen)), gaze, palette);
    option.classList.add("ready");
    option.removeAttribute("aria-disabled");
    option.setAttribute("aria-label", `Window ${i + 1}, ${gaze.task}`);
    option.title = gaze.task;
  });
  mark();
}

function mark() {
  const selected = store.get("selected");
  options().forEach((option, i) => {
    option.setAttribute("aria-selected", String(i === selected));
    option.tabIndex = i === (selected ?? 0) ? 0 : -1;
  });
}

function move(event) {
  const n = store.get("windows").length;
  const now = store.get("selected") ?? 0;
  const moves = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: n - 1 };
  if (!(event.key in moves)) return;
  event.preventDefault();
  event.stopPropagation();
  select(Math.min(Math.max(moves[event.key], 0), n - 1));
  box.children[store.get("selected")]?.focus();
}

function redraw() {
  drawn.clear();
  fill();
}

// Remove places without a window, as after a cancelled job.
export function dropEmpty() {
  for (const option of options()) if (!option.classList.contains("ready")) option.remove();
}

export function startGallery() {
  store.on("windows", fill);
  store.on("selected", mark);
  box.addEventListener("keydown", move);
  onTheme(redraw);
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    redraw();
  }).observe(box);
}
