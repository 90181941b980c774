// Gaze on a canvas: the screen, fixations that grow with their duration, saccades, pursuits, a fading
// trail.

import { durationOf, positionAt } from "./gaze.js";

const TRAIL_MS = 600;
const FADE_MS = 5000; // Time in which an event fades.

const place = ({ width, height }, x, y) => [((x + 1) / 2) * width, ((y + 1) / 2) * height];

// Area grows with time: 300 ms is a circle of 2.1 % of the screen's width.
const radiusOf = (width, milliseconds) => 0.021 * width * Math.sqrt(Math.max(milliseconds, 0) / 300);

// A line through positions, with a gap where the eye is lost.
function addLine(surface, positions) {
  let isSeen = false;
  for (const [x, y] of positions) {
    if (!Number.isNaN(x)) surface.context[isSeen ? "lineTo" : "moveTo"](...place(surface, x, y));
    isSeen = !Number.isNaN(x);
  }
}

const samplesOf = (gaze, n) => Array.from(gaze.x.subarray(0, n), (x, i) => [x, gaze.y[i]]);

export function drawScreen({ context, width, height }, colours, image = null) {
  context.globalAlpha = 1;
  context.fillStyle = colours.screen;
  context.fillRect(0, 0, width + 1, height + 1); // The last pixel may be a part of one.
  if (image) {
    const scale = Math.min(width / image.width, height / image.height);
    const [across, down] = [image.width * scale, image.height * scale];
    context.drawImage(image, (width - across) / 2, (height - down) / 2, across, down);
    return;
  }
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(width / 2 - 6, height / 2);
  context.lineTo(width / 2 + 6, height / 2);
  context.moveTo(width / 2, height / 2 - 6);
  context.lineTo(width / 2, height / 2 + 6);
  context.stroke();
}

export function drawFixations(surface, gaze, from, time, colours) {
  const { context, width } = surface;
  for (const event of gaze.events) {
    if (event.kind !== "fixation" || event.onset_ms > time || event.offset_ms < from) continue;
    const until = Math.min(event.offset_ms, time);
    const strength = 1 - 0.55 * Math.min((time - until) / FADE_MS, 1);
    const [x, y] = place(surface, event.x, event.y);
    context.beginPath();
    context.arc(x, y, Math.max(radiusOf(width, until - Math.max(event.onset_ms, from)), 1.5), 0, 2 * Math.PI);
    context.fillStyle = context.strokeStyle = colours.orange;
    context.globalAlpha = 0.2 * strength;
    context.fill();
    context.globalAlpha = 0.85 * strength;
    context.lineWidth = 1.25;
    context.stroke();
  }
  context.globalAlpha = 1;
}

export function drawSaccades(surface, gaze, from, time, colours) {
  const { context } = surface;
  context.strokeStyle = colours.blue;
  context.lineWidth = 1.25;
  context.lineCap = "round";
  for (const event of gaze.events) {
    if (event.kind !== "saccade" || event.onset_ms > time || event.offset_ms < from) continue;
    const until = Math.min(event.offset_ms, time);
    context.globalAlpha = 0.75 - 0.45 * Math.min((time - until) / FADE_MS, 1);
    context.beginPath();
    context.moveTo(...place(surface, ...positionAt(gaze, Math.max(event.onset_ms, from))));
    context.lineTo(...place(surface, ...positionAt(gaze, until)));
    context.stroke();
  }
  context.globalAlpha = 1;
}

// The course of every labelled pursuit.
export function drawPursuits(surface, gaze, from, time, colours) {
  const { context } = surface;
  context.strokeStyle = colours.green;
  context.lineWidth = 3.5;
  context.lineCap = context.lineJoin = "round";
  for (const event of gaze.events) {
    if (event.kind !== "pursuit" || event.onset_ms > time || event.offset_ms < from) continue;
    const until = Math.min(event.offset_ms, time);
    context.globalAlpha = 0.8 - 0.45 * Math.min((time - until) / FADE_MS, 1);
    const times = [];
    for (let t = Math.max(event.onset_ms, from); t < until; t += 1000 / gaze.rate) times.push(t);
    context.beginPath();
    addLine(surface, [...times, until].map((t) => positionAt(gaze, t)));
    context.stroke();
  }
  context.globalAlpha = 1;
}

export function drawTrail(surface, gaze, from, time, colours) {
  const { context } = surface;
  const step = 1000 / gaze.rate;
  const start = Math.max(from, time - TRAIL_MS);
  const pieces = 30;
  context.strokeStyle = colours.blue;
  context.lineCap = "butt"; // Round ends would add up to dots where the pieces meet.
  context.lineJoin = "round";
  for (let piece = 0; piece < pieces; piece++) {
    const [a, b] = [piece, piece + 1].map((k) => start + ((time - start) * k) / pieces);
    const share = (piece + 1) / pieces;
    context.globalAlpha = 0.85 * share * share;
    context.lineWidth = 1 + 2.6 * share;
    context.beginPath();
    const times = [a];
    for (let t = Math.ceil(a / step) * step; t < b; t += step) times.push(t);
    addLine(surface, [...times, b].map((t) => positionAt(gaze, t)));
    context.stroke();
  }
  context.globalAlpha = 1;
}

// The path since the start, faintly.
export function drawPath(surface, gaze, time, colours) {
  const { context } = surface;
  const until = Math.min(Math.floor((time * gaze.rate) / 1000), gaze.x.length - 1);
  context.strokeStyle = colours.blue;
  context.lineWidth = 1;
  context.lineJoin = "round";
  context.globalAlpha = 0.28;
  context.beginPath();
  addLine(surface, samplesOf(gaze, until + 1));
  context.stroke();
  context.globalAlpha = 1;
}

export function drawPoint(surface, gaze, time, colours) {
  const { context, width } = surface;
  const [x, y] = place(surface, ...positionAt(gaze, time));
  if (Number.isNaN(x)) return;
  context.beginPath();
  context.arc(x, y, Math.max(4, 0.008 * width), 0, 2 * Math.PI);
  context.fillStyle = colours.ink;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = colours.screen;
  context.stroke();
}

// The whole window in small: its path and its fixations.
export function drawThumbnail(surface, gaze, colours) {
  drawScreen(surface, { ...colours, line: colours.screen });
  const { context } = surface;
  context.strokeStyle = colours.blue;
  context.lineWidth = 0.9;
  context.lineJoin = "round";
  context.globalAlpha = 0.75;
  context.beginPath();
  addLine(surface, samplesOf(gaze));
  context.stroke();
  drawFixations(surface, gaze, 0, durationOf(gaze), colours);
}
