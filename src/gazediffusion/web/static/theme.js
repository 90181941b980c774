// Light or dark colours: those of the system until the button is used. Loaded before the first paint.
"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("gazediffusion-theme");
    } catch {
      return null;
    }
  };
  const apply = () => {
    root.dataset.theme = stored() || (system.matches ? "dark" : "light");
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
    document.dispatchEvent(new Event("themechange"));
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      try {
        localStorage.setItem("gazediffusion-theme", root.dataset.theme === "dark" ? "light" : "dark");
      } catch {
        // Private windows may have no storage: the colours of the system stay.
      }
      apply();
    });
  });
})();
