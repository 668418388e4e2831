/* compare.js - the curves of runs, and several runs side by side. */

const RUNS_AT_ONCE = 16,
  RUNS_COMPARED = 64,
  COLUMNS = 8, /* of runs, in a table */
  VALUES = 6,
  LEADERS = 10;

/* The values of a number that each run has said once. */
function onceOf(name, lines) {
  const value = (l) => make("li", {}, make("span", {class: "dim", text: `${l.label} `}), numberText(l.y[0]));
  return make("figure", {}, make("figcaption", {text: name}), make("ul", {class: "values"}, lines.map(value)));
}

/* A picture for each number of some runs; each asks for its points when it is near the window. */
class CurvesOf {
  constructor(runs, isAlone) {
    this.runs = runs;
    this.isAlone = isAlone;
    this.charts = new Charts();
    this.pictures = new Map();
    this.grid = make("div", {class: "grid-of"});
    this.none = make("p", {class: "dim", text: "Its log has no numbers with names so far.", hidden: true});
    this.find = make("input", {
      type: "search",
      placeholder: "Filter",
      "aria-label": "Filter the curves",
      oninput: () => this.filter(),
    });
    this.legendBox = make("div", {class: "legend-box"});
    this.tools = this.charts.toolbar();
    this.tools.append(this.find);
    this.element = section("Curves", this.tools, this.legendBox, this.none, this.grid);
    this.near = new IntersectionObserver(
      (seen) =>
        seen.forEach((e) => {
          e.target.isNear = e.isIntersecting;
          if (e.isIntersecting && e.target.wanted !== e.target.asked) this.ask(e.target);
        }),
      {rootMargin: "400px"},
    );
  }

  /* keys: [{name, points, not_finite}], measures first. */
  set(keys, runs) {
    const names = runs.map((r) => r.id + r.label).join("\n");
    this.runs = runs;
    if (!this.isAlone && this.names !== names) this.legendBox.replaceChildren(legend(this.charts, runs));
    this.names = names;
    const curves = keys.filter((k) => !isSaidOnce(k)).slice(0, KEYS_OF_RUN),
      single = keys.filter(isSaidOnce);
    this.none.hidden = keys.length > 0;
    this.tools.hidden = curves.length === 0;
    this.find.hidden = curves.length < 8;
    for (const key of curves) this.setKey(key);
    this.singles(single);
  }

  setKey({name, points}) {
    let slot = this.pictures.get(name);
    if (!slot) {
      slot = make("div", {class: "slot"});
      slot.name = name;
      this.pictures.set(name, slot);
      this.grid.append(slot);
      this.near.observe(slot);
    }
    slot.wanted = String(points ?? "") + this.names;
    if (slot.isNear && slot.wanted !== slot.asked) this.ask(slot);
  }

  /* Numbers that were said once are no curves. */
  singles(keys) {
    this.once?.remove();
    if (!keys.length) return;
    this.once = make(
      "dl",
      {class: "facts"},
      keys.map((k) => fact(k.name, numberText(k.last))),
    );
    this.grid.after(this.once);
  }

  async ask(slot) {
    slot.asked = slot.wanted;
    try {
      const lines = await this.linesFor(slot.name),
        what = {title: slot.name, lines, xName: lines[0]?.xName, finer: (part) => this.linesFor(slot.name, part)};
      if (slot.chart) slot.chart.set(what);
      else if (lines.length && lines.every(isSaidOnce)) slot.replaceChildren(onceOf(slot.name, lines));
      else {
        slot.chart = new Chart(this.charts, what);
        slot.replaceChildren(slot.chart.element);
      }
    } catch (error) {
      slot.asked = null;
      if (!slot.chart) slot.replaceChildren(make("p", {class: "note", text: `${slot.name}: ${error.message}`}));
    }
  }

  /* The lines of all runs, or those in a part of x; the server is asked for so many at once. */
  async linesFor(key, [from, to] = []) {
    const lines = [];
    for (let i = 0; i < this.runs.length; i += RUNS_AT_ONCE) {
      const ids = this.runs.slice(i, i + RUNS_AT_ONCE).map((r) => ["id", r.id]);
      const asked = [...ids, ...given("cluster"), ["key", key], ["points", 600], ["from", from], ["to", to]];
      const answer = await getJson(`api/series?${query(asked)}`);
      lines.push(...linesOf(answer, key, this.runs));
    }
    return lines;
  }

  filter() {
    const word = this.find.value.toLowerCase();
    for (const [name, slot] of this.pictures) slot.hidden = !name.toLowerCase().includes(word);
  }
}

/* ---- what differs */

/* Makes one table of what each run has other than the first one. */
function differencesOf(diffs, ids) {
  const rows = new Map();
  for (const diff of diffs)
    for (const d of diff.differences) {
      const key = JSON.stringify([d.part, d.name]);
      if (!rows.has(key)) rows.set(key, {part: d.part, name: d.name, values: ids.map(() => d.from)});
      rows.get(key).values[ids.indexOf(diff.to)] = d.to;
    }
  return [...rows.values()];
}

function diffTable(diffs, runs) {
  const rows = differencesOf(
    diffs,
    runs.map((r) => r.id),
  );
  if (!rows.length) return make("p", {text: "Nothing differs."});
  const isWide = runs.length > COLUMNS;
  const cells = rows.map((d) =>
    make(
      "tr",
      {},
      make("th", {scope: "row"}, d.name || d.part, make("small", {class: "block", text: d.name ? d.part : ""})),
      isWide
        ? make("td", {}, valuesList(d.values, runs))
        : d.values.map((v) =>
            make(
              "td",
              {class: v === d.values[0] ? null : "differs"},
              make("span", {class: "clamp", title: v, text: v ?? "-"}),
            ),
          ),
    ),
  );
  return fold(
    countText(rows.length, "difference"),
    rows.length <= 20,
    table(["What", ...(isWide ? ["Values, and which runs have them"] : runs.map((r) => r.label))], cells, {
      label: "differences",
    }),
  );
}

/* What all runs have, folded away. same: {part: {name: value}} */
function sameFold(same) {
  const parts = Object.entries(same ?? {}).filter(([, values]) => Object.keys(values).length),
    n = parts.reduce((sum, [, values]) => sum + Object.keys(values).length, 0);
  if (!n) return "";
  const title = (part) => part[0].toUpperCase() + part.slice(1);
  return fold(
    `${countText(n, "value")} the same`,
    false,
    parts.map(([part, values]) => settingsTable(title(part), values, false)),
  );
}

/* The values of many runs, those of most runs first, each with the runs that have it. */
function valuesList(values, runs) {
  const groups = new Map();
  values.forEach((value, i) => groups.set(value, [...(groups.get(value) ?? []), runs[i]]));
  const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
  const item = ([value, those]) =>
    make(
      "li",
      {},
      make("span", {class: "clamp", title: value, text: value ?? "-"}),
      make("small", {
        class: "block",
        title: those.map((r) => r.label).join("\n"),
        text: those.length > 2 ? countText(those.length, "run") : those.map((r) => r.label).join(", "),
      }),
    );
  return [
    make("ul", {class: "values"}, sorted.slice(0, VALUES).map(item)),
    sorted.length > VALUES
      ? fold(
          `${sorted.length - VALUES} more values`,
          false,
          make("ul", {class: "values"}, sorted.slice(VALUES).map(item)),
        )
      : "",
  ];
}

/* ---- a sweep: which is best, and what it depends on */

/* The value of a parameter of a run: a tag, else what follows "--NAME" in its command; undefined: it is not known. */
function parameterOf(run, name) {
  if (run.tags?.[name] !== undefined) return run.tags[name];
  const words = (run.command ?? []).map(plainText),
    i = words.findIndex((w) => w === `--${name}` || w.startsWith(`--${name}=`));
  if (i < 0) return undefined;
  if (words[i].includes("=")) return words[i].slice(name.length + 3);
  return words[i + 1]?.startsWith("--") ? undefined : words[i + 1];
}

/* The tags in which the runs differ. */
function parametersOf(rows) {
  const names = [...new Set(rows.flatMap((r) => Object.keys(r.tags ?? {})))].filter((n) => n !== "sweep");
  return names.filter((n) => new Set(rows.map((r) => parameterOf(r, n))).size > 1);
}

/* A picture of the runs whose values are all known, and how many are not in it. */
function pictureOfKnown(points, draw) {
  const known = points.filter((p) => !p.values.includes(undefined)),
    n = points.length - known.length;
  return [
    known.length ? draw(known) : "",
    n ? make("p", {class: "note", text: `Not shown, without a value: ${countText(n, "run")}.`}) : "",
  ];
}

class Leaders {
  constructor() {
    this.element = make("div");
  }

  /* better: by each of the keys which value is best. */
  set(rows, keys, runs, better) {
    this.rows = rows;
    this.keys = keys;
    this.better = better;
    this.runs = runs;
    this.draw();
  }

  draw() {
    const key = this.keys.includes(chosen.get("by")) ? chosen.get("by") : this.keys[0];
    if (!key) return;
    const isHigh = chosen.get("best", this.better[key] ?? "low") === "high",
      sign = isHigh ? -1 : 1;
    const ranked = this.rows
      .filter((r) => typeof r.last?.[key] === "number")
      .sort((a, b) => sign * (a.last[key] - b.last[key]));
    const parameters = parametersOf(this.rows),
      n = Math.max(1, ranked.length - 1);
    const pick = select(
      this.keys.map((k) => [k, k]),
      key,
      (v) => {
        chosen.set("by", v);
        chosen.set("best", "");
        this.draw();
      },
    );
    const way = select(
      [
        ["low", "Lowest first"],
        ["high", "Highest first"],
      ],
      isHigh ? "high" : "low",
      (v) => {
        chosen.set("best", v);
        this.draw();
      },
    );
    const row = (r, i) => {
      const run = this.runs.find((x) => x.id === r.id);
      return make(
        "tr",
        {},
        make("td", {class: "n", text: String(i + 1)}),
        make("th", {scope: "row"}, run ? swatch(run.colour) : "", make("a", {href: runLink(r), text: nameOf(r)})),
        make("td", {class: "n", text: numberText(r.last[key])}),
        make("td", {}, stateBadge(r.state)),
        parameters.map((p) => make("td", {class: isNumber(p) ? "n" : null, text: parameterOf(r, p) ?? "-"})),
      );
    };
    const points = (...names) =>
      ranked.map((r, i) => ({
        id: r.id,
        label: nameOf(r),
        part: i / n,
        values: [...names.map((p) => parameterOf(r, p)), String(r.last[key])],
      }));
    const isNumber = (p) => this.rows.every((r) => Number.isFinite(Number(parameterOf(r, p) ?? 0)));
    const rows = (from, to, label) =>
      table(
        ["Place", "Run", key, "State", ...parameters],
        ranked.slice(from, to).map((r, i) => row(r, from + i)),
        {label, numbers: [0, 2, ...parameters.flatMap((p, i) => (isNumber(p) ? [4 + i] : []))]},
      );
    this.element.replaceChildren(
      section(
        "Leaderboard",
        make("div", {class: "bar"}, field("Number", pick), field("Order", way)),
        rows(0, LEADERS, "leaderboard"),
        ranked.length > LEADERS
          ? fold(`The other ${ranked.length - LEADERS}`, false, rows(LEADERS, ranked.length, "the others"))
          : "",
        ranked.length < this.rows.length
          ? make("p", {class: "note", text: `${countText(this.rows.length - ranked.length, "run")} without ${key}.`})
          : "",
        parameters.length && ranked.length > 2
          ? [
              make("h3", {text: `Each parameter against ${key}`}),
              make(
                "div",
                {class: "grid-of"},
                parameters.map((p) =>
                  make(
                    "div",
                    {},
                    pictureOfKnown(points(p), (known) => scatter(p, key, known)),
                  ),
                ),
              ),
              make("h3", {text: "All parameters at once"}),
              pictureOfKnown(points(...parameters), (known) => parallel([...parameters, key], known)),
              make("p", {class: "note", text: "The darker a line or point, the better the run."}),
            ]
          : [],
      ),
    );
  }
}

/* A sweep by its name; one of a single run has none. */
function sweepTitle(id, groups) {
  return groupTitle(groups.find((g) => g.name === id) ?? {name: id}, "sweep");
}

/* ---- the page */

class ComparePage {
  constructor(main) {
    this.asked = given("id", "tag", "cluster");
    this.live = new Live(
      main,
      () => `api/runs?${query([...this.asked, ...this.grouped(), ["max", 500]])}`,
      (answer) => this.take(answer),
      () => this.children(),
    );
    this.curves = new CurvesOf([], false);
    this.curves.none.textContent = "Their logs have no numbers with names so far.";
    this.leaders = new Leaders();
    this.diff = make("div");
    this.said = make("div");
    this.heading = make("h1", {text: "Compare"});
    this.version = 2; /* of the numbers; stands for how many points there are, which is not known */
  }

  /* Runs of a sweep are asked for as its group, which has its name. */
  grouped() {
    const ids = given("tag").flatMap(([, t]) => (t.startsWith("sweep=") ? [t.slice(6)] : []));
    return ids.length ? [["group", "sweep"], ...ids.map((id) => ["open", id])] : [];
  }

  /* Of a sweep the best comes first. */
  children() {
    const parts = [this.curves.element, this.leaders.element];
    return [
      make("div", {class: "title"}, this.heading, this.live.element),
      this.said,
      ...(given("tag").length ? parts.reverse() : parts),
      this.diff,
    ];
  }

  take(answer) {
    const ids = given("id").map(([, id]) => id),
      rows = ids.length
        ? ids.map((id) => answer.runs.find((r) => r.id === id)).filter(Boolean)
        : [...answer.runs].reverse();
    const runs = rows.map((r, i) => ({id: r.id, label: nameOf(r), colour: i}));
    const names = new Set(runs.map((r) => r.label));
    if (names.size < runs.length)
      for (const r of runs) if (r.label !== r.id) r.label = `${r.label} (${r.id.slice(-8)})`;
    document.title = `${countText(runs.length, "run")} compared`;
    this.heading.textContent =
      given("tag")
        .map(([, t]) => (t.startsWith("sweep=") ? sweepTitle(t.slice(6), answer.groups ?? []) : t))
        .join(", ") || countText(runs.length, "run");
    this.said.replaceChildren(...[notes(answer.said)].filter(Boolean));
    const stamp = JSON.stringify(rows.map((r) => [r.id, r.last]));
    if (this.stamp !== stamp) {
      this.stamp = stamp;
      this.version++;
      this.leaders.set(rows, answer.keys ?? [], runs, answer.better ?? {});
    }
    const keys = (answer.keys ?? []).map((name) => ({name, points: this.version}));
    this.curves.set(keys, runs);
    if (!this.hasDiff && runs.length > 1) this.askDiff(runs);
  }

  async askDiff(runs) {
    const compared = runs.slice(0, RUNS_COMPARED),
      ids = compared.map((r) => ["id", r.id]);
    this.hasDiff = true;
    try {
      const answer = await getJson(`api/diff?${query([...ids, ...given("cluster")])}`);
      this.diff.replaceChildren(
        section(
          "What differs",
          diffTable(answer.diffs, compared),
          sameFold(answer.same),
          compared.length < runs.length ? make("p", {class: "note", text: `Of the first ${compared.length} runs.`}) : "",
        ),
      );
    } catch (error) {
      this.diff.replaceChildren(section("What differs", make("p", {class: "note", text: error.message})));
    }
  }
}

function showCompare(main) {
  new ComparePage(main).live.now();
}
