/* live.js - asks for JSON, and asks again. */

const SLOW_S = 10,
  HEARD_MS = 60000; /* how long a warning stays that was given once, as of a ledger that was mended */

/* The answer to a question, once it has been made. Fails with what the server says. */
async function getJson(path, signal) {
  for (;;) {
    const answer = await fetch(path, {signal, cache: "no-store", headers: {Accept: "application/json"}});
    const data = await answer.json().catch(() => ({}));
    if (answer.status === 200) return data;
    if (answer.status !== 202)
      throw Object.assign(new Error(data.error || `the server says ${answer.status}`), {status: answer.status});
    await new Promise((done) => setTimeout(done, data.wait_ms || 500));
    signal?.throwIfAborted();
  }
}

/* The data that came with the page; null: none did. */
function dataOfPage() {
  return JSON.parse(document.getElementById("data")?.textContent ?? "null");
}

/* One question, asked as often as its answer says (next_s), and not while nobody looks: a laptop that slept, or a tab
 * that was hidden, asks when it is seen again. path() gives the question; take() gets each answer. The page as it came
 * stays in main until the first one; children() are what is there then. */
class Live {
  constructor(main, path, take, children) {
    this.main = main;
    this.path = path;
    this.take = take;
    this.children = children;
    this.heard = new Map();
    this.hear([...main.querySelectorAll(".said p")].map((p) => p.textContent));
    this.came = null; /* the answer to the first question, if it came with the page */
    this.isPaused = false;
    this.nextS = SLOW_S;
    this.text = make("span", {text: "Loading..."});
    this.pauseButton = button("Pause", () => this.pause(!this.isPaused), {class: "quiet", hidden: true});
    this.element = make("p", {class: "live dim"}, this.text, this.pauseButton);
    document.addEventListener("visibilitychange", () => this.wake());
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", (event) => event.persisted && this.wake());
  }

  wake() {
    if (!document.hidden && !this.isPaused && this.dueMs !== undefined && Date.now() >= this.dueMs) this.now();
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.pauseButton.textContent = isPaused ? "Resume" : "Pause";
    if (isPaused) {
      clearTimeout(this.timer);
      this.text.textContent = "Paused.";
    } else this.now();
  }

  /* Returns what there is to say, with what there was until a moment ago, also while the page was made. */
  hear(said) {
    const now = Date.now();
    for (const text of said) this.heard.set(text, now);
    for (const [text, at] of this.heard) if (now - at > HEARD_MS) this.heard.delete(text);
    return [...this.heard.keys()];
  }

  /* Asks now, instead of what is being asked. */
  async now() {
    clearTimeout(this.timer);
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const data = this.came ?? (await getJson(this.path(), asking.signal));
      if (asking.signal.aborted) return;
      this.came = null;
      this.nextS = data.next_s ?? 0;
      if (!this.hasBegun) this.main.replaceChildren(...this.children());
      this.hasBegun = true;
      this.take({...data, said: this.hear(data.said ?? [])});
      this.say(this.nextS > 0 ? `Refreshes every ${this.nextS} s.` : `As of ${timeText(Date.now() / 1000)}.`);
    } catch (error) {
      if (asking.signal.aborted) return;
      if (!this.hasBegun) this.main.prepend(this.element);
      this.nextS = error.status >= 400 && error.status < 500 ? 0 : SLOW_S;
      const what = error.status ? error.message : "'a ui' does not answer";
      this.say(this.nextS ? `${what}; asks again in ${SLOW_S} s.` : `${what}.`, true);
      if (!error.status && !(error instanceof TypeError)) throw error;
    }
    this.plan();
  }

  plan() {
    this.pauseButton.hidden = !this.nextS;
    this.dueMs = this.nextS ? Date.now() + this.nextS * 1000 : undefined;
    if (this.nextS && !this.isPaused) this.timer = setTimeout(() => !document.hidden && this.now(), this.nextS * 1000);
  }

  say(text, isBad) {
    this.text.textContent = this.isPaused && !isBad ? "Paused." : text;
    this.element.classList.toggle("bad", Boolean(isBad));
  }
}
