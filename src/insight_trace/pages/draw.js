// Words and colours that all parts share.

const $ = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const count = (value) => Math.round(value).toLocaleString("en-US");
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "-");

function micros(cycles, mhz) {
  const value = cycles / mhz;
  return value >= 1000 ? `${(value / 1000).toFixed(3)} ms` : value >= 1 ? `${value.toFixed(3)} µs` : `${(value * 1000).toFixed(1)} ns`;
}

function bytesText(value) {
  return value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(2)} MiB` : value >= 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${value} B`;
}

function shortFrame(frame) {
  return frame.replaceAll("\\", "/").split("/").pop();
}

function splitFrame(frame) {
  const at = frame.lastIndexOf(":");
  const line = Number(frame.slice(at + 1));
  return at > 0 && Number.isInteger(line) ? [frame.slice(0, at), line] : [frame, 0];
}

const PIPE_KEYS = { MTE2: "mte2", MTE1: "mte1", CUBE: "cube", VECTOR: "vector", FIXPIPE: "fixpipe", MTE3: "mte3", SCALAR: "scalar", SCALARLDST: "scalar" };

// Colours come from the style sheet, so that a theme is one thing. Read again when the theme changes.
const theme = {
  read() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    for (const name of ["page", "card", "line", "soft", "text", "dim", "faint", "accent", "hit", "bad", "warn"]) this[name] = get(`--${name}`);
    this.onPipe = get("--on-pipe");
    this.pipes = {};
    for (const key of new Set([...Object.values(PIPE_KEYS), "other"])) this.pipes[key] = get(`--pipe-${key}`);
  },
  severity(name) { return name === "error" ? this.bad : name === "warning" ? this.warn : this.accent; },
  pipe(name) { return this.pipes[PIPE_KEYS[name] || "other"]; },
};

// What was chosen before, else what the system prefers. A page from disk may have no storage.
function firstTheme() {
  try {
    const kept = localStorage.getItem("insight-trace-theme");
    if (kept) return kept;
  } catch { /* no storage */ }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("insight-trace-theme", name); } catch { /* no storage */ }
  theme.read();
}

function rgb(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }

function pipeVariable(name) { return `var(--pipe-${PIPE_KEYS[name] || "other"})`; }

function dot(pipe) { return element("span", { class: "dot", style: `background:${pipeVariable(pipe)}` }); }

// A step of 1, 2 or 5 times a power of ten, so that about `wanted` of them fit.
function niceStep(span, wanted) {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  return Math.max(step, 1e-9);
}

// A canvas at the resolution of the screen; drawing stays in CSS pixels.
function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// Addresses from top to bottom over the window of the timeline: the lines and numbers of both axes. What is drawn between
// this and `close` stays inside of them.
function addressPlot(canvas, timeline, high) {
  const width = canvas.clientWidth || 900, height = 380, left = 84;
  const context = sharpen(canvas, width, height);
  const plot = {
    context, left,
    X: (time) => left + ((time - timeline.t0) / (timeline.t1 - timeline.t0)) * (width - left - 10),
    Y: (address) => 10 + (address / high) * (height - 34),
    close() {
      context.restore();
      const ticks = niceStep(timeline.t1 - timeline.t0, 8);
      context.fillStyle = theme.dim;
      for (let tick = Math.ceil(timeline.t0 / ticks) * ticks; tick < timeline.t1; tick += ticks) context.fillText(count(tick || 0), plot.X(tick) + 2, height - 10);
    },
  };
  context.clearRect(0, 0, width, height);
  context.font = "11px ui-monospace, monospace";
  context.textBaseline = "middle";
  const step = 2 ** Math.ceil(Math.log2(high / 8));
  for (let address = 0; address <= high; address += step) {
    context.fillStyle = theme.line;
    context.fillRect(left, Math.round(plot.Y(address)), width - left - 10, 1);
    context.fillStyle = theme.dim;
    context.fillText(`${address / 1024} KiB`, 8, plot.Y(address));
  }
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left - 10, height - 20);
  context.clip();
  return plot;
}

// A click on a canvas whose boxes are [x, y, width, height, row] picks the topmost one's row.
function pickBoxes(app, canvas, boxes) {
  canvas.addEventListener("click", (event) => {
    const found = boxes()?.findLast(([x, y, w, h]) => event.offsetX >= x && event.offsetX <= x + Math.max(3, w) && event.offsetY >= y && event.offsetY <= y + Math.max(3, h));
    if (found) app.pick({ run: app.run, row: found[4] }, false);
  });
}

function grid(head, rows, onpick) {
  const numeric = head.map((cell) => cell.startsWith("#"));
  const table = element("table", { class: "grid" });
  table.append(element("thead", {}, element("tr", {}, ...head.map((cell, i) => element("th", { class: numeric[i] ? "num" : null }, cell.replace("#", ""))))));
  const body = element("tbody");
  for (const row of rows) {
    const go = () => onpick(row.pick);
    const keys = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); go(); } };
    const line = element("tr", onpick && row.pick ? { class: "linked", tabindex: "0", onclick: go, onkeydown: keys } : {});
    row.cells.forEach((cell, i) => line.append(element("td", { class: numeric[i] ? "num" : null }, ...(Array.isArray(cell) ? cell : [cell]))));
    body.append(line);
  }
  table.append(body);
  return table;
}
