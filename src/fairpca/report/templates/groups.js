// Groups before and after.

// Those who are worst off with ordinary PCA come first.
const shownGroups = summary.order.slice(0, summary.most_groups);
// At a glance, groups of very few rows would dwarf the others; they come last in the order.
const compared = summary.order.filter((i) => groups[i].enough);
const atAGlance = (compared.length > 1 ? compared : summary.order).slice(0, 8);

// Before and after, with the difference; intervals are those of what fairness is judged by.
function drawPairs(id, shown, now, kind, ranges) {
  const frame = rowsOfGroups(id, shown, { rightRoom: 104 });
  const { drawing, holder } = frame;
  const of = (each, i) => kind.times * kind.of(each, i);
  const known = ranges ? [pca, ...points].flatMap((each) => shown.map((i) => 100 * shareOf(each.high?.[i] ?? 0, i))) : [];
  const most = largest(known, [pca, ...points].flatMap((each) => shown.map((i) => of(each, i))));
  const [marks, place] = frame.axis(most, kind.times * kind.rounding);
  xAxis(frame, marks, place, kind.axis);
  if (!frame.narrow) {
    shape(drawing, "text", { x: frame.width, y: 17, "text-anchor": "end", class: "soft" }, "change");
  }
  const range = (each, i, y, colour) => {
    if (!ranges || !each.low || each.low[i] === null) return;
    const ends = [each.low[i], each.high[i]].map((value) => place(100 * shareOf(value, i)));
    shape(drawing, "line", { x1: ends[0], x2: ends[1], y1: y, y2: y, class: colour, "stroke-width": 2 });
  };
  const readings = [];
  const apart = ranges ? (frame.many ? frame.rowHeight / 6 : 5) : 0;
  shown.forEach((i, row) => {
    const y = frame.middle(row);
    const [before, after] = [kind.of(pca, i), kind.of(now, i)];
    const [from, to] = [place(of(pca, i)), place(of(now, i))];
    const moved = change(after - before, kind);
    frame.label(row, groups[i].name, frame.narrow ? moved : rows(groups[i].rows));
    if (frame.narrow && frame.many) {
      shape(drawing, "text", { x: frame.width, y: y - 11, "text-anchor": "end", class: "soft" }, moved);
    }
    range(pca, i, y - apart, "pca");
    range(now, i, y + apart, "chosen");
    shape(drawing, "line", { x1: from, x2: to, y1: y - apart, y2: y + apart, class: "link" });
    ring(drawing, "pca")(from, y - apart);
    dot(drawing, "chosen")(to, y + apart);
    if (!frame.narrow) shape(drawing, "text", { x: frame.width, y: y + 4, "text-anchor": "end" }, moved);
    const interval = (each) => (ranges && each.low && each.low[i] !== null
      ? ` (95 % interval ${inGroup(each.low[i], i)} to ${inGroup(each.high[i], i)})` : "");
    const name = `${groups[i].name}, ${rows(groups[i].rows)}`;
    readings.push({ x: from, y: y - apart, text: `${name}: ${kind.noun} ${kind.text(before)}${interval(pca)} with ordinary PCA` });
    readings.push({ x: to, y: y + apart, text: `${name}: ${kind.noun} ${kind.text(after)}${interval(now)} ${shownAs}, ${inWords(after - before, kind)}` });
  });
  legend(drawing, [[ring(drawing, "pca"), "ordinary PCA"], [dot(drawing, "chosen"), shownAs]]);
  const words = shown.map((i) =>
    `${groups[i].name}: ${kind.text(kind.of(pca, i))} with ordinary PCA, ${kind.text(kind.of(now, i))} ${shownAs}`);
  const noun = kind.noun[0].toUpperCase() + kind.noun.slice(1);
  holder.setAttribute("aria-label", `${noun} by group. ${words.join("; ")}. Arrow keys read the values.`);
  note(holder, shown);
  readable(holder, drawing, readings);
}

function note(holder, shown) {
  if (groups.length <= shown.length) return;
  const caption = holder.parentElement.querySelector("[data-note]");
  const which = shown.length === compared.length
    ? "without those of too few rows" : "those that are worst off with ordinary PCA";
  caption.textContent = `${shown.length} of ${groups.length} groups, ${which}; the table has all.`;
  caption.hidden = false;
}
