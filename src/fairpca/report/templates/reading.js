// Values of a chart: under the pointer, and with the arrow keys where the chart has the focus.

const tip = element(document.body, "div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true"); // what it says is said by the live region
const reach = 28; // pixels from a mark at which the pointer still means it
const readings = new WeakMap();

// marks: { x, y, text } in the units of the drawing.
function readable(holder, drawing, marks) {
  const known = readings.get(holder);
  readings.set(holder, { drawing, marks, at: known && known.at < marks.length ? known.at : -1 });
  if (known) return;
  holder.tabIndex = 0;
  holder.addEventListener("pointermove", (event) => {
    const { drawing: shown, marks: here } = readings.get(holder);
    const box = shown.getBoundingClientRect();
    const scale = box.width / shown.viewBox.baseVal.width;
    let [nearest, best] = [-1, reach];
    here.forEach((mark, i) => {
      const far = Math.hypot(box.left + scale * mark.x - event.clientX, box.top + scale * mark.y - event.clientY);
      if (far < best) [nearest, best] = [i, far];
    });
    point(holder, nearest, false);
  });
  holder.addEventListener("pointerleave", () => point(holder, -1, false));
  holder.addEventListener("blur", () => point(holder, -1, false));
  holder.addEventListener("keydown", (event) => {
    const { marks: here, at } = readings.get(holder);
    const steps = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: here.length - 1, Escape: -1,
    };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey || !here.length) return;
    event.preventDefault();
    const to = steps[event.key];
    point(holder, event.key === "Escape" ? -1 : Math.min(Math.max(to, 0), here.length - 1), true);
  });
}

function point(holder, index, aloud) {
  const reading = readings.get(holder);
  const { drawing, marks } = reading;
  reading.at = index;
  drawing.querySelector(".reading")?.remove();
  tip.hidden = index < 0;
  if (index < 0) return;
  const mark = marks[index];
  shape(drawing, "circle", { cx: mark.x, cy: mark.y, r: 9, class: "reading" });
  tip.textContent = mark.text;
  const box = drawing.getBoundingClientRect();
  const scale = box.width / drawing.viewBox.baseVal.width;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  const left = Math.max(Math.min(box.left + scale * mark.x + 12, room), 8);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${box.top + scale * mark.y + window.scrollY + 14}px`;
  if (aloud) document.getElementById("spoken").textContent = mark.text;
}
