"use strict";
(() => {
  const summary = JSON.parse(document.getElementById("summary").textContent);
  const { points, pca, groups, measure } = summary;
  const unfairness = summary.over === "largest" ? measure.worst : "difference between groups";
  const unit = measure.relative ? 100 : 1; // shares are shown as per cent
  const last = points.length - 1;
  const mostRows = 40;
  const slider = document.getElementById("slider");
  const shownAs = last > 0 ? "at the slider" : `${summary.fairest} subspace`;
  let current = last;

  // ---- small helpers: text is only ever set as text, never as markup

  const svgSpace = "http://www.w3.org/2000/svg";

  function shape(parent, name, attributes, text) {
    const made = document.createElementNS(svgSpace, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function element(parent, name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  // The same rules as those of the numbers that the page comes with.
  function plain(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e-5 && size < 1e9) {
      return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 10 });
    }
    const [mantissa, exponent] = value.toExponential(3).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`;
  }

  function number(value) {
    if (value === null) return "–";
    return Math.abs(value) <= summary.rounding ? "0" : plain(value);
  }

  function amount(value) {
    if (Math.abs(value) <= measure.rounding) return measure.relative ? "0 %" : "0";
    return measure.relative ? percent(value) : plain(value);
  }

  function percent(share) {
    const value = Math.max(100 * share, 0);
    if (value > 0 && value < 0.001) return "less than 0.001 %";
    const rounded = Number(value.toPrecision(value < 1 ? 2 : 3));
    return `${rounded.toLocaleString("en", { maximumFractionDigits: 10 })} %`;
  }

  const rows = (count) => `${count.toLocaleString("en")} row${count === 1 ? "" : "s"}`;

  function canvas(id, height) {
    const holder = document.getElementById(id);
    const width = Math.max(Math.round(holder.clientWidth), 280);
    const drawing = document.createElementNS(svgSpace, "svg");
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("aria-hidden", "true"); // its holder has the words
    holder.replaceChildren(drawing);
    return { holder, drawing, width };
  }

  // Ticks at 1, 2 or 5 times a power of ten that cover [low, top]; rounding is not worth any.
  function ticks(top, most, least, low = 0) {
    if (!(top - low > least)) return low > 0 ? [0, top] : [0, 1];
    const rough = (top - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
    const marks = [];
    const first = Math.floor(low / step + 1e-9);
    for (let mark = first; mark < Math.ceil(top / step - 1e-9) + 1; mark += 1) marks.push(mark * step);
    return marks;
  }

  // Cut a label that is drawn already until it fits.
  function fit(label, room) {
    const letters = Array.from(label.textContent);
    while (letters.length > 1 && label.getComputedTextLength() > room) {
      letters.pop();
      label.textContent = `${letters.join("")}…`;
    }
  }

  // Two rows for a group where the page is narrow: its name above, what is drawn below.
  function rowsOfGroups(id, shown, extraHeight) {
    const narrow = document.getElementById(id).clientWidth < 560;
    const rowHeight = narrow ? 52 : 40;
    const top = 34;
    const height = top + shown.length * rowHeight + extraHeight;
    const { holder, drawing, width } = canvas(id, height);
    const left = narrow ? 4 : Math.min(230, Math.round(width * 0.3));
    const right = width - 16;
    const label = (row, name, count) => {
      const y = top + row * rowHeight;
      const at = narrow ? { x: 0, y: y + 16 } : { x: left - 12, y: y + 17, "text-anchor": "end" };
      fit(shape(drawing, "text", at, name), narrow ? width * 0.62 : left - 12);
      const below = narrow
        ? { x: right, y: y + 16, "text-anchor": "end", class: "soft" }
        : { x: left - 12, y: y + 32, "text-anchor": "end", class: "soft" };
      shape(drawing, "text", below, count);
    };
    const middle = (row) => top + row * rowHeight + (narrow ? 34 : 20);
    const axis = (reach, rounding) => {
      const marks = ticks(reach, narrow ? 4 : 7, rounding);
      const place = (value) =>
        left + (value > rounding ? value / marks[marks.length - 1] : 0) * (right - left);
      return [marks, place];
    };
    return { holder, drawing, width, left, right, top, height, label, middle, narrow, axis,
             bottom: top + shown.length * rowHeight };
  }

  function xAxis(frame, marks, scale, title) {
    for (const mark of marks) {
      const x = scale(mark);
      shape(frame.drawing, "line", { x1: x, x2: x, y1: frame.top, y2: frame.bottom, class: "axis" });
      shape(frame.drawing, "text", { x, y: frame.bottom + 17, "text-anchor": "middle", class: "soft" },
            plain(mark));
    }
    shape(frame.drawing, "text",
          { x: (frame.left + frame.right) / 2, y: frame.bottom + 37, "text-anchor": "middle", class: "soft" },
          title);
  }

  function legend(drawing, entries) {
    let x = 8;
    for (const [draw, text] of entries) {
      draw(x, 13);
      const label = shape(drawing, "text", { x: x + 13, y: 17 }, text);
      x += 13 + label.getComputedTextLength() + 18;
    }
  }

  const ring = (drawing, kind) => (x, y) =>
    shape(drawing, "circle", { cx: x, cy: y, r: 5, class: `${kind} hollow`, "stroke-width": 2.5 });
  const dot = (drawing, kind) => (x, y) =>
    shape(drawing, "circle", { cx: x, cy: y, r: 5.5, class: `${kind}-fill` });
  const square = (drawing, kind) => (x, y) =>
    shape(drawing, "rect", { x: x - 6, y: y - 6, width: 12, height: 12, class: `${kind}-fill` });

  // ---- the charts

  // Those who are worst off with ordinary PCA come first.
  const shownGroups = summary.order.slice(0, mostRows);

  function largest(...lists) {
    return lists.flat().reduce((most, value) => (value > most ? value : most), 0);
  }

  const measureTop = unit * largest(
    ...[pca, ...points].flatMap((point) =>
      shownGroups.map((i) => [point.measures[i], point.high ? point.high[i] ?? 0 : 0])));

  function drawMeasures(point) {
    const frame = rowsOfGroups("measures", shownGroups, 44);
    const [marks, place] = frame.axis(measureTop, unit * measure.rounding);
    const scale = (value) => place(unit * value);
    xAxis(frame, marks, place, measure.axis);
    const { drawing } = frame;
    const range = (low, high, y, kind) => {
      if (low === null || high === null) return;
      shape(drawing, "line", { x1: scale(low), x2: scale(high), y1: y, y2: y, class: kind,
                               "stroke-width": 2 });
    };
    shownGroups.forEach((i, row) => {
      const y = frame.middle(row);
      frame.label(row, groups[i].name, rows(groups[i].rows));
      if (pca.low) range(pca.low[i], pca.high[i], y - 5, "pca");
      if (point.low) range(point.low[i], point.high[i], y + 5, "chosen");
      ring(drawing, "pca")(scale(pca.measures[i]), y - 5);
      dot(drawing, "chosen")(scale(point.measures[i]), y + 5);
    });
    legend(drawing, [[ring(drawing, "pca"), "ordinary PCA"], [dot(drawing, "chosen"), shownAs]]);
    const words = shownGroups.map((i) =>
      `${groups[i].name}: ${amount(pca.measures[i])} with ordinary PCA, ${amount(point.measures[i])} ${shownAs}`);
    const noun = measure.noun[0].toUpperCase() + measure.noun.slice(1);
    frame.holder.setAttribute("aria-label", `${noun} by group. ${words.join("; ")}.`);
    note(frame.holder);
  }

  const lossTop = largest(
    ...[pca, ...points].flatMap((point) => shownGroups.map((i) => point.losses[i])));

  function drawLosses(point) {
    const frame = rowsOfGroups("losses", shownGroups, 44);
    const [marks, scale] = frame.axis(lossTop, summary.rounding);
    xAxis(frame, marks, scale, summary.loss === "mean" ? "loss per row" : "loss");
    const { drawing } = frame;
    const thickness = 14;
    shownGroups.forEach((i, row) => {
      const y = frame.middle(row) - thickness / 2;
      const must = scale(groups[i].own_loss);
      const end = scale(point.losses[i]);
      frame.label(row, groups[i].name, `${number(point.losses[i])} in total`);
      shape(drawing, "rect", { x: frame.left, y, width: Math.max(must - frame.left, 0),
                               height: thickness, class: "must-fill" });
      // A gap tells the two apart without their colours.
      shape(drawing, "rect", { x: must + 1.5, y, width: Math.max(end - must - 1.5, 0),
                               height: thickness, class: "chosen-fill" });
      const x = scale(pca.losses[i]);
      shape(drawing, "line", { x1: x, x2: x, y1: y - 4, y2: y + thickness + 4, class: "pca",
                               "stroke-width": 2.5 });
    });
    legend(drawing, [
      [square(drawing, "must"), "must lose"],
      [square(drawing, "chosen"), "disparity"],
      [(x, y) => shape(drawing, "line", { x1: x, x2: x, y1: y - 8, y2: y + 8, class: "pca", "stroke-width": 2.5 }),
       "ordinary PCA"],
    ]);
    const words = shownGroups.map((i) =>
      `${groups[i].name}: ${number(point.losses[i])}, of which it must lose ${number(groups[i].own_loss)}`);
    frame.holder.setAttribute("aria-label", `Losses by group, ${shownAs}. ${words.join("; ")}.`);
    note(frame.holder);
  }

  function note(holder) {
    if (groups.length <= mostRows) return;
    const caption = holder.parentElement.querySelector("[data-note]");
    caption.textContent = `Of ${groups.length} groups the ${mostRows} that are worst off with ordinary PCA; the table has all.`;
    caption.hidden = false;
  }

  function drawFront(point) {
    if (!document.getElementById("front")) return;
    const { holder, drawing, width } = canvas("front", 340);
    const frame = { drawing, left: 56, right: width - 20, top: 30, bottom: 290 };
    const levels = points.map((each) => unit * each.unfairness);
    const bound = summary.unfairness_bound;
    const ends = bound === null ? levels : [...levels, unit * bound];
    const [low, top] = [Math.min(...ends), Math.max(...ends)];
    // From zero, unless that would leave little room for the points.
    const across = ticks(top, width < 560 ? 4 : 7, unit * measure.rounding, low > top / 2 ? low : 0);
    const upTop = largest(points.map((each) => 100 * each.extra_loss));
    const up = ticks(upTop, 5, 0);
    const reach = across[across.length - 1] - across[0];
    const place = (value) => frame.left + ((value - across[0]) / reach) * (frame.right - frame.left);
    const x = (value) => place(unit * value);
    const y = (share) =>
      frame.bottom - (Math.max(100 * share, 0) / up[up.length - 1]) * (frame.bottom - frame.top);
    const title = summary.over === "largest" ? unfairness : `${unfairness} (0 is equal)`;
    xAxis(frame, across, place, measure.relative ? `${title}, % of the group's variance` : title);
    for (const mark of up) {
      const height = y(mark / 100);
      shape(drawing, "line", { x1: frame.left, x2: frame.right, y1: height, y2: height, class: "axis" });
      shape(drawing, "text", { x: frame.left - 8, y: height + 4, "text-anchor": "end", class: "soft" },
            plain(mark));
    }
    shape(drawing, "text", { x: 0, y: 14, class: "soft" }, `% more loss in total than ${summary.baseline}`);
    if (bound !== null) {
      const at = x(bound);
      const flipped = at > (frame.left + frame.right) / 2;
      shape(drawing, "line", { x1: at, x2: at, y1: frame.top, y2: frame.bottom, class: "pca",
                               "stroke-dasharray": "5 4", "stroke-width": 2 });
      // Where the curve is not.
      shape(drawing, "text", { x: flipped ? at : at + 8, y: flipped ? frame.top - 6 : frame.bottom - 10,
                               "text-anchor": flipped ? "end" : "start" },
            measure.kept && summary.over === "largest" ? "proven: not above" : "proven: not below");
    }
    shape(drawing, "polyline", {
      points: points.map((each) => `${x(each.unfairness)},${y(each.extra_loss)}`).join(" "),
      class: "chosen", fill: "none", "stroke-width": 1.5,
    });
    points.forEach((each, i) => {
      const proven = each.status === "optimal";
      shape(drawing, "circle", {
        cx: x(each.unfairness), cy: y(each.extra_loss), r: 3,
        class: proven ? "chosen-fill" : "chosen hollow", "stroke-width": 1.5,
      });
    });
    shape(drawing, "circle", { cx: x(point.unfairness), cy: y(point.extra_loss), r: 8,
                               class: "chosen-fill", id: "here" });
    shape(drawing, "circle", { cx: x(point.unfairness), cy: y(point.extra_loss), r: 12,
                               class: "chosen halo", "stroke-width": 2 });
    points.forEach((each, i) => {
      const target = shape(drawing, "circle", {
        cx: x(each.unfairness), cy: y(each.extra_loss), r: 10, class: "target",
      });
      target.addEventListener("click", () => choose(i));
    });
    holder.setAttribute("aria-label",
      `Total loss above ${summary.baseline} against the ${unfairness}, ${points.length} points, ` +
      `from ${amount(points[0].unfairness)} at no extra loss to ${amount(points[last].unfairness)} ` +
      `at ${percent(points[last].extra_loss)} more. At the slider: ${point.spoken}.`);
  }

  function drawComponents(point) {
    const holder = document.getElementById("components");
    holder.replaceChildren();
    point.components.forEach((component, j) => {
      const table = element(holder, "table");
      table.className = "component";
      const share = (100 * point.explained_variance_ratio[j]).toFixed(1);
      element(table, "caption", `Component ${j + 1}, ${share} % of the variance`);
      const head = element(table, "thead");
      head.className = "unseen";
      const heads = element(head, "tr");
      for (const title of ["column", "weight", "bar"]) element(heads, "th", title).scope = "col";
      const body = element(table, "tbody");
      for (const [name, weight] of component) {
        const row = element(body, "tr");
        const title = element(row, "th");
        title.scope = "row";
        element(title, "bdi", name);
        const shown = element(row, "td", weight.toFixed(2));
        shown.className = "weight";
        const bar = shape(element(row, "td"), "svg",
                          { viewBox: "-1 0 2 1", preserveAspectRatio: "none", "aria-hidden": "true", class: "chart" });
        shape(bar, "rect", { x: Math.min(weight, 0), y: 0.1, width: Math.abs(weight), height: 0.8,
                             class: weight < 0 ? "pca-fill" : "chosen-fill" });
        shape(bar, "line", { x1: 0, x2: 0, y1: 0, y2: 1, class: "axis", "vector-effect": "non-scaling-stroke" });
      }
    });
  }

  // ---- words and numbers

  function fillTable(point) {
    document.querySelectorAll("#groups tbody tr").forEach((row, i) => {
      const cells = {
        measure: amount(point.measures[i]),
        interval: point.low && point.low[i] !== null ? `${amount(point.low[i])} to ${amount(point.high[i])}` : "unknown",
        kept: groups[i].variance > 0 ? `${(100 * (1 - point.losses[i] / groups[i].variance)).toFixed(1)} %` : "–",
      };
      row.querySelectorAll("[data-show]").forEach((cell) => { cell.textContent = cells[cell.dataset.show]; });
    });
    for (const name of ["largest", "spread"]) document.getElementById(name).textContent = amount(point[name]);
    const compared = document.getElementById("compared");
    if (compared) compared.textContent = point.compared;
  }

  function fillWords(point) {
    document.getElementById("certificate").replaceChildren();
    for (const sentence of point.certificate) element(document.getElementById("certificate"), "p", sentence);
    document.getElementById("code").textContent = summary.code.replaceAll("{point}", String(current));
    for (const button of document.querySelectorAll("[data-point]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.point) === current));
    }
    if (!slider) return;
    document.getElementById("readout").textContent = `Point ${current}: ${point.spoken}.`;
    slider.setAttribute("aria-valuetext", `Point ${current}: ${point.spoken}`);
  }

  // ---- one way in: choosing a point draws everything anew

  function show() {
    const point = points[current];
    drawMeasures(point);
    drawFront(point);
    drawLosses(point);
    drawComponents(point);
    fillTable(point);
    fillWords(point);
  }

  function choose(index) {
    current = index;
    slider.value = String(index);
    show();
    document.getElementById("spoken").textContent = points[current].spoken;
  }

  if (slider) {
    for (const control of document.querySelectorAll(".steering, .buttons")) control.hidden = false;
    slider.addEventListener("input", () => {
      current = Number(slider.value);
      show();
    });
    for (const button of document.querySelectorAll("[data-point]")) {
      button.addEventListener("click", () => choose(Number(button.dataset.point)));
    }
  }
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    show();
  });
  show();
})();
