// The blind test: which of two windows is real? The answers are shown at the end.

import { generateStream } from "./api.js";
import { Clock } from "./clock.js";
import { $, colours, fitted, create, onTheme, say, prefersReducedMotion } from "./dom.js";
import { drawPath, drawPoint, drawScreen, drawThumbnail, drawTrail } from "./draw.js";
import { cutTo, durationOf, gazeWindow, ratioOf } from "./gaze.js";
import { isReady, taskOf } from "./recording.js";
import { randomSeed } from "./settings.js";
import { modelOf, store } from "./state.js";
import { binomialInterval, scoreInWords } from "./statistics.js";
import { onTab } from "./tabs.js";
import { isRight, pairOf, partner, scoreOf, shuffled } from "./trial.js";

const PAIRS = 20;
const SIDES = ["left", "right"];
const clock = new Clock();
const status = $("#blind-status");
let pairs = []; // those whose synthetic window has arrived
let mistakes = [];
let total = 0;
let place = 0;
let isRunning = false;
let shown = null; // the pair in view
let abort = null;
let tested = null; // what the test in view is of

const choiceOf = (side) => $(`#choose-${side}`);

function show(part) {
  for (const id of ["intro", "test", "score"]) $(`#blind-${id}`).hidden = !part.split(" ").includes(id);
}

// Both windows are drawn alike on the screen of the synthetic one: only the gaze may differ.
function draw() {
  if (!shown) return;
  const palette = colours();
  for (const side of SIDES) {
    const gaze = shown[side];
    const surface = fitted($("canvas", choiceOf(side)), ratioOf(gaze.screen));
    if (!surface.width) continue;
    drawScreen(surface, palette);
    drawPath(surface, gaze, clock.time, palette);
    drawTrail(surface, gaze, 0, Math.min(clock.time, durationOf(gaze)), palette);
    drawPoint(surface, gaze, clock.time, palette);
  }
}

function present(pair, isRevealed = false) {
  shown = pair;
  for (const side of SIDES) {
    const isReal = pair.realSide === side;
    choiceOf(side).disabled = isRevealed;
    choiceOf(side).style.setProperty("--ratio", ratioOf(pair[side].screen));
    $(".tag", choiceOf(side)).textContent = isRevealed ? (isReal ? "real" : "synthetic") : "";
    choiceOf(side).classList.toggle("is-real", isRevealed && isReal);
  }
  clock.load(Math.min(durationOf(pair.left), durationOf(pair.right)));
  // With reduced motion the replay starts on demand; the test needs it.
  if (!prefersReducedMotion()) clock.play();
}

function showRound() {
  $("#blind-round").textContent = `Pair ${place + 1} of ${total}`;
  $("#blind-dots").replaceChildren(...Array.from({ length: total }, (_, i) =>
    create("i", { class: i < place ? "past" : i === place ? "now" : "" })));
  const pair = pairs[place];
  if (pair) present(pair);
  else {
    shown = null;
    clock.pause();
    $("#blind-round").textContent += ": its window is still being generated…";
    for (const side of SIDES) choiceOf(side).disabled = true;
  }
}

function choose(side) {
  if (!isRunning || !shown) return;
  shown.choice = side;
  place += 1;
  if (place < total) showRound();
  else finish();
}

function finish() {
  isRunning = false;
  const right = scoreOf(pairs);
  const [low, high] = binomialInterval(right, total);
  const percent = (share) => `${Math.round(100 * share)} %`;
  $("#score").textContent = `${right} of ${total}`;
  $("#score-words").textContent = scoreInWords(right, total);
  $("#score-note").textContent =
    `You identified the real window in ${percent(right / total)} of the pairs; the 95 % interval of that share ` +
    `is ${percent(low)} to ${percent(high)}. Chance is 50 %.`;
  const line = $("#interval");
  line.setAttribute("aria-label", `${percent(right / total)}, interval ${percent(low)} to ${percent(high)}`);
  $(".reach", line).style.left = `${100 * low}%`;
  $(".reach", line).style.width = `${100 * (high - low)}%`;
  $(".point", line).style.left = `${(100 * right) / total}%`;
  show("score test");
  showMistakes();
  $("#again").focus();
}

function showMistakes() {
  mistakes = pairs.filter((pair) => !isRight(pair));
  $("#mistakes-box").hidden = mistakes.length === 0;
  $("#blind-help").hidden = true;
  $("#blind-dots").replaceChildren(...pairs.map((pair) => create("i", { class: isRight(pair) ? "right" : "wrong" })));
  const buttons = mistakes.map((pair) => {
    const number = pairs.indexOf(pair) + 1;
    const button = create("button", { class: "mistake", "aria-label": `Replay pair ${number}`, "aria-pressed": "false" },
      create("canvas"), create("canvas"), create("span", {}, `pair ${number}`));
    button.style.setProperty("--ratio", ratioOf(pair.left.screen));
    button.addEventListener("click", () => reveal(pair, button));
    return button;
  });
  $("#mistakes").replaceChildren(...buttons);
  drawMistakes();
  reveal(mistakes[0] || pairs[0], buttons[0]);
}

function drawMistakes() {
  [...$("#mistakes").children].forEach((button, i) => {
    [...button.querySelectorAll("canvas")].forEach((canvas, side) => {
      const gaze = mistakes[i][SIDES[side]];
      if (canvas.clientWidth) drawThumbnail(fitted(canvas, ratioOf(gaze.screen)), { ...gaze, events: [] }, colours());
    });
  });
}

function reveal(pair, button) {
  for (const other of $("#mistakes").children) other.setAttribute("aria-pressed", String(other === button));
  $("#blind-round").textContent = `Pair ${pairs.indexOf(pair) + 1}: you chose the ${isRight(pair) ? "real" : "synthetic"} window`;
  present(pair, true);
}

// The real windows of a test with the model's names of their tasks, in the order of these; a model
// without tasks has windows of one kind.
function drawReal(real, model) {
  const windows = shuffled(real.summary.windows).slice(0, Math.min(PAIRS, store.get("server").limits.max_windows));
  const named = windows.map((one) => ({ ...gazeWindow(one, real.summary.rate_hz), task: model.tasks.length ? taskOf(real, one.task) : null }));
  return [...new Set(named.map((one) => one.task))].flatMap((task) => named.filter((one) => one.task === task));
}

// Pairs are formed as synthetic windows arrive, so that the test starts with the first. Both windows
// of a pair are of one task.
async function start() {
  const real = store.get("real");
  // Recorded windows are gap-free.
  const settings = { ...store.get("settings"), seed: randomSeed(), track_loss: false, labels: false };
  const model = modelOf(settings.model);
  const unused = drawReal(real, model);
  // Real gaze of a slower tracker would give itself away beside the model's own rate.
  const rate = Math.min(model.rate_hz, real.summary.rate_hz);
  tested = { real, model: settings.model, quality: settings.quality };
  total = unused.length;
  pairs = [];
  mistakes = [];
  $("#mistakes").replaceChildren();
  place = 0;
  abort?.abort();
  const own = new AbortController();
  abort = own;
  $("#blind-start").disabled = true;
  say(status, "Generating windows for the test…");
  try {
    for (const task of new Set(unused.map((one) => one.task))) {
      const n = unused.filter((one) => one.task === task).length;
      for await (const event of generateStream({ ...settings, task, n, rate_hz: rate }, own.signal)) take(event, unused, rate);
    }
    if (pairs.length < total) throw new Error("The server stopped before all windows were generated.");
    say(status, "");
  } catch (error) {
    if (own.signal.aborted) return;
    stop();
    say(status, error.message, true);
  } finally {
    if (own === abort) showReal();
  }
}

// One event of a stream: a synthetic window gets a real one as its partner.
function take({ name, data }, unused, rate) {
  if (name === "queued" && data.ahead) say(status, `Waiting for ${data.ahead} other jobs.`);
  if (name === "failed") throw new Error(data.error);
  if (name !== "window") return;
  const synthetic = gazeWindow(data, rate);
  const real = cutTo(partner(unused, synthetic.task), synthetic.x.length);
  pairs.push(pairOf({ ...real, screen: synthetic.screen }, synthetic));
  if (pairs.length === 1) open();
  else if (isRunning && !shown && pairs[place]) showRound();
}

// End a test and show the form again.
function stop() {
  isRunning = false;
  shown = null;
  clock.pause();
  show("intro");
}

function open() {
  isRunning = true;
  show("test");
  $("#blind-help").hidden = false;
  showRound();
  $("#blind").focus();
}

function showReal() {
  const real = store.get("real");
  $("#blind-start").disabled = !isReady(real) || isRunning;
  const hasTasks = !store.get("server") || modelOf(store.get("settings").model).tasks.length > 0;
  const count = real ? Math.min(PAIRS, real.summary.windows.length) : PAIRS;
  $("#blind-explain").textContent =
    `The test has ${count} pairs of one real and one synthetic window${hasTasks ? " of the same task" : ""}, on random sides. Which is real?` +
    (hasTasks ? "" : " This model has no tasks: windows may differ in theirs.") +
    (real ? "" : " It needs a recording: drop one here, or start the server with --real FILE.");
}

// A test and its score belong to a recording and a model.
function refresh() {
  const { model, quality } = store.get("settings");
  const now = { real: store.get("real"), model, quality };
  if (tested && Object.keys(now).some((name) => now[name] !== tested[name])) {
    tested = null;
    abort?.abort();
    stop();
    say(status, "");
  }
  showReal();
}

export function handleBlindKey(event) {
  if ($("#blind-test").hidden) return false;
  if (event.key === " ") clock.toggle();
  else if (event.key === "ArrowLeft" && isRunning) choose("left");
  else if (event.key === "ArrowRight" && isRunning) choose("right");
  else return false;
  return true;
}

export function startBlind() {
  clock.addEventListener("tick", draw);
  for (const side of SIDES) choiceOf(side).addEventListener("click", () => choose(side));
  $("#blind-start").addEventListener("click", start);
  $("#again").addEventListener("click", () => {
    show("intro");
    start();
  });
  store.on(["real", "settings"], refresh);
  onTheme(() => {
    draw();
    drawMistakes();
  });
  new ResizeObserver(() => {
    draw();
    drawMistakes();
  }).observe($("#blind-test"));
  onTab((name) => {
    if (name !== "blind") return clock.pause();
    showReal();
    if (shown && !prefersReducedMotion()) clock.play();
  });
}
