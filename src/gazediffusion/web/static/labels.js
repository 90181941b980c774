// Errors of the API name its fields in backticks; the page shows the labels of its own fields.

// Fields of the library that are part of a field of the page, and what the page has no field for.
const PARTS = { width_cm: "screen_cm", height_cm: "screen_cm", source_rate_hz: "source_rate" };
const OTHERS = {
  files: "a recording", real: "--real of gazediffusion serve", max_windows: "--max-windows of gazediffusion serve",
};

// The field of a name: in the part of the page that the element is in, or else anywhere.
export function fieldOf(name, near) {
  const selector = `[name="${PARTS[name] || name}"]`;
  return near?.closest('[role="tabpanel"]')?.querySelector(selector) || document.querySelector(`main ${selector}`);
}

function labelOf(name, near) {
  const field = fieldOf(name, near);
  if (!field) return OTHERS[name] || `${name.replaceAll("_", " ")} (--${name.replaceAll("_", "-")} of the command line)`;
  const text = [...(field.closest("label")?.childNodes || [])].filter((one) => one.nodeType === Node.TEXT_NODE);
  return `“${field.dataset.label || text.map((one) => one.textContent).join(" ").trim()}”`;
}

export const fieldsIn = (line) => [...line.matchAll(/`([a-z][a-z0-9_]*)`/g)].map(([, name]) => name);

// One line of the server as a sentence of the page; file names keep their letters.
export function inPageWords(line, near) {
  const text = line.replace(/`([a-z][a-z0-9_]*)`/g, (_, name) => labelOf(name, near)).replaceAll("`", "");
  return /^[a-z]+ /.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
}
