// The document: find, create and fill elements; the colours of the theme.

import { inPageWords } from "./labels.js";

export const $ = (selector, root = document) => root.querySelector(selector);

export function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// One line of status; errors are marked, read out, and name the fields of the page.
export function say(element, text, isError = false) {
  element.textContent = isError ? inPageWords(text, element) : text;
  element.classList.toggle("error", isError);
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"), quiet: of("quiet"), paper: of("paper"), line: of("line"), shade: of("shade"),
    link: of("link"), screen: of("screen"), blue: of("blue"), orange: of("orange"), green: of("green"),
    fixation: of("fixation"), saccade: of("saccade"), pursuit: of("pursuit"), noise: of("noise"),
  };
}

export const onTheme = (callback) => document.addEventListener("themechange", callback);

export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Fit a canvas to the size it is shown at, in device pixels; returns its context in CSS pixels.
export function fitted(canvas, ratio) {
  const width = canvas.clientWidth;
  const height = width / ratio;
  const density = Math.min(window.devicePixelRatio || 1, 3);
  const [across, down] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  return { context, width, height };
}
