// Traces: x(t) and y(t) in a chosen unit, and speed, of the selected window, with its events
// shaded. Zoom and replay share one range; a line marks the time of the replay, and a click sets it.

import { $, colours, onTheme, say } from "./dom.js";
import { classesOf, degreesOf, durationOf, pixelsOf, speedOf, timesOf } from "./gaze.js";
import { axis, CONFIG, isCoarse, look, plotly } from "./plots.js";
import { clock } from "./replay.js";
import { store } from "./state.js";
import { currentTab, onTab } from "./tabs.js";

const plot = $("#traces");
const cursor = $("#cursor");
const SACCADE_DEG_S = 30; // the detector's threshold, where there are no labels
let shown = null;
let isDrawn = false;

// Degrees need the size of the window's screen.
function unitOf(gaze) {
  const chosen = $("#unit").value;
  return chosen === "deg" && !degreesOf(gaze) ? "px" : chosen;
}
const NAMES = { px: "pixels", deg: "degrees of visual angle", norm: "normalized units" };
const positionOf = { px: pixelsOf, deg: degreesOf, norm: ({ x, y }) => ({ x: [...x], y: [...y] }) };
const DIGITS = { px: 0, deg: 2, norm: 3 };

const inSeconds = () => [clock.first / 1000, clock.last / 1000];

function curves(gaze) {
  const { blue, orange, ink } = colours();
  const time = timesOf(gaze).map((ms) => ms / 1000);
  const unit = unitOf(gaze);
  const { x, y } = positionOf[unit](gaze);
  const customdata = gaze.labels && classesOf(gaze);
  const curve = (values, name, color, yaxis, words, digits = 0) => ({
    x: time, y: values, name, yaxis, customdata, type: "scatter", mode: "lines", line: { color, width: 1.3 },
    hovertemplate: `${name} %{y:.${digits}f} ${words}${customdata ? ", %{customdata}" : ""}<extra></extra>`,
  });
  return [
    curve(x, "x", blue, "y", NAMES[unit], DIGITS[unit]),
    curve(y, "y", orange, "y2", NAMES[unit], DIGITS[unit]),
    curve(speedOf(gaze), "speed", ink, "y3", "deg/s"),
  ];
}

function shading(gaze) {
  const palette = colours();
  return gaze.events.map((event) => ({
    type: "rect", xref: "x", yref: "paper", x0: event.onset_ms / 1000, x1: event.offset_ms / 1000, y0: 0, y1: 1,
    fillcolor: palette[event.kind], line: { width: 0 }, layer: "below",
  }));
}

function layout(gaze) {
  const { quiet } = colours();
  const label = (text, y) => ({
    text, x: 0, xref: "paper", y, yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false,
    font: { size: 11, color: quiet }, borderpad: 0,
  });
  const threshold = {
    type: "line", xref: "paper", yref: "y3", x0: 0, x1: 1, y0: SACCADE_DEG_S, y1: SACCADE_DEG_S,
    line: { color: quiet, width: 1, dash: "dot" },
  };
  return look({
    margin: { l: 44, r: 10, t: 4, b: 30 },
    dragmode: isCoarse() ? false : "zoom",
    hovermode: "x",
    hoverdistance: -1,
    xaxis: axis({ range: inSeconds(), anchor: "y3", nticks: 9, ticksuffix: " s", showgrid: false, fixedrange: isCoarse() }),
    yaxis: axis({ domain: [0.73, 0.93], fixedrange: true, nticks: 3 }),
    yaxis2: axis({ domain: [0.4, 0.6], fixedrange: true, autorange: "reversed", nticks: 3 }),
    yaxis3: axis({ domain: [0, 0.27], fixedrange: true, rangemode: "tozero", nticks: 3 }),
    annotations: [label(`x, ${NAMES[unitOf(gaze)]}`, 0.93), label(`y, ${NAMES[unitOf(gaze)]}, down`, 0.6), label("speed, degrees per second", 0.27)],
    shapes: [...shading(gaze), ...(gaze.labels ? [] : [threshold])],
  });
}

async function draw() {
  const gaze = store.get("windows")[store.get("selected")];
  shown = gaze || null;
  plot.classList.toggle("waiting", !gaze);
  $("#classes").classList.toggle("labelled", Boolean(gaze?.labels));
  moveCursor();
  if (!gaze || currentTab() !== "explore") return;
  const library = await plotly().catch((error) => say($("#loop"), error.message, true));
  if (!library || shown !== gaze) return;
  const isFirst = !isDrawn;
  isDrawn = true;
  await library.react(plot, curves(gaze), layout(gaze), CONFIG);
  if (isFirst) {
    plot.on("plotly_relayout", follow);
    plot.on("plotly_click", (event) => clock.seek(event.points[0].x * 1000));
    plot.on("plotly_doubleclick", () => clock.setRange(0, clock.duration));
  }
  moveCursor();
}

function follow(change) {
  const [first, last] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  if (first !== undefined && last !== undefined) clock.setRange(first * 1000, last * 1000);
  else if (change["xaxis.autorange"]) clock.setRange(0, clock.duration);
}

// The plot follows a range that the replay changes.
function showRange() {
  if (!isDrawn || !shown || !plot.layout) return;
  const [first, last] = plot.layout.xaxis.range;
  const range = inSeconds();
  if (Math.abs(first - range[0]) + Math.abs(last - range[1]) > 1e-3) {
    window.Plotly.relayout(plot, { "xaxis.range": range });
  }
  moveCursor();
}

function moveCursor() {
  const inner = isDrawn && plot._fullLayout && plot._fullLayout.xaxis;
  cursor.hidden = !inner || !shown;
  if (cursor.hidden) return;
  const share = (clock.time - clock.first) / (clock.last - clock.first || 1);
  cursor.style.transform = `translateX(${inner._offset + share * inner._length}px)`;
}

function zoom(factor) {
  const width = Math.min((clock.last - clock.first) * factor, durationOf(shown));
  const first = Math.min(Math.max(clock.time - width / 2, 0), clock.duration - width);
  clock.setRange(first, first + width);
}

export function startTraces() {
  store.on("selected", draw);
  $("#unit").addEventListener("change", draw);
  onTheme(draw);
  onTab((name) => name === "explore" && draw());
  clock.addEventListener("tick", moveCursor);
  clock.addEventListener("change", showRange);
  new ResizeObserver(() => requestAnimationFrame(moveCursor)).observe(plot);
  $("#zoom-in").addEventListener("click", () => zoom(0.5));
  $("#zoom-out").addEventListener("click", () => zoom(2));
  $("#zoom-all").addEventListener("click", () => clock.setRange(0, clock.duration));
}
