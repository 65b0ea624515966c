// The table of groups: the numbers of the point, and the order that was asked for.

const bodyOfGroups = document.querySelector("#groups tbody");
const rowsOfTable = [...bodyOfGroups.rows];

const sorts = {
  group: (i) => groups[i].name, rows: (i) => groups[i].rows, must: (i) => part(groups[i].own_loss, i),
  lost_before: (i) => units.lost.of(pca, i), lost_after: (i) => units.lost.of(points[current], i),
  before: (i) => units.measure.of(pca, i), after: (i) => units.measure.of(points[current], i),
  change: (i) => units.measure.of(points[current], i) - units.measure.of(pca, i),
};
let sorted = { by: null, up: true };

function fillTable(now) {
  rowsOfTable.forEach((row, i) => {
    const cells = {
      measure: inGroup(now.measures[i], i),
      squared: number(now.measures[i]),
      interval: now.low && now.low[i] !== null ? `${inGroup(now.low[i], i)} to ${inGroup(now.high[i], i)}` : "interval unknown",
      change: change(units.measure.of(now, i) - units.measure.of(pca, i), units.measure),
      lost: groups[i].variance > 0 ? share(units.lost.of(now, i)) : "–",
    };
    for (const cell of row.querySelectorAll("[data-show]")) cell.textContent = cells[cell.dataset.show];
  });
  if (last > 0) for (const name of ["largest", "spread"]) document.getElementById(name).textContent = level(now[name]);
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
