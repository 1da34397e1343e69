// Operations a byte against operations a second: what the chip allows at most, and where this run stands.

function paintRoofline(runs) {
  const panel = $("panel-roofline");
  const points = runs.flatMap((run) => run.facts.arithmetic.map((item) => ({ ...item, run })));
  const parts = [];
  if (points.length) parts.push(rooflinePlot(points, runs.length > 1));
  else parts.push(element("p", {}, "No point to draw: the operands do not say how much cube or vector work was done, or no bytes moved."));
  const rows = runs.flatMap((run) => run.facts.traffic.map((item) => ({
    cells: [(runs.length > 1 ? `${run.letter} · ` : "") + item.path.replace("_TO_", "→"), bytesText(item.bytes), count(item.transfers), bytesText(Math.round(item.bytes / item.transfers)), item.gb_per_s.toFixed(1), item.roof_gb_per_s ? item.roof_gb_per_s.toFixed(1) : "-", item.roof_gb_per_s ? percent(item.gb_per_s, item.roof_gb_per_s) : "-"],
  })));
  const side = element("div", {}, element("h2", {}, "Traffic with global memory"), rows.length ? grid(["Path", "#Bytes", "#Transfers", "#Each", "#GB/s", "#Roof", "#Of roof"], rows) : element("p", {}, "Nothing was moved to or from global memory."));
  const { chip, exact } = runs[0].facts.roofs;
  side.append(element("p", {}, `Roofs of one core of ${chip}${exact ? "" : ", which stands in: this chip has no published ones"}.`));
  for (const point of points) {
    side.append(element("p", {}, `${runs.length > 1 ? `${point.run.letter} · ` : ""}${point.unit}: ${point.intensity.toFixed(2)} operations a byte, ${point.giga_per_s.toFixed(1)} G/s, ${percent(point.giga_per_s, point.reachable_giga_per_s)} of what is reachable there (${point.bound} roof).`));
  }
  panel.replaceChildren(element("div", { class: "two" }, element("div", {}, ...parts), side));
}

function rooflinePlot(points, many) {
  const width = 760, height = 380, left = 64, right = 24, top = 18, bottom = 44;
  const log = Math.log10;
  const bandwidth = (point) => (point.bound === "memory" ? point.reachable_giga_per_s / point.intensity : null);
  const xs = points.flatMap((point) => [point.intensity / 8, point.intensity * 8, ...(bandwidth(point) ? [(point.roof_giga_per_s / bandwidth(point)) * 3] : [])]);
  const ys = points.flatMap((point) => [point.giga_per_s / 4, point.roof_giga_per_s * 2.5]);
  const [x0, x1] = [Math.floor(log(Math.min(...xs))), Math.ceil(log(Math.max(...xs)))];
  const [y0, y1] = [Math.floor(log(Math.min(...ys))), Math.ceil(log(Math.max(...ys)))];
  const X = (value) => left + ((log(value) - x0) / (x1 - x0)) * (width - left - right);
  const Y = (value) => height - bottom - ((log(value) - y0) / (y1 - y0)) * (height - top - bottom);
  const plot = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": "Roofline" });
  const tick = (value) => (value >= 1000 ? `${value / 1000}k` : String(+value.toPrecision(3)));
  for (let power = x0; power <= x1; power++) {
    plot.append(svg("line", { x1: X(10 ** power), x2: X(10 ** power), y1: top, y2: height - bottom, stroke: "var(--line)" }), svg("text", { x: X(10 ** power), y: height - bottom + 18, "text-anchor": "middle" }, tick(10 ** power)));
  }
  for (let power = y0; power <= y1; power++) {
    plot.append(svg("line", { x1: left, x2: width - right, y1: Y(10 ** power), y2: Y(10 ** power), stroke: "var(--line)" }), svg("text", { x: left - 8, y: Y(10 ** power) + 4, "text-anchor": "end" }, tick(10 ** power)));
  }
  plot.append(svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "operations per byte of global memory"), svg("text", { x: 14, y: height / 2, transform: `rotate(-90 14 ${height / 2})`, "text-anchor": "middle" }, "G operations / s"));
  const drawn = new Set();
  for (const point of points) {
    const colour = point.unit === "cube" ? "var(--pipe-cube)" : "var(--pipe-vector)";
    const rate = bandwidth(point);
    const key = `${point.unit} ${point.roof_giga_per_s}`;
    if (!drawn.has(key)) {
      drawn.add(key);
      const knee = rate ? point.roof_giga_per_s / rate : 10 ** x0;
      plot.append(svg("line", { x1: X(Math.max(10 ** x0, knee)), x2: width - right, y1: Y(point.roof_giga_per_s), y2: Y(point.roof_giga_per_s), stroke: colour, "stroke-width": 2 }), svg("text", { x: width - right - 6, y: Y(point.roof_giga_per_s) - 7, "text-anchor": "end" }, `${point.unit} roof, ${count(point.roof_giga_per_s)} G/s`));
      if (rate) {
        const low = Math.max(10 ** x0, 10 ** y0 / rate);
        plot.append(svg("line", { x1: X(low), x2: X(knee), y1: Y(low * rate), y2: Y(point.roof_giga_per_s), stroke: colour, "stroke-width": 2 }), svg("text", { x: X(knee) - 8, y: Y(point.roof_giga_per_s) - 7, "text-anchor": "end" }, `memory, ${count(rate)} GB/s`));
      }
    }
    plot.append(svg("line", { x1: X(point.intensity), x2: X(point.intensity), y1: Y(point.giga_per_s), y2: Y(point.reachable_giga_per_s), stroke: colour, "stroke-dasharray": "3 4" }), svg("circle", { cx: X(point.intensity), cy: Y(point.giga_per_s), r: 6, fill: colour }), svg("text", { x: X(point.intensity) + 11, y: Y(point.giga_per_s) + 4, class: "strong" }, `${many ? `${point.run.letter} · ` : ""}${point.unit} ${point.giga_per_s.toFixed(1)} G/s`));
  }
  return plot;
}
