// What a click and a key do.

const app = {
  runs: [], run: null, comparison: null, timeline: null, selection: null, file: null, line: null, tab: "source",

  pick(found, show) {
    this.selection = found;
    this.timeline.select(found?.run, found?.row);
    if (found) {
      if (found.run !== this.run) this.useRun(found.run);
      if (show) this.timeline.reveal(found.run, found.row);
      const frame = found.run.frameOf(found.row);
      if (frame) {
        const [file, number] = splitFrame(frame);
        this.line = { file, number };
        if (file !== this.file) { this.file = file; paintSource(this.run, this); } else markLine(this);
      }
    }
    paintDetail(found, this);
    this.memory.paint();
  },

  showLine(run, frame) {
    if (run !== this.run) this.useRun(run);
    const [file, number] = splitFrame(frame);
    this.file = file;
    this.line = { file, number };
    paintSource(this.run, this);
    this.showTab("source");
    $("source")?.scrollIntoView({ block: "nearest" });
  },

  showTab(name) {
    this.tab = name;
    for (const button of document.querySelectorAll("#tabs [role=tab]")) {
      button.setAttribute("aria-selected", String(button.dataset.tab === name));
      $(`panel-${button.dataset.tab}`).hidden = button.dataset.tab !== name;
    }
    if (name === "memory") this.memory.show();
    if (name === "source") markLine(this);
  },

  useRun(run) {
    this.run = run;
    $("run").value = String(run.number);
    paintAdvice(run, this.runs.length > 1, (frame) => { this.showLine(run, frame); this.search(shortFrame(frame)); });
    paintInstructions(run, this);
    paintWaits(run, this);
    paintSource(run, this);
    if (this.tab === "memory") this.memory.show();
  },

  async search(words) {
    if ($("search").value !== words) $("search").value = words;
    const turn = (this.turn = (this.turn || 0) + 1);
    let total = 0;
    for (const run of this.runs) total += await run.search(words);
    if (turn !== this.turn) return;
    this.hitOrder = null;
    $("hits").textContent = words.trim() ? `${count(total)} ${total === 1 ? "hit" : "hits"}` : "";
    this.timeline.request();
  },

  // The hits of all runs in the order of time.
  nextHit(step) {
    if (!this.hitOrder) {
      this.hitOrder = [];
      for (const run of this.runs) {
        if (!run.hits) continue;
        for (let row = 0; row < run.facts.rows && this.hitOrder.length < 200000; row++) if (run.hits.mask[row]) this.hitOrder.push({ run, row });
      }
      this.hitOrder.sort((a, b) => a.run.number - b.run.number || a.run.start[a.row] - b.run.start[b.row]);
      this.hitPlace = step > 0 ? -1 : 0;
    }
    if (!this.hitOrder.length) return;
    this.hitPlace = (this.hitPlace + step + this.hitOrder.length) % this.hitOrder.length;
    $("hits").textContent = `${count(this.hitPlace + 1)} of ${count(this.hitOrder.length)}`;
    this.pick({ ...this.hitOrder[this.hitPlace] }, true);
  },

  neighbour(step) {
    if (!this.selection) return;
    const { run, row } = this.selection;
    const segment = run.segmentOf(row);
    const next = row + step;
    if (next >= segment.first && next < segment.past) this.pick({ run, row: next }, true);
  },

  follow(index, column) {
    if (!this.selection) return;
    const { run, row } = this.selection;
    const [arrow] = run.arrowsOf(run[index], row);
    if (arrow !== undefined) this.pick({ run, row: run[column][arrow] }, true);
  },

  setTheme(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("insight-trace-theme", name); } catch { /* a page from disk may have no storage */ }
    theme.read();
    this.timeline?.refresh();
    this.memory?.paint();
  },
};

function firstTheme() {
  try {
    const kept = localStorage.getItem("insight-trace-theme");
    if (kept) return kept;
  } catch { /* as above */ }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function tip(found, event) {
  const box = $("tooltip");
  if (!found) { box.hidden = true; return; }
  const { run, row } = found;
  const lines = [element("b", {}, run.nameOf(row)), element("div", {}, `${count(run.length[row])} cycles · ${micros(run.length[row], run.facts.mhz)} · from ${count(run.start[row] + run.facts.origin)}`)];
  const frame = run.frameOf(row);
  if (frame) lines.push(element("div", {}, shortFrame(frame)));
  box.replaceChildren(...lines);
  box.hidden = false;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${event.clientY + 18 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 18}px`;
}

function listen() {
  const { timeline } = app;
  $("theme").addEventListener("click", () => app.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("help").addEventListener("click", () => $("keys").showModal());
  $("fit").addEventListener("click", () => timeline.fit());
  $("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
  $("zoom-out").addEventListener("click", () => timeline.zoom(2));
  for (const name of ["scalar", "waits", "arrows", "critical"]) {
    $(`show-${name}`).addEventListener("change", (event) => { timeline.show[name] = event.target.checked; timeline.refresh(); });
  }
  for (const button of document.querySelectorAll("#tabs [role=tab]")) button.addEventListener("click", () => app.showTab(button.dataset.tab));
  $("run").addEventListener("change", (event) => app.useRun(app.runs[Number(event.target.value)]));
  let waiting = 0;
  $("search").addEventListener("input", (event) => { clearTimeout(waiting); waiting = setTimeout(() => app.search(event.target.value), 120); });
  $("search").addEventListener("keydown", async (event) => {
    if (event.key === "Enter") {
      clearTimeout(waiting);
      if (!app.hitOrder) await app.search(event.target.value);
      app.nextHit(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") { app.search(""); event.target.blur(); }
    event.stopPropagation();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || $("keys").open) return;
    const span = timeline.t1 - timeline.t0;
    const actions = {
      w: () => timeline.zoom(0.7), s: () => timeline.zoom(1 / 0.7), a: () => timeline.pan(-span * 0.15), d: () => timeline.pan(span * 0.15),
      f: () => app.selection && timeline.reveal(app.selection.run, app.selection.row, true), 0: () => timeline.fit(), "/": () => $("search").focus(),
      t: () => $("theme").click(), "?": () => $("keys").showModal(), arrowleft: () => app.neighbour(-1), arrowright: () => app.neighbour(1),
      "[": () => app.follow("arrowsIn", "arrow_from"), "]": () => app.follow("arrowsOut", "arrow_to"),
      escape: () => { app.pick(null); app.search(""); },
    };
    const action = actions[event.key.toLowerCase()];
    if (action) { event.preventDefault(); action(); }
  });
  window.addEventListener("resize", () => { timeline.refresh(); app.memory.paint(); });
}

async function open() {
  document.documentElement.dataset.theme = firstTheme();
  theme.read();
  const numbers = [0, 1].filter((number) => $(`run${number}-facts`));
  app.runs = await Promise.all(numbers.map((number) => Run.load(number)));
  if ($("comparison")) app.comparison = await jsonOf("comparison");
  $("main").hidden = false;
  $("loading").remove();
  app.memory = new MemoryMap(app);
  app.timeline = new Timeline(app.runs, { picked: (found) => app.pick(found, false), tip, moved: () => app.memory.paint() });
  if (app.runs.length > 1) {
    $("run").hidden = false;
    $("run").replaceChildren(...app.runs.map((run) => element("option", { value: run.number }, `Run ${run.letter}: ${run.facts.title}`)));
    document.querySelector('[data-tab="compare"]').hidden = false;
    paintCompare(app.comparison, app);
  }
  paintSummary(app.runs, app.comparison);
  paintPipes(app.runs);
  paintRoofline(app.runs);
  app.useRun(app.runs[0]);
  paintDetail(null, app);
  listen();
  if (app.runs.length > 1) app.showTab("compare");
  window.insightTrace = app; // for the console
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

open().catch((error) => { const box = $("loading"); if (box) box.textContent = `This page cannot be shown: ${error.message}`; throw error; });
