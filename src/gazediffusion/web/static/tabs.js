// The four tabs: arrows, Home and End move between them. The address names the open one, so that
// links, back and forward open it.

import { $ } from "./dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const listeners = [];
let current = "explore";

export const currentTab = () => current;

// Call a listener with the name of each tab that opens.
export const onTab = (listener) => listeners.push(listener);

const NAMES = { generate: "explore" };
for (const tab of tabs) NAMES[tab.getAttribute("aria-controls")] = tab.getAttribute("aria-controls");

// The tab that the address names; without a name the first, with another name the open one.
const addressed = () => (location.hash ? NAMES[location.hash.slice(1)] || current : "explore");

function show(name, withFocus = false) {
  current = name;
  for (const tab of tabs) {
    const isOpen = tab.getAttribute("aria-controls") === current;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    $(`#${tab.getAttribute("aria-controls")}`).hidden = !isOpen;
    if (isOpen) document.title = `${tab.textContent} · gazediffusion playground`;
    if (isOpen && withFocus) tab.focus();
  }
  for (const listener of listeners) listener(current);
}

export function openTab(name, withFocus = false) {
  if (name !== addressed()) {
    history.pushState(null, "", name === "explore" ? location.pathname + location.search : `#${name}`);
  }
  show(name, withFocus);
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
  addEventListener("popstate", () => addressed() !== current && show(addressed()));
  show(addressed());
}
