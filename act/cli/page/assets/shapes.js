/* shapes.js - small pictures as SVG: sparks in tables, a parameter against a number, parallel coordinates. */

/* A curve in the height of a line. */
function spark(values) {
  const known = (values ?? []).filter((v) => typeof v === "number");
  if (known.length < 2) return null;
  const low = Math.min(...known),
    size = Math.max(...known) - low || 1;
  let pen = "M";
  const path = values
    .map((v, i) => {
      if (typeof v !== "number") {
        pen = "M";
        return "";
      }
      const x = (i / (values.length - 1)) * 58 + 1, y = 15 - ((v - low) / size) * 14;
      const step = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
      return step;
    })
    .join("");
  return makeSvg("svg", {class: "spark", viewBox: "0 0 60 16", "aria-hidden": "true"}, makeSvg("path", {d: path}));
}

const NAMED_VALUES = 6; /* numbers that stand beside an axis, each of them */

/* Places of values on an axis from 0 to 1: of numbers by size (by their logarithm if they span decades), of words one
 * beside the other. */
function placesOf(values) {
  const numbers = values.map(Number),
    isNumber = values.every((v, i) => v !== "" && Number.isFinite(numbers[i]));
  if (!isNumber) {
    const words = [...new Set(values)].sort(),
      n = Math.max(1, words.length - 1);
    const at = (v) => (words.length === 1 ? 0.5 : words.indexOf(v) / n);
    return {
      at,
      ticks:
        words.length <= 12
          ? words.map((w) => [at(w), w])
          : [
              [0, words[0]],
              [1, words[words.length - 1]],
            ],
    };
  }
  const low = Math.min(...numbers),
    high = Math.max(...numbers),
    isLog = low > 0 && high / low >= 50;
  const f = isLog ? Math.log : (v) => v,
    size = f(high) - f(low);
  const at = (v) => (size ? (f(Number(v)) - f(low)) / size : 0.5);
  const few = [...new Set(numbers)].sort((a, b) => a - b),
    places = few.length <= NAMED_VALUES ? few.map(at) : [],
    isRoomy = places.length > 0 && places.every((p, i) => i === 0 || p - places[i - 1] >= 0.12);
  return {at, ticks: (isRoomy ? few : [...new Set([low, high])]).map((v) => [at(v), numberText(v)])};
}

/* A colour between that of the best and that of the worst; 0 is the best. */
function rankClass(part) {
  return `r${Math.max(0, Math.min(4, Math.floor(part * 5)))}`;
}

/* A point a run: a parameter against a number. rows: [{id, label, values, part}], values: of both */
function scatter(title, yName, rows) {
  const x = placesOf(rows.map((r) => r.values[0])),
    y = placesOf(rows.map((r) => r.values[1]));
  const left = 64,
    top = 10,
    width = 316,
    height = 150;
  const picture = makeSvg(
    "svg",
    {
      viewBox: "0 0 400 190",
      role: "img",
      class: "scatter",
      "aria-label": `${yName} by ${title}, ${countText(rows.length, "run")}`,
    },
    makeSvg("path", {class: "grid", d: `M${left} ${top}v${height}h${width}`}),
    y.ticks.map(([at, text]) =>
      makeSvg("text", {x: left - 6, y: top + height * (1 - at) + 4, "text-anchor": "end", text}),
    ),
    x.ticks.map(([at, text]) =>
      makeSvg("text", {
        x: left + 8 + (width - 16) * at,
        y: top + height + 18,
        "text-anchor": at === 0 ? "start" : at === 1 ? "end" : "middle",
        text,
      }),
    ),
    rows.map((r) =>
      makeSvg(
        "circle",
        {
          class: rankClass(r.part),
          r: 4,
          cx: left + 8 + (width - 16) * x.at(r.values[0]),
          cy: top + 4 + (height - 8) * (1 - y.at(r.values[1])),
        },
        makeSvg("title", {text: `${r.label}: ${title} ${r.values[0]}, ${yName} ${numberText(Number(r.values[1]))}`}),
      ),
    ),
  );
  return make("figure", {}, make("figcaption", {text: title}), picture);
}

/* A line a run through an axis for each parameter, the number last. rows: [{id, label, values, part}] */
function parallel(names, rows) {
  const width = Math.max(400, 130 * (names.length - 1) + 160),
    height = 260,
    left = 60,
    top = 34;
  const step = names.length > 1 ? (width - 2 * left) / (names.length - 1) : 0;
  const axes = names.map((_, i) => placesOf(rows.map((r) => r.values[i])));
  const xOf = (i) => left + i * step,
    yOf = (at) => top + (height - top - 24) * (1 - at);
  const lines = [...rows]
    .sort((a, b) => b.part - a.part)
    .map((r) =>
      makeSvg(
        "path",
        {
          class: `line ${rankClass(r.part)}`,
          d: "M" + axes.map((axis, i) => `${xOf(i).toFixed(1)} ${yOf(axis.at(r.values[i])).toFixed(1)}`).join("L"),
        },
        makeSvg("title", {text: `${r.label}: ${names.map((n, i) => `${n} ${r.values[i]}`).join(", ")}`}),
      ),
    );
  return make(
    "div",
    {class: "wide", tabindex: "0", role: "region", "aria-label": "parallel coordinates"},
    makeSvg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        class: "parallel",
        role: "img",
        vars: {"--width": `${width}px`},
        "aria-label": `${countText(rows.length, "run")} by ${names.join(", ")}`,
      },
      names
        .map((name, i) => [
          makeSvg("path", {class: "grid", d: `M${xOf(i)} ${yOf(0)}V${yOf(1)}`}),
          makeSvg("text", {x: xOf(i), y: 14, "text-anchor": "middle", class: "head", text: name}),
        ])
        .flat(),
      lines,
      axes.flatMap((axis, i) =>
        axis.ticks.map(([at, text]) => makeSvg("text", {x: xOf(i) + 6, y: yOf(at) + 4, class: "tick", text})),
      ),
    ),
  );
}
