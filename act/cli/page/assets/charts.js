/* charts.js - the pictures. uPlot draws them; what follows makes many of them one: the same x, the same colours, one
 * legend, and the values of all lines under the pointer.
 *
 * A line is {id, label, colour, x, y, t, e, points}: x ascending, y null where the value was no number, t and e the Unix
 * time and the epoch of each point (or null), points how many it would have if all were there. */

const TIP_ROWS = 14,
  REFINE_MS = 200,
  COLOURS = 8 /* of lines, in the sheet */,
  DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3], [12, 5], [6, 3, 2, 3, 2, 3], [3, 1], [16, 3]];
const INTEGERS = [1, 2, 5].flatMap((n) => Array.from({length: 12}, (_, i) => n * 10 ** i)).sort((a, b) => a - b);
/* Steps of an axis of times, in seconds. */
const TIMES = [
  [1, [1, 2, 5, 10, 15, 30]],
  [60, [1, 2, 5, 10, 15, 30]],
  [3600, [1, 2, 3, 4, 6, 12]],
  [86400, [1, 2, 5, 10, 15, 30, 60, 90, 180]],
  [365 * 86400, [1, 2, 5, 10]],
].flatMap(([unit, steps]) => steps.map((n) => n * unit));
const POWERS_OF_2 = Array.from({length: 50}, (_, i) => 2 ** i);

/* ---- what is done to lines, pure */

/* Averages that forget, without the bias of the first value. The times between the points do not count. */
function smoothed(y, weight) {
  let sum = 0,
    n = 0;
  return y.map((value) => {
    if (value === null) return null;
    sum = sum * weight + (1 - weight) * value;
    n++;
    return sum / (1 - weight ** n);
  });
}

/* Puts a hole where two points are farther apart than they usually are. */
function withGaps(x, y) {
  if (x.length < 3) return [x, y];
  const most = Math.max(60, (4 * (x[x.length - 1] - x[0])) / x.length);
  const xs = [],
    ys = [];
  x.forEach((value, i) => {
    if (i > 0 && value - x[i - 1] > most) {
      xs.push((value + x[i - 1]) / 2);
      ys.push(null);
    }
    xs.push(value);
    ys.push(y[i]);
  });
  return [xs, ys];
}

/* Where the points of a line are on an axis; null: that is not known. */
function axisPlaces(line, axis) {
  if (axis === "step") return line.x;
  if (axis === "epoch") return line.e ?? null;
  if (!line.t) return null;
  return axis === "time" ? line.t : line.t.map((t) => t - line.t[0]);
}

/* Loops, not callbacks: lines have up to a million points. */
function isAscending(x) {
  for (let i = 1; i < x.length; i++) if (!(x[i] >= x[i - 1])) return false;
  return true;
}

const nullsFound = new WeakMap();

/* The places in a list of values that are no number; they are looked for once, and not whenever a picture is drawn. */
function nullsOf(y) {
  if (nullsFound.has(y)) return nullsFound.get(y);
  const places = [];
  for (let i = 0; i < y.length; i++) if (y[i] === null) places.push(i);
  nullsFound.set(y, places);
  return places;
}

/* The points of a line whose places are known on the axis that the reader wants, in the order of that axis. */
function pointsOf(line, axis) {
  const x = axisPlaces(line, axis);
  if (isAscending(x)) return [x, line.y];
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b]);
  return [order.map((i) => x[i]), order.map((i) => line.y[i])];
}

/* The part of x that lines have in a range of an axis, with the points next to it. */
function partOf(lines, axis, [low, high]) {
  if (axis === "step") return [low, high];
  const ends = lines.flatMap((line) => {
    const places = axisPlaces(line, axis) ?? [];
    if (!places.length) return [];
    const first = places.findIndex((p) => p >= low),
      last = places.findIndex((p) => p > high);
    return [line.x[Math.max(0, first - 1)], line.x[last < 0 ? line.x.length - 1 : last]];
  });
  return [Math.min(...ends), Math.max(...ends)];
}

/* A line that has other points, finer ones, in a part of x. */
function withFiner(line, fine, [from, to]) {
  const before = line.x.findIndex((x) => x >= from),
    after = line.x.findIndex((x) => x > to);
  const joined = (name) =>
    line[name] && [
      ...line[name].slice(0, before < 0 ? line.x.length : before),
      ...(fine[name] ?? fine.x.map(() => null)),
      ...(after < 0 ? [] : line[name].slice(after)),
    ];
  return {...line, x: joined("x"), y: joined("y"), t: joined("t"), e: joined("e")};
}

/* Times of an axis in 24 hours, with the date where it is another one than before. */
function timeTicks(ticks, every) {
  return ticks.map((tick, i) => {
    const [day, time] = timeText(tick).split(" ");
    if (every >= 86400) return day;
    const text = every < 60 ? time : time.slice(0, 5);
    return i > 0 && dayText(ticks[i - 1]) === day ? text : `${text}\n${day}`;
  });
}

/* The range that all but a hundredth of the values need. */
function usualRange(lines) {
  const values = lines.flatMap((y) => y.filter((v) => v !== null && v !== undefined)).sort((a, b) => a - b);
  if (values.length < 20) return null;
  const low = values[Math.floor(values.length * 0.01)],
    high = values[Math.ceil(values.length * 0.99) - 1];
  return high > low ? [low - (high - low) * 0.05, high + (high - low) * 0.05] : null;
}

/* ---- pictures that belong together */

class Charts {
  constructor(isTime = false) {
    this.isTime = isTime; /* x is a time, whatever is chosen */
    this.all = new Set();
    this.hidden = new Set();
    this.range = null;
    this.sync = uPlot.sync(`x${Charts.count++}`);
    this.resetButton = button("Reset zoom", () => this.zoom(null), {disabled: true});
    this.spoken = make("p", {class: "unseen", role: "status"});
    this.watch = new IntersectionObserver((seen) => seen.forEach((e) => e.target.chart.near(e.isIntersecting)), {
      rootMargin: "300px",
    });
    this.resize = new ResizeObserver((sizes) => sizes.forEach((e) => e.target.chart.fit()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.zoom(null));
  }

  get axis() {
    return this.isTime ? "step" : chosen.get("x", "step");
  }

  get smoothing() {
    return this.isTime ? 0 : Number(chosen.get("smooth", "0"));
  }

  is(name) {
    return !this.isTime && chosen.get(name) === "1";
  }

  /* Zooms all of them to a part of x; null: all of it. */
  zoom(range) {
    this.range = range;
    this.resetButton.disabled = !range;
    for (const chart of this.all) chart.zoom();
  }

  redraw() {
    for (const chart of this.all) chart.draw();
  }

  choose(name, value) {
    chosen.set(name, value);
    if (name === "x") this.zoom(null);
    this.redraw();
  }

  hide(id, isHidden) {
    if (isHidden) this.hidden.add(id);
    else this.hidden.delete(id);
    this.redraw();
  }

  /* Lets one line stand out; null: none. */
  stress(id) {
    for (const chart of this.all) chart.stress(id);
  }

  toolbar() {
    const smooth = make("input", {
      type: "range",
      min: "0",
      max: "0.99",
      step: "0.01",
      oninput: () => this.choose("smooth", smooth.value === "0" ? "" : smooth.value),
    });
    smooth.value = String(this.smoothing);
    const axes = [
      ["step", "Step"],
      ["epoch", "Epoch"],
      ["relative", "Time since the start"],
      ["time", "Time of day"],
    ];
    return make(
      "div",
      {class: "bar", role: "group", "aria-label": "curves"},
      field(
        "Horizontal axis",
        select(axes, this.axis, (v) => this.choose("x", v === "step" ? "" : v)),
      ),
      field("Smoothing", smooth),
      check("Logarithmic", this.is("log"), (v) => this.choose("log", v)),
      check("Ignore outliers", this.is("usual"), (v) => this.choose("usual", v)),
      this.resetButton,
      this.spoken,
    );
  }
}
Charts.count = 0;

/* ---- one picture */

class Chart {
  /* what: title, unit, xName, lines, marks ([{x, label}]), hasLegend (it has one of its own), finer (asks for the lines
   * with more points in a part of x) */
  constructor(charts, what) {
    this.charts = charts;
    this.reading = make("output", {class: "reading"});
    this.box = make("div", {class: "plot-box", tabindex: "0", role: "group", onkeydown: (event) => this.key(event)});
    this.box.chart = this;
    this.note = make("p", {class: "note"});
    this.legend = make("ul", {class: "legend-of", "aria-label": "lines"});
    this.element = make(
      "figure",
      {class: "live-chart"},
      make("figcaption", {}, make("span", {text: what.title}), this.reading),
      what.hasLegend ? this.legend : "",
      this.box,
      this.note,
    );
    this.set(what);
    charts.all.add(this);
    charts.watch.observe(this.box);
  }

  remove() {
    this.charts.all.delete(this);
    this.charts.watch.unobserve(this.box);
    this.charts.resize.unobserve(this.box);
    this.plot?.destroy();
    this.element.remove();
  }

  set(what) {
    this.what = what = {unit: "number", marks: [], ...what};
    const lines = this.what.lines,
      text = UNITS[this.what.unit],
      of = (y) => y.filter((v) => v !== null);
    const parts = lines.slice(0, 8).map((l) => {
      const y = of(l.y);
      if (!y.length) return `${l.label}: no number`;
      const low = y.reduce((a, b) => Math.min(a, b)),
        high = y.reduce((a, b) => Math.max(a, b));
      return `${l.label}: ${text(low)} to ${text(high)}, finally ${text(y[y.length - 1])}`;
    });
    this.box.setAttribute("aria-label", [this.what.title, ...parts].join("; "));
    this.legend.replaceChildren(...lines.map((l) => make("li", {}, swatch(l.colour), l.label)));
    this.finer = null;
    this.draw();
    this.refine();
  }

  /* Says what the picture lacks. */
  say() {
    const {lines, xName} = this.what,
      {axis, isTime} = this.charts,
      odd = lines.reduce((sum, l) => sum + nullsOf(l.y).length, 0),
      lost = lines.filter((l) => !axisPlaces(l, axis)),
      name = axis === "epoch" ? "epochs" : "times",
      by = axis === "step" && !isTime && lines.length ? {epoch: "By epoch.", value: "In the order of the log."}[xName] : "";
    this.note.textContent = [
      lines.length ? by : "None of these runs has it.",
      odd && !isTime ? `${countText(odd, "value is", "values are")} not finite, marked ×.` : "",
      lost.length === 0
        ? ""
        : lost.length === lines.length
          ? `The log has no ${name}: choose another axis.`
          : `Not shown, without ${name} in the log: ${lost.map((l) => l.label).join(", ")}.`,
    ]
      .filter(Boolean)
      .join(" ");
  }

  show() {
    if (this.plot || !this.box.isConnected) return;
    this.isShown = true;
    this.charts.resize.observe(this.box);
    this.draw();
  }

  /* It has come near the window, or has left it. */
  near(isNear) {
    this.isNear = isNear;
    if (!isNear) return;
    this.show();
    this.refine();
  }

  /* Asks for the finer points of what is zoomed to, once the zoom stays as it is. */
  refine() {
    const {charts, what} = this,
      {range} = charts;
    clearTimeout(this.refining);
    if (this.finer?.range === range) return;
    const lines = what.lines.filter((l) => l.points > l.x.length && axisPlaces(l, charts.axis));
    if (!range || !this.isNear || !what.finer || !lines.length) return;
    const part = partOf(lines, charts.axis, range);
    this.refining = setTimeout(async () => {
      const finer = await what.finer(part).catch(() => null);
      if (!finer || charts.range !== range || this.what !== what) return;
      this.finer = {range, part, lines: new Map(finer.map((l) => [l.id, l]))};
      this.draw();
    }, REFINE_MS);
  }

  /* A line as it is drawn. */
  lineOf(line) {
    const fine = this.finer?.lines.get(line.id);
    return fine ? withFiner(line, fine, this.finer.part) : line;
  }

  get isLog() {
    return this.charts.is("log");
  }

  /* Joins the lines on one x; those smoothed stand behind those as they are. */
  data() {
    const {charts, what} = this,
      weight = charts.smoothing,
      tables = [],
      modes = [];
    this.series = [];
    const add = (line, x, y, more) => {
      tables.push([x, this.isLog ? y.map((v) => (v > 0 ? v : null)) : y]);
      modes.push([0, 1]);
      this.series.push({line, ...more});
    };
    for (const line of what.lines.map((l) => this.lineOf(l))) {
      if (charts.hidden.has(line.id) || !axisPlaces(line, charts.axis)) continue;
      const [x, y] = charts.isTime ? withGaps(line.x, line.y) : pointsOf(line, charts.axis);
      if (weight > 0) add(line, x, y, {isRaw: true});
      add(line, x, weight > 0 ? smoothed(y, weight) : y, {});
    }
    return tables.length ? uPlot.join(tables, modes) : [[]];
  }

  options(colours, data) {
    const {charts, what} = this,
      text = UNITS[what.unit],
      isTime = charts.isTime || charts.axis === "time";
    const isRelative = !charts.isTime && charts.axis === "relative";
    const axis = {
      stroke: colours.dim,
      grid: {stroke: colours.line, width: 1},
      ticks: {stroke: colours.line, width: 1},
      font: "12px system-ui, sans-serif",
    };
    const usual = charts.is("usual") ? usualRange(data.slice(1)) : null;
    const isCrowded = this.series.length > 2 * COLOURS;
    const isWhole = !isTime && !isRelative && data[0].every(Number.isInteger);
    return {
      width: this.box.clientWidth,
      height: this.box.clientHeight,
      ms: 1e-3,
      legend: {show: false},
      cursor: {
        sync: {key: charts.sync.key, scales: ["x", null], setSeries: false},
        y: false,
        drag: {x: true, y: false, setScale: false},
        points: {size: 7},
        bind: {dblclick: () => () => charts.zoom(null)},
      },
      scales: {
        x: {time: isTime, range: (_, low, high) => charts.range ?? (low === high ? [low - 1, high + 1] : [low, high])},
        y: {
          distr: this.isLog ? 3 : 1,
          range: this.isLog ? undefined : (_, low, high) => usual ?? this.rangeOf(low, high),
        },
      },
      axes: [
        {
          ...axis,
          size: isTime ? 46 : 34,
          space: 70,
          incrs: isTime || isRelative ? TIMES : isWhole ? INTEGERS : undefined,
          values: (_u, ticks, _axis, _space, every) =>
            isTime ? timeTicks(ticks, every) : tickTexts(ticks, isRelative ? durationText : numberText),
        },
        {
          ...axis,
          size: (_, values) => 16 + 7 * Math.max(4, ...(values ?? []).map((v) => v?.length ?? 0)),
          incrs: what.unit === "bytes" ? POWERS_OF_2 : undefined,
          values: (_, ticks) => tickTexts(ticks, text),
        },
      ],
      series: [
        {},
        ...this.series.map(({line, isRaw}) => ({
          label: line.label,
          stroke: colours.of(line.colour),
          width: isRaw || isCrowded ? 1 : 1.75,
          dash: dashOf(line.colour),
          alpha: isRaw ? 0.25 : 1,
          points: isRaw ? {show: false} : {size: 5},
        })),
      ],
      hooks: {
        setCursor: [() => this.read()],
        setSelect: [(u) => u.select.width > 3 && charts.zoom(this.selected(u))],
        draw: [(u) => this.drawMarks(u, colours)],
      },
    };
  }

  /* Room for the values, from 0 for what is a share or a rate. */
  rangeOf(low, high) {
    if (low === null) return [0, 1];
    if (this.what.unit === "share") return [0, Math.max(1, high)];
    if (this.what.unit === "bytes") return [0, Math.max(1024, high * 1.05)];
    return uPlot.rangeNum(low, high, 0.1, true);
  }

  selected(u) {
    const range = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    return range;
  }

  draw() {
    this.say();
    if (!this.isShown) return;
    this.plot?.destroy();
    const colours = themeColours(),
      data = this.data();
    this.plot = new uPlot(this.options(colours, data), data, this.box);
    this.tip = make("div", {class: "tip", hidden: true});
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("mouseenter", () => {
      this.isHovered = true;
    });
    this.plot.over.addEventListener("mouseleave", () => {
      this.isHovered = false;
      this.tip.hidden = true;
    });
  }

  fit() {
    const width = this.box.clientWidth,
      height = this.box.clientHeight;
    if (this.plot && width && (this.plot.width !== width || this.plot.height !== height))
      this.plot.setSize({width, height});
  }

  zoom() {
    if (!this.plot?.data[0].length) return;
    const x = this.plot.data[0],
      range = this.charts.range ?? [x[0], x[x.length - 1]];
    this.plot.setScale("x", {min: range[0], max: range[1]});
    this.refine();
  }

  stress(id) {
    this.series?.forEach(({line, isRaw}, i) => {
      const series = this.plot?.series[i + 1];
      if (series) series.alpha = (isRaw ? 0.25 : 1) * (id === null || line.id === id ? 1 : 0.15);
    });
    this.plot?.redraw(false);
  }

  /* Draws the beginnings of attempts, and what was no number. */
  drawMarks(u, colours) {
    const {ctx, bbox} = u,
      ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = ctx.strokeStyle = colours.text;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    for (const mark of this.charts.isTime ? this.what.marks : []) {
      const x = u.valToPos(mark.x, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(mark.label, x + 4 * ratio, bbox.top + 12 * ratio);
    }
    if (!this.charts.isTime)
      for (const {line, isRaw} of this.series)
        if (!isRaw && nullsOf(line.y).length) {
          ctx.textAlign = "center";
          ctx.fillStyle = colours.of(line.colour);
          const [x, y] = pointsOf(line, this.charts.axis);
          for (const i of nullsOf(y))
            ctx.fillText("×", u.valToPos(x[i], "x", true), bbox.top + bbox.height - 3 * ratio);
        }
    ctx.restore();
  }

  /* ---- reading */

  /* The value of each line at, or next to, a place of x. */
  valuesAt(index) {
    const data = this.plot.data,
      near = (y) => {
        for (let away = 0; away < data[0].length; away++)
          for (const i of [index - away, index + away]) if (y[i] !== undefined) return y[i];
        return undefined;
      };
    return this.series.map(({line, isRaw}, i) => ({line, isRaw, value: near(data[i + 1])})).filter((v) => !v.isRaw);
  }

  xText(value) {
    if (this.charts.isTime || this.charts.axis === "time") return timeText(value);
    if (this.charts.axis === "relative") return durationText(value);
    const name = this.charts.axis === "epoch" ? "epoch" : (this.what.xName ?? "step");
    return `${name} ${numberText(value)}`;
  }

  valueText(value) {
    return value === null ? "not finite" : value === undefined ? "-" : UNITS[this.what.unit](value);
  }

  read() {
    const u = this.plot,
      index = u?.cursor.idx;
    if (index === null || index === undefined || !(u.cursor.left >= 0)) {
      this.reading.textContent = "";
      if (this.tip) this.tip.hidden = true;
      return;
    }
    const values = this.valuesAt(index),
      at = this.xText(u.data[0][index]);
    this.reading.textContent = values.length === 1 ? `${this.valueText(values[0].value)} at ${at}` : at;
    this.tip.hidden = !this.isHovered || values.length < 2;
    if (this.tip.hidden) return;
    values.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
    const rows = values
      .slice(0, TIP_ROWS)
      .map(({line, value}) =>
        make(
          "tr",
          {},
          make("td", {}, swatch(line.colour)),
          make("td", {text: line.label}),
          make("td", {class: "n", text: this.valueText(value)}),
        ),
      );
    const more = values.length > TIP_ROWS ? make("p", {text: `and ${values.length - TIP_ROWS} more`}) : "";
    this.tip.replaceChildren(make("table", {}, make("tbody", {}, rows)), ...(more ? [more] : []));
    const isRight = u.cursor.left > u.over.clientWidth / 2;
    this.tip.style.left = isRight ? "" : `${u.cursor.left + 12}px`;
    this.tip.style.right = isRight ? `${u.over.clientWidth - u.cursor.left + 12}px` : "";
  }

  /* The arrows go from value to value, + and - zoom. */
  key(event) {
    const u = this.plot,
      step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!u?.data[0].length) return;
    const x = u.data[0],
      last = x.length - 1,
      index = u.cursor.idx ?? (step > 0 ? -1 : last + 1);
    if (step) {
      const to = Math.max(0, Math.min(last, index + step * (event.shiftKey ? 10 : 1)));
      this.isHovered = true;
      u.setCursor({left: u.valToPos(x[to], "x"), top: u.over.clientHeight / 2});
      this.charts.spoken.textContent =
        `${this.what.title}, ${this.xText(x[to])}: ` +
        this.valuesAt(to)
          .map((v) => `${v.line.label} ${this.valueText(v.value)}`)
          .join(", ");
    } else if (event.key === "+" || event.key === "-") {
      const {min, max} = u.scales.x,
        middle = u.cursor.idx === null ? (min + max) / 2 : x[u.cursor.idx];
      const half = (max - min) / (event.key === "+" ? 4 : 1);
      const range = [Math.max(x[0], middle - half), Math.min(x[last], middle + half)];
      this.charts.zoom(range[0] <= x[0] && range[1] >= x[last] ? null : range);
    } else return;
    event.preventDefault();
  }
}

/* ---- colours: of the sheet, so that a picture without scripts has the same */

function themeColours() {
  const style = getComputedStyle(document.documentElement),
    get = (name) => style.getPropertyValue(name).trim();
  const lines = Array.from({length: COLOURS}, (_, i) => get(`--c${i}`));
  return {
    of: (i) => lines[i % lines.length],
    text: get("--text"),
    dim: get("--dim"),
    line: get("--line"),
  };
}

/* The strokes of a line: each round of colours has its own, so that 64 lines are 64. */
function dashOf(colour) {
  return DASHES[Math.floor(colour / COLOURS) % DASHES.length];
}

function swatch(colour) {
  return makeSvg(
    "svg",
    {class: "swatch", viewBox: "0 0 20 8", "aria-hidden": "true"},
    makeSvg("path", {class: `c${colour % COLOURS}`, d: "M0 4h20", "stroke-dasharray": dashOf(colour).join(" ")}),
  );
}

/* Names of runs with their colours, once for all pictures. A name hides and shows its lines. */
function legend(charts, runs) {
  return make(
    "ul",
    {class: "legend-of", "aria-label": "runs"},
    runs.map(({id, label, colour}) => {
      const name = button(
        [swatch(colour), label],
        () => {
          const isHidden = !charts.hidden.has(id);
          charts.hide(id, isHidden);
          name.setAttribute("aria-pressed", String(!isHidden));
        },
        {
          "aria-pressed": String(!charts.hidden.has(id)),
          class: "quiet",
          title: id,
          onmouseenter: () => charts.stress(id),
          onmouseleave: () => charts.stress(null),
          onfocus: () => name.matches(":focus-visible") && charts.stress(id),
          onblur: () => charts.stress(null),
        },
      );
      return make("li", {}, name);
    }),
  );
}

/* ---- from JSON */

/* Lines of the answer to api/series, in the colours of the runs. */
function linesOf(answer, key, runs) {
  return answer.series
    .filter((s) => s.key.toLowerCase() === key.toLowerCase() && s.x.length)
    .map((s) => {
      const run = runs.find((r) => r.id === s.id) ?? {label: s.id, colour: 0};
      return {id: s.id, label: run.label, colour: run.colour, x: s.x, y: s.y, t: s.t, e: s.e, points: s.points, not_finite: s.not_finite, xName: s.x_name};
    });
}

/* Tells whether a number was said once, and is no curve; a curve marks what is not finite. */
function isSaidOnce({points, not_finite}) {
  return points < 2 && !not_finite;
}

/* The colours of what nodes used, where several share a picture; GPUs have the GPU's. */
const USE_COLOURS = {
  memory: 1,
  disk_full: 2,
  run_disk_full: 3,
  disk_written: 1,
  net_sent: 1,
  ib_received: 2,
  ib_sent: 3,
};

/* What tells the pictures apart. */
function useKey(u) {
  return JSON.stringify([u.id, u.node, u.chart]);
}

function useLines(use) {
  return use.map(({label, gpu, what, x, y, points}) => {
    return {id: label, label, colour: gpu ?? USE_COLOURS[what] ?? 0, x, y, t: null, points};
  });
}

/* The pictures of what nodes used, in the order of the nodes. What was measured once is no curve. ask(part): gets the
 * same in a part of the time. */
function useCharts(use, ask) {
  const charts = new Map();
  for (const u of use ?? []) {
    const key = useKey(u);
    if (u.x.length < 2 || u.x[u.x.length - 1] - u.x[0] < 2) continue;
    if (!charts.has(key))
      charts.set(key, {
        id: u.id,
        node: u.node,
        title: u.chart,
        unit: u.unit === "share" ? "share" : "bytes",
        lines: [],
        hasLegend: true,
        finer: async (part) => useLines(((await ask(part)).use ?? []).filter((v) => useKey(v) === key)),
      });
    charts.get(key).lines.push(...useLines([u]));
  }
  return [...charts.values()];
}
