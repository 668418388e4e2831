/* report.js - a report: the page is there already, and its pictures become those that can be read and zoomed. On paper,
 * and without scripts, it keeps those that it has. */

/* The points of a curve in a box of 1000 by 400: "M0 10l3 -2 5 1". Each "M" begins behind a hole. */
const BOX_WIDTH = 1000,
  BOX_HEIGHT = 400;

function pointsOfPath(path, [xLow, xHigh, yLow, yHigh]) {
  const x = [],
    y = [],
    words = path.match(/[Ml]|-?\d+/g) ?? [];
  let px = 0,
    py = 0;
  for (let i = 0, isStep = false; i + 1 < words.length;) {
    if (words[i] === "M" || words[i] === "l") {
      isStep = words[i++] === "l";
      if (!isStep) {
        x.push(null);
        y.push(null);
      }
      continue;
    }
    px = Number(words[i++]) + (isStep ? px : 0);
    py = Number(words[i++]) + (isStep ? py : 0);
    x.push(xLow + ((xHigh - xLow) * px) / BOX_WIDTH);
    y.push(yHigh - ((yHigh - yLow) * py) / BOX_HEIGHT);
  }
  for (let i = 1; i < x.length; i++) x[i] ??= x[i - 1];
  return [x.slice(1), y.slice(1)];
}

function titleOf(node) {
  return node.querySelector("title")?.textContent ?? "";
}

function showReport(main) {
  const data = dataOfPage();
  const runs = data.runs.map((r, i) => ({id: r.id, label: r.name || r.id, colour: i}));
  const curves = new Charts(),
    use = new Charts(true);
  for (const place of main.querySelectorAll("[data-key]")) {
    const lines = linesOf(data, place.dataset.key, runs);
    if (lines.length) replaceFigure(place, curves, {title: place.dataset.key, lines, xName: lines[0].xName});
  }
  for (const place of main.querySelectorAll("[data-unit]")) {
    const svg = place.querySelector("svg.plot"),
      axes = svg.dataset.axes.split(" ").map(Number);
    const at = (line) => axes[0] + ((axes[1] - axes[0]) * line.getAttribute("x1")) / BOX_WIDTH;
    const lines = [...svg.querySelectorAll("path[class^=c]")].map((path, i) => {
      const [x, y] = pointsOfPath(path.getAttribute("d"), axes),
        label = titleOf(path);
      return {id: label, label, colour: i, x, y, t: null};
    });
    const marks = [...svg.querySelectorAll(".mark")].map((line) => ({x: at(line), label: titleOf(line)}));
    replaceFigure(place, use, {
      title: place.querySelector("figcaption").textContent,
      unit: place.dataset.unit,
      lines,
      marks,
      hasLegend: lines.length > 1,
    });
  }
  if (curves.all.size)
    main.querySelector("[data-tools=curves]")?.append(curves.toolbar(), runs.length > 1 ? legend(curves, runs) : "");
  for (const tools of main.querySelectorAll("[data-tools=use]"))
    tools.append(
      make(
        "div",
        {class: "bar"},
        button("Reset zoom", () => use.zoom(null)),
        use.spoken,
      ),
    );
}

function replaceFigure(place, charts, what) {
  place.querySelector("figure").classList.add("on-paper");
  place.append(new Chart(charts, what).element);
}
