/* clusters.js - what each cluster has, who uses it, and what waits; one's own first. */

function freeText(free, all) {
  if (typeof all !== "number") return "";
  return typeof free === "number" ? `${numberText(free)} of ${numberText(all)} free` : numberText(all);
}

function memoryText(device) {
  if (!(device.memory > 0)) return "";
  return `${typeof device.used === "number" ? `${bytesText(device.used)} of ` : ""}${bytesText(device.memory)}`;
}

function devicesTable(c) {
  return table(
    ["GPU", "Model", "Memory", "Used by"],
    c.devices.map((d) =>
      make(
        "tr",
        {},
        make("th", {scope: "row", text: d.name}),
        make("td", {text: d.model}),
        make("td", {class: "n", text: memoryText(d)}),
        make("td", {text: d.users || (d.given ? "free" : "not given")}),
      ),
    ),
    {numbers: [2], label: `GPUs of ${c.name}`},
  );
}

function ownRunsTable(c) {
  return table(
    ["Run", "State", "GPUs"],
    c.own_runs.map((r) =>
      make(
        "tr",
        {},
        make("th", {scope: "row"}, make("a", {href: runLink(r), text: nameOf(r)})),
        make("td", {}, stateBadge(r.state)),
        make("td", {class: "n", text: numberText(r.gpus)}),
      ),
    ),
    {numbers: [2], label: `your runs on ${c.name}`},
  );
}

function partitionsTable(c) {
  return table(
    ["Partition", "Nodes", "GPUs", "Jobs"],
    c.partitions.map((p) =>
      make(
        "tr",
        {},
        make("th", {scope: "row", text: p.name ?? ""}),
        make("td", {class: "n", text: freeText(p.nodes.idle, p.nodes.total)}),
        make("td", {class: "n", text: freeText(p.gpus.idle, p.gpus.total)}),
        make("td", {
          text: [
            [p.jobs.running, "running"],
            [p.jobs.queued, "queued"],
          ]
            .filter(([n]) => typeof n === "number")
            .map(([n, what]) => `${n} ${what}`)
            .join(", "),
        }),
      ),
    ),
    {numbers: [1, 2], label: `partitions of ${c.name}`},
  );
}

/* Everybody's jobs; the cluster is asked for them when somebody wants to see them. */
function jobsOf(c) {
  const box = fold("Everyone's jobs", false, make("p", {class: "dim", text: "Loading..."}));
  box.addEventListener("toggle", async () => {
    if (!box.open || box.isAsked) return;
    box.isAsked = true;
    const answer = await getJson(
      `api/clusters?${query([
        ["cluster", c.name],
        ["jobs", 1],
      ])}`,
    ).catch((error) => ({said: [error.message]}));
    const rows = (answer.jobs ?? []).map((j) =>
      make(
        "tr",
        {},
        make("th", {scope: "row", text: j.job}),
        make("td", {text: j.user}),
        make("td", {text: j.name}),
        make("td", {class: "n", text: numberText(j.gpus)}),
        make("td", {class: "n", text: durationText(j.running_s)}),
      ),
    );
    box.lastElementChild.replaceWith(
      rows.length
        ? table(["Job", "User", "Name", "GPUs", "Running for"], rows, {numbers: [3, 4], label: `jobs of ${c.name}`})
        : (notes(answer.said) ?? make("p", {class: "dim", text: "There are none."})),
    );
  });
  return box;
}

function clusterCard(c) {
  const states = Object.entries(c.node_states ?? {})
    .map(([state, n]) => `${n} ${state}`)
    .join(", ");
  return make(
    "section",
    {class: "card"},
    make("h2", {text: c.name}),
    c.error ? make("p", {class: "note bad", text: c.error}) : "",
    make(
      "dl",
      {class: "facts"},
      fact("Yours", `${c.running} running, ${c.queued} queued`),
      fact("Nodes", freeText(c.nodes_idle, c.nodes), states && make("small", {class: "block", text: states})),
      fact(c.has_gpus === false ? "Processors" : "GPUs", freeText(c.gpus_idle, c.gpus)),
      fact("Queue", typeof c.queue === "number" ? countText(c.queue, "job") : ""),
      fact("Load", numberText(c.load)),
    ),
    c.own_runs?.length ? ownRunsTable(c) : "",
    c.devices?.length ? devicesTable(c) : "",
    c.partitions?.length > 1 ? partitionsTable(c) : "",
    c.error ? "" : jobsOf(c),
  );
}

function showClusters(main) {
  const cards = make("div", {class: "cards"}),
    said = make("div");
  const live = new Live(
    main,
    () => `api/clusters?${query(given("cluster"))}`,
    (answer) => {
      const mine = (c) => c.running + c.queued;
      said.replaceChildren(...[notes(answer.said)].filter(Boolean));
      replaceKeyed(
        cards,
        [...answer.clusters]
          .sort((a, b) => mine(b) - mine(a))
          .map((c) => ({key: c.name, text: JSON.stringify(c), node: () => clusterCard(c)})),
      );
    },
    () => [make("div", {class: "title"}, make("h1", {text: "Clusters"}), live.element), said, cards],
  );
  live.now();
}
