// Geometry of gaze: pure functions of windows {x, y, rate, screen, events, labels}, x and y in
// [-1, 1], NaN where the eye is lost; labels: events as [class, first, stop], null without labels.

export function gazeWindow(raw, rate) {
  return {
    index: raw.index,
    task: raw.task,
    x: Float32Array.from(raw.x, (value) => value ?? NaN),
    y: Float32Array.from(raw.y, (value) => value ?? NaN),
    events: raw.events || [],
    labels: raw.labels || null,
    rate,
    screen: raw.screen,
  };
}

export const durationOf = (gaze) => ((gaze.x.length - 1) * 1000) / gaze.rate;

// The first part of a window.
export function cutTo(gaze, n) {
  return { ...gaze, x: gaze.x.subarray(0, n), y: gaze.y.subarray(0, n) };
}

export const ratioOf = (screen) => screen.width_px / screen.height_px;

// Degrees per pixel across the screen; 40 degrees are assumed where its size is not known.
export function degreesPerPixel(screen) {
  const { width_cm: width, distance_cm: distance, width_px: pixels } = screen;
  const degrees = width && distance ? (2 * Math.atan(width / 2 / distance) * 180) / Math.PI : 40;
  return degrees / pixels;
}

export function pixelsOf(gaze) {
  const { width_px: width, height_px: height } = gaze.screen;
  return {
    x: Array.from(gaze.x, (value) => ((value + 1) / 2) * width),
    y: Array.from(gaze.y, (value) => ((value + 1) / 2) * height),
  };
}

// Visual angle from the centre in degrees, as `Screen.to_degrees`; null where the size is unknown.
export function degreesOf(gaze) {
  const { width_px, height_px, width_cm, height_cm, distance_cm } = gaze.screen;
  if (!width_cm || !height_cm || !distance_cm) return null;
  const convert = (values, size, cm) =>
    values.map((value) => (Math.atan2(value - (size - 1) / 2, (distance_cm * size) / cm) * 180) / Math.PI);
  const { x, y } = pixelsOf(gaze);
  return { x: convert(x, width_px, width_cm), y: convert(y, height_px, height_cm) };
}

export function screenInWords({ width_px, height_px, width_cm, height_cm, distance_cm }) {
  const size = width_cm && height_cm && distance_cm ? `, ${width_cm}×${height_cm} cm at ${distance_cm} cm` : "";
  return `${width_px}×${height_px} px${size}`;
}

// Speed in degrees per second, a value for each sample; the first repeats the second.
export function speedOf(gaze) {
  const { x, y } = pixelsOf(gaze);
  const scale = degreesPerPixel(gaze.screen) * gaze.rate;
  const speed = x.map((_, i) => (i ? Math.hypot(x[i] - x[i - 1], y[i] - y[i - 1]) * scale : 0));
  if (speed.length > 1) speed[0] = speed[1];
  return speed;
}

export const timesOf = (gaze) => Array.from(gaze.x, (_, i) => (i * 1000) / gaze.rate);

// The class of every sample; empty where it has none.
export function classesOf(gaze) {
  const classes = new Array(gaze.x.length).fill("");
  for (const [name, first, stop] of gaze.labels || []) classes.fill(name, first, stop);
  return classes;
}

// The position at a time in ms, interpolated between samples.
export function positionAt(gaze, time) {
  const last = gaze.x.length - 1;
  const place = Math.min(Math.max((time * gaze.rate) / 1000, 0), last);
  const before = Math.floor(place);
  const after = Math.min(before + 1, last);
  const share = place - before;
  return [
    gaze.x[before] + (gaze.x[after] - gaze.x[before]) * share,
    gaze.y[before] + (gaze.y[after] - gaze.y[before]) * share,
  ];
}

export function median(values) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function factsOf(gaze) {
  const fixations = gaze.events.filter((event) => event.kind === "fixation");
  const saccades = gaze.events.filter((event) => event.kind === "saccade");
  const known = (value, unit, digits = 0) => (value === null ? "–" : `${value.toFixed(digits)} ${unit}`);
  return [
    String(fixations.length),
    known(median(fixations.map((event) => event.offset_ms - event.onset_ms)), "ms"),
    String(saccades.length),
    known(median(saccades.map((event) => event.amplitude_deg).filter((value) => value !== null)), "deg", 1),
    known(speedOf(gaze).reduce((a, b) => Math.max(a, b || 0), 0), "deg/s"),
  ];
}
