// The overview above the timeline, and what the mouse does.

Object.assign(Timeline.prototype, {
  // The overview is painted once per width and theme, from the sums of each core's load; only the window over it moves.
  paintOverview() {
    const width = Math.max(1, this.overview.clientWidth);
    const height = 46;
    const canvas = document.createElement("canvas");
    const context = sharpen(canvas, width, height);
    const rows = this.runs.flatMap((run) => {
      const bands = run.facts.load.strips.map((strip, place) => ({ ...strip, place })).filter((strip) => this.show.scalar || !QUIET.has(strip.pipe));
      // more bands than can be told apart: the mean of a pipe over all cores
      if (bands.length <= 18) return bands.map((band) => ({ run, pipe: band.pipe, places: [band.place] }));
      return [...new Set(bands.map((band) => band.pipe))].map((pipe) => ({ run, pipe, places: bands.filter((band) => band.pipe === pipe).map((band) => band.place) }));
    });
    const band = Math.max(1, (height - 8) / Math.max(1, rows.length));
    rows.forEach(({ run, pipe, places }, number) => {
      const { buckets } = run.facts.load;
      const scale = (this.total / width / Math.max(1, run.facts.span)) * buckets; // parts of the sums in a pixel
      context.fillStyle = theme.pipe(pipe);
      for (let pixel = 0; pixel < width; pixel++) {
        const from = Math.floor(pixel * scale);
        if (from >= buckets) break;
        const past = Math.min(buckets, Math.max(from + 1, Math.floor((pixel + 1) * scale)));
        let sum = 0;
        for (const place of places) for (let i = from; i < past; i++) sum += run.load[place * buckets + i];
        if (!sum) continue;
        context.globalAlpha = Math.max(0.25, sum / (255 * (past - from) * places.length));
        context.fillRect(pixel, 4 + number * band, 1, Math.max(1, band - 0.5));
      }
    });
    context.globalAlpha = 1;
    for (const mark of this.marks) {
      context.fillStyle = theme.severity(mark.finding.severity);
      context.fillRect((mark.time / this.total) * width - 1, 0, 2, 5);
    }
    this.overviewImage = canvas;
  },

  drawOverview() {
    const width = this.overview.clientWidth;
    const context = sharpen(this.overview, width, 46);
    context.clearRect(0, 0, width, 46);
    if (this.overviewImage) context.drawImage(this.overviewImage, 0, 0, width, 46);
    const left = Math.max(0, (this.t0 / this.total) * width);
    const right = Math.min(width, (this.t1 / this.total) * width);
    context.fillStyle = theme.page;
    context.globalAlpha = 0.72;
    context.fillRect(0, 0, left, 46);
    context.fillRect(right, 0, width - right, 46);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(3, right - left - 1.5), 44.5);
  },

  laneAt(y) { return this.lanes.find((item) => y >= item.y && y < item.y + item.height); },

  // The instruction under a point; work before waits, and within two pixels where bars are thin.
  at(x, y) {
    const lane = this.laneAt(y);
    if (!lane || lane.head || lane.counter || lane.strip || x < LABELS || !this.want(lane.run, lane.core)) return null;
    const time = this.time(x);
    const near = (2 * (this.t1 - this.t0)) / this.plot;
    const stripe = Math.floor(((y - lane.y - 2) / (lane.height - 4)) * lane.works.length);
    const work = lane.works[Math.max(0, Math.min(lane.works.length - 1, stripe))];
    for (const segment of [work, lane.waits]) {
      const row = segment ? this.rowAt(lane.run, segment, time, near) : null;
      if (row !== null) return { run: lane.run, row };
    }
    return null;
  },

  rowAt(run, segment, time, near) {
    const row = lowerBound(run.reach, time, segment.first, segment.past);
    for (const candidate of [row, row - 1]) {
      if (candidate < segment.first || candidate >= segment.past) continue;
      if (run.start[candidate] - near <= time && run.end[candidate] + near >= time) return candidate;
    }
    return null;
  },

  // For the keys: what runs at the time of the chosen instruction on the lane above or below.
  neighbourLane(step) {
    const lanes = this.lanes.filter((lane) => !lane.head && !lane.strip && !lane.counter && (lane.works[0] || lane.waits));
    if (!lanes.length) return null;
    if (!this.selected) return { run: lanes[0].run, row: (lanes[0].works[0] || lanes[0].waits).first };
    const { run, row } = this.selected;
    const place = lanes.indexOf(this.laneOf(run, row));
    const lane = lanes[Math.max(0, Math.min(lanes.length - 1, place + step))];
    if (!this.want(lane.run, lane.core)) return null;
    const segment = lane.works[0] || lane.waits;
    const next = Math.min(segment.past - 1, lowerBound(lane.run.reach, run.start[row] + 1, segment.first, segment.past));
    return { run: lane.run, row: next };
  },

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus({ preventScroll: true });
      drag = { x: event.offsetX, t0: this.t0, t1: this.t1, moved: false, measures: event.shiftKey };
      if (drag.measures) this.measured = null;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const shift = event.offsetX - drag.x;
        if (Math.abs(shift) > 3) { drag.moved = true; if (!drag.measures) canvas.classList.add("dragging"); this.hooks.tip(null); }
        if (drag.moved && drag.measures) {
          this.measured = [this.time(drag.x), this.time(event.offsetX)];
          this.request();
          return;
        }
        if (drag.moved) {
          const span = drag.t1 - drag.t0;
          this.t0 = drag.t0 - (shift / this.plot) * span;
          this.t1 = this.t0 + span;
          this.clamp();
        }
        return;
      }
      this.hovered = this.at(event.offsetX, event.offsetY + this.box.scrollTop);
      const lane = this.laneAt(event.offsetY + this.box.scrollTop);
      canvas.style.cursor = lane && (lane.strip || (lane.head && lane.core !== undefined) || (lane.spreads && event.offsetX < LABELS)) ? "pointer" : "";
      this.hooks.tip(this.hovered, event);
      this.request();
    });
    canvas.addEventListener("pointerup", (event) => {
      const click = drag && !drag.moved;
      drag = null;
      canvas.classList.remove("dragging");
      if (!click) return;
      const y = event.offsetY + this.box.scrollTop;
      const lane = this.laneAt(y);
      if (lane && (event.offsetX < LABELS || lane.head || lane.strip) && this.toggle(lane)) return;
      this.hooks.picked(this.at(event.offsetX, y));
    });
    canvas.addEventListener("pointerleave", () => { this.hovered = null; this.hooks.tip(null); this.request(); });
    canvas.addEventListener("dblclick", (event) => {
      const found = this.at(event.offsetX, event.offsetY + this.box.scrollTop);
      if (found) this.reveal(found.run, found.row, true);
    });
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), this.time(event.offsetX));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan(((event.deltaX || event.deltaY) / this.plot) * (this.t1 - this.t0));
      }
    }, { passive: false });
    const go = (event) => {
      const middle = (event.offsetX / this.overview.clientWidth) * this.total;
      const span = this.t1 - this.t0;
      this.t0 = middle - span / 2;
      this.t1 = middle + span / 2;
      this.clamp();
    };
    let brushing = false;
    this.overview.addEventListener("pointerdown", (event) => { brushing = true; this.overview.setPointerCapture(event.pointerId); go(event); });
    this.overview.addEventListener("pointermove", (event) => { if (brushing) go(event); });
    this.overview.addEventListener("pointerup", () => { brushing = false; });
    this.box.addEventListener("scroll", () => this.request());
    new ResizeObserver(() => { this.overviewStale = true; this.request(); }).observe(this.box);
  },
});
