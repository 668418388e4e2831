/* run.js - one run: what matters first, then curves, nodes, ranks, log, files, and what it was made of. */

const LOG_BYTES = 65536,
  LOG_ASKED = 1 << 20 /* at most, by the server */,
  LOG_KEPT = 4 << 20,
  LOG_EVERY_MS = 2000,
  KEYS_OF_RUN = 48;

function fact(name, ...values) {
  const shown = values.flat().filter((v) => v !== null && v !== undefined && v !== "");
  return shown.length ? make("div", {}, make("dt", {text: name}), make("dd", {}, shown)) : null;
}

function elapsedOf(run, now) {
  const begun = unixOf(run.started),
    end = unixOf(run.ended) ?? now;
  return begun !== null && end >= begun ? end - begun : null;
}

/* How far its log says that it is, and how long the rest takes at that pace if the log does not say it. */
function progressElement(run, now) {
  const {progress} = run,
    s = elapsedOf(run, now),
    done = progress?.done;
  if (!progress) return null;
  const isGuessed = run.state === "Running" && done > 0.01 && s > 0 && !progress.text.endsWith(" left"),
    left = isGuessed ? `, about ${durationText((s * (1 - done)) / done)} left` : "";
  return make(
    "div",
    {class: "progress"},
    typeof done === "number" ? make("progress", {max: 1, value: done, "aria-label": "progress"}) : "",
    make("span", {text: `${progress.text}${left}`}),
  );
}

function runHead(run, now) {
  const elapsed = elapsedOf(run, now),
    nodes = run.nodes > 0 ? countText(run.nodes, "node") : "";
  const each = run.processes_per_node > 1 ? `, ${run.processes_per_node} processes${run.nodes > 1 ? " each" : ""}` : "";
  const others = run.platform && run.platform !== run.cluster ? ` (${run.platform})` : "";
  return make(
    "dl",
    {class: "facts"},
    fact("State", stateBadge(run.state), run.attempts > 1 ? ` attempt ${run.attempt} of ${run.attempts}` : ""),
    fact(run.ended ? "Took" : "Running for", elapsed === null ? "" : durationText(elapsed)),
    fact("Started", unixOf(run.started) === null ? "" : timeElement(unixOf(run.started))),
    fact("Ended", unixOf(run.ended) === null ? "" : timeElement(unixOf(run.ended))),
    fact("Created", timeElement(unixOf(run.created))),
    fact("Nodes", nodes && nodes + each),
    fact(
      "GPUs",
      run.gpus > 0 ? numberText(run.gpus) : "",
      typeof run.gpu_busy === "number" ? `, ${Math.round(run.gpu_busy * 100)} % busy` : "",
    ),
    fact("Cost", run.gpu_hours > 0 ? `${numberText(run.gpu_hours)} GPU-hours` : ""),
    fact("Exit status", typeof run.exit_status === "number" ? String(run.exit_status) : ""),
    fact("Cluster", `${run.cluster}${others}`),
    fact("Project", run.project),
    fact(
      "Tags",
      Object.entries(run.tags ?? {}).map(([k, v]) =>
        make("a", {class: "tag", text: `${k}=${v}`, href: `./?${query([["tag", `${k}=${v}`], ...given("cluster")])}`}),
      ),
    ),
    fact("Repeats", run.resubmit_of ? make("a", {href: runLink({id: run.resubmit_of}), text: run.resubmit_of}) : ""),
    fact(
      "Replaced by",
      run.replaced_by ? make("a", {href: runLink({id: run.replaced_by}), text: run.replaced_by}) : "",
    ),
    fact(
      "Runs after",
      (run.after ?? []).map((id) => make("a", {href: runLink({id}), text: id})),
    ),
  );
}

/* Why it failed, in red; what it waits for, in grey. A healthy run has none. */
function whyBox(run) {
  const why = run.explained;
  if (run.state !== "Failed" && run.state !== "Queued") return null;
  const failure = why?.failure;
  const first = Number.isInteger(failure?.rank)
    ? `Rank ${failure.rank}${failure.node ? ` on node ${failure.node}` : ""} failed first.`
    : "";
  const parts = [
    why?.class ? make("p", {}, make("strong", {text: why.class})) : "",
    ...[first, why?.explanation, failure?.reason || run.reason].filter(Boolean).map((text) => make("p", {text})),
    why?.advice ? make("p", {}, make("strong", {text: "Next: "}), why.advice) : "",
    ...(why?.notes ?? []).map((text) => make("p", {text})),
    why?.lines?.length ? make("pre", {tabindex: "0", text: why.lines.join("\n")}) : "",
  ].filter(Boolean);
  if (!parts.length) return null;
  return make(
    "section",
    {class: `why ${run.state === "Failed" ? "bad" : ""}`},
    make("h2", {text: run.state === "Failed" ? "Why it failed" : "What it waits for"}),
    parts,
  );
}

/* ---- the log */

/* A line as a terminal shows it: of states that "\r" replaced, as those of a progress bar, the last one. */
function shownLine(line) {
  const text = line.replace(/\r+$/, "");
  return text.slice(text.lastIndexOf("\r") + 1);
}

/* Lets a node of a log show a text of so many bytes. The text stays with it as it was written. */
function setLogNode(node, raw, bytes) {
  node.raw = raw;
  node.bytes = bytes;
  node.data = raw.includes("\r") ? raw.split("\n").map(shownLine).join("\n") : raw;
}

function logNode(raw, bytes) {
  const node = document.createTextNode("");
  setLogNode(node, raw, bytes);
  return node;
}

/* Takes the line that has not ended off a node, with its bytes, less the states in it that were replaced. A long one
 * stays, so that what is kept of a log has an end. */
function takeOpenLine(node) {
  const at = node.raw.lastIndexOf("\n") + 1,
    line = node.raw.slice(at),
    raw = line.slice(Math.max(0, line.replace(/\r+$/, "").lastIndexOf("\r"))),
    bytes = at ? new Blob([line]).size : node.bytes;
  if (raw.length > LOG_BYTES) return {raw: "", bytes: 0};
  setLogNode(node, node.raw.slice(0, at), node.bytes - bytes);
  return {raw, bytes};
}

class LogView {
  constructor(run) {
    this.run = run;
    this.text = make("pre", {
      class: "log",
      tabindex: "0",
      role: "region",
      "aria-label": "log",
      onscroll: () => this.scrolled(),
    });
    this.which = make("select", {onchange: () => this.open(this.which.value)});
    this.follow = check("Follow", true, (on) => on && this.toEnd());
    this.find = make("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search in the log",
      oninput: () => this.search(),
      onkeydown: (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1),
    });
    this.found = make("span", {class: "dim", role: "status"});
    this.earlier = button("Show earlier lines", () => this.before(), {disabled: true, class: "quiet"});
    this.state = make("span", {class: "dim"});
    this.element = section(
      "Log",
      make(
        "div",
        {class: "bar"},
        field("Log of", this.which),
        this.follow,
        this.find,
        button("Previous", () => this.step(-1), {class: "quiet"}),
        button("Next", () => this.step(1), {class: "quiet"}),
        this.found,
        this.earlier,
      ),
      this.text,
      this.state,
    );
    this.element.id = "log";
    document.addEventListener("visibilitychange", () => !document.hidden && this.isOpen && !this.ended && this.more());
  }

  /* Says which logs there are; the first one is opened. */
  set(run) {
    this.run = run;
    const ranks = (run.ranks ?? [])
      .filter((r) => r.log)
      .map((r) => [`rank:${r.rank}`, `Rank ${r.rank}${r.node ? ` on ${r.node}` : ""}`]);
    const files = (run.files ?? [])
      .filter((f) => typeof f.name === "string" && (/\.(txt|log|out|err)$/.test(f.name) || /log/.test(f.name)))
      .map((f) => [`name:${f.name}`, f.name]);
    const all = [...ranks, ...files];
    if (this.which.options.length !== all.length) {
      const value = this.which.value;
      this.which.replaceChildren(...all.map(([v, text]) => make("option", {value: v, text})));
      if (all.some(([v]) => v === value)) this.which.value = value;
    }
    this.element.hidden = all.length === 0;
    const first = (all.find(([v]) => v === `rank:${run.failed_rank}`) ?? all[0])?.[0];
    if (!this.isOpen && first) this.open(first);
    else if (this.isOpen && !this.ended && !this.timer) this.more();
  }

  open(which) {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.askingBefore?.abort();
    this.askingBefore = null;
    this.which.value = which;
    this.isOpen = true;
    this.ended = false;
    this.from = this.to = null;
    this.text.replaceChildren();
    this.more();
  }

  ask(from, bytes, signal) {
    const [kind, ...name] = this.which.value.split(":");
    return getJson(
      `api/log?${query([
        ["id", this.run.id],
        ...given("cluster"),
        [kind, name.join(":")],
        ["from", from],
        ["bytes", bytes],
      ])}`,
      signal,
    );
  }

  /* Adds what has been written since. */
  async more() {
    clearTimeout(this.timer);
    this.timer = null;
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const part = await this.ask(this.to ?? -LOG_BYTES, LOG_BYTES, asking.signal);
      if (asking.signal.aborted) return;
      if (this.to !== null && part.size < this.to) return this.open(this.which.value); /* it was begun anew */
      this.from ??= part.from;
      this.to = part.to;
      this.ended = part.ended && part.to >= part.size;
      this.add(part);
      this.earlier.disabled = this.from <= 0;
      this.state.textContent = `${bytesText(part.size)}${this.ended ? ", complete" : ""}`;
      if (!this.ended)
        this.timer = setTimeout(() => !document.hidden && this.more(), part.to < part.size ? 0 : LOG_EVERY_MS);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.state.textContent = `The log cannot be shown: ${error.message}`;
      this.timer = setTimeout(() => !document.hidden && this.more(), 5 * LOG_EVERY_MS);
    }
  }

  /* Shows a part below the others, from the line on that ended there. */
  add({text, from, to}) {
    if (!text) return;
    const last = this.text.lastChild,
      open = last ? takeOpenLine(last) : {raw: "", bytes: 0};
    if (last?.raw === "") last.remove();
    this.text.append(logNode(open.raw + text, open.bytes + to - from));
    const isAtEnd = this.follow.firstElementChild.checked;
    while (this.text.childNodes.length > 1 && this.text.textContent.length > LOG_KEPT) {
      this.from += this.text.firstChild.bytes;
      this.text.firstChild.remove();
    }
    if (this.find.value) this.search(true);
    if (isAtEnd) this.toEnd();
  }

  /* Shows what is before; of a line whose states replaced one another nothing is new until its beginning is there. */
  async before() {
    if (this.askingBefore) return;
    const asking = (this.askingBefore = new AbortController()),
      height = this.text.scrollHeight,
      length = this.text.textContent.length;
    try {
      for (let most = LOG_BYTES; this.from > 0; most = Math.min(2 * most, LOG_ASKED)) {
        const bytes = Math.min(most, this.from),
          part = await this.ask(this.from - bytes, bytes, asking.signal);
        if (asking.signal.aborted) return;
        this.prepend(part);
        if (this.text.textContent.length > length) break;
      }
    } catch (error) {
      if (asking.signal.aborted) return;
      this.state.textContent = `The log cannot be shown: ${error.message}`;
    }
    this.askingBefore = null;
    this.text.scrollTop += this.text.scrollHeight - height;
    this.earlier.disabled = this.from <= 0;
    this.follow.firstElementChild.checked = false;
    if (this.find.value) this.search(true);
  }

  /* Puts a part above the others; the line that it ends in goes on in the first of them. */
  prepend({text, from}) {
    const node = logNode(text, this.from - from),
      {raw, bytes} = takeOpenLine(node),
      first = this.text.firstChild;
    if (first) setLogNode(first, raw + first.raw, bytes + first.bytes);
    if (node.raw || !first) this.text.prepend(node);
    this.from = from;
  }

  toEnd() {
    this.text.scrollTop = this.text.scrollHeight;
  }

  scrolled() {
    const isAtEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 4;
    if (!isAtEnd && this.wasAtEnd) this.follow.firstElementChild.checked = false;
    this.wasAtEnd = isAtEnd;
  }

  /* Marks all places of a text, without regard to case. */
  search(isKept) {
    const word = this.find.value.toLowerCase();
    this.places = [];
    for (const node of word ? this.text.childNodes : []) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(node.data.length, at + word.length));
        this.places.push(range);
      }
    }
    CSS.highlights?.set("found", new Highlight(...this.places));
    if (isKept) return this.say();
    this.at = this.places.length;
    this.step(-1);
  }

  say() {
    const n = this.places?.length ?? 0;
    this.found.textContent = !this.find.value
      ? ""
      : n
        ? `${Math.min(this.at, n - 1) + 1} of ${n}`
        : "not found in this part";
  }

  step(by) {
    const n = this.places?.length;
    if (n) {
      this.at = (this.at + by + n) % n;
      const place = this.places[this.at],
        box = place.getBoundingClientRect(),
        frame = this.text.getBoundingClientRect();
      this.follow.firstElementChild.checked = false;
      this.text.scrollTop += box.top - frame.top - frame.height / 2;
      CSS.highlights?.set("current", new Highlight(place));
    } else CSS.highlights?.delete("current");
    this.say();
  }
}

/* ---- ranks, files, and what it was made of */

function rankTitle(r) {
  return [
    `Rank ${r.rank}${r.node ? ` on node ${r.node}` : ""}`,
    r.failed_first ? "failed first" : "",
    typeof r.exit_status === "number" ? `exit status ${r.exit_status}` : "",
    r.silent_s > 0 ? `silent for ${durationText(r.silent_s)}` : "",
    r.last_line ?? "",
  ]
    .filter(Boolean)
    .join(", ");
}

function ranksStrip(run, log) {
  const ranks = run.ranks ?? [],
    first = ranks.find((r) => r.failed_first);
  if (ranks.length < 2) return null;
  return section(
    "Ranks",
    make(
      "div",
      {class: "ranks"},
      ranks.map((r) =>
        button(
          String(r.rank),
          () => {
            log.open(`rank:${r.rank}`);
            log.element.scrollIntoView();
          },
          {
            class: `rank ${r.failed_first ? "first" : ""}`,
            title: rankTitle(r),
            "aria-label": rankTitle(r),
            disabled: !r.log,
          },
        ),
      ),
    ),
    first ? make("p", {class: "note", text: `${rankTitle(first)}.`}) : "",
  );
}

function settingsTable(title, values, isOpen) {
  const all = Object.entries(values ?? {});
  if (!all.length) return null;
  const rows = all.map(([name, value]) =>
    make(
      "tr",
      {},
      make("th", {scope: "row", text: name}),
      make("td", {text: value === null ? "-" : typeof value === "object" ? JSON.stringify(value) : String(value)}),
    ),
  );
  const find = make("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": `Filter ${title.toLowerCase()}`,
    oninput: () => {
      const word = find.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(word);
    },
  });
  return fold(
    `${title} (${all.length})`,
    isOpen,
    all.length > 12 ? find : "",
    table(["Name", "Value"], rows, {label: title}),
  );
}

/* The address of a file of a run; what is no UTF-8 is sent byte by byte. what: "name" of a log, or "output". */
function fileLink(run, what, name) {
  const bytes = typeof name === "string" ? new TextEncoder().encode(name) : base64Bytes(name.base64),
    text = [...bytes].map((b) => `%${b.toString(16).padStart(2, "0")}`).join("");
  return `api/file?${query([["id", run.id], ...given("cluster")])}&${what}=${text}`;
}

/* What it wrote where only its nodes can look. */
function beyondNotes(run) {
  return (run.outputs_beyond ?? []).map(({folder, command}) => [
    make("p", {
      class: "note",
      text: `Its folder '${plainText(folder)}' is on a claim, which only nodes see. A run looks into it:`,
    }),
    copyable(command),
  ]);
}

function filesTable(run) {
  const files = run.files ?? [],
    outputs = run.outputs ?? [],
    beyond = beyondNotes(run);
  if (!files.length && !outputs.length && !beyond.length) return null;
  const row = (f, what) => {
    const name = plainText(f.name);
    return make(
      "tr",
      {},
      make("td", {}, make("a", {href: fileLink(run, what, f.name), download: name.split("/").pop(), text: name})),
      make("td", {class: "n", text: bytesText(f.size)}),
    );
  };
  const list = (those, what, label) =>
    table(
      ["Name", "Size"],
      those.map((f) => row(f, what)),
      {numbers: [1], label},
    );
  return section(
    "Files",
    outputs.length
      ? [
          list(outputs, "output", "files that it wrote"),
          make("p", {
            class: "note",
            text:
              `${countText(run.outputs_total, "file")}, ${bytesText(run.outputs_bytes)} written while it ran.` +
              (run.outputs_total > outputs.length ? ` The biggest ${outputs.length} are shown.` : ""),
          }),
        ]
      : "",
    beyond,
    files.length ? fold(countText(files.length, "log"), files.length <= 8, list(files, "name", "logs")) : "",
  );
}

function eventsTable(run) {
  const rows = (run.events ?? []).map((e) =>
    make(
      "tr",
      {},
      make("td", {}, timeElement(e.unix_s)),
      make("td", {text: e.attempt > 0 && run.tries.length > 1 ? `attempt ${e.attempt} ${e.what}` : e.what}),
      make("td", {text: e.text ?? ""}),
    ),
  );
  return rows.length ? section("What happened", table(["Time", "What", "Why"], rows, {label: "what happened"})) : null;
}

/* The beginnings of attempts behind the first, and failures, for the axes of time. */
function marksOf(run) {
  return (run.events ?? [])
    .filter((e) => (e.attempt > 1 && e.what === "started") || e.what === "failed")
    .map((e) => ({x: e.unix_s, label: e.what === "failed" ? "failed" : `attempt ${e.attempt}`}));
}

/* ---- the page */

class RunPage {
  constructor(main) {
    this.id = given("id")[0]?.[1] ?? "";
    this.live = new Live(
      main,
      () => `api/run?${query([["id", this.id], ...given("cluster")])}`,
      (run) => this.take(run),
      () => this.children(),
    );
    this.curves = new CurvesOf([{id: this.id, label: this.id, colour: 0}], true);
    this.use = new Charts(true);
    this.useBox = make("div");
    this.log = new LogView({id: this.id});
    this.heading = make("h1", {text: this.id});
    this.parts = Object.fromEntries(["said", "head", "ranks", "events", "rest"].map((n) => [n, make("div")]));
    this.below = make("div", {hidden: true}, this.parts.ranks, this.log.element, this.parts.events, this.parts.rest);
    this.shown = {};
  }

  children() {
    return [
      make("div", {class: "title"}, this.heading, this.live.element),
      this.parts.said,
      this.parts.head,
      this.curves.element,
      this.useBox,
      this.below,
    ];
  }

  /* Draws a part anew if what it shows has changed. */
  part(name, data, draw) {
    const text = JSON.stringify(data);
    if (this.shown[name] === text) return;
    this.shown[name] = text;
    this.parts[name].replaceChildren(...[draw()].flat().filter(Boolean));
  }

  take(answer) {
    const {run: row, why: explained, attempts: tries, now, said, ...more} = answer;
    const run = {...more, ...row, explained, tries},
      {files, outputs, outputs_beyond, environment, spec, keys, ...head} = run;
    document.title = nameOf(run);
    this.id = run.id;
    this.heading.textContent = nameOf(run);
    this.part("said", said, () => notes(said));
    this.part("head", [head, run.ended || now], () => [
      run.name ? make("p", {class: "dim"}, make("code", {text: run.id})) : "",
      runHead(run, now),
      progressElement(run, now),
      whyBox(run),
      make("pre", {class: "command", tabindex: "0", "aria-label": "command", text: run.command_line ?? ""}),
    ]);
    this.part("ranks", run.ranks, () => ranksStrip(run, this.log));
    this.part("events", run.events, () => eventsTable(run));
    this.part("rest", [files, outputs, outputs_beyond, environment, spec], () => [
      filesTable(run),
      section(
        "What it ran with",
        settingsTable("Configuration", spec, false),
        settingsTable("Software", environment, false),
      ),
      section("Do it again", copyable(answer.command)),
    ]);
    this.log.set(run);
    this.curves.set(keys ?? [], [{id: run.id, label: nameOf(run), colour: 0}]);
    this.askUse(run);
  }

  useOf([from, to]) {
    return getJson(
      `api/series?${query([["id", this.id], ...given("cluster"), ["use", 1], ["from", from], ["to", to]])}`,
    );
  }

  /* The same of a part of the time, for which all pictures ask at once. */
  partOfUse(part) {
    const name = part.join();
    if (this.usePart?.name !== name) this.usePart = {name, answer: this.useOf(part)};
    return this.usePart.answer;
  }

  /* What nodes use, on one axis of time, with the beginnings of attempts. */
  async askUse(run) {
    const answer = await this.useOf([]).catch(() => null);
    if (answer) drawUse(this.useBox, this.use, useCharts(answer.use, (part) => this.partOfUse(part)), marksOf(run));
    if (this.below.hidden) {
      /* nothing below is to move when the pictures come */
      this.below.hidden = false;
      this.log.toEnd();
    }
  }
}

function drawUse(box, charts, all, marks) {
  if (!all.length) return;
  box.pictures ??= new Map();
  const nodes = [...new Set(all.map((c) => c.node))];
  for (const what of all) {
    const key = JSON.stringify([what.node, what.title]),
      before = box.pictures.get(key);
    if (before) before.set({...what, marks});
    else box.pictures.set(key, new Chart(charts, {...what, marks}));
  }
  if (box.nodes === nodes.join("\n")) return;
  box.nodes = nodes.join("\n");
  box.replaceChildren(
    section(
      "Nodes",
      make("div", {class: "bar"}, charts.resetButton, charts.spoken),
      nodes.map((node) =>
        make(
          "div",
          {},
          make("h3", {text: node}),
          make(
            "div",
            {class: "grid-of"},
            all.filter((c) => c.node === node).map((c) => box.pictures.get(JSON.stringify([node, c.title])).element),
          ),
        ),
      ),
    ),
  );
}

function showRun(main) {
  new RunPage(main).live.now();
}
