// Plotly, loaded when the first plot is drawn, and the style that all plots share.

import { address } from "./api.js";
import { colours, create } from "./dom.js";

let loading = null;

export function plotly() {
  loading ||= new Promise((resolve, reject) => {
    const script = create("script", { src: address("static/plotly.js") });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      loading = null;
      reject(new Error("The plots could not be loaded."));
    });
    document.head.append(script);
  });
  return loading;
}

export const isCoarse = () => matchMedia("(pointer: coarse)").matches;

export const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset", scrollZoom: false, showTips: false };

export function axis(changes = {}) {
  const { line, quiet } = colours();
  return {
    gridcolor: line, zeroline: false, linecolor: line, tickcolor: line, ticks: "", color: quiet, nticks: 4,
    ...changes,
  };
}

export function look(changes = {}) {
  const { ink, paper, line, quiet } = colours();
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif', size: 12, color: quiet },
    hoverlabel: { bgcolor: paper, bordercolor: line, font: { color: ink, size: 12 } },
    showlegend: false,
    autosize: true,
    ...changes,
  };
}
