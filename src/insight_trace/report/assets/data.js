// Data of a run: compressed parts of this file become typed arrays; operand text is read when first asked for.

async function bytesOf(id) {
  const text = document.getElementById(id).textContent;
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
    const [facts, columns] = await Promise.all([jsonOf(`run${number}-facts`), bytesOf(`run${number}-columns`)]);
    return new Run(number, facts, columns);
  }

  constructor(number, facts, buffer) {
    this.number = number;
    this.facts = facts;
    this.letter = "AB"[number];
    for (const { name, type, count, offset, diff } of facts.layout) {
      const raw = new ARRAYS[type](buffer, offset, count);
      if (!diff) { this[name] = raw; continue; }
      const whole = new Float64Array(count);
      let sum = 0;
      for (let i = 0; i < count; i++) whole[i] = sum += raw[i];
      this[name] = whole;
    }
    const count = facts.rows;
    this.end = new Float64Array(count);
    this.done = new Float64Array(count + 1); // work before each row, for shading where bars are narrower than a pixel
    for (let i = 0; i < count; i++) {
      this.start[i] -= facts.origin;
      this.end[i] = this.start[i] + this.length[i];
      this.done[i + 1] = this.done[i] + this.length[i];
    }
    // Ends rise along a lane of work, but not under waits that overlap: there the latest end so far serves the search.
    this.reach = new Float64Array(count);
    for (const segment of facts.segments) {
      let latest = -Infinity;
      for (let i = segment.first; i < segment.past; i++) this.reach[i] = latest = Math.max(latest, this.end[i]);
    }
    this.arrowsOut = this.indexArrows(this.arrow_from);
    this.arrowsIn = this.indexArrows(this.arrow_to);
    this.hits = null;
  }

  indexArrows(column) {
    const order = new Uint32Array(column.length).map((_, i) => i);
    order.sort((a, b) => column[a] - column[b]);
    return { order, keys: Float64Array.from(order, (i) => column[i]) };
  }

  arrowsOf(index, row) {
    const found = [];
    for (let i = lowerBound(index.keys, row, 0, index.keys.length); index.keys[i] === row; i++) found.push(index.order[i]);
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
  frameOf(row) { return this.facts.frames[this.stack[row]] || ""; }

  async loadDetails() {
    if (!this.detailsPromise) {
      this.detailsPromise = bytesOf(`run${this.number}-details`).then((buffer) => {
        this.text = new TextDecoder().decode(buffer);
        const offsets = new Float64Array(this.facts.rows + 1);
        let at = 0;
        for (let row = 0; row < this.facts.rows; row++) {
          offsets[row] = at;
          at = this.text.indexOf("\n", at) + 1;
        }
        offsets[this.facts.rows] = at;
        this.offsets = offsets;
      });
    }
    return this.detailsPromise;
  }

  detailOf(row) { return this.text ? this.text.slice(this.offsets[row], this.offsets[row + 1] - 1) : ""; }

  // Marks rows whose mnemonic, line or operands contain the words; returns how many.
  async search(words) {
    const sought = words.trim().toLowerCase();
    if (!sought) { this.hits = null; return 0; }
    await this.loadDetails();
    const mask = new Uint8Array(this.facts.rows);
    const names = this.facts.names.map((name) => name.toLowerCase().includes(sought));
    const frames = this.facts.frames.map((frame) => frame.toLowerCase().includes(sought));
    for (let row = 0; row < mask.length; row++) if (names[this.name[row]] || frames[this.stack[row]]) mask[row] = 1;
    if (this.lower === undefined) {
      const lower = this.text.toLowerCase();
      this.lower = lower.length === this.text.length ? lower : this.text; // offsets must stay true
    }
    for (let at = this.lower.indexOf(sought); at >= 0;) {
      const row = lowerBound(this.offsets, at + 1, 0, mask.length + 1) - 1;
      mask[row] = 1;
      at = this.lower.indexOf(sought, this.offsets[row + 1]);
    }
    const before = new Uint32Array(mask.length + 1);
    for (let row = 0; row < mask.length; row++) before[row + 1] = before[row] + mask[row];
    this.hits = { mask, before, count: before[mask.length] };
    return this.hits.count;
  }
}
