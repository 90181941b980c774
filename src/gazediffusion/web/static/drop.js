// A zone that accepts files: dropped on it, or chosen with its file input.

export function acceptFiles(zone, input, take) {
  input.addEventListener("change", () => input.files.length && take([...input.files]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
  });
}

// A file dropped outside a zone must not replace the page.
export function ignoreDrops() {
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
}
