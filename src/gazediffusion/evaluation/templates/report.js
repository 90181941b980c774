"use strict";

// What is missing goes last whichever way the column is sorted.
function compare(a, b, direction) {
  const isNumber = (cell) => cell.dataset.sort !== undefined && cell.dataset.sort !== "";
  const isMissing = (cell) => cell.dataset.sort === "";
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  if (isNumber(a) && isNumber(b)) return direction * (Number(a.dataset.sort) - Number(b.dataset.sort));
  return direction * a.textContent.localeCompare(b.textContent, undefined, { numeric: true });
}

function sortBy(table, header) {
  const isAscending = header.getAttribute("aria-sort") !== "ascending";
  const column = header.cellIndex;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(a.cells[column], b.cells[column], isAscending ? 1 : -1));
  table.tBodies[0].append(...rows);
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
}

for (const table of document.querySelectorAll("table")) {
  for (const header of table.tHead.rows[0].cells) {
    const first = table.tBodies[0].rows[0];
    if (first && first.cells[header.cellIndex].classList.contains("number")) header.classList.add("number");
    header.querySelector("button").addEventListener("click", () => sortBy(table, header));
  }
}
