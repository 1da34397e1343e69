// Data of a run: compressed parts of this file become typed arrays. Facts and the load of every core are read at once,
// a core's rows when somebody looks at it, operand text when it is asked for.

async function bytesOf(id) {
  const node = document.getElementById(id);
  const text = node.textContent;
  let packed;
  if (Uint8Array.fromBase64) packed = Uint8Array.fromBase64(text);
  else {
    const plain = atob(text);
    packed = new Uint8Array(plain.length);
    for (let i = 0; i < plain.length; i++) packed[i] = plain.charCodeAt(i);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function jsonOf(id) {
  return JSON.parse(new TextDecoder().decode(await bytesOf(id)));
}

const ARRAYS = { u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };

// Arrays end to end, each of `count` numbers and padded to eight bytes.
function arraysOf(buffer, layout, count) {
  const found = {};
  let offset = 0;
  for (const { name, type } of layout) {
    found[name] = new ARRAYS[type](buffer, offset, count);
    offset += Math.ceil((count * ARRAYS[type].BYTES_PER_ELEMENT) / 8) * 8;
  }
  return found;
}

function summed(steps) {
  const whole = new Float64Array(steps.length);
  let sum = 0;
  for (let i = 0; i < steps.length; i++) whole[i] = sum += steps[i];
  return whole;
}

// First index in [low, high) whose value is not below `value`; the part is sorted.
function lowerBound(array, value, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Run {
  static async load(number) {
    const [facts, load] = await Promise.all([jsonOf(`run${number}-facts`), bytesOf(`run${number}-load`)]);
    return new Run(number, facts, new Uint8Array(load));
  }

  // Columns are as long as all rows from the start, so that a row has one number; memory of a core that was never
  // read is never touched.
  constructor(number, facts, load) {
    this.number = number;
    this.facts = facts;
    this.letter = "AB"[number];
    this.load = load;
    for (const { name, type } of facts.columns) this[name] = new ARRAYS[type](facts.rows);
    for (const name of ["start", "end", "reach"]) this[name] = new Float64Array(facts.rows);
    this.done = new Float64Array(facts.rows + 1); // work before each row, for shading where bars are narrower than a pixel
    this.ranges = new Map(facts.ranges.map((range) => [range.core, range]));
    this.segmentsOf = new Map(facts.ranges.map((range) => [range.core, []]));
    for (const segment of facts.segments) this.segmentsOf.get(segment.core).push(segment);
    this.loaded = new Set();
    this.promises = new Map();
    this.texts = new Map();
    this.arrow_from = this.arrow_to = this.arrow_wait = this.arrow_label = new Float64Array(0);
    this.arrowsOut = this.arrowsIn = { order: null, keys: new Float64Array(0) };
    this.arrowTimes = { order: new Float64Array(0), times: new Float64Array(0) };
    this.hits = null;
    this.marked = new Map(); // row -> findings
    facts.findings.forEach((finding, place) => {
      for (const { row } of finding.places) if (row >= 0) this.marked.set(row, [...(this.marked.get(row) || []), place]);
    });
  }

  once(key, made) {
    if (!this.promises.has(key)) this.promises.set(key, made());
    return this.promises.get(key);
  }

  part(name) { return bytesOf(`run${this.number}-${name}`); }

  // Reads a core's rows; at once where they are read already.
  need(core) { return this.once(`core${core}`, () => this.part(`core${core}`).then((buffer) => this.fill(core, buffer))); }

  needAll() { return Promise.all(this.facts.ranges.map(({ core }) => this.need(core))); }

  coreOf(row) { return this.segmentOf(row).core; }

  fill(core, buffer) {
    const { first, past, before, types } = this.ranges.get(core);
    const columns = arraysOf(buffer, this.facts.columns.map(({ name }, place) => ({ name, type: types[place] })), past - first);
    for (const name in columns) this[name].set(columns[name], first);
    const { start, end, reach, done, length, steps } = this;
    done[first] = before;
    for (const segment of this.segmentsOf.get(core)) {
      let time = segment.start - this.facts.origin;
      // ends rise along a lane of work, but not under waits that overlap: there the latest end so far serves the search
      let latest = -Infinity;
      for (let i = segment.first; i < segment.past; i++) {
        start[i] = time += steps[i];
        end[i] = time + length[i];
        reach[i] = latest = Math.max(latest, end[i]);
        done[i + 1] = done[i] + length[i];
      }
    }
    this.loaded.add(core);
  }

  needArrows() {
    return this.once("arrows", () => this.part("arrows").then((buffer) => {
      const found = arraysOf(buffer, this.facts.arrowColumns, this.facts.arrowCount);
      this.arrow_from = summed(found.from);
      this.arrow_to = found.to;
      this.arrow_wait = found.wait;
      this.arrow_label = found.label;
      this.arrowsOut = { order: null, keys: this.arrow_from };
      this.arrowsIn = { order: found.by_target, keys: Float64Array.from(found.by_target, (i) => found.to[i]) };
      this.arrowTimes = { order: found.by_time, times: summed(found.times).map((time) => time - this.facts.origin) };
    }));
  }

  // Lives of the tiles of one core; null where the trace does not say.
  needLives(core) {
    const known = this.facts.lives[core];
    if (!known) return Promise.resolve(null);
    return this.once(`lives${core}`, () => this.part(`lives${core}`).then((buffer) => arraysOf(buffer, this.facts.lifeColumns, known.count)));
  }

  arrowsOf(index, row) {
    const found = [];
    for (let i = lowerBound(index.keys, row, 0, index.keys.length); index.keys[i] === row; i++) found.push(index.order ? index.order[i] : i);
    return found;
  }

  segmentOf(row) {
    // segments lie in the order of their rows
    const { segments } = this.facts;
    let low = 0, high = segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (segments[middle].past <= row) low = middle + 1;
      else high = middle;
    }
    return segments[low];
  }

  nameOf(row) { return this.facts.names[this.name[row]]; }
  opOf(row) { return this.facts.ops[this.op[row]] || ""; }
  frameOf(row) { return this.facts.frames[this.stack[row]] || ""; }

  loadDetails(core) {
    return this.once(`details${core}`, async () => {
      const [texts, numbers] = await Promise.all([this.part(`details${core}`), this.part(`spelled${core}`)]);
      const { first, past, spelled } = this.ranges.get(core);
      const { which } = arraysOf(numbers, [{ name: "which", type: spelled }], past - first);
      this.texts.set(core, { lines: new TextDecoder().decode(texts).split("\n"), which, first });
    });
  }

  detailOf(row) {
    const found = this.texts.get(this.coreOf(row));
    return found ? found.lines[found.which[row - found.first]] : "";
  }

  // The text of a source line; "" where the page does not have it.
  lineText(frame) {
    const [path, line] = splitFrame(frame);
    this.sourceLines ||= new Map();
    if (!this.sourceLines.has(path)) this.sourceLines.set(path, (this.facts.sources[path] || "").split("\n"));
    return this.sourceLines.get(path)[line - 1] || "";
  }

  // Marks rows whose mnemonic, tile op, line, its text or operands contain the words; returns how many.
  async search(words) {
    const sought = words.trim().toLowerCase();
    if (!sought) { this.hits = null; return 0; }
    const mask = new Uint8Array(this.facts.rows);
    const names = this.facts.names.map((name) => name.toLowerCase().includes(sought));
    const ops = this.facts.ops.map((op) => op.toLowerCase().includes(sought));
    // a line, or what stands on it: ops and tiles by the names that the kernel gives them
    const frames = this.facts.frames.map((frame) => frame.toLowerCase().includes(sought) || this.lineText(frame).toLowerCase().includes(sought));
    await this.needAll();
    for (let row = 0; row < mask.length; row++) if (names[this.name[row]] || ops[this.op[row]] || frames[this.stack[row]]) mask[row] = 1;
    for (const { core } of this.facts.ranges) {
      await this.loadDetails(core);
      this.searchText(this.texts.get(core), sought, mask);
    }
    const before = new Uint32Array(mask.length + 1);
    for (let row = 0; row < mask.length; row++) before[row + 1] = before[row] + mask[row];
    this.hits = { mask, before, count: before[mask.length] };
    return this.hits.count;
  }

  searchText(found, sought, mask) {
    const { lines, which, first } = found;
    const has = lines.map((line) => line.toLowerCase().includes(sought));
    if (has.some(Boolean)) for (let i = 0; i < which.length; i++) if (has[which[i]]) mask[first + i] = 1;
  }
}
