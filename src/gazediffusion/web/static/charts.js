// The figures of a comparison: ratios to the floor, the main sequence, distributions.

import { colours, create } from "./dom.js";
import { axis, CONFIG, look, plotly } from "./plots.js";

const MOST_STEPS = 5; // The axis of the bars ends at a ratio of 2 ** 5 and begins at 2 ** -1.
const LEAST_STEPS = 1;
const ROW_PX = 180; // of distributions

const share = (ratio) => {
  const steps = Math.min(Math.max(Math.log2(ratio), -LEAST_STEPS), MOST_STEPS);
  return ((steps + LEAST_STEPS) / (LEAST_STEPS + MOST_STEPS)) * 100;
};

const MARKS = { 0.5: "½×", 1: "1×", 2: "2×", 4: "4×", 8: "8×", 16: "16×", 32: "32×" };

const number = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

// The median ratio of the headline with its interval, and the ratio of each family of quantities.
export function drawBars(box, headline, ratios) {
  const families = Object.entries(ratios.families).map(([name, value]) => [name, value.synthetic]);
  const rows = [["median", headline.ratio?.value, headline.ratio?.interval], ...families];
  box.replaceChildren(...rows.map(([name, ratio, interval], place) => {
    const isKnown = Number.isFinite(ratio);
    const track = create("span", { class: "track" });
    const [one, here] = [share(1), isKnown ? share(ratio) : share(1)];
    const reach = create("i", { class: ratio > 1 ? "reach far" : "reach near" });
    reach.style.left = `${Math.min(one, here)}%`;
    reach.style.width = `${Math.abs(here - one)}%`;
    const floor = create("i", { class: "floor" });
    floor.style.left = `${one}%`;
    track.append(reach, floor);
    if (interval) {
      const range = create("i", { class: "range", title: "95 % interval" });
      range.style.left = `${share(interval[0])}%`;
      range.style.width = `${share(interval[1]) - share(interval[0])}%`;
      track.append(range);
    }
    return create("div", { class: place ? "bar" : "bar overall" },
      create("span", { class: "name" }, name), track, create("b", {}, isKnown ? `${number(ratio)}×` : "–"));
  }), scale());
}

function scale() {
  const marks = create("span", { class: "marks" });
  for (const [ratio, text] of Object.entries(MARKS)) {
    const mark = create("span", {}, text);
    mark.style.left = `${share(Number(ratio))}%`;
    marks.append(mark);
  }
  return create("div", { class: "bar scale", "aria-hidden": "true" }, create("span"), marks);
}

export async function drawMainSequence(plot, sequence) {
  const { ink, blue } = colours();
  const { sets } = sequence;
  const traces = [];
  for (const [name, color] of [["real", ink], ["synthetic", blue]]) {
    const set = sets[name];
    if (!set || !set.amplitude_deg) continue;
    traces.push({
      x: set.amplitude_deg, y: set.peak_deg_s, name, type: "scatter", mode: "markers",
      marker: { color, size: 5, opacity: 0.45, symbol: name === "real" ? "circle-open" : "circle", line: { width: 1, color } },
      hovertemplate: `${name}: %{x:.2f} deg, %{y:.0f} deg/s<extra></extra>`,
    });
    if (Number.isFinite(set.slope) && Number.isFinite(set.intercept)) {
      const ends = [Math.min(...set.amplitude_deg), Math.max(...set.amplitude_deg)];
      traces.push({
        x: ends, y: ends.map((amplitude) => 10 ** (set.intercept + set.slope * Math.log10(amplitude))),
        type: "scatter", mode: "lines", line: { color, width: 2, dash: name === "real" ? "solid" : "dash" },
        name: `${name}: slope ${set.slope.toFixed(2)}`, hoverinfo: "skip", showlegend: true,
      });
    }
  }
  for (const trace of traces) trace.showlegend ??= false;
  const log = { type: "log", dtick: undefined, nticks: undefined, exponentformat: "none" };
  const layout = look({
    margin: { l: 52, r: 8, t: 6, b: 42 }, showlegend: true, hovermode: "closest", dragmode: false,
    legend: { x: 1, xanchor: "right", y: 0.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    xaxis: axis({ ...log, title: { text: "amplitude, degrees of visual angle", standoff: 6 }, tickvals: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50], fixedrange: true }),
    yaxis: axis({ ...log, title: { text: "peak velocity, degrees per second", standoff: 4 }, tickvals: [10, 20, 50, 100, 200, 500, 1000, 2000], fixedrange: true }),
  });
  await (await plotly()).react(plot, traces, layout, CONFIG);
}

// Few windows fill few bins: neighbouring bins are joined until about 2 sqrt(n) are left.
export function coarser({ edges, ...densities }, n) {
  const factor = Math.max(1, Math.floor((edges.length - 1) / Math.max(10, 2 * Math.sqrt(n))));
  const joined = { edges: edges.filter((_, i) => i % factor === 0) };
  const bins = joined.edges.length - 1;
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  for (const [set, values] of Object.entries(densities)) {
    joined[set] = Array.from({ length: bins }, (_, i) => mean(values.slice(i * factor, (i + 1) * factor)));
  }
  return joined;
}

const UNITS = { deg: "degrees of visual angle", "deg/s": "degrees per second", s: "seconds", "1/s": "per second" };

// Distributions as small multiples in a grid that fits the width; n: number of synthetic windows.
export async function drawMarginals(plot, quantities, n) {
  const { ink, blue, quiet } = colours();
  const columns = Math.max(1, Math.min(Math.floor(plot.clientWidth / 230), quantities.length, 5));
  const rows = Math.ceil(quantities.length / columns);
  plot.style.height = `${rows * ROW_PX + 10}px`;
  const traces = [];
  const layout = look({ margin: { l: 8, r: 8, t: 4, b: 22 }, hovermode: "x", dragmode: false, annotations: [] });
  quantities.forEach((quantity, place) => {
    const [column, row] = [place % columns, Math.floor(place / columns)];
    const [left, right] = [column / columns + 0.012, (column + 1) / columns - 0.012];
    const top = 1 - row / rows;
    const bottom = top - 1 / rows;
    const suffix = place ? place + 1 : "";
    const [above, below] = [38 / (rows * ROW_PX), 26 / (rows * ROW_PX)];
    layout[`xaxis${suffix}`] = axis({ domain: [left, right], anchor: `y${suffix}`, fixedrange: true, showgrid: false, showline: true });
    layout[`yaxis${suffix}`] = axis({ domain: [bottom + below, top - above], anchor: `x${suffix}`, fixedrange: true, showticklabels: false, showgrid: false, rangemode: "tozero" });
    // The unit has a line of its own: it may be longer than the title.
    const line = (text, below, font) => ({
      text, font, align: "left", x: left, xref: "paper", xanchor: "left", showarrow: false,
      y: top - below / (rows * ROW_PX), yref: "paper", yanchor: "top",
    });
    layout.annotations.push(
      line(quantity.title, 2, { size: 12, color: ink }),
      line(UNITS[quantity.unit] || quantity.unit, 18, { size: 10, color: quiet }),
    );
    const histogram = quantity.level === "window" ? coarser(quantity.histogram, n) : quantity.histogram;
    for (const [set, color] of [["synthetic", blue], ["real", ink]]) {
      const density = histogram[set];
      if (!density) continue;
      traces.push({
        x: histogram.edges, y: [...density, density.at(-1)], name: set, type: "scatter", mode: "lines",
        line: { color, width: set === "real" ? 1.6 : 1.4, shape: "hv" },
        fill: set === "synthetic" ? "tozeroy" : "none", fillcolor: transparent(blue, 0.14),
        xaxis: `x${suffix}`, yaxis: `y${suffix}`, hovertemplate: `${set} %{y:.3g}<extra></extra>`,
      });
    }
  });
  await (await plotly()).react(plot, traces, layout, CONFIG);
}

function transparent(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}

export const hasMainSequence = (sequence) =>
  Object.keys(sequence.sets || {}).length > 0;

export const sequenceNote = (sequence) =>
  hasMainSequence(sequence)
    ? "Peak velocity of each saccade over its amplitude, on logarithmic axes."
    : `Not computable: ${sequence.not_computable || "too few saccades"}.`;
