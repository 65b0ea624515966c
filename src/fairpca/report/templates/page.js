// One way in: choosing a point, a unit or a group draws everything anew.

function fillWords(now) {
  document.getElementById("certificate").replaceChildren();
  for (const sentence of now.certificate) element(document.getElementById("certificate"), "p", sentence);
  document.getElementById("code").textContent = summary.code.replaceAll("{point}", String(current));
  for (const button of document.querySelectorAll("[data-point]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.point) === current));
  }
  if (!slider) return;
  document.getElementById("readout").textContent = `Point ${current}: ${now.spoken}.`;
  slider.setAttribute("aria-valuetext", `Point ${current}: ${now.spoken}`);
}

function show() {
  const now = points[current];
  drawGlance(now);
  drawPairs("measures", shownGroups, now, unit, unit === units.measure);
  drawFront(now);
  drawDimensions(now);
  drawMethods();
  drawRows();
  drawComponents(now);
  fillTable(now);
  fillWords(now);
}

function choose(index) {
  current = index;
  slider.value = String(index);
  show();
  document.getElementById("spoken").textContent = points[current].spoken;
}

for (const control of document.querySelectorAll("[data-needs-script]")) control.hidden = false;
if (slider) {
  slider.addEventListener("input", () => {
    current = Number(slider.value);
    show();
  });
  for (const button of document.querySelectorAll("[data-point]")) {
    button.addEventListener("click", () => choose(Number(button.dataset.point)));
  }
}
for (const option of document.querySelectorAll("input[name=unit]")) {
  option.addEventListener("change", () => {
    unit = units[option.value];
    show();
  });
}
const pickers = document.querySelectorAll("select.emphasis");
for (const picker of pickers) {
  summary.order.slice(0, summary.most_groups).forEach((i) => {
    element(picker, "option", groups[i].name).value = String(i);
  });
  picker.addEventListener("change", () => {
    emphasis = picker.value === "" ? null : Number(picker.value);
    for (const other of pickers) other.value = picker.value;
    show();
  });
}
wireFiles();
const printedWidth = 720; // of a sheet of A4 between its margins, in pixels
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  paper = printedWidth;
  show();
});
window.addEventListener("afterprint", () => {
  paper = 0;
  show();
});
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  show();
});
show();
