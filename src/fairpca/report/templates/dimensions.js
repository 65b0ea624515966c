// The loss of each group with ordinary PCA, by the number of dimensions.

function drawDimensions(now) {
  if (!document.getElementById("dimensions")) return;
  const { groups: shown, losses, own } = summary.by_dimension;
  const kind = own === null && measure.from_own_pca ? units.lost : unit;
  const { holder, drawing, width } = canvas("dimensions", 376);
  const frame = { drawing, left: 62, right: width - 20, top: 46, bottom: 326 };
  const count = losses[0].length;
  // What a group has of the unit, from its loss in this many dimensions.
  const value = (row, j) => {
    const loss = losses[row][j];
    if (kind === units.lost) return part(loss, shown[row]);
    const raw = measure.from_own_pca ? Math.max(loss - own[row][j], 0)
      : measure.kept ? groups[shown[row]].variance - loss : loss;
    return kind === units.squared ? raw : part(raw, shown[row]);
  };
  const values = shown.flatMap((i, row) => [kind.of(now, i), ...losses[row].map((_, j) => value(row, j))]);
  const most = kind.times * largest(values);
  const up = ticks(most, 5, kind.times * kind.rounding);
  const across = ticks(count, width < 560 ? 5 : 10, 0).filter((mark) => mark >= 1 && Number.isInteger(mark) && mark <= count);
  const x = (j) => frame.left + (count > 1 ? (j - 1) / (count - 1) : 0.5) * (frame.right - frame.left);
  const y = (size) => frame.bottom - (size / up[up.length - 1]) * (frame.bottom - frame.top);
  xAxis(frame, across.includes(1) ? across : [1, ...across], x, "number of dimensions");
  yAxis(frame, up, y, kind.axis);
  const r = summary.dimensions;
  if (r <= count) {
    shape(drawing, "line", { x1: x(r), x2: x(r), y1: frame.top - 18, y2: frame.bottom, class: "here-line" });
    const flipped = x(r) > (frame.left + frame.right) / 2;
    shape(drawing, "text", { x: x(r) + (flipped ? -6 : 6), y: frame.top - 6, "text-anchor": flipped ? "end" : "start", class: "soft" },
          `this report: ${r}`);
  }
  const readings = [];
  const drawn = shown.map((_, row) => row).sort((a, b) => // what is to be seen comes last
    (shown[a] === emphasis) - (shown[b] === emphasis) || styleOf(shown[b]) - styleOf(shown[a]));
  for (const row of drawn) {
    const i = shown[row];
    const style = styleOf(i);
    const faint = emphasis === null ? "" : i === emphasis ? " strong" : " faint";
    const at = losses[row].map((_, j) => [x(j + 1), y(kind.times * value(row, j))]);
    shape(drawing, "polyline", { points: at.join(" "), class: `g${style} line${faint}` });
    if (style < styles || i === emphasis) {
      const every = Math.max(1, Math.round(count / 12));
      const marked = at.filter((_, j) => j % every === (row % every) || count === 1);
      shape(drawing, "path", { d: marked.map(([a, b]) => outlines[style](a, b, 4)).join(""), class: `g${style} mark${faint}` });
      if (r <= count && last > 0) {
        const here = outlines[style](x(r), y(kind.times * kind.of(now, i)), 7);
        shape(drawing, "path", { d: here, class: `g${style} fair${faint}` });
      }
    }
    at.forEach(([a, b], j) => readings.push({
      x: a, y: b, row, text: `${groups[i].name}: ${kind.noun} ${kind.text(value(row, j))} with ordinary PCA in ${j + 1} dimension${j ? "s" : ""}`,
    }));
  }
  readings.sort((a, b) => a.row - b.row || a.x - b.x);
  legendOfGroups(document.querySelector("#dimensions-groups"), shown);
  holder.setAttribute("aria-label",
    `${kind.noun} of each group with ordinary PCA, in 1 to ${count} dimensions. Arrow keys read the values.`);
  readable(holder, drawing, readings);
}
