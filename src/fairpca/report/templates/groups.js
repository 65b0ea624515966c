// Groups before and after.

// Those who are worst off with ordinary PCA come first.
const shownGroups = summary.order.slice(0, summary.most_groups);
// At a glance, groups of very few rows would dwarf the others; they come last in the order.
const compared = summary.order.filter((i) => groups[i].enough);
const atAGlance = (compared.length > 1 ? compared : summary.order).slice(0, 8);

// The first picture: what each group loses, on held-out rows where these were judged.
function drawGlance(now) {
  if (!summary.comparison) return drawPairs("glance", atAGlance, now, units.lost, false);
  const { methods } = summary.comparison;
  const [before] = methods;
  const after = methods.find((each) => each.name === "fair PCA");
  const more = methods.find((each) => each.name === "PCA" && each.dimensions === before.dimensions + 1);
  const shown = summary.order.slice(0, 8).sort((a, b) => before.lost[b] - before.lost[a]);
  const frame = rowsOfGroups("glance", shown, { rightRoom: 128 });
  const { drawing, holder } = frame;
  const ends = shown.flatMap((i) => [before.high[i] ?? 0, before.lost[i], after.lost[i]]);
  const [marks, place] = frame.axis(100 * largest(ends), 100 * measure.rounding);
  const x = (share) => place(100 * Math.max(share, 0));
  xAxis(frame, marks, place, units.lost.axis);
  if (!frame.narrow) {
    shape(drawing, "text", { x: frame.width, y: 17, "text-anchor": "end", class: "soft" }, "change by fair PCA");
  }
  const diamond = (at, y) => shape(drawing, "path", { d: outlines[3](at, y, 4.5), class: "more-mark" });
  const readings = [];
  shown.forEach((i, row) => {
    const y = frame.middle(row);
    const by = (100 * Math.abs(after.lost[i] - before.lost[i])).toFixed(1);
    const reach = after.low[i] === null ? "" : ` ± ${(50 * (after.high[i] - after.low[i])).toFixed(1)}`;
    const change = `${by === "0.0" ? "" : after.lost[i] < before.lost[i] ? "−" : "+"}${by}${reach}`;
    const moved = frame.narrow ? `fair PCA ${change}` : change;
    const few = groups[i].enough ? "" : ", too few";
    const apart = frame.many ? 0 : 4;
    frame.label(row, groups[i].name, frame.narrow ? moved : `${rows(groups[i].rows)}${few}`);
    if (before.low[i] !== null) {
      shape(drawing, "line", { x1: x(before.low[i]), x2: x(before.high[i]), y1: y - apart, y2: y - apart, class: "pca", "stroke-width": 1.5 });
    }
    if (more && !frame.narrow) diamond(x(more.lost[i]), y);
    ring(drawing, "pca")(x(before.lost[i]), y - apart);
    dot(drawing, "chosen")(x(after.lost[i]), y + apart);
    if (!frame.narrow) shape(drawing, "text", { x: frame.width, y: y + 4, "text-anchor": "end" }, moved);
    const interval = before.low[i] === null ? "" : ` (95 % interval ${share(before.low[i])} to ${share(before.high[i])})`;
    const text = (method, words) => `${groups[i].name}, ${rows(groups[i].rows)}: loses ${share(method.lost[i])}${words}`;
    readings.push({ x: x(before.lost[i]), y: y - apart, text: text(before, `${interval} with ordinary PCA`) });
    readings.push({ x: x(after.lost[i]), y: y + apart, text: text(after, " with fair PCA") });
    if (more) readings.push({ x: x(more.lost[i]), y, text: text(more, ` with PCA of ${more.dimensions} components`) });
  });
  legend(drawing, [
    [ring(drawing, "pca"), "ordinary PCA"], [dot(drawing, "chosen"), "fair PCA"],
    ...(more && !frame.narrow ? [[diamond, `PCA with ${more.dimensions} components`]] : []),
  ]);
  holder.setAttribute("aria-label",
    `Share of its variance that each group loses on held-out rows. ${readings.map((each) => each.text).join("; ")}. Arrow keys read the values.`);
  note(holder, shown);
  readable(holder, drawing, readings);
}

// Before and after, with the difference; intervals are those of what fairness is judged by.
function drawPairs(id, shown, now, kind, ranges) {
  if (!document.getElementById(id)) return;
  const frame = rowsOfGroups(id, shown, { rightRoom: 104 });
  const { drawing, holder } = frame;
  const of = (each, i) => kind.times * kind.of(each, i);
  const known = ranges ? [pca, ...points].flatMap((each) => shown.map((i) => 100 * shareOf(each.high?.[i] ?? 0, i))) : [];
  const most = largest(known, [pca, ...points].flatMap((each) => shown.map((i) => of(each, i))));
  const [marks, place] = frame.axis(most, kind.times * kind.rounding);
  xAxis(frame, marks, place, kind.axis);
  if (!frame.narrow && last > 0) {
    shape(drawing, "text", { x: frame.width, y: 17, "text-anchor": "end", class: "soft" }, "change");
  }
  const range = (each, i, y, colour) => {
    if (!ranges || !each.low || each.low[i] === null) return;
    const ends = [each.low[i], each.high[i]].map((value) => place(100 * shareOf(value, i)));
    shape(drawing, "line", { x1: ends[0], x2: ends[1], y1: y, y2: y, class: colour, "stroke-width": 2 });
  };
  const readings = [];
  const apart = ranges && last > 0 ? (frame.many ? frame.rowHeight / 6 : 5) : 0;
  shown.forEach((i, row) => {
    const y = frame.middle(row);
    const [before, after] = [kind.of(pca, i), kind.of(now, i)];
    const [from, to] = [place(of(pca, i)), place(of(now, i))];
    const moved = last > 0 ? change(after - before, kind) : "";
    frame.label(row, groups[i].name, frame.narrow ? moved : rows(groups[i].rows));
    if (frame.narrow && frame.many) {
      shape(drawing, "text", { x: frame.width, y: y - 11, "text-anchor": "end", class: "soft" }, moved);
    }
    range(pca, i, y - apart, "pca");
    if (last > 0) {
      range(now, i, y + apart, "chosen");
      shape(drawing, "line", { x1: from, x2: to, y1: y - apart, y2: y + apart, class: "link" });
    }
    ring(drawing, "pca")(from, y - apart);
    if (last > 0) dot(drawing, "chosen")(to, y + apart);
    if (!frame.narrow) shape(drawing, "text", { x: frame.width, y: y + 4, "text-anchor": "end" }, moved);
    const interval = (each) => (ranges && each.low && each.low[i] !== null
      ? ` (95 % interval ${inGroup(each.low[i], i)} to ${inGroup(each.high[i], i)})` : "");
    const name = `${groups[i].name}, ${rows(groups[i].rows)}`;
    readings.push({ x: from, y: y - apart, text: `${name}: ${kind.noun} ${kind.text(before)}${interval(pca)} with ordinary PCA` });
    if (last > 0) readings.push({ x: to, y: y + apart, text: `${name}: ${kind.noun} ${kind.text(after)}${interval(now)} ${shownAs}, ${inWords(after - before, kind)}` });
  });
  legend(drawing, [
    [ring(drawing, "pca"), "ordinary PCA"], ...(last > 0 ? [[dot(drawing, "chosen"), shownAs]] : []),
  ]);
  const words = shown.map((i) => `${groups[i].name}: ${kind.text(kind.of(pca, i))} with ordinary PCA`
    + (last > 0 ? `, ${kind.text(kind.of(now, i))} ${shownAs}` : ""));
  const noun = kind.noun[0].toUpperCase() + kind.noun.slice(1);
  holder.setAttribute("aria-label", `${noun} by group. ${words.join("; ")}. Arrow keys read the values.`);
  note(holder, shown);
  readable(holder, drawing, readings);
}

function note(holder, shown) {
  if (groups.length <= shown.length) return;
  const caption = holder.parentElement.querySelector("[data-note]");
  const which = shown.length === compared.length && shown.every((i) => groups[i].enough)
    ? "without those of too few rows" : "those that are worst off with ordinary PCA";
  caption.textContent = `${shown.length} of ${groups.length} groups, ${which}; the table has all.`;
  caption.hidden = false;
}
