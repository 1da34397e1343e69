// The timeline. A frame costs pixels, not instructions: where bars are narrower than a pixel, one look into the running
// sums gives the shade of that pixel and a binary search finds the first bar after it.

const LABELS = 156;
const RULER = 26;
const HEAD = 24;
const QUIET = new Set(["SCALAR", "SCALARLDST", "FLOWCTRL", "ALL", "CACHEMISS", "EVENT", "PUSHQ"]);

class Timeline {
  constructor(runs, hooks) {
    this.runs = runs;
    this.hooks = hooks;
    this.canvas = $("timeline");
    this.overview = $("overview");
    this.box = this.canvas.parentElement;
    this.total = Math.max(1, ...runs.map((run) => run.reach.reduce((a, b) => Math.max(a, b), 0)));
    this.show = { scalar: false, waits: true, arrows: true, critical: false };
    this.selected = null;
    this.hovered = null;
    const busy = runs.some((run) => run.facts.segments.some((s) => !s.wait && !QUIET.has(s.pipe) && s.past > s.first));
    if (!busy) { this.show.scalar = true; $("show-scalar").checked = true; }
    this.t0 = 0;
    this.t1 = this.total;
    this.frames = 0;
    this.listen();
    this.fit();
  }

  layout() {
    this.lanes = [];
    // few lanes get room, many stay readable
    const shown = this.runs.reduce((sum, run) => sum + run.facts.segments.filter((s) => !s.wait && (this.show.scalar || !QUIET.has(s.pipe))).length, 0);
    const tall = shown <= 4 ? 42 : shown <= 8 ? 32 : shown <= 14 ? 25 : 21;
    let y = RULER;
    for (const run of this.runs) {
      const cores = [...new Set(run.facts.segments.map((segment) => segment.core))];
      cores.sort((a, b) => run.facts.coreNames[a].localeCompare(run.facts.coreNames[b], "en", { numeric: true }));
      for (const core of cores) {
        const mine = run.facts.segments.filter((segment) => segment.core === core);
        const work = mine.filter((segment) => !segment.wait && (this.show.scalar || !QUIET.has(segment.pipe)));
        const title = (this.runs.length > 1 ? `${run.letter} · ` : "") + run.facts.coreNames[core];
        const used = new Set();
        const lanes = work.map((segment) => {
          const waits = segment.part === 0 && this.show.waits ? mine.find((other) => other.wait && other.pipe === segment.pipe) : null;
          if (waits) used.add(waits);
          return { run, core, label: segment.label, pipe: segment.pipe, work: segment, waits };
        });
        if (this.show.waits) {
          for (const segment of mine) {
            if (segment.wait && !used.has(segment) && (this.show.scalar || !QUIET.has(segment.pipe))) {
              lanes.push({ run, core, label: segment.label, pipe: segment.pipe, work: null, waits: segment });
            }
          }
        }
        if (!lanes.length) continue;
        this.lanes.push({ head: title, y, height: HEAD, run });
        y += HEAD;
        for (const lane of lanes) { lane.y = y; lane.height = tall; y += tall; this.lanes.push(lane); }
      }
    }
    for (const run of this.runs) {
      if (!run.facts.counters.length) continue;
      this.lanes.push({ head: `${this.runs.length > 1 ? `${run.letter} · ` : ""}throughput with global memory`, y, height: HEAD, run });
      y += HEAD;
      for (const counter of run.facts.counters) {
        this.lanes.push({ run, counter, label: counter.name.replace("_TO_", "→"), y, height: 34 });
        y += 34;
      }
    }
    this.height = Math.max(y + 10, 160);
    // the detail beside it scrolls before it makes the whole card taller than the lanes need
    $("detail").style.maxHeight = `min(62vh, ${Math.max(380, this.height)}px)`;
  }

  fit() { this.t0 = -this.total * 0.01; this.t1 = this.total * 1.01; this.refresh(); }

  refresh() { this.layout(); this.overviewStale = true; this.request(); }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
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

  laneOf(run, row) {
    return this.lanes.find((lane) => lane.run === run && !lane.head && [lane.work, lane.waits].some((s) => s && row >= s.first && row < s.past));
  }

  select(run, row) { this.selected = run ? { run, row } : null; this.request(); }

  x(time) { return LABELS + ((time - this.t0) / (this.t1 - this.t0)) * this.plot; }
  time(x) { return this.t0 + ((x - LABELS) / this.plot) * (this.t1 - this.t0); }

  draw() {
    const began = performance.now();
    const width = this.canvas.clientWidth || this.box.clientWidth;
    this.canvas.style.height = `${this.height}px`;
    const context = sharpen(this.canvas, width, this.height);
    this.plot = width - LABELS - 8;
    context.clearRect(0, 0, width, this.height);
    const top = this.box.scrollTop;
    const bottom = top + this.box.clientHeight;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawGrid(context, width);
    for (const lane of this.lanes) {
      if (lane.y + lane.height < top || lane.y > bottom) continue;
      if (lane.head) this.drawHead(context, lane, width);
      else if (lane.counter) this.drawCounter(context, lane);
      else this.drawLane(context, lane, width);
    }
    if (this.show.arrows) this.drawArrows(context);
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
    context.fillText(lane.head, 8, lane.y + lane.height / 2);
    context.font = "12px system-ui, sans-serif";
  }

  // One step per microsecond, as high as its share of the largest.
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
      const x1 = Math.min(LABELS + this.plot, this.x((counter.micros[i] + 1) * run.facts.mhz - run.facts.origin));
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
    context.fillText(lane.label, 18, lane.y + lane.height / 2, LABELS - 24);
    context.save();
    context.beginPath();
    context.rect(LABELS, lane.y, this.plot, lane.height);
    context.clip();
    if (lane.waits) this.drawBars(context, lane, lane.waits, colour, true);
    if (lane.work) this.drawBars(context, lane, lane.work, colour, false);
    context.restore();
  }

  // One lane. `scale` is cycles per pixel.
  drawBars(context, lane, segment, colour, waits) {
    const run = lane.run;
    const scale = (this.t1 - this.t0) / this.plot;
    const inset = waits ? Math.round(lane.height * 0.34) : 2;
    const y = lane.y + inset;
    const height = lane.height - 2 * inset;
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
    context.beginPath();
    context.roundRect(x0, y, x1 - x0 - gap, height, Math.min(3, (x1 - x0) / 3));
    context.fill();
    const conflict = run.read[row] > 0 || run.write[row] > 0;
    if (conflict && !waits) {
      context.fillStyle = theme.bad;
      context.fillRect(x0, y + height - 3, Math.max(2, ((x1 - x0) * (Math.max(0, run.read[row]) + Math.max(0, run.write[row]))) / Math.max(1, run.length[row])), 3);
    }
    if (!waits && x1 - x0 > 28) {
      context.globalAlpha = faded ? 0.4 : 1;
      context.fillStyle = theme.onPipe;
      const left = Math.max(x0, LABELS);
      const room = x1 - left - 7;
      const text = run.nameOf(row);
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
