// Cores at a glance: one strip per core, drawn from sums that were made when the page was written.

// What the run's load knows of a core: a band per pipe.
function bandsOf(run, core, scalar) {
  const bands = [];
  run.facts.load.strips.forEach((strip, place) => { if (strip.core === core) bands.push({ pipe: strip.pipe, place, busy: strip.busy }); });
  const work = bands.filter((band) => !QUIET.has(band.pipe));
  return scalar || !work.length ? bands : work;
}

Object.assign(Timeline.prototype, {
  // A folded core: how busy each of its pipes is, from sums made beforehand; instructions where few are in the window.
  drawStrip(context, lane, width) {
    const { run, core, bands } = lane;
    context.fillStyle = theme.line;
    context.globalAlpha = 0.5;
    context.fillRect(0, lane.y + lane.height - 1, width, 1);
    context.globalAlpha = 1;
    context.fillStyle = theme.text;
    context.fillText(`▸ ${lane.strip}`, 8, lane.y + lane.height / 2, LABELS - 52);
    const best = bands.reduce((a, b) => (b.busy > (a?.busy ?? -1) ? b : a), null);
    if (best) {
      context.fillStyle = theme.pipe(best.pipe);
      context.textAlign = "right";
      context.fillText(`${Math.round((100 * best.busy) / Math.max(1, run.facts.span))} %`, LABELS - 8, lane.y + lane.height / 2);
      context.textAlign = "left";
    }
    context.save();
    context.beginPath();
    context.rect(LABELS, lane.y, this.plot, lane.height);
    context.clip();
    this.drawBands(context, lane, bands, lane.y + 2, lane.height - 4);
    context.restore();
  },

  drawBands(context, lane, bands, y, height) {
    const { run, core } = lane;
    const each = height / Math.max(1, bands.length);
    const share = (this.t1 - this.t0) / Math.max(1, run.facts.span);
    // where a part of the sums is wider than some pixels, instructions are few enough to be drawn themselves
    const few = share * run.facts.load.buckets < this.plot / 4 && this.want(run, core) && this.fewRows(run, core);
    bands.forEach((band, place) => {
      const top = y + place * each;
      if (few) {
        for (const segment of run.segmentsOf.get(core)) if (!segment.wait && segment.pipe === band.pipe) this.drawBars(context, lane, segment, top, Math.max(1, each - 0.5), theme.pipe(band.pipe), false);
        return;
      }
      const image = this.loadImage(run, band, share);
      const from = (this.t0 / run.facts.span) * image.width;
      context.imageSmoothingEnabled = false;
      context.drawImage(image, from, 0, share * image.width, 1, LABELS, top, this.plot, Math.max(1, each - 0.5));
    });
  },

  fewRows(run, core) {
    let rows = 0;
    for (const segment of run.segmentsOf.get(core)) {
      if (!segment.wait) rows += lowerBound(run.start, this.t1, segment.first, segment.past) - lowerBound(run.reach, this.t0, segment.first, segment.past);
    }
    return rows < 200;
  },

  // A band as a row of pixels, as wide as the window needs: sums of neighbours serve where there are more than pixels.
  loadImage(run, band, share) {
    const { buckets } = run.facts.load;
    let fold = 1;
    while ((share * buckets) / fold > this.plot * 1.2 && fold < 64) fold *= 2;
    const key = `${run.number}:${band.place}:${fold}`;
    if (!this.images.has(key)) {
      const canvas = document.createElement("canvas");
      canvas.width = Math.ceil(buckets / fold);
      canvas.height = 1;
      const context = canvas.getContext("2d");
      const pixels = context.createImageData(canvas.width, 1);
      const [red, green, blue] = rgb(theme.pipe(band.pipe));
      for (let i = 0; i < canvas.width; i++) {
        let sum = 0;
        for (let part = 0; part < fold; part++) sum += run.load[band.place * buckets + Math.min(buckets - 1, i * fold + part)];
        const level = sum / fold;
        pixels.data.set([red, green, blue, level ? Math.max(40, level) : 0], 4 * i);
      }
      context.putImageData(pixels, 0, 0);
      this.images.set(key, canvas);
    }
    return this.images.get(key);
  },
});
