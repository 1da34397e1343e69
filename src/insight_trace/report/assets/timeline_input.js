// The overview above the timeline, and what the mouse does.

Object.assign(Timeline.prototype, {
  // The overview is painted once per width and theme; only the window over it moves.
  paintOverview() {
    const width = this.overview.clientWidth;
    const height = 46;
    const canvas = document.createElement("canvas");
    const context = sharpen(canvas, width, height);
    let lanes = this.lanes.filter((lane) => lane.work);
    // more lanes than pixels would only be grey: then the cores that end last stand for all
    if (lanes.length > 18) lanes = lanes.filter((lane) => lane.run.facts.coreNames[lane.core] === lane.run.facts.slowest);
    const band = Math.max(1, (height - 8) / Math.max(1, lanes.length));
    const scale = this.total / width;
    lanes.forEach((lane, place) => {
      const { run, work } = lane;
      context.fillStyle = theme.pipe(lane.pipe);
      let i = work.first;
      for (let pixel = 0; pixel < width && i < work.past; pixel++) {
        const next = lowerBound(run.start, (pixel + 1) * scale, i, work.past);
        const inside = run.done[next] - run.done[i] + (i > work.first ? Math.max(0, run.end[i - 1] - pixel * scale) : 0);
        if (inside > 0) {
          context.globalAlpha = Math.max(0.25, Math.min(1, inside / scale));
          context.fillRect(pixel, 4 + place * band, 1, Math.max(1, band - 0.5));
        }
        i = next;
        if (i > work.first && run.end[i - 1] > (pixel + 2) * scale) {
          const until = Math.min(width, Math.floor(run.end[i - 1] / scale));
          context.globalAlpha = 1;
          context.fillRect(pixel, 4 + place * band, until - pixel, Math.max(1, band - 0.5));
          pixel = Math.max(pixel, until - 1);
        }
      }
    });
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

  // The instruction under a point; work before waits, and within two pixels where bars are thin.
  at(x, y) {
    const lane = this.lanes.find((item) => !item.head && !item.counter && y >= item.y && y < item.y + item.height);
    if (!lane || x < LABELS) return null;
    const time = this.time(x);
    const near = (2 * (this.t1 - this.t0)) / this.plot;
    for (const segment of [lane.work, lane.waits]) {
      if (!segment) continue;
      const { run } = lane;
      const row = lowerBound(run.reach, time, segment.first, segment.past);
      let best = null;
      for (const candidate of [row, row - 1]) {
        if (candidate < segment.first || candidate >= segment.past) continue;
        if (run.start[candidate] - near <= time && run.end[candidate] + near >= time) { best = candidate; break; }
      }
      if (best !== null) return { run, row: best };
    }
    return null;
  },

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus({ preventScroll: true });
      drag = { x: event.offsetX, t0: this.t0, t1: this.t1, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const shift = event.offsetX - drag.x;
        if (Math.abs(shift) > 3) { drag.moved = true; canvas.classList.add("dragging"); this.hooks.tip(null); }
        if (drag.moved) {
          const span = drag.t1 - drag.t0;
          this.t0 = drag.t0 - (shift / this.plot) * span;
          this.t1 = this.t0 + span;
          this.clamp();
        }
        return;
      }
      this.hovered = this.at(event.offsetX, event.offsetY);
      this.hooks.tip(this.hovered, event);
      this.request();
    });
    canvas.addEventListener("pointerup", (event) => {
      const click = drag && !drag.moved;
      drag = null;
      canvas.classList.remove("dragging");
      if (click) this.hooks.picked(this.at(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => { this.hovered = null; this.hooks.tip(null); this.request(); });
    canvas.addEventListener("dblclick", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
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
