/* runs.js - all runs: one line a run, filtered by the server, sorted, grouped, live. */

const PAGE_RUNS = 100,
  LINE_PX = 58, /* the usual height of a line */
  KEYS_SHOWN = 3;

/* Why a run is where it is, in a few words. */
function whyText(run) {
  if (run.state === "Failed") return run.why || run.reason || "";
  if (run.state === "Queued" && run.after?.length) return `waits for ${run.after.join(", ")}`;
  if (run.state === "Queued") return run.reason || "";
  if (run.replaced_by) return `replaced by ${run.replaced_by}`;
  return run.state === "Running" && run.retry ? run.retry : "";
}

function nameOf(run) {
  return run.name || run.id;
}

/* The columns: what is shown, and by what the server sorts. */
function runColumns(keys, runs) {
  return [
    {id: "name", head: "Run", show: runNameCell, isHead: true},
    {
      id: "state",
      head: "State",
      show: (run) => [
        stateBadge(run.state),
        whyText(run) ? make("span", {class: "why-text", text: whyText(run), title: run.reason || null}) : "",
      ],
    },
    ...keys.map((key) => ({
      id: `key:${key}`,
      head: key,
      isNumber: true,
      isPlain: !runs.some((run) => run.spark?.[key]),
      show: (run) => [
        make("span", {class: "value"}, spark(run.spark?.[key]), make("span", {text: numberText(run.last?.[key])})),
      ],
    })),
    {
      id: "gpus",
      head: "GPUs",
      isNumber: true,
      show: (run) => [
        run.gpus > 0 ? numberText(run.gpus) : "-",
        typeof run.gpu_busy === "number" ? make("small", {text: `${Math.round(run.gpu_busy * 100)} % busy`}) : "",
      ],
    },
    {id: "cluster", head: "Cluster", show: (run) => [run.cluster]},
    {
      id: "age",
      head: "Age",
      isNumber: true,
      show: (run) => {
        const unix = unixOf(run.created);
        return [timeElement(unix, unix === null ? "-" : durationText(Date.now() / 1000 - unix))];
      },
    },
  ];
}

function runNameCell(run) {
  const tags = Object.entries(run.tags ?? {}).filter(([name]) => name !== "sweep");
  return [
    make("a", {href: runLink(run), class: "run-name", "data-part": "link", text: nameOf(run)}),
    make(
      "small",
      {class: "run-id"},
      make("code", {
        class: run.name ? null : "of-run",
        title: run.name ? null : run.command_line,
        text: run.name ? run.id : run.command_line,
      }),
      tags.map(([name, value]) => make("span", {class: "tag", text: `${name}=${value}`})),
    ),
  ];
}

/* ---- what is grouped and folded: the server makes the groups, as they may be larger than a page */

const GROUPS = [
  ["", "No groups"],
  ["sweep", "Sweep"],
  ["day", "Day"],
];

/* A sweep by its name, or by its id; another group by what its runs share. */
function groupTitle(group, by) {
  return by === "sweep" ? `Sweep ${group.title || group.name}` : group.name || "(empty)";
}

/* What runs have together: the GPUs of those that run, their cluster, the age of the youngest. */
function groupCell(id, group) {
  if (id === "gpus") return group.gpus ? numberText(group.gpus) : "";
  if (id === "cluster") return group.cluster ?? "";
  if (id !== "age" || !(group.created_s > 0)) return "";
  return timeElement(group.created_s, durationText(Date.now() / 1000 - group.created_s));
}

/* ---- the page */

class RunsPage {
  constructor(main) {
    this.marked = new Set();
    this.offset = 0;
    this.data = {runs: [], keys: [], total: 0};
    this.live = new Live(
      main,
      () => this.path(),
      (data) => this.take(data),
      () => this.children(),
    );
    this.filter = make("input", {
      type: "search",
      placeholder: "loss<0.5  lr=0.1  state:failed  cluster:lab",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.typed(),
    });
    this.filter.value = chosen.get("q");
    this.states = make("div", {class: "states", role: "group", "aria-label": "states"});
    this.keys = make(
      "details",
      {class: "chooser"},
      make("summary", {text: "Numbers"}),
      make("div", {class: "choices"}),
    );
    this.group = select(GROUPS, chosen.get("group", "sweep"), (v) => this.regroup(v));
    this.said = make("div");
    this.count = make("p", {class: "dim count", role: "status"});
    this.body = make("tbody");
    this.isBack = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
    this.heads = make("tr");
    this.table = make("table", {class: "runs sized"}, make("thead", {}, this.heads), this.body);
    this.more = make("p", {class: "bar"});
    this.compare = button(
      "Compare",
      () => {
        location.href = compareLink([...this.marked]);
      },
      {disabled: true, class: "primary"},
    );
    if (!/[?&](q|sort|order|open)=/.test(this.path()) && this.by() === "sweep") this.live.came = dataOfPage();
    addEventListener("hashchange", () => {
      this.filter.value = chosen.get("q");
      this.live.now();
    });
  }

  children() {
    return [
      make("div", {class: "title"}, make("h1", {text: "Runs"}), this.live.element),
      make(
        "div",
        {class: "bar"},
        make("label", {class: "field grow"}, make("span", {text: "Filter"}), this.filter),
        field("Group by", this.group),
        this.keys,
        this.compare,
      ),
      this.states,
      this.said,
      this.count,
      make(
        "div",
        {class: "wide", tabindex: "0", role: "region", "aria-label": "runs"},
        this.table,
      ),
      this.more,
    ];
  }

  path() {
    const [sort, order] = this.sort();
    return `api/runs?${query([
      ...given("name", "tag", "cluster"),
      ["q", this.words()],
      ["sort", sort === "age" ? "" : sort],
      ["order", sort === "age" && order === "desc" ? "" : order],
      ["group", this.by()],
      ["max", PAGE_RUNS],
      ["offset", this.offset || ""],
    ])}${this.open()
      .map((name) => `&open=${encodeURIComponent(name)}`)
      .join("")}`;
  }

  /* By what runs are grouped; "": not at all. */
  by() {
    const by = chosen.get("group", "sweep");
    return by === "none" ? "" : by;
  }

  /* The groups whose runs are shown: words of the address, each a name behind "=", as a name may be empty. */
  open() {
    return [...new URLSearchParams(chosen.get("open").replaceAll(" ", "&")).getAll("")];
  }

  words() {
    const state = chosen.get("state");
    return [chosen.get("q"), state ? `state:${state.toLowerCase()}` : ""].filter(Boolean).join(" ");
  }

  sort() {
    const sort = chosen.get("sort", "age");
    return [sort, chosen.get("order", sort === "age" ? "desc" : "asc")];
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      chosen.set("q", this.filter.value.trim());
      this.offset = 0;
      this.live.now();
    }, 200);
  }

  regroup(by) {
    chosen.set("group", by === "sweep" ? "" : by || "none");
    chosen.set("open", "");
    this.offset = 0;
    this.live.now();
  }

  shownKeys() {
    const all = this.data.keys ?? [],
      keys = chosen.get("keys", "").split(",").filter(Boolean);
    return keys.length
      ? keys.filter((k) => all.includes(k))
      : all.slice(0, chosen.get("keys", null) === null ? KEYS_SHOWN : 0);
  }

  take(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const {runs, total, lines, said} = this.data,
      columns = runColumns(this.shownKeys(), runs);
    document.title = "Runs";
    this.said.replaceChildren(...[notes(said)].filter(Boolean));
    this.drawStates();
    this.drawKeys();
    this.drawGroups();
    this.drawHeads(columns);
    this.table.style.setProperty("--numbers", this.shownKeys().length);
    this.count.textContent = this.countText(runs.length, total, lines ?? total);
    this.drawLines(this.rows(columns));
    this.drawMore(runs.length, lines ?? total);
    this.drawCompare();
  }

  /* The lines that the window shows are painted before the others are made. The widths of the columns are known, so
   * nothing moves when these come. A reader who comes back gets all of them, to find the place again, and one who has
   * all of them keeps them when there is news. */
  drawLines(lines, n = this.isBack || this.isWhole ? lines.length : Math.ceil(innerHeight / LINE_PX)) {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.filling);
    const shown = Math.max(n, this.body.childElementCount);
    replaceKeyed(this.body, lines.slice(0, shown));
    this.isWhole = lines.length > 0 && shown >= lines.length;
    if (this.isWhole) return;
    this.frame = requestAnimationFrame(() => {
      this.filling = setTimeout(() => this.drawLines(lines, 2 * shown));
    });
  }

  countText(n, total, lines) {
    const all = lines === total ? countText(total, "run") : `${countText(total, "run")} in ${countText(lines, "line")}`;
    if (n === lines) return all;
    const shown = `${numberText(this.offset + 1)} to ${numberText(this.offset + n)}`;
    return lines === total ? `${shown} of ${all}` : `Lines ${shown} of ${numberText(lines)}, ${countText(total, "run")}`;
  }

  drawStates() {
    const state = chosen.get("state");
    const items = ["", ...STATES.filter((s) => s !== "Unknown")].map((name) => ({
      key: name || "all",
      text: String(name === state),
      node: () =>
        button(
          name ? stateBadge(name) : "All",
          () => {
            chosen.set("state", name);
            this.offset = 0;
            this.drawStates();
            this.live.now();
          },
          {"aria-pressed": String(name === state), class: "quiet", "data-part": "state"},
        ),
    }));
    replaceKeyed(this.states, items);
  }

  drawKeys() {
    const all = this.data.keys ?? [],
      shown = this.shownKeys();
    this.keys.hidden = all.length === 0;
    replaceKeyed(
      this.keys.lastElementChild,
      all.map((key) => ({
        key,
        text: String(shown.includes(key)),
        node: () =>
          make(
            "div",
            {},
            check(key, shown.includes(key), (on) => {
              const now = this.shownKeys().filter((k) => k !== key);
              chosen.set("keys", (on ? [...now, key] : now).join(",") || "-");
              this.draw();
            }),
          ),
      })),
    );
  }

  drawGroups() {
    const tags = [...new Set(this.data.runs.flatMap((r) => Object.keys(r.tags ?? {})))]
      .filter((t) => t !== "sweep")
      .sort();
    const values = [...GROUPS, ...tags.map((t) => [`tag:${t}`, t])],
      by = this.by();
    if (!values.some(([v]) => v === by)) values.push([by, by.slice(4)]);
    if (this.group.options.length !== values.length)
      this.group.replaceChildren(...values.map(([v, text]) => make("option", {value: v, text})));
    this.group.value = by;
  }

  drawHeads(columns) {
    const [sort, order] = this.sort();
    const head = (c) =>
      make(
        "th",
        {
          scope: "col",
          class: [c.isNumber ? "n" : "", c.isPlain ? "plain" : "", `h-${c.id.split(":")[0]}`].join(" ").trim(),
          "aria-sort": c.id === sort ? (order === "asc" ? "ascending" : "descending") : null,
        },
        button(
          c.head,
          () => {
            const next =
              c.id === sort
                ? order === "asc"
                  ? "desc"
                  : "asc"
                : c.isNumber && !c.id.startsWith("key:")
                  ? "desc"
                  : "asc";
            chosen.set("sort", c.id === "age" ? "" : c.id);
            chosen.set("order", c.id === "age" && next === "desc" ? "" : next);
            this.offset = 0;
            this.drawHeads(columns);
            this.live.now();
          },
          {class: "sort", "data-part": "sort"},
        ),
      );
    replaceKeyed(this.heads, [
      {key: "mark", text: "", node: () => make("td", {class: "mark"})},
      ...columns.map((c) => ({key: c.id, text: `${c.id === sort && order} ${c.isPlain}`, node: () => head(c)})),
    ]);
  }

  /* The lines: runs, and groups where their first run stands. */
  rows(columns) {
    const groups = new Map((this.data.groups ?? []).map((g) => [g.name, g])),
      inside = new Map();
    return this.data.runs
      .map((run) => {
        const group = groups.get(run.group);
        if (!group) return [this.runRow(run, columns)];
        const row = group.open ? [this.runRow(run, columns, true)] : [];
        if (inside.has(group)) {
          inside.get(group).push(...row);
          return [];
        }
        inside.set(group, [this.groupRow(group, columns), ...row]);
        return inside.get(group);
      })
      .flat();
  }

  toggle(group) {
    const open = this.open();
    const now = group.open ? open.filter((name) => name !== group.name) : [...open, group.name];
    chosen.set("open", now.map((name) => `=${encodeURIComponent(name)}`).join(" "));
    this.live.now();
  }

  /* A sweep, or another group, in one line: its states, and the best of each number. */
  groupRow(group, columns) {
    const by = this.by(),
      counts = STATES.map((s) => [s, group.states[s] ?? 0]);
    const node = () => {
      const cells = columns.map((c) => {
        if (c.id === "name")
          return make(
            "th",
            {scope: "row"},
            button(
              [groupTitle(group, by), make("span", {class: "dim", text: countText(group.runs, "run")})],
              () => this.toggle(group),
              {class: "fold", "aria-expanded": String(group.open), "data-part": "fold"},
            ),
            by === "sweep"
              ? make(
                  "small",
                  {class: "run-id"},
                  make("a", {
                    href: `compare?${query([["tag", `sweep=${group.name}`], ...given("cluster")])}`,
                    text: "Compare all",
                  }),
                )
              : "",
          );
        if (c.id === "state")
          return make(
            "td",
            {class: "counts"},
            counts
              .filter(([, n]) => n > 0)
              .map(([s, n]) => make("span", {class: `state ${s}`, text: `${n} ${s.toLowerCase()}`})),
          );
        const best = c.id.startsWith("key:") ? group.best[c.head] : null;
        const content = best
          ? [make("span", {text: numberText(best.value)}), make("small", {text: `best: ${best.name || best.id}`})]
          : groupCell(c.id, group);
        const classes = [c.isNumber ? "n" : "", content ? "" : "none"].filter(Boolean).join(" ");
        return make("td", {"data-head": c.head, class: classes || null}, content);
      });
      return make("tr", {class: "group"}, make("td", {class: "mark"}), cells);
    };
    return {
      key: `group ${group.name}`,
      text: JSON.stringify([by, group, columns.map((c) => c.id), this.minute()]),
      node,
    };
  }

  /* Ages are renewed when it is another one. */
  minute() {
    return Math.floor((this.data.now ?? 0) / 60);
  }

  runRow(run, columns, isInside) {
    const node = () => {
      const mark = make("input", {
        type: "checkbox",
        "aria-label": `compare ${nameOf(run)}`,
        "data-part": "mark",
        onchange: () => {
          this.marked[mark.checked ? "add" : "delete"](run.id);
          this.drawCompare();
        },
      });
      mark.checked = this.marked.has(run.id);
      return make(
        "tr",
        {class: isInside ? "inside" : null},
        make("td", {class: "mark"}, mark),
        columns.map((c) => {
          const cell = make(
            c.isHead ? "th" : "td",
            {
              scope: c.isHead ? "row" : null,
              "data-head": c.head,
              class: [c.isNumber ? "n" : "", `c-${c.id.split(":")[0]}`].join(" ").trim(),
            },
            c.show(run),
          );
          if (["", "-"].includes(cell.textContent)) cell.classList.add("none");
          return cell;
        }),
      );
    };
    return {key: run.id, text: JSON.stringify([run, columns.map((c) => c.id), isInside, this.minute()]), node};
  }

  drawMore(n, total) {
    const go = (offset) => () => {
      this.offset = offset;
      this.live.now();
      scrollTo(0, 0);
    };
    const [newer, older] = this.sort()[0] === "age" ? ["Newer", "Older"] : ["Back", "More"];
    this.more.replaceChildren(
      ...[
        this.offset > 0 ? button(newer, go(Math.max(0, this.offset - PAGE_RUNS))) : "",
        this.offset + n < total ? button(older, go(this.offset + PAGE_RUNS)) : "",
      ].filter(Boolean),
    );
  }

  drawCompare() {
    const n = this.marked.size;
    this.compare.disabled = n < 2 || n > RUNS_COMPARED;
    this.compare.textContent =
      n < 2 ? "Compare" : n > RUNS_COMPARED ? `Compare at most ${RUNS_COMPARED} runs` : `Compare ${n} runs`;
  }
}

function showRuns(main) {
  new RunsPage(main).live.now();
}
