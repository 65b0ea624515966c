// Some rows in the first two components, with ordinary PCA and at the fairest point.

function drawRows() {
  const shown = summary.rows_shown;
  if (!shown || !document.getElementById("rows")) return;
  const room = paper || Math.max(document.getElementById("rows").clientWidth, 280);
  const stacked = room < 640;
  const panels = shown.places.length;
  const titles = ["ordinary PCA", "min-max PCA"];
  const gap = 28;
  const size = stacked || panels === 1 ? Math.min(room, 560) - 34 : (room - gap) / 2 - 34;
  const tall = Math.min(size, 380);
  const height = (tall + 66) * (stacked ? panels : 1);
  const { holder, drawing } = canvas("rows", height);
  const flat = shown.places[0][0].length === 1;
  const present = summary.order.filter((i) => shown.groups.includes(i));
  const order = new Map(present.map((i, row) => [i, row]));
  shown.places.forEach((places, panel) => {
    const left = 20 + (stacked ? 0 : panel * (size + 34 + gap));
    const top = 26 + (stacked ? panel * (tall + 66) : 0);
    shape(drawing, "text", { x: left, y: top - 8 }, titles[panel]);
    shape(drawing, "rect", { x: left, y: top, width: size, height: tall, class: "panel" });
    const zero = [0, 1].map((axis) => (0 - shown.low[axis]) / (shown.high[axis] - shown.low[axis]));
    if (zero[0] > 0 && zero[0] < 1) {
      shape(drawing, "line", { x1: left + zero[0] * size, x2: left + zero[0] * size, y1: top, y2: top + tall, class: "axis" });
    }
    if (!flat && zero[1] > 0 && zero[1] < 1) {
      shape(drawing, "line", { x1: left, x2: left + size, y1: top + (1 - zero[1]) * tall, y2: top + (1 - zero[1]) * tall, class: "axis" });
    }
    shape(drawing, "text", { x: left + size / 2, y: top + tall + 18, "text-anchor": "middle", class: "soft" }, "component 1");
    if (!flat) {
      shape(drawing, "text", { x: left - 6, y: top + tall / 2, "text-anchor": "middle", class: "soft",
                               transform: `rotate(-90 ${left - 6} ${top + tall / 2})` }, "component 2");
    }
    const paths = new Map(present.map((i) => [i, ""]));
    places.forEach((place, row) => {
      const i = shown.groups[row];
      const x = left + (place[0] / shown.steps) * size;
      // Of one component: a strip for each group, in which rows are spread so that they can be seen.
      const strip = (order.get(i) + 0.5 + 0.7 * (((row * 0.618034) % 1) - 0.5)) / present.length;
      const y = top + (flat ? strip : 1 - place[1] / shown.steps) * tall;
      paths.set(i, paths.get(i) + outlines[styleOf(i)](Math.round(10 * x) / 10, Math.round(10 * y) / 10, 2.6));
    });
    for (const i of [...present].reverse().sort((a, b) => (a === emphasis) - (b === emphasis))) {
      const faint = emphasis === null ? "" : i === emphasis ? " strong" : " faint";
      shape(drawing, "path", { d: paths.get(i), class: `g${styleOf(i)} cloud${faint}` });
    }
  });
  legendOfGroups(document.querySelector("#rows-groups"), present);
  const counts = present.map((i) => `${groups[i].name}: ${shown.groups.filter((each) => each === i).length}`);
  holder.setAttribute("aria-label",
    `Rows in the first components, by group: ${titles.slice(0, panels).join(" and ")}. Marks of each group: ${counts.join("; ")}.`);
}
