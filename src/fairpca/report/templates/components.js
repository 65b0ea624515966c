// What each component is made of.

function drawComponents(now) {
  const holder = document.getElementById("components");
  holder.replaceChildren();
  now.components.forEach((component, j) => {
    const table = element(holder, "table");
    table.className = "component";
    element(table, "caption", `Component ${j + 1}, ${share(now.explained_variance_ratio[j])} of the variance`);
    const head = element(table, "thead");
    head.className = "unseen";
    const heads = element(head, "tr");
    for (const title of ["column", "weight", "bar"]) element(heads, "th", title).scope = "col";
    const body = element(table, "tbody");
    // Of many columns each weighs little: the longest bar is the largest weight.
    const most = largest(component.map(([, weight]) => Math.abs(weight))) || 1;
    for (const [name, weight] of component) {
      const row = element(body, "tr");
      const title = element(row, "th");
      title.scope = "row";
      named(title, name);
      element(row, "td", weight.toFixed(2)).className = "weight";
      const bar = shape(element(row, "td"), "svg",
                        { viewBox: "-1 0 2 1", preserveAspectRatio: "none", "aria-hidden": "true", class: "chart" });
      shape(bar, "rect", { x: Math.min(weight / most, 0), y: 0.1, width: Math.abs(weight) / most, height: 0.8,
                           class: weight < 0 ? "pca-fill" : "chosen-fill" });
      shape(bar, "line", { x1: 0, x2: 0, y1: 0, y2: 1, class: "axis", "vector-effect": "non-scaling-stroke" });
    }
  });
}
