// A zone that accepts files and folders: dropped on it, or chosen with its file inputs. Files keep
// their path in a dropped folder, because participants are named by folders.

const entriesOf = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));
const isHidden = (path) => path.split("/").some((part) => part.startsWith("."));

// Every file below an entry of the file system, as {file, path}.
async function filesBelow(entry) {
  if (entry.isFile) return [{ file: await fileOf(entry), path: entry.fullPath.replace(/^\//, "") }];
  const reader = entry.createReader();
  const files = [];
  // A reader gives some entries at a time, and none at the end.
  for (let entries = await entriesOf(reader); entries.length; entries = await entriesOf(reader)) {
    for (const one of entries) files.push(...(await filesBelow(one)));
  }
  return files;
}

// Entries must be asked for before the event ends.
async function dropped({ items, files }) {
  const entries = [...(items || [])].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...files].map((file) => ({ file, path: file.name }));
  return (await Promise.all(entries.map(filesBelow))).flat();
}

// take: called with a list of {file, path}; hidden files are left out.
export function acceptFiles(zone, inputs, take) {
  const give = (files) => {
    const shown = files.filter(({ path }) => !isHidden(path));
    if (shown.length) take(shown);
  };
  for (const input of inputs) {
    input.addEventListener("change", () => {
      give([...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      input.value = ""; // The same files may be chosen again.
    });
  }
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    give(await dropped(event.dataTransfer));
  });
}

// A file dropped outside a zone must not replace the page.
export function ignoreDrops() {
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
}
