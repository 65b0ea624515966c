// What can be taken away: the code by a button, the numbers as files.

const inAFrame = window !== window.top; // such as that of a notebook, which may not write files

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Text in quotes; what a spreadsheet would take for a formula begins with an apostrophe.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}

function csv() {
  const lines = [["point", "status", "total_loss", "extra_loss", "group", "rows", "variance", "must_lose",
                  "loss", "disparity", measure.noun.replaceAll(" ", "_") + "_shown", "low", "high"]];
  const add = (name, each) => groups.forEach((group, i) => lines.push([
    name, each.status ?? "", each.total_loss, each.extra_loss ?? 0, group.name, group.rows, group.variance,
    group.own_loss, each.losses[i], each.disparities[i], each.measures[i], each.low?.[i], each.high?.[i],
  ]));
  add("ordinary PCA", pca);
  points.forEach((each, i) => add(i, each));
  return `${lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

function wireFiles() {
  const makers = {
    json: () => download("fairpca-report.json", "application/json", JSON.stringify(summary, null, 1)),
    csv: () => download("fairpca-report.csv", "text/csv", `\ufeff${csv()}`),
  };
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", makers[button.dataset.download]);
  }
  for (const part of document.querySelectorAll(".files")) part.hidden = inAFrame;
  const copy = document.getElementById("copy");
  copy.parentElement.hidden = false;
  copy.addEventListener("click", async () => {
    const code = document.getElementById("code");
    const said = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(code.textContent);
      said.textContent = "Copied.";
    } catch {
      // Where the clipboard may not be written to, the reader's own keys can.
      window.getSelection().selectAllChildren(code);
      said.textContent = "Selected: copy it with Ctrl+C or ⌘C.";
    }
  });
}
