// What groups lose on held-out rows with each method: a row for each, a mark for each group.

function drawMethods() {
  if (!document.getElementById("methods")) return;
  const { methods } = summary.comparison;
  const frame = rowsOfGroups("methods", methods);
  const { drawing, holder } = frame;
  const shown = summary.order.slice(0, summary.most_groups);
  const ends = methods.flatMap((each) => shown.map((i) => each.high[i] ?? each.lost[i]));
  const [marks, place] = frame.axis(100 * Math.min(largest(ends), 1), 100 * measure.rounding);
  xAxis(frame, marks, place, `${units.lost.axis} on held-out rows`);
  const x = (share) => place(100 * Math.min(Math.max(share, 0), 1)); // no share is below 0 or above 1
  const styled = shown.filter((i) => styleOf(i) < styles);
  for (const i of styled) {
    const here = x(methods[0].lost[i]);
    shape(drawing, "line", { x1: here, x2: here, y1: frame.top, y2: frame.bottom, class: `g${styleOf(i)} dashed` });
  }
  const readings = [];
  methods.forEach((method, row) => {
    const name = `${method.name}, ${method.dimensions} component${method.dimensions === 1 ? "" : "s"}`;
    frame.label(row, method.name, name.slice(method.name.length + 2));
    for (const i of [...shown].reverse()) { // those that are worst off with ordinary PCA on top
      const y = frame.middle(row) + 4.5 * (Math.min(places.get(i), styles) - (Math.min(shown.length, styles + 1) - 1) / 2);
      const group = `g${styleOf(i)}`;
      const known = method.low[i] !== null;
      if (known) shape(drawing, "line", { x1: x(method.low[i]), x2: x(method.high[i]), y1: y, y2: y, class: group, "stroke-width": 1.5 });
      shape(drawing, "path", { d: outlines[styleOf(i)](x(method.lost[i]), y, 4), class: `${group} mark` });
      const interval = known ? ` (95 % interval ${share(method.low[i])} to ${share(method.high[i])})` : "";
      readings.push({ x: x(method.lost[i]), y, row, text: `${name}: ${groups[i].name} loses ${share(method.lost[i])}${interval}` });
    }
  });
  legendOfGroups(document.getElementById("methods-groups"), shown);
  holder.setAttribute("aria-label",
    "Share of its variance that each group loses on held-out rows, by method. Arrow keys read the values.");
  readable(holder, drawing, readings);
}
