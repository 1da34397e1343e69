// What lies over and under the bars: flags as arrows, the grid and the ruler.

Object.assign(Timeline.prototype, {
  drawArrows(context) {
    context.save();
    context.beginPath();
    context.rect(LABELS, RULER, this.plot, this.height);
    context.clip();
    for (const run of this.runs) {
      run.needArrows().then(() => { if (!run.arrowsSeen) { run.arrowsSeen = true; this.request(); } });
      const laneAt = (row) => this.laneOf(run, row);
      const picked = new Set();
      if (this.selected && this.selected.run === run) {
        for (const index of [run.arrowsOut, run.arrowsIn]) for (const arrow of run.arrowsOf(index, this.selected.row)) picked.add(arrow);
      }
      const visible = this.visibleArrows(run, 500);
      for (const arrow of visible) if (!picked.has(arrow)) this.drawArrow(context, run, arrow, laneAt, false);
      for (const arrow of picked) this.drawArrow(context, run, arrow, laneAt, true);
    }
    context.restore();
  },

  // Arrows that leave inside the window; none when there are too many to tell apart.
  visibleArrows(run, most) {
    const { order, times } = run.arrowTimes;
    const first = lowerBound(times, this.t0, 0, times.length);
    const past = lowerBound(times, this.t1, first, times.length);
    const room = Math.max(0, first - 8);
    return past - first > most ? [] : order.subarray(room, past);
  },

  drawArrow(context, run, arrow, laneAt, strong) {
    const from = laneAt(run.arrow_from[arrow]);
    const to = laneAt(run.arrow_to[arrow]);
    if (!from || !to) return;
    // between strips an arrow would say little: only those of the chosen instruction are drawn there
    if ((from.strip || to.strip) && !strong) return;
    if (!this.want(run, from.core) || !this.want(run, to.core)) return;
    const x0 = this.x(run.end[run.arrow_from[arrow]]);
    const x1 = this.x(run.start[run.arrow_to[arrow]]);
    const y0 = from.y + from.height / 2;
    const y1 = to.y + to.height / 2;
    const bend = Math.max(10, Math.min(46, Math.abs(x1 - x0) / 2));
    context.strokeStyle = context.fillStyle = strong ? theme.text : theme.dim;
    context.globalAlpha = strong ? 1 : 0.6;
    context.lineWidth = strong ? 2 : 1;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1 + 1, y1);
    context.lineTo(x1 - 6, y1 - 3.5);
    context.lineTo(x1 - 6, y1 + 3.5);
    context.fill();
    context.globalAlpha = 1;
  },

  steps() {
    const step = niceStep(this.t1 - this.t0, this.plot / 110);
    const found = [];
    for (let tick = Math.ceil(this.t0 / step) * step; tick <= this.t1; tick += step) if (tick >= -step / 2) found.push(tick || 0);
    return { step, found };
  },

  drawGrid(context) {
    context.fillStyle = theme.line;
    for (const tick of this.steps().found) context.fillRect(Math.round(this.x(tick)), RULER, 1, this.height);
  },

  drawRuler(context, width, top) {
    context.fillStyle = theme.card;
    context.fillRect(0, top, width, RULER - 2);
    context.fillStyle = theme.dim;
    context.font = "11px ui-monospace, monospace";
    const mhz = this.runs[0].facts.mhz;
    for (const tick of this.steps().found) {
      const x = this.x(tick);
      if (x < LABELS - 2 || x > LABELS + this.plot - 56) continue;
      context.fillText(`${count(tick)}`, x + 4, top + 8);
      context.globalAlpha = 0.65;
      context.fillText(micros(tick, mhz), x + 4, top + 18);
      context.globalAlpha = 1;
    }
    context.fillText("cycles / time", 8, top + 12);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = theme.line;
    context.fillRect(0, top + RULER - 2, width, 1);
  },
});

// Where findings stand; the worst are drawn last and so lie on top.
function marksOf(run) {
  const marks = [];
  run.facts.findings.forEach((finding, number) => {
    for (const place of finding.places) if (place.row >= 0) marks.push({ run, row: place.row, time: place.start, finding, number });
  });
  const order = ["note", "warning", "error"];
  return marks.sort((a, b) => order.indexOf(a.finding.severity) - order.indexOf(b.finding.severity));
}

Object.assign(Timeline.prototype, {
  drawMarks(context) {
    for (const mark of this.marks) {
      if (mark.time < this.t0 || mark.time > this.t1) continue;
      const lane = this.laneOf(mark.run, mark.row);
      if (!lane) continue;
      const x = this.x(mark.time);
      if (x < LABELS) continue;
      context.fillStyle = theme.severity(mark.finding.severity);
      context.beginPath();
      context.moveTo(x - 5, lane.y);
      context.lineTo(x + 5, lane.y);
      context.lineTo(x, lane.y + 8);
      context.fill();
    }
  },
});
