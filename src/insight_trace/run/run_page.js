// A run on a chip: what it is bound by, its kernels, and every core over time.

const data = JSON.parse($("data").textContent);
const PALETTE = ["mte2", "cube", "vector", "mte3", "fixpipe", "mte1", "other", "scalar"];
const variable = (number) => `var(--pipe-${PALETTE[number % PALETTE.length]})`;
const time = (cycles) => micros(cycles, data.mhz);
const swatch = (number, words) => element("span", {}, element("i", { style: `background:${variable(number)}` }), words);

function paintSummary() {
  const kpi = (value, words, small) => element("div", { class: small ? "kpi small" : "kpi" }, element("b", {}, value), element("span", {}, words));
  const [amount, unit] = time(data.cycles).split(" ");
  $("kpis").replaceChildren(
    kpi(amount, `${unit} on ${data.chip}`), kpi(count(data.cycles), "cycles", true), kpi(count(data.dispatches), `dispatches, ${count(data.distinct)} distinct`, true),
    ...Object.entries(data.occupancy).map(([who, share]) => kpi(`${(100 * share).toFixed(1)} %`, `${who} busy`, true)));
  const drawn = data.bars.length < data.all ? ` · the ${count(data.bars.length)} longest of ${count(data.all)} are drawn below, timeline.json has all` : "";
  $("bound").replaceChildren(element("b", {}, data.bound), drawn);
  const parts = Object.entries(data.path).sort(([, a], [, b]) => b - a);
  $("path").replaceChildren(...parts.map(([what, cycles], number) => element("i", { style: `flex:${cycles};background:${variable(number)}`, title: `${what}: ${time(cycles)}, ${percent(cycles, data.cycles)}` })));
  $("path-legend").replaceChildren(...parts.map(([what, cycles], number) => swatch(number, `${what} ${percent(cycles, data.cycles)}`)));
}

function paintKernels() {
  const head = ["Kernel", "#Dispatches", "#Distinct", "#Least", "#Median", "#Most", "#Of the path", "", "Bound by", "Verified", "#Run without it"];
  const rows = data.kernels.map((kernel, number) => ({
    pick: String(number + 1), // a row that is picked has a name
    cells: [[element("span", { class: "dot", style: `background:${variable(number)}` }), kernel.name], count(kernel.dispatches), kernel.distinct ? count(kernel.distinct) : "", count(kernel.least), count(kernel.median), count(kernel.most),
      percent(kernel.path_share, 1), [element("span", { class: "heat", style: `width:${Math.round(90 * kernel.path_share)}px` })], kernel.bound, kernel.verified, kernel.without === null ? "" : time(kernel.without)],
  }));
  $("kernels").replaceChildren(grid(head, rows, (number) => answer(data.kernels[number - 1].slowest, number - 1)));
  $("kernel-legend").replaceChildren(...data.kernels.map((kernel, number) => swatch(number, kernel.name)));
  const idle = data.names.length - used.length;
  $("idle").textContent = idle ? `${count(idle)} of ${count(data.names.length)} cores ran nothing` : "";
}

function answer(task, number) {
  const kernel = data.kernels[number];
  const bar = data.bars.find((one) => one[4] === task);
  const facts = bar ? [["core", data.names[bar[0]]], ["start", time(bar[1])], ["lasts", `${count(bar[2] - bar[1])} cycles, ${time(bar[2] - bar[1])}`]] : [];
  const link = data.replayed[task];
  const words = `insight-trace replay ${data.scene} --case ${data.case} --func-id ${kernel.func_ids.join(",")} --task-id ${data.ids[task] || kernel.slowest_task_id}`;
  $("answer").replaceChildren(
    element("h3", {}, `${kernel.name}, task ${task}`),
    element("dl", {}, ...facts.flatMap(([what, value]) => [element("dt", {}, what), element("dd", {}, value)])),
    element("h4", {}, "Its instructions"), element("code", {}, words),
    ...(link ? [element("a", { class: "jump", href: link }, "its Insight directory")] : []));
  chosen = task;
  draw();
}

// Cores that ran nothing take no room.
const used = [...new Set(data.bars.map((bar) => bar[0]))].sort((a, b) => a - b);
const rowOf = new Map(used.map((core, row) => [core, row]));
const canvas = $("cores"), ROW = 14, LEFT = 72, AXIS = 22;
let from = 0, to = data.cycles, chosen = -1, held = null;

function draw() {
  const width = canvas.clientWidth || 900, height = AXIS + used.length * ROW;
  canvas.style.height = `${height}px`;
  const context = sharpen(canvas, width, height);
  const X = (cycle) => LEFT + ((cycle - from) / (to - from)) * (width - LEFT);
  context.clearRect(0, 0, width, height);
  context.font = "11px ui-monospace, monospace";
  context.textBaseline = "middle";
  const step = niceStep((to - from) / data.mhz, 8) * data.mhz;
  for (let tick = Math.ceil(from / step) * step; tick < to; tick += step) {
    context.fillStyle = theme.line;
    context.fillRect(Math.round(X(tick)), AXIS - 6, 1, height);
    context.fillStyle = theme.dim;
    context.fillText(`${Number((tick / data.mhz).toPrecision(6))} µs`, X(tick) + 3, 8);
  }
  used.forEach((core, row) => {
    context.fillStyle = row % 2 ? theme.card : theme.soft;
    context.fillRect(0, AXIS + row * ROW, LEFT - 4, ROW);
    context.fillStyle = theme.dim;
    context.fillText(data.names[core], 6, AXIS + row * ROW + ROW / 2);
  });
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, width, height);
  context.clip();
  for (const [core, start, end, number, task] of data.bars) {
    if (end < from || start > to) continue;
    const x = X(start), wide = Math.max(1, X(end) - x), y = AXIS + rowOf.get(core) * ROW + 1;
    context.fillStyle = theme.pipes[PALETTE[number % PALETTE.length]];
    context.fillRect(x, y, wide, ROW - 2);
    if (task === chosen) { context.strokeStyle = theme.text; context.lineWidth = 2; context.strokeRect(x, y, wide, ROW - 2); }
    const name = data.kernels[number].name;
    if (wide > 8 + 7 * name.length) { context.fillStyle = theme.onPipe; context.fillText(name, x + 4, y + ROW / 2 - 1); }
  }
  context.restore();
}

function zoom(factor, at = (from + to) / 2) {
  const least = Math.max(1, data.cycles / 1e6);
  if (factor < 1 && to - from <= least) return;
  from = Math.max(0, at - (at - from) * factor);
  to = Math.min(data.cycles, at + (to - at) * factor);
  draw();
}

function cycleAt(event) { return from + (Math.max(0, event.offsetX - LEFT) / (canvas.clientWidth - LEFT)) * (to - from); }

function listen() {
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, cycleAt(event)); }, { passive: false });
  canvas.addEventListener("mousedown", (event) => { held = { x: event.offsetX, from, to, moved: false }; });
  canvas.addEventListener("mousemove", (event) => {
    if (!held || !event.buttons) return;
    held.moved ||= Math.abs(event.offsetX - held.x) > 3;
    const by = ((held.x - event.offsetX) / (canvas.clientWidth - LEFT)) * (held.to - held.from);
    const shift = Math.max(-held.from, Math.min(data.cycles - held.to, by));
    [from, to] = [held.from + shift, held.to + shift];
    draw();
  });
  canvas.addEventListener("mouseup", (event) => {
    const moved = held?.moved;
    held = null;
    if (moved) return;
    const at = cycleAt(event), core = used[Math.floor((event.offsetY - AXIS) / ROW)];
    const bar = data.bars.find((one) => one[0] === core && one[1] <= at && at <= one[2]);
    if (bar) answer(bar[4], bar[3]);
  });
  canvas.addEventListener("keydown", (event) => { const action = { "+": 0.7, "-": 1 / 0.7 }[event.key]; if (action) zoom(action); });
  $("zoom-in").addEventListener("click", () => zoom(0.5));
  $("zoom-out").addEventListener("click", () => zoom(2));
  $("fit").addEventListener("click", () => { [from, to] = [0, data.cycles]; draw(); });
  $("theme").addEventListener("click", () => { setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); draw(); });
  addEventListener("keydown", (event) => { if (event.key.toLowerCase() === "t" && !event.ctrlKey && !event.metaKey) $("theme").click(); });
  addEventListener("resize", draw);
}

setTheme(firstTheme());
paintSummary();
paintKernels();
listen();
draw();
document.documentElement.dataset.ready = "1";
