/* app.js - what the pages share: elements made of text, links, and what the reader has chosen. */

/* Makes an element. given: attributes; "text"; functions are handlers ("onclick"); "vars", custom properties of its
 * style. Everything that comes from outside ends as text or as the value of an attribute here. */
function make(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

function fill(node, given, children) {
  for (const name in given) {
    const value = given[name];
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  appendAll(node, children);
  return node;
}

/* Appends elements and texts, which may stand in lists; what is nothing is left out. */
function appendAll(node, children) {
  for (const child of children)
    if (Array.isArray(child)) appendAll(node, child);
    else if (child !== null && child !== undefined && child !== false && child !== "") node.append(child);
}

function makeSvg(tag, given = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
}

/* ---- what the reader has chosen: in the fragment of the address, which is kept with a bookmark and never sent */

const chosen = {
  all() {
    return new URLSearchParams(location.hash.slice(1));
  },
  get(name, usual = "") {
    return this.all().get(name) ?? usual;
  },
  set(name, value) {
    const all = this.all();
    if (value === "" || value === null || value === false) all.delete(name);
    else all.set(name, value === true ? "1" : value);
    const text = all.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  },
};

/* ---- links */

function query(pairs) {
  const q = new URLSearchParams();
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== "") q.append(name, value);
  return q.toString();
}

/* What the address asks of the server, which links and questions hand on. */
const ASKED = new URLSearchParams(location.search);

function given(...names) {
  return names.flatMap((name) => ASKED.getAll(name).map((value) => [name, value]));
}

function runLink(run) {
  return `run?${query([["id", run.id], ...given("cluster")])}`;
}

function compareLink(ids) {
  return `compare?${query([...ids.map((id) => ["id", id]), ...given("cluster")])}`;
}

/* ---- small pieces */

function stateBadge(state) {
  return make("span", {class: `state ${STATES.includes(state) ? state : "Unknown"}`, text: state});
}

function timeElement(unix, text) {
  if (unix === null) return make("span", {text: "-"});
  return make("time", {
    datetime: new Date(unix * 1000).toISOString(),
    title: timeText(unix),
    text: text ?? timeText(unix),
  });
}

/* content: a text, an element or several. */
function button(content, onclick, more = {}) {
  return make("button", {type: "button", onclick, ...more}, content);
}

function field(label, control) {
  return make("label", {class: "field"}, make("span", {text: label}), control);
}

function select(values, value, onchange) {
  const box = make(
    "select",
    {onchange: () => onchange(box.value)},
    values.map(([v, text]) => make("option", {value: v, text})),
  );
  box.value = value;
  return box;
}

function check(label, value, onchange) {
  const box = make("input", {type: "checkbox", onchange: () => onchange(box.checked)});
  box.checked = value;
  return make("label", {class: "check"}, box, make("span", {text: label}));
}

/* A command with a button that copies it. */
function copyable(text, label = "Copy") {
  const copy = button(
    label,
    async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
      setTimeout(() => {
        copy.textContent = label;
      }, 2000);
    },
    {class: "quiet"},
  );
  return make("div", {class: "copy"}, make("pre", {tabindex: "0", text}), copy);
}

function table(heads, rows, more = {}) {
  return make(
    "div",
    {class: "wide", tabindex: "0", role: "region", "aria-label": more.label ?? heads.join(", ")},
    make(
      "table",
      {class: more.class},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          heads.map((text, i) => make("th", {scope: "col", class: more.numbers?.includes(i) ? "n" : null, text})),
        ),
      ),
      make("tbody", {}, rows),
    ),
  );
}

function fold(summary, isOpen, ...children) {
  return make("details", {open: isOpen}, make("summary", {text: summary}), children);
}

function section(title, ...children) {
  return make("section", {}, make("h2", {text: title}), children);
}

/* Shows what went wrong where everybody looks. */
function notes(said) {
  return said?.length
    ? make(
        "div",
        {class: "said", role: "note"},
        said.map((text) => make("p", {text})),
      )
    : null;
}

/* Replaces the children that differ, and leaves the others, their focus and what is selected in them alone. */
function replaceKeyed(parent, items) {
  const before = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let at = parent.firstElementChild;
  for (const {key, text, node} of items) {
    let now = before.get(key);
    before.delete(key);
    if (!now || now.keyed !== text) {
      const fresh = node();
      fresh.dataset.key = key;
      fresh.keyed = text;
      if (now) {
        if (now === at) at = at.nextElementSibling;
        const focused = now.contains(document.activeElement) ? document.activeElement.dataset.part : null;
        now.replaceWith(fresh);
        if (focused) fresh.querySelector(`[data-part="${focused}"]`)?.focus();
      }
      now = fresh;
    }
    if (now === at) at = at.nextElementSibling;
    else parent.insertBefore(now, at);
  }
  for (const node of before.values()) node.remove();
}
