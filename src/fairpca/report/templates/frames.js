// What charts share: room to draw in, axes, labels that fit, marks and legends.

let paper = 0; // width to draw at for print, 0 on a screen

function canvas(id, height) {
  const holder = document.getElementById(id);
  const width = paper || Math.max(Math.round(holder.clientWidth), 280);
  const drawing = document.createElementNS(svgSpace, "svg");
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawing.setAttribute("aria-hidden", "true"); // its holder has the words
  holder.replaceChildren(drawing);
  return { holder, drawing, width, height };
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

// Leave out the middle of a label that is drawn already until it fits: names may differ at the end.
function fit(label, room) {
  const letters = Array.from(label.textContent);
  const long = label.getComputedTextLength();
  if (long <= room) return;
  let kept = Math.min(Math.ceil((letters.length * room) / long), letters.length - 1);
  do { // measuring takes time, so begin with a guess
    const head = letters.slice(0, Math.ceil(kept / 2));
    label.textContent = `${head.join("")}…${letters.slice(letters.length - Math.floor(kept / 2)).join("")}`;
    kept -= 1;
  } while (kept > 1 && label.getComputedTextLength() > room);
}

// Two rows for a group where the page is narrow: its name above, what is drawn below. Of many
// groups each has a low row with its name alone.
function rowsOfGroups(id, shown, { extraHeight = 44, rightRoom = 16 } = {}) {
  const room = paper || document.getElementById(id).clientWidth;
  const narrow = room < 480;
  const many = shown.length > 14;
  const low = paper ? 17 : 24; // on paper all fit on one sheet
  const rowHeight = narrow ? (many ? 40 : 52) : many ? low : 40;
  const top = 34;
  const height = top + shown.length * rowHeight + extraHeight;
  const { holder, drawing, width } = canvas(id, height);
  const left = narrow ? 4 : Math.min(230, Math.round(width * 0.3));
  const right = width - (narrow ? 16 : rightRoom);
  const label = (row, name, count) => {
    const y = top + row * rowHeight;
    const at = narrow ? { x: 0, y: y + 16 } : { x: left - 12, y: y + (many ? low / 2 + 5 : 17), "text-anchor": "end" };
    fit(shape(drawing, "text", at, name), narrow ? width * 0.6 : left - 12);
    if (many || !count) return;
    const below = narrow
      ? { x: width, y: y + 16, "text-anchor": "end", class: "soft" }
      : { x: left - 12, y: y + 32, "text-anchor": "end", class: "soft" };
    shape(drawing, "text", below, count);
  };
  const middle = (row) => top + row * rowHeight + (narrow ? (many ? 27 : 34) : many ? low / 2 : 20);
  const axis = (most, rounding) => {
    const marks = ticks(most, narrow || width < 480 ? 4 : 7, rounding);
    const place = (value) => left + (value > rounding ? value / marks[marks.length - 1] : 0) * (right - left);
    return [marks, place];
  };
  return { holder, drawing, width, left, right, top, height, label, middle, narrow, many, axis,
           rowHeight, bottom: top + shown.length * rowHeight };
}

// Marks as text; a power of ten that all share goes into the title.
function labelled(marks, title) {
  const power = Math.floor(Math.log10(largest(marks) || 1));
  if (power < 6 && power > -4) return [marks.map(plain), title];
  return [marks.map((mark) => plain(mark / 10 ** power)), `${title}, × 10${superscript(power)}`];
}

function xAxis(frame, marks, scale, title) {
  const [texts, named] = labelled(marks, title);
  marks.forEach((mark, i) => {
    const x = scale(mark);
    shape(frame.drawing, "line", { x1: x, x2: x, y1: frame.top, y2: frame.bottom, class: "axis" });
    shape(frame.drawing, "text", { x, y: frame.bottom + 17, "text-anchor": "middle", class: "soft" }, texts[i]);
  });
  const middle = (frame.left + frame.right) / 2;
  const below = { x: middle, y: frame.bottom + 37, "text-anchor": "middle", class: "soft" };
  fit(shape(frame.drawing, "text", below, named), 2 * Math.min(middle, (frame.width ?? frame.right) - middle));
}

function yAxis(frame, marks, scale, title) {
  const [texts, named] = labelled(marks, title);
  marks.forEach((mark, i) => {
    const y = scale(mark);
    shape(frame.drawing, "line", { x1: frame.left, x2: frame.right, y1: y, y2: y, class: "axis" });
    shape(frame.drawing, "text", { x: frame.left - 8, y: y + 4, "text-anchor": "end", class: "soft" }, texts[i]);
  });
  fit(shape(frame.drawing, "text", { x: 0, y: 14, class: "soft" }, named), frame.right);
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

// ---- groups by colour and by shape: the first few have their own, others share one

const styles = 6;
const places = new Map(summary.order.map((group, place) => [group, place]));
let emphasis = null; // the group that is pointed out

const styleOf = (i) => (places.get(i) < styles ? places.get(i) : styles);

const outlines = [
  (x, y, s) => `M${x - s},${y}a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0z`,
  (x, y, s) => `M${x},${y - 1.3 * s}l${1.2 * s},${2.2 * s}h${-2.4 * s}z`,
  (x, y, s) => `M${x - 0.9 * s},${y - 0.9 * s}h${1.8 * s}v${1.8 * s}h${-1.8 * s}z`,
  (x, y, s) => `M${x},${y - 1.35 * s}l${1.35 * s},${1.35 * s}l${-1.35 * s},${1.35 * s}l${-1.35 * s},${-1.35 * s}z`,
  (x, y, s) => `M${x},${y + 1.3 * s}l${1.2 * s},${-2.2 * s}h${-2.4 * s}z`,
  (x, y, s) => `M${x - 1.2 * s},${y - 0.4 * s}h${0.8 * s}v${-0.8 * s}h${0.8 * s}v${0.8 * s}h${0.8 * s}v${0.8 * s}h${-0.8 * s}v${0.8 * s}h${-0.8 * s}v${-0.8 * s}h${-0.8 * s}z`,
  (x, y, s) => `M${x - 0.6 * s},${y}h${1.2 * s}M${x},${y - 0.6 * s}v${1.2 * s}`,
];

function legendOfGroups(holder, shown) {
  holder.replaceChildren();
  const entry = (style, name) => {
    const item = element(holder, "li");
    const swatch = shape(item, "svg", { viewBox: "0 0 16 16", "aria-hidden": "true", class: "chart" });
    shape(swatch, "path", { d: outlines[style](8, 8, 5), class: `g${style} mark` });
    element(item, "bdi", name);
  };
  const own = shown.filter((i) => styleOf(i) < styles);
  for (const i of own) entry(styleOf(i), groups[i].name);
  const others = shown.length - own.length;
  if (others) entry(styles, `${others} other group${others > 1 ? "s" : ""}`);
  if (emphasis !== null) element(holder, "li", `Pointed out: ${groups[emphasis].name}`);
}
