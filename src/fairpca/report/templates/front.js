// The trade-off: total loss against unfairness, a mark for each point.

function drawFront(now) {
  if (!document.getElementById("front")) return;
  const { holder, drawing, width } = canvas("front", 340);
  const frame = { drawing, left: 56, right: width - 20, top: 30, bottom: 290 };
  // Of a group, per cent of the variance of the one that is worst off with ordinary PCA.
  const yardstick = pca.worst_group;
  const times = 100 * shareOf(1, yardstick);
  const levels = points.map((each) => times * each.unfairness);
  const bound = summary.unfairness_bound;
  const ends = bound === null ? levels : [...levels, times * bound];
  const [low, top] = [Math.min(...ends), Math.max(...ends)];
  // From zero, unless that would leave little room for the points.
  const across = ticks(top, width < 560 ? 4 : 7, times * (measure.relative ? measure.rounding : summary.rounding), low > top / 2 ? low : 0);
  const up = ticks(largest(points.map((each) => 100 * each.extra_loss)), 5, 0);
  const reach = across[across.length - 1] - across[0];
  // As the slider goes: ordinary PCA is on the left, the fairest subspace on the right.
  const place = (value) => frame.right - ((value - across[0]) / reach) * (frame.right - frame.left);
  const x = (value) => place(times * value);
  const y = (extra) => frame.bottom - (Math.max(100 * extra, 0) / up[up.length - 1]) * (frame.bottom - frame.top);
  const of = measure.relative ? "% of the group's variance" : `% of ${groups[yardstick].name}’s variance`;
  xAxis(frame, across, place, `${unfairness}, ${of}; fairer to the right`);
  yAxis(frame, up, (mark) => y(mark / 100), `% more loss in total than ordinary PCA`);
  if (bound !== null) {
    const at = x(bound);
    const flipped = at > (frame.left + frame.right) / 2;
    shape(drawing, "line", { x1: at, x2: at, y1: frame.top, y2: frame.bottom, class: "pca",
                             "stroke-dasharray": "5 4", "stroke-width": 2 });
    // Where the curve is not: it rises to the top.
    shape(drawing, "text", { x: flipped ? at : at + 20, y: flipped ? frame.top - 6 : frame.top + 8,
                             "text-anchor": flipped ? "end" : "start" },
          measure.kept ? "proven: not above" : "proven: not below");
  }
  shape(drawing, "polyline", {
    points: points.map((each) => `${x(each.unfairness)},${y(each.extra_loss)}`).join(" "),
    class: "chosen", fill: "none", "stroke-width": 1.5,
  });
  const kind = (each) => (each.status === "optimal" ? "chosen-fill" : "chosen hollow");
  for (const each of points) {
    shape(drawing, "circle", {
      cx: x(each.unfairness), cy: y(each.extra_loss), r: 3, class: kind(each), "stroke-width": 1.5,
    });
  }
  const here = { cx: x(now.unfairness), cy: y(now.extra_loss) };
  shape(drawing, "circle", { ...here, r: 8, class: kind(now), "stroke-width": 3, id: "here" });
  shape(drawing, "circle", { ...here, r: 12, class: "chosen halo", "stroke-width": 2 });
  points.forEach((each, i) => {
    const target = shape(drawing, "circle", { cx: x(each.unfairness), cy: y(each.extra_loss), r: 10, class: "target" });
    target.addEventListener("click", () => choose(i));
  });
  holder.setAttribute("aria-label",
    `Total loss above ordinary PCA against the ${unfairness}, ${points.length} points, ` +
    `from ${points[0].spoken} to ${points[last].spoken}. ` +
    `At the slider: ${now.spoken}. Arrow keys read the values.`);
  readable(holder, drawing, points.map((each, i) => (
    { x: x(each.unfairness), y: y(each.extra_loss), text: `Point ${i}: ${each.spoken}` })));
}
