// On-chip memory over the window of the timeline: which addresses each instruction reads and writes, as far as its
// operands say.

const FIELD = /(?:^|,)(X[DNMT]):(?:X\d+=)?(0x[0-9a-fA-F]+|\d+)/g;
const WORDS = /(?:^|,)(Src|Dst|M|K|N|local|bytes|repeat|dtype):([A-Za-z0-9]+)/g;
const MOST_ACCESSES = 6000;

function fieldsOf(detail) {
  const fields = {};
  for (const [, name, value] of detail.matchAll(FIELD)) fields[name] = value;
  for (const [, name, value] of detail.matchAll(WORDS)) fields[name] = value;
  return fields;
}

// Which memory is read and which is written where the operands do not say: the mnemonic does, or else the pipe.
function memoriesOf(pipe, name, cube) {
  const named = name.match(/(OUT|GM|UB|L1|L0A|L0B|L0C)_TO_(OUT|GM|UB|L1|L0A|L0B|L0C|BT|FB)/);
  if (named) return [named[1], named[2]].map((memory) => (memory === "GM" ? "OUT" : memory));
  if (pipe === "MTE2") return ["OUT", cube ? "L1" : "UB"];
  if (pipe === "MTE3") return [cube ? "L1" : "UB", "OUT"];
  if (pipe === "MTE1") return ["L1", "L0A"];
  if (pipe === "FIXPIPE") return ["L0C", "L1"];
  return ["UB", "UB"];
}

// [memory, address, bytes, writes] of one instruction. Addresses are the values of XD (written), XN and XM (read), or
// `local` of a move to or from global memory.
function accessesOf(run, row, pipe) {
  const fields = fieldsOf(run.detailOf(row));
  const address = (name) => (fields[name] === undefined ? null : Number(fields[name]));
  const found = [];
  const add = (memory, at, bytes, writes) => { if (at !== null && memory && memory !== "OUT" && bytes > 0) found.push([memory, at, bytes, writes]); };
  const cube = run.facts.coreNames[run.segmentOf(row).core].includes("cube");
  const [from, to] = memoriesOf(pipe, run.nameOf(row), cube);
  if (fields.local !== undefined) {
    const bytes = run.bytes[row] || Number(fields.bytes || 0);
    if (from === "OUT") add(to, address("local"), bytes, true);
    else add(from, address("local"), bytes, false);
  } else if (fields.bytes !== undefined && fields.XD !== undefined && !fields.Src) {
    add(to, address("XD"), Number(fields.bytes), true);
    add(from, address("XN"), Number(fields.bytes), false);
  } else if (fields.Src || fields.Dst) {
    const bytes = run.bytes[row] || 512;
    add(fields.Dst, address("XD"), bytes, true);
    add(fields.Src, address("XN"), bytes, false);
  } else if (pipe === "CUBE") {
    const [m, k, n] = ["M", "K", "N"].map((name) => Number(fields[name] || 16));
    add("L0C", address("XD"), m * n * 4, true);
    const each = Number((fields.dtype || "F16").replace(/\D/g, "") || 16) / 8; // bytes of a factor
    add("L0A", address("XN"), m * k * each, false);
    add("L0B", address("XM"), k * n * each, false);
  } else if (pipe === "VECTOR" && (fields.XT || fields.repeat)) {
    const bytes = fields.repeat ? Number(fields.repeat) * 256 : Number(BigInt(fields.XT) >> 56n) * 256;
    add("UB", address("XD"), bytes, true);
    add("UB", address("XN"), bytes, false);
    // the second operand of the forms with a scalar is its value, not a place
    if (fields.repeat || !/S$/.test(run.nameOf(row))) add("UB", address("XM"), bytes, false);
  }
  return found;
}

class MemoryMap {
  constructor(app) {
    this.app = app;
    this.memory = null;
    this.canvas = element("canvas", { role: "img", "aria-label": "Memory map" });
    this.choose = element("select", { "aria-label": "Memory", onchange: (event) => { this.memory = event.target.value; this.paint(); } });
    this.cores = element("select", { "aria-label": "Core", onchange: (event) => { this.core = Number(event.target.value); this.show(); } });
    this.hint = element("span", {});
    pickBoxes(app, this.canvas, () => this.drawn);
  }

  async show() {
    const { run } = this.app;
    const names = run.facts.coreNames;
    const used = run.facts.ranges.map(({ core }) => core);
    if (!used.includes(this.core)) this.core = used.find((core) => names[core] === run.facts.slowest) ?? used[0];
    if (used.length) await Promise.all([run.need(this.core), run.loadDetails(this.core)]);
    this.cores.replaceChildren(...used.map((core) => element("option", { value: core, selected: core === this.core ? "" : null }, names[core])));
    $("panel-memory").replaceChildren(element("div", { class: "source-bar" }, this.cores, this.choose, this.hint), this.canvas);
    this.paint();
  }

  collect() {
    const { run, timeline } = this.app;
    const found = [];
    let left = MOST_ACCESSES;
    for (const segment of run.facts.segments) {
      if (segment.core !== this.core || segment.wait) continue;
      const first = lowerBound(run.reach, timeline.t0, segment.first, segment.past);
      const past = lowerBound(run.start, timeline.t1, first, segment.past);
      for (let row = first; row < past && left > 0; row++, left--) {
        for (const [memory, address, bytes, writes] of accessesOf(run, row, segment.pipe)) found.push({ memory, address, bytes, writes, row, pipe: segment.pipe });
      }
    }
    return { found, cut: left <= 0 };
  }

  paint() {
    if ($("panel-memory").hidden) return;
    const { run, timeline } = this.app;
    const { found, cut } = this.collect();
    const memories = [...new Set([...found.map((access) => access.memory), ...(this.memory ? [this.memory] : [])])].sort();
    if (!this.memory) this.memory = memories.includes("UB") ? "UB" : memories[0] || null;
    this.choose.replaceChildren(...memories.map((name) => element("option", { value: name, selected: name === this.memory ? "" : null }, name)));
    const size = run.facts.roofs.memories[this.memory] || 0;
    const mine = found.filter((access) => access.memory === this.memory && (!size || access.address < size * 2));
    this.hint.textContent = !found.length ? "No operand in this window names an on-chip address." : cut ? "Zoom in on the timeline to see every access." : "The window of the timeline. Filled: written. Light: read. Red: bank conflicts.";
    let high = 1024;
    for (const access of mine) high = Math.max(high, access.address + access.bytes);
    high = Math.min(Math.max(high * 1.05, 1024), Math.max(size, high));
    const { context, left, X, Y, close } = addressPlot(this.canvas, timeline, high);
    for (const tile of run.facts.tiles) {
      if (tile.memory !== this.memory || tile.address > high) continue;
      context.fillStyle = theme.dim;
      context.fillText(tile.name, left + 4, Y(tile.address) + 8);
    }
    this.drawn = [];
    for (const writes of [false, true]) {
      for (const access of mine) {
        if (access.writes !== writes) continue;
        const x = X(run.start[access.row]), w = Math.max(1.5, X(run.end[access.row]) - x);
        const y = Y(access.address), h = Math.max(2, Y(access.address + access.bytes) - y);
        context.globalAlpha = writes ? 0.85 : 0.3;
        context.fillStyle = theme.pipe(access.pipe);
        context.fillRect(x, y, w, h);
        context.globalAlpha = 1;
        if (run.read[access.row] > 0 || run.write[access.row] > 0) {
          context.strokeStyle = theme.bad;
          context.lineWidth = 1.5;
          context.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 1.5), Math.max(1, h - 1.5));
        }
        if (timeline.selected && timeline.selected.run === run && timeline.selected.row === access.row) {
          context.strokeStyle = theme.text;
          context.lineWidth = 2;
          context.strokeRect(x, y, w, h);
        }
        this.drawn.push([x, y, w, h, access.row]);
      }
    }
    close();
  }
}
