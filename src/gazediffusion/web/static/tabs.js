// The four tabs: arrows, Home and End move between them; the address states the open one.

import { $ } from "./dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const listeners = [];
let current = "explore";

export const currentTab = () => current;

// Call a listener with the name of each tab that opens.
export const onTab = (listener) => listeners.push(listener);

export function openTab(name, withFocus = false) {
  current = tabs.some((tab) => tab.getAttribute("aria-controls") === name) ? name : "explore";
  for (const tab of tabs) {
    const isOpen = tab.getAttribute("aria-controls") === current;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    $(`#${tab.getAttribute("aria-controls")}`).hidden = !isOpen;
    if (isOpen && withFocus) tab.focus();
  }
  history.replaceState(null, "", current === "explore" ? location.pathname + location.search : `#${current}`);
  for (const listener of listeners) listener(current);
}

export function startTabs() {
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => openTab(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      event.stopPropagation();
      const next = tabs[(moves[event.key] + tabs.length) % tabs.length];
      openTab(next.getAttribute("aria-controls"), true);
    });
  });
  for (const link of document.querySelectorAll("[data-goto]")) {
    link.addEventListener("click", () => openTab(link.dataset.goto, true));
  }
  openTab(location.hash.slice(1) || "explore");
}
