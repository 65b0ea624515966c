// What the page is about, and small helpers: text is only ever set as text, never as markup.

const summary = JSON.parse(document.getElementById("summary").textContent);
const { points, pca, groups, measure } = summary;
const unfairness = measure.worst;
const last = points.length - 1;
const slider = document.getElementById("slider");
const shownAs = "at the slider";
const svgSpace = "http://www.w3.org/2000/svg";
let current = summary.start;

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

// A name, which breaks behind its separators first.
function named(parent, name) {
  const made = element(parent, "bdi");
  name.split(/(?<=[_./:=-])(?=.)/u).forEach((part, i) => {
    if (i > 0) element(made, "wbr");
    made.append(part);
  });
  return made;
}

// ---- numbers, by the same rules as those that the page comes with

const raised = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const superscript = (power) => [...String(power)].map((digit) => raised[digit]).join("");

function plain(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e-5 && size < 1e9) {
    return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 10 });
  }
  const [mantissa, exponent] = value.toExponential(3).split("e");
  return `${Number(mantissa)}\u00a0×\u00a010${superscript(Number(exponent))}`;
}

function number(value) {
  if (value === null) return "–";
  return Math.abs(value) <= summary.rounding ? "0" : plain(value);
}

function percent(share) {
  const value = Math.max(100 * share, 0);
  if (value > 0 && value < 0.001) return "less than 0.001 %";
  const rounded = Number(value.toPrecision(value < 1 ? 2 : 3));
  return `${rounded.toLocaleString("en", { maximumFractionDigits: 10 })} %`;
}

const rows = (count) => `${count.toLocaleString("en")} row${count === 1 ? "" : "s"}`;

function share(value) {
  return `${(100 * value).toFixed(1)} %`;
}

function largest(...lists) {
  return lists.flat().reduce((most, value) => (value > most ? value : most), 0);
}

// ---- units: what fairness is judged by, and the loss, as shares of a group's variance

const part = (value, i) => (groups[i].variance > 0 ? value / groups[i].variance : 0);
const shareOf = (value, i) => (measure.relative ? value : part(value, i));
const level = (value) => (measure.relative ? percent(value) : number(value));
const inGroup = (value, i) => (Math.abs(shareOf(value, i)) <= measure.rounding ? "0 %" : percent(Math.abs(shareOf(value, i))));

const units = {
  measure: {
    noun: measure.noun, axis: measure.axis, times: 100, text: percent,
    of: (point, i) => shareOf(point.measures[i], i), better: measure.kept ? 1 : -1, rounding: measure.rounding,
  },
  lost: {
    noun: "share lost", axis: "% of the group's variance that is lost", times: 100, text: share,
    of: (point, i) => part(point.losses[i], i), better: -1, rounding: measure.rounding,
  },
  squared: {
    noun: measure.noun, axis: `${measure.noun}, in squared units`, times: 1, text: number,
    of: (point, i) => point.measures[i], better: measure.kept ? 1 : -1, rounding: summary.rounding,
  },
};
let unit = units.measure;

// A change with its sign, nothing where it is rounding.
function change(by, kind = unit) {
  if (Math.abs(by) <= kind.rounding) return "0";
  return `${by < 0 ? "−" : "+"}${kind.text(Math.abs(by))}`;
}

function inWords(by, kind = unit) {
  if (Math.abs(by) <= kind.rounding) return "no change";
  return `${by * kind.better > 0 ? "better" : "worse"} off by ${kind.text(Math.abs(by))}`;
}
