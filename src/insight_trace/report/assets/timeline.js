// The timeline. A frame costs pixels, not instructions: where bars are narrower than a pixel, one look into the running
// sums gives the shade of that pixel and a binary search finds the first bar after it.

const LABELS = 156;
const RULER = 26;
const HEAD = 24;
const STRIP = 26;
const MANY_CORES = 6;
const QUIET = new Set(["SCALAR", "SCALARLDST", "FLOWCTRL", "ALL", "CACHEMISS", "EVENT", "PUSHQ"]);

class Timeline {
  constructor(runs, hooks) {
    this.runs = runs;
    this.hooks = hooks;
    this.canvas = $("timeline");
    this.overview = $("overview");
    this.box = $("lanes-box");
    this.total = Math.max(1, ...runs.map((run) => run.facts.span));
    this.show = { scalar: false, waits: true, arrows: true, critical: false, ops: false };
    this.measured = null; // a span of time that somebody marked
    this.selected = null;
    this.hovered = null;
    const busy = runs.some((run) => run.facts.segments.some((s) => !s.wait && !QUIET.has(s.pipe) && s.past > s.first));
    if (!busy) { this.show.scalar = true; $("show-scalar").checked = true; }
    // many cores are a strip each; the one that ends last stays open
    this.folded = new Set();
    this.spread = new Set();
    const cores = runs.flatMap((run) => run.facts.ranges.map(({ core }) => ({ run, core })));
    if (cores.length > MANY_CORES) for (const { run, core } of cores) if (run.facts.coreNames[core] !== run.facts.slowest) this.folded.add(this.key(run, core));
    this.marks = runs.flatMap((run) => marksOf(run));
    this.t0 = 0;
    this.t1 = this.total;
    this.frames = 0;
    this.listen();
    this.fit();
  }

  key(run, core, pipe = "") { return `${run.number}:${core}:${pipe}`; }

  layout() {
    this.lanes = [];
    this.laneBySegment = new Map();
    const shown = (segment) => !segment.wait && (this.show.scalar || !QUIET.has(segment.pipe));
    // few lanes get room, many stay readable
    let open = 0;
    for (const run of this.runs) for (const { core } of run.facts.ranges) if (!this.folded.has(this.key(run, core))) open += run.segmentsOf.get(core).filter(shown).length;
    const tall = open <= 4 ? 42 : open <= 8 ? 32 : open <= 14 ? 25 : 21;
    this.bottom = RULER;
    for (const run of this.runs) {
      const cores = run.facts.ranges.map(({ core }) => core);
      // of many cores the one that ends last comes first, so that it is seen
      if (cores.length > MANY_CORES) cores.sort((a, b) => (run.facts.coreNames[b] === run.facts.slowest) - (run.facts.coreNames[a] === run.facts.slowest));
      const before = this.runs.length > 1 ? `${run.letter} · ` : "";
      for (const core of cores) {
        const mine = run.segmentsOf.get(core);
        const title = before + run.facts.coreNames[core];
        if (this.folded.has(this.key(run, core))) {
          const lane = this.put({ run, core, strip: title, bands: bandsOf(run, core, this.show.scalar) }, STRIP);
          for (const segment of mine) this.laneBySegment.set(segment, lane);
          continue;
        }
        const lanes = this.lanesOf(run, core, mine, shown);
        if (!lanes.length) continue;
        this.put({ head: title, run, core }, HEAD);
        for (const lane of lanes) {
          this.put(lane, lane.works.length > 1 ? Math.min(48, Math.max(tall, 6 + 5 * lane.works.length)) : tall);
          for (const segment of [...lane.works, lane.waits]) if (segment) this.laneBySegment.set(segment, lane);
        }
      }
    }
    for (const run of this.runs) {
      if (!run.facts.counters.length) continue;
      this.put({ head: `${this.runs.length > 1 ? `${run.letter} · ` : ""}throughput with global memory`, run }, HEAD);
      for (const counter of run.facts.counters) this.put({ run, counter, label: counter.name.replace("_TO_", "→") }, 34);
    }
    this.height = Math.max(this.bottom + 10, 160);
    $("lanes").style.height = `${this.height}px`;
    // the detail beside it scrolls before it makes the whole card taller than the lanes need
    $("detail").style.maxHeight = `min(62vh, ${Math.max(380, this.height)}px)`;
  }

  put(lane, height) {
    lane.y = this.bottom;
    lane.height = height;
    this.bottom += height;
    this.lanes.push(lane);
    return lane;
  }

  // Lanes of an open core. What overlaps on one pipe is one lane of stripes until somebody spreads it.
  lanesOf(run, core, mine, shown) {
    const lanes = [];
    const waits = new Map(mine.filter((segment) => segment.wait && this.show.waits).map((segment) => [segment.pipe, segment]));
    const work = mine.filter(shown);
    for (const pipe of new Set(work.map((segment) => segment.pipe))) {
      const parts = work.filter((segment) => segment.pipe === pipe);
      const many = parts.length > (/VEC/.test(pipe) ? 1 : 3);
      const key = this.key(run, core, pipe);
      const groups = many && !this.spread.has(key) ? [parts] : parts.map((segment) => [segment]);
      groups.forEach((works, place) => {
        const label = works.length > 1 ? `${works[0].label} ×${works.length}` : works[0].label;
        lanes.push({ run, core, label, pipe, works, waits: place === 0 ? waits.get(pipe) : null, spreads: many ? key : null });
      });
      waits.delete(pipe);
    }
    for (const segment of waits.values()) if (this.show.scalar || !QUIET.has(segment.pipe)) lanes.push({ run, core, label: segment.label, pipe: segment.pipe, works: [], waits: segment });
    return lanes;
  }

  // Folds or opens what a lane's label stands for.
  toggle(lane) {
    if (lane.spreads) this.spread.has(lane.spreads) ? this.spread.delete(lane.spreads) : this.spread.add(lane.spreads);
    else if ((lane.head || lane.strip) && lane.core !== undefined) this.fold(lane.run, lane.core, !lane.strip);
    else return false;
    this.refresh();
    return true;
  }

  fold(run, core, closed) {
    if (closed) this.folded.add(this.key(run, core));
    else this.folded.delete(this.key(run, core));
    this.hooks.folded?.();
  }

  foldAll(closed) {
    for (const run of this.runs) for (const { core } of run.facts.ranges) this.fold(run, core, closed);
    this.refresh();
  }

  fit() { this.t0 = -this.total * 0.01; this.t1 = this.total * 1.01; this.refresh(); }

  refresh() { this.layout(); this.overviewStale = true; this.images = new Map(); this.request(); }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  // Reads a core's rows for the next frame.
  want(run, core) {
    if (run.loaded.has(core)) return true;
    run.need(core).then(() => this.request());
    return false;
  }

  zoom(factor, around = (this.t0 + this.t1) / 2) {
    const span = Math.min(Math.max((this.t1 - this.t0) * factor, 8), this.total * 1.2);
    const share = (around - this.t0) / (this.t1 - this.t0);
    this.t0 = around - share * span;
    this.t1 = this.t0 + span;
    this.clamp();
  }

  pan(cycles) { this.t0 += cycles; this.t1 += cycles; this.clamp(); }

  clamp() {
    const span = this.t1 - this.t0;
    const slack = this.total * 0.1;
    if (this.t0 < -slack) this.t0 = -slack;
    if (this.t0 > this.total + slack - span * 0.1) this.t0 = this.total + slack - span * 0.1;
    this.t1 = this.t0 + span;
    this.request();
    this.hooks.moved?.();
  }

  reveal(run, row, closer = false) {
    const core = run.coreOf(row);
    if (this.folded.has(this.key(run, core))) { this.fold(run, core, false); this.refresh(); }
    const length = Math.max(run.length[row], 1);
    const span = this.t1 - this.t0;
    const outside = run.end[row] < this.t0 || run.start[row] > this.t1;
    const tiny = (length / span) * this.canvas.clientWidth < 6;
    if (closer || outside || tiny) {
      const wanted = closer ? length * 3 : tiny ? Math.max(length * 24, 200) : span;
      const middle = run.start[row] + length / 2;
      this.t0 = middle - wanted / 2;
      this.t1 = middle + wanted / 2;
      this.clamp();
    }
    const lane = this.laneOf(run, row);
    if (lane) {
      const top = this.box.scrollTop;
      if (lane.y < top + RULER || lane.y + lane.height > top + this.box.clientHeight) this.box.scrollTop = lane.y - this.box.clientHeight / 2;
    }
    this.request();
  }

  laneOf(run, row) { return this.laneBySegment.get(run.segmentOf(row)); }

  select(run, row) { this.selected = run ? { run, row } : null; this.request(); }

  x(time) { return LABELS + ((time - this.t0) / (this.t1 - this.t0)) * this.plot; }
  time(x) { return this.t0 + ((x - LABELS) / this.plot) * (this.t1 - this.t0); }

  // The canvas is as large as what is seen of the lanes, and stays in place while they scroll.
  draw() {
    const began = performance.now();
    const width = this.box.clientWidth;
    const seen = Math.min(this.height, this.box.clientHeight);
    this.canvas.style.height = `${seen}px`;
    const context = sharpen(this.canvas, width, seen);
    this.plot = width - LABELS - 8;
    context.clearRect(0, 0, width, seen);
    const top = this.box.scrollTop;
    context.translate(0, -top);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawGrid(context, width);
    for (const lane of this.lanes) {
      if (lane.y + lane.height < top || lane.y > top + seen) continue;
      if (lane.head) this.drawHead(context, lane, width);
      else if (lane.strip) this.drawStrip(context, lane, width);
      else if (lane.counter) this.drawCounter(context, lane);
      else this.drawLane(context, lane, width);
    }
    if (this.show.arrows) this.drawArrows(context);
    this.drawMarks(context);
    this.drawMeasure(context, top, seen);
    this.drawRuler(context, width, top);
    if (this.overviewStale) { this.paintOverview(); this.overviewStale = false; }
    this.drawOverview();
    this.frames++;
    this.lastFrame = performance.now() - began;
  }

  drawHead(context, lane, width) {
    context.fillStyle = theme.soft;
    context.fillRect(0, lane.y + 2, width, lane.height - 4);
    context.fillStyle = theme.text;
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(lane.core === undefined ? lane.head : `▾ ${lane.head}`, 8, lane.y + lane.height / 2);
    context.font = "12px system-ui, sans-serif";
  }

  // One step per sample, as high as its share of the largest.
  drawCounter(context, lane) {
    const { counter, run } = lane;
    const most = counter.rate.reduce((a, b) => Math.max(a, b), 0) || 1;
    context.fillStyle = theme.dim;
    context.fillText(lane.label, 18, lane.y + 11, LABELS - 24);
    context.fillStyle = theme.faint;
    context.fillText(`up to ${(most / 1000).toFixed(1)} GB/s`, 18, lane.y + 25, LABELS - 24);
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.55;
    for (let i = 0; i < counter.micros.length; i++) {
      const x0 = Math.max(LABELS, this.x(counter.micros[i] * run.facts.mhz - run.facts.origin));
      if (i + 1 === counter.micros.length) break; // a sample holds until the next, and the last closes the series
      const x1 = Math.min(LABELS + this.plot, this.x(counter.micros[i + 1] * run.facts.mhz - run.facts.origin));
      const tall = (counter.rate[i] / most) * (lane.height - 6);
      if (x1 > x0 && tall > 0) context.fillRect(x0, lane.y + lane.height - 2 - tall, x1 - x0, tall);
    }
    context.globalAlpha = 1;
  }

  drawLane(context, lane, width) {
    context.fillStyle = theme.line;
    context.globalAlpha = 0.5;
    context.fillRect(0, lane.y + lane.height - 1, width, 1);
    context.globalAlpha = 1;
    const colour = theme.pipe(lane.pipe);
    context.fillStyle = colour;
    context.fillRect(8, lane.y + 5, 4, lane.height - 10);
    context.fillStyle = theme.dim;
    context.fillText(lane.spreads ? `${lane.works.length > 1 ? "▸" : "▾"} ${lane.label}` : lane.label, 18, lane.y + lane.height / 2, LABELS - 24);
    context.save();
    context.beginPath();
    context.rect(LABELS, lane.y, this.plot, lane.height);
    context.clip();
    if (!this.want(lane.run, lane.core)) this.drawBands(context, lane, bandsOf(lane.run, lane.core, true).filter((band) => band.pipe === lane.pipe), lane.y + 2, lane.height - 4);
    else {
      if (lane.waits) {
        const inset = Math.round(lane.height * 0.34);
        this.drawBars(context, lane, lane.waits, lane.y + inset, lane.height - 2 * inset, colour, true);
      }
      const each = (lane.height - 4) / Math.max(1, lane.works.length);
      lane.works.forEach((segment, place) => this.drawBars(context, lane, segment, lane.y + 2 + place * each, Math.max(1, lane.works.length > 1 ? each - 1 : each), colour, false));
    }
    context.restore();
  }

  // One lane. `scale` is cycles per pixel.
  drawBars(context, lane, segment, y, height, colour, waits) {
    const run = lane.run;
    const scale = (this.t1 - this.t0) / this.plot;
    const strength = waits ? 0.32 : 1;
    const fades = run.hits !== null || this.show.critical;
    let i = lowerBound(run.reach, this.t0, segment.first, segment.past);
    let from = -1, to = -1, shade = 0; // a run of pixels of one shade, drawn together
    const flush = () => {
      if (from < 0) return;
      context.globalAlpha = shade * strength;
      context.fillStyle = colour;
      context.fillRect(from, y, to - from, height);
      from = -1;
    };
    while (i < segment.past && run.start[i] <= this.t1) {
      const x0 = this.x(run.start[i]);
      const x1 = this.x(run.end[i]);
      if (x1 - x0 >= 2) {
        flush();
        this.drawBar(context, run, i, Math.max(x0, LABELS - 4), Math.min(x1, LABELS + this.plot + 4), y, height, colour, strength, waits);
        i++;
        continue;
      }
      const pixel = Math.floor(Math.max(x0, LABELS));
      let next = Math.max(i + 1, lowerBound(run.start, this.time(pixel + 1), i + 1, segment.past));
      // the last one that starts in this pixel may be long: it gets a bar of its own
      if (next - 1 > i && this.wide(run, next - 1)) next--;
      const busy = Math.min(1, (run.done[next] - run.done[i]) / scale);
      let level = Math.max(0.3, Math.ceil(busy * 5) / 5);
      if (fades) level *= this.stands(run, i, next) ? 1 : 0.18;
      if (from >= 0 && (pixel > to || level !== shade)) flush();
      if (from < 0) { from = pixel; shade = level; }
      to = pixel + 1;
      i = next;
    }
    flush();
    context.globalAlpha = 1;
    if (run.hits) this.drawHits(context, run, segment, lane);
  }

  wide(run, row) { return (run.length[row] / (this.t1 - this.t0)) * this.plot >= 2; }

  // Whether any of these rows is sought (or on the critical path, when that is shown).
  stands(run, first, past) {
    if (run.hits) return run.hits.before[past] > run.hits.before[first];
    for (let i = first; i < past && i < first + 64; i++) if (run.critical[i]) return true;
    return false;
  }

  drawBar(context, run, row, x0, x1, y, height, colour, strength, waits) {
    const faded = (run.hits && !run.hits.mask[row]) || (!run.hits && this.show.critical && !run.critical[row]);
    context.globalAlpha = faded ? 0.18 * strength : strength;
    context.fillStyle = colour;
    const gap = x1 - x0 > 4 ? 0.5 : 0;
    if (x1 - x0 < 6 || height < 10) context.fillRect(x0, y, x1 - x0 - gap, height); // corners that nobody sees cost time
    else {
      context.beginPath();
      context.roundRect(x0, y, x1 - x0 - gap, height, 3);
      context.fill();
    }
    const conflict = run.read[row] > 0 || run.write[row] > 0;
    if (conflict && !waits) {
      context.fillStyle = theme.bad;
      context.fillRect(x0, y + height - 3, Math.max(2, ((x1 - x0) * (Math.max(0, run.read[row]) + Math.max(0, run.write[row]))) / Math.max(1, run.length[row])), 3);
    }
    if (!waits && x1 - x0 > 28 && height > 10) {
      context.globalAlpha = faded ? 0.4 : 1;
      context.fillStyle = theme.onPipe;
      const left = Math.max(x0, LABELS);
      const room = x1 - left - 7;
      const text = this.show.ops ? run.opOf(row) || run.nameOf(row) : run.nameOf(row);
      const wide = this.widthOf(context, text);
      const shown = wide <= room ? text : `${text.slice(0, Math.floor((text.length * (room - 9)) / wide))}…`;
      if (shown === text || shown.length > 3) context.fillText(shown, left + 4, y + height / 2 + 0.5);
    }
    context.globalAlpha = 1;
    const picked = this.selected && this.selected.run === run && this.selected.row === row;
    const over = this.hovered && this.hovered.run === run && this.hovered.row === row;
    if (picked || over) {
      context.strokeStyle = picked ? theme.text : theme.accent;
      context.lineWidth = picked ? 2 : 1.5;
      context.strokeRect(x0 + 0.5, y - 0.5, Math.max(2, x1 - x0 - 1), height + 1);
    }
  }

  drawMeasure(context, top, seen) {
    if (!this.measured) return;
    const [from, to] = [Math.min(...this.measured), Math.max(...this.measured)];
    const x0 = Math.max(LABELS, this.x(from)), x1 = Math.min(LABELS + this.plot, this.x(to));
    if (x1 <= x0) return;
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.14;
    context.fillRect(x0, top + RULER, x1 - x0, seen);
    context.globalAlpha = 1;
    context.fillRect(x0, top + RULER, 1, seen);
    context.fillRect(x1 - 1, top + RULER, 1, seen);
    const text = this.measureText();
    const wide = context.measureText(text).width + 12;
    const left = Math.min(Math.max(LABELS, (x0 + x1 - wide) / 2), LABELS + this.plot - wide);
    context.fillRect(left, top + RULER + 2, wide, 18);
    context.fillStyle = theme.onPipe;
    context.fillText(text, left + 6, top + RULER + 11.5);
  }

  // How long what was marked is: `1,240 cycles · 670 ns`.
  measureText() {
    const span = Math.round(Math.abs(this.measured[1] - this.measured[0]));
    return `${count(span)} cycles · ${micros(span, this.runs[0].facts.mhz)}`;
  }

  widthOf(context, text) {
    this.widths ||= new Map();
    if (!this.widths.has(text)) this.widths.set(text, context.measureText(text).width);
    return this.widths.get(text);
  }

  drawHits(context, run, segment, lane) {
    const hits = run.hits;
    context.fillStyle = theme.hit;
    let pixel = -1;
    let row = lowerBound(run.reach, this.t0, segment.first, segment.past);
    const last = lowerBound(run.start, this.t1, row, segment.past);
    while (row < last) {
      if (hits.before[last] === hits.before[row]) break;
      if (!hits.mask[row]) { row = lowerBound(hits.before, hits.before[row] + 1, row + 1, last) - 1; continue; }
      const x = Math.floor(this.x(run.start[row]));
      if (x > pixel) context.fillRect(Math.max(x, LABELS), lane.y, Math.max(2, Math.min(this.x(run.end[row]), LABELS + this.plot) - x), 2);
      pixel = x;
      let next = Math.max(row + 1, lowerBound(run.start, this.time(x + 1), row + 1, last));
      if (next - 1 > row && hits.mask[next - 1] && this.wide(run, next - 1)) { next--; pixel = x - 1; }
      row = next;
    }
  }
}
