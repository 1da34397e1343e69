// Tiles over an on-chip memory: what lies where, from the first write to the last read. Two values on the same bytes are red.

class TileMap {
  constructor(app) {
    this.app = app;
    this.canvas = element("canvas", { role: "img", "aria-label": "Lives of tiles over addresses and time; the table below lists the same tiles" });
    this.cores = element("select", { "aria-label": "Core", onchange: (event) => { this.core = Number(event.target.value); this.show(); } });
    this.choose = element("select", { "aria-label": "Memory of the tiles", onchange: (event) => { this.memory = event.target.value; this.paint(); } });
    this.hint = element("span", {});
    this.table = element("div", {});
    pickBoxes(app, this.canvas, () => this.drawn);
  }

  async show() {
    const { run } = this.app;
    const { facts } = run;
    const used = Object.keys(facts.lives).map(Number);
    if (!used.includes(this.core)) this.core = used.find((core) => facts.coreNames[core] === facts.slowest) ?? used[0];
    this.lives = used.length ? await run.needLives(this.core) : null;
    const names = used.map((core) => element("option", { value: core, selected: core === this.core ? "" : null }, `${facts.coreNames[core]}${facts.lives[core].overlaps ? ` · ${count(facts.lives[core].overlaps)} overlaps` : ""}`));
    this.cores.replaceChildren(...names);
    const memories = [...new Set(Array.from(this.lives?.tile || [], (tile) => facts.tiles[tile].memory))].sort();
    if (!memories.includes(this.memory)) this.memory = memories.includes("UB") ? "UB" : memories[0] || null;
    this.choose.replaceChildren(...memories.map((name) => element("option", { value: name, selected: name === this.memory ? "" : null }, name)));
    $("panel-tiles").replaceChildren(element("div", { class: "source-bar" }, this.cores, this.choose, this.hint), this.canvas, this.table);
    this.list();
    this.paint();
  }

  // The tiles of the core in numbers.
  list() {
    const { run } = this.app;
    const sums = new Map();
    for (let i = 0; this.lives && i < this.lives.tile.length; i++) {
      const tile = this.lives.tile[i];
      const sum = sums.get(tile) || { lives: 0, cycles: 0, over: new Set(), row: this.lives.first[i] };
      sum.lives++;
      sum.cycles += this.lives.length[i];
      if (this.lives.overlap[i] >= 0) { sum.over.add(this.lives.overlap[i]); sum.row = this.lives.first[i]; }
      sums.set(tile, sum);
    }
    const order = [...sums].sort(([a], [b]) => run.facts.tiles[a].memory.localeCompare(run.facts.tiles[b].memory) || run.facts.tiles[a].address - run.facts.tiles[b].address);
    const rows = order.map(([number, sum]) => {
      const tile = run.facts.tiles[number];
      const over = [...sum.over].map((other) => run.facts.tiles[other].name).join(", ");
      return {
        pick: sum.row >= 0 ? { row: sum.row } : null,
        cells: [tile.name, tile.memory, `0x${tile.address.toString(16)}`, bytesText(tile.bytes), tile.shape, count(sum.lives), count(sum.cycles), over ? [element("b", { class: "worse" }, `overwritten by ${over}`)] : ""],
      };
    });
    this.table.replaceChildren(grid(["Tile", "Memory", "#Address", "#Size", "Shape", "#Lives", "#Cycles alive", "Overlap"], rows, ({ row }) => this.app.pick({ run, row }, true)));
  }

  paint() {
    if ($("panel-tiles").hidden || !this.lives) return;
    const { run, timeline } = this.app;
    const { facts } = run;
    const mine = [];
    let high = 1024;
    let used = 0;
    for (let i = 0; i < this.lives.tile.length; i++) {
      const tile = facts.tiles[this.lives.tile[i]];
      if (tile.memory !== this.memory) continue;
      high = Math.max(high, tile.address + tile.bytes);
      const begin = this.lives.begin[i] - facts.origin;
      if (begin <= timeline.t1 && begin + this.lives.length[i] >= timeline.t0) mine.push(i);
    }
    used = high;
    mine.sort((a, b) => (this.lives.overlap[a] >= 0) - (this.lives.overlap[b] >= 0)); // overlaps lie on top
    const size = facts.roofs.memories[this.memory] || 0;
    high = Math.min(high * 1.05, Math.max(size, high));
    this.hint.textContent = `The window of the timeline: ${bytesText(used)} of ${size ? bytesText(size) : this.memory} are in use. A box is a value, from its first write to its last read. Red: written over while it is still to be read.`;
    const { context, left, X, Y, close } = addressPlot(this.canvas, timeline, high);
    this.drawn = [];
    const colours = [theme.pipes.mte2, theme.pipes.vector, theme.pipes.mte3, theme.pipes.fixpipe, theme.pipes.mte1];
    for (const i of mine) {
      const tile = facts.tiles[this.lives.tile[i]];
      const begin = this.lives.begin[i] - facts.origin;
      const x = X(begin), w = Math.max(1.5, X(begin + this.lives.length[i]) - x);
      const y = Y(tile.address), h = Math.max(3, Y(tile.address + tile.bytes) - y - 1);
      const over = this.lives.overlap[i] >= 0;
      context.fillStyle = over ? theme.bad : colours[this.lives.tile[i] % colours.length];
      context.globalAlpha = over ? 0.6 : this.lives.written[i] ? 0.45 : 0.18;
      context.fillRect(x, y, w, h);
      context.globalAlpha = 1;
      if (w > 3) { context.strokeStyle = context.fillStyle; context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1); }
      if (w > 36 && h > 9) {
        context.fillStyle = theme.text;
        context.save();
        context.beginPath();
        context.rect(x, y, w - 2, h);
        context.clip();
        context.fillText(tile.name, Math.max(x, left) + 4, y + Math.min(h / 2, 10));
        context.restore();
      }
      if (this.lives.first[i] >= 0) this.drawn.push([x, y, w, h, this.lives.first[i]]);
    }
    close();
  }
}
