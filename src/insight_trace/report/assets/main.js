// What a click and a key do.

const app = {
  runs: [], run: null, comparison: null, timeline: null, selection: null, file: null, line: null, tab: "source",

  async pick(found, show) {
    this.selection = found;
    if (found) {
      await found.run.need(found.run.coreOf(found.row));
      if (this.selection !== found) return;
    }
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
    this.tiles.paint();
    this.remember();
  },

  // The address of what is seen: #t=1200-3400&row=57 leads others to the same place.
  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      const { timeline } = this;
      const parts = [];
      if (timeline.t0 > 0 || timeline.t1 < timeline.total) parts.push(`t=${Math.round(timeline.t0)}-${Math.round(timeline.t1)}`);
      if (this.selection) parts.push(`row=${this.selection.row}${this.selection.run.number ? `&run=${this.selection.run.number}` : ""}`);
      try { history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search); } catch { /* some viewers allow no addresses */ }
    }, 150);
  },

  // What the address asks for.
  async recall() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const run = this.runs[Number(asked.get("run") || 0)] || this.runs[0];
    const span = (asked.get("t") || "").match(/^(-?\d+)-(\d+)$/);
    const row = Number(asked.get("row") ?? -1);
    if (asked.has("row") && row >= 0 && row < run.facts.rows) await this.pick({ run, row }, true);
    if (span && Number(span[2]) > Number(span[1])) {
      this.timeline.t0 = Number(span[1]);
      this.timeline.t1 = Number(span[2]);
      this.timeline.clamp();
    }
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
      button.tabIndex = button.dataset.tab === name ? 0 : -1;
      $(`panel-${button.dataset.tab}`).hidden = button.dataset.tab !== name;
    }
    if (name === "memory") this.memory.show();
    if (name === "tiles") this.tiles.show();
    if (name === "source") markLine(this);
  },

  useRun(run) {
    this.run = run;
    $("run").value = String(run.number);
    paintAdvice(run, this.runs.length > 1, (frame) => { this.showLine(run, frame); this.search(shortFrame(frame)); }, this);
    paintFindings(run, this);
    paintInstructions(run, this);
    paintWaits(run, this);
    paintCores(run, this);
    paintSource(run, this);
    $("tab-tiles").hidden = !run.facts.tiles.length;
    if (this.tab === "memory") this.memory.show();
    if (this.tab === "tiles") this.tiles.show();
  },

  async search(words) {
    if ($("search").value !== words) $("search").value = words;
    const turn = (this.turn = (this.turn || 0) + 1);
    let total = 0;
    if (words.trim()) $("hits").textContent = "searching …";
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
    if (!this.selection) return this.lane(0);
    const { run, row } = this.selection;
    const segment = run.segmentOf(row);
    const next = row + step;
    if (next >= segment.first && next < segment.past) this.pick({ run, row: next }, true);
  },

  lane(step) {
    const found = this.timeline.neighbourLane(step);
    if (found) this.pick(found, true);
  },

  async follow(index, column) {
    if (!this.selection) return;
    const { run, row } = this.selection;
    await run.needArrows();
    const [arrow] = run.arrowsOf(run[index], row);
    if (arrow !== undefined) this.pick({ run, row: run[column][arrow] }, true);
  },

  setTheme(name) {
    setTheme(name);
    this.timeline?.refresh();
    this.memory?.paint();
    this.tiles?.paint();
  },
};

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
  for (const name of ["scalar", "waits", "arrows", "critical", "ops"]) {
    $(`show-${name}`).addEventListener("change", (event) => { timeline.show[name] = event.target.checked; timeline.refresh(); });
  }
  $("fold-all").addEventListener("click", () => timeline.foldAll(true));
  $("open-all").addEventListener("click", () => timeline.foldAll(false));
  for (const button of document.querySelectorAll("#tabs [role=tab]")) button.addEventListener("click", () => app.showTab(button.dataset.tab));
  $("tabs").addEventListener("keydown", (event) => {
    const shown = [...document.querySelectorAll("#tabs [role=tab]")].filter((button) => !button.hidden);
    const place = shown.indexOf(document.activeElement);
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (place < 0 || next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const chosen = shown[(next + shown.length) % shown.length];
    chosen.focus();
    app.showTab(chosen.dataset.tab);
  });
  let kept = null;
  addEventListener("beforeprint", () => { kept = document.documentElement.dataset.theme; app.setTheme("light"); timeline.draw(); });
  addEventListener("afterprint", () => { if (kept) app.setTheme(kept); kept = null; });
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
      t: () => $("theme").click(), "?": () => $("keys").showModal(), arrowleft: () => app.neighbour(-1), arrowright: () => app.neighbour(1), arrowup: () => app.lane(-1), arrowdown: () => app.lane(1),
      "[": () => app.follow("arrowsIn", "arrow_from"), "]": () => app.follow("arrowsOut", "arrow_to"),
      escape: () => { app.pick(null); app.search(""); },
    };
    // up and down scroll a page unless the timeline has the keys
    if (/^Arrow(Up|Down)$/.test(event.key) && event.target !== timeline.canvas) return;
    const action = actions[event.key.toLowerCase()];
    if (action) { event.preventDefault(); action(); }
  });
  window.addEventListener("resize", () => { timeline.refresh(); app.memory.paint(); app.tiles.paint(); });
}

// Few cores are read at once; of many the page asks for what it shows.
function firstCores(run) {
  return run.facts.ranges.length <= MANY_CORES ? run.needAll() : Promise.resolve();
}

async function open() {
  setTheme(firstTheme());
  const numbers = [0, 1].filter((number) => $(`run${number}-facts`));
  app.runs = await Promise.all(numbers.map((number) => Run.load(number)));
  if ($("comparison")) app.comparison = await jsonOf("comparison");
  $("main").hidden = false;
  $("loading").remove();
  await Promise.all(app.runs.map((run) => firstCores(run)));
  app.memory = new MemoryMap(app);
  app.tiles = new TileMap(app);
  app.timeline = new Timeline(app.runs, {
    picked: (found) => app.pick(found, false), tip, moved: () => { app.memory.paint(); app.tiles.paint(); app.remember(); }, folded: () => paintCores(app.run, app),
  });
  $("fold-buttons").hidden = app.runs.every((run) => run.facts.ranges.length < 3);
  if (app.runs.length > 1) {
    $("run").hidden = false;
    $("run").replaceChildren(...app.runs.map((run) => element("option", { value: run.number }, `Run ${run.letter}: ${run.facts.title}`)));
    document.querySelector('[data-tab="compare"]').hidden = false;
    paintCompare(app.comparison, app);
  }
  paintSummary(app.runs, app.comparison);
  paintPipes(app.runs);
  paintRoofline(app.runs);
  app.useRun(app.runs.at(-1)); // of two, the second is the one to go on with
  paintDetail(null, app);
  listen();
  if (app.runs.length > 1) app.showTab("compare");
  if (app.runs.every((run) => run.facts.ops.length < 2)) $("show-ops").parentElement.hidden = true;
  await app.recall();
  addEventListener("hashchange", () => app.recall());
  for (const run of app.runs) run.needArrows();
  window.insightTrace = app; // for the console
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

open().catch((error) => { const box = $("loading"); if (box) box.textContent = `This page cannot be shown: ${error.message}`; throw error; });
