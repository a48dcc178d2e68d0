"use strict";
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.order ?? cell.textContent.trim().replace(/\u2212/g, "-").replace(/,/g, "");
    const number = Number.parseFloat(text);
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) =>
    typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { none: "descending", descending: "ascending", ascending: "none" }[heading.ariaSort ?? "none"];
      for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
      heading.ariaSort = next;
      const sign = next === "ascending" ? 1 : -1;
      const rows = next === "none" ? original
        : [...original].sort((a, b) => sign * compare(key(a, column), key(b, column)));
      body.append(...rows);
    });
  });
}
