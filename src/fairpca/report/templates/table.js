// The table of groups: the numbers of the point, and the order that was asked for.

const bodyOfGroups = document.querySelector("#groups tbody");
const rowsOfTable = [...bodyOfGroups.rows];

const sorts = {
  group: (i) => groups[i].name, rows: (i) => groups[i].rows, must: (i) => groups[i].own_loss,
  before: (i) => pca.measures[i], after: (i) => points[current].measures[i],
  change: (i) => points[current].measures[i] - pca.measures[i],
  kept_before: (i) => keptShare(pca, i) ?? -1, kept_after: (i) => keptShare(points[current], i) ?? -1,
};
let sorted = { by: null, up: true };

function fillTable(now) {
  rowsOfTable.forEach((row, i) => {
    const cells = {
      measure: amount(now.measures[i]),
      interval: now.low && now.low[i] !== null ? `${amount(now.low[i])} to ${amount(now.high[i])}` : "interval unknown",
      change: change(now.measures[i] - pca.measures[i], units.measure),
      kept: share(keptShare(now, i)),
    };
    for (const cell of row.querySelectorAll("[data-show]")) cell.textContent = cells[cell.dataset.show];
  });
  for (const name of ["largest", "spread"]) document.getElementById(name).textContent = amount(now[name]);
  const sentence = document.getElementById("compared");
  if (sentence) sentence.textContent = now.compared;
  arrange();
}

function arrange() {
  if (sorted.by === null) return;
  const key = sorts[sorted.by];
  const compare = (a, b) => (typeof key(a) === "string" ? key(a).localeCompare(key(b), "en") : key(a) - key(b));
  const order = rowsOfTable.map((_, i) => i).sort((a, b) => (sorted.up ? 1 : -1) * compare(a, b) || a - b);
  bodyOfGroups.append(...order.map((i) => rowsOfTable[i]));
}

for (const head of document.querySelectorAll("#groups th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const by = head.dataset.sort;
    // Names from the first, numbers from the largest, and the other way at the second time.
    sorted = { by, up: sorted.by === by ? !sorted.up : by === "group" };
    for (const other of document.querySelectorAll("#groups th[data-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
    arrange();
  });
}
