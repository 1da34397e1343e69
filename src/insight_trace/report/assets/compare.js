// Two runs: what changed, by pipe, instruction and line.

function changeCells(change) {
  const side = change.delta < 0 ? "better" : change.delta > 0 ? "worse" : "";
  const share = change.before ? `${change.delta >= 0 ? "+" : "−"}${((100 * Math.abs(change.delta)) / change.before).toFixed(1)} %` : change.after ? "new" : "";
  const executed = change.count_before === change.count_after ? count(change.count_before) : `${count(change.count_before)} → ${count(change.count_after)}`;
  return [count(change.before), count(change.after), [element("span", { class: side }, `${change.delta > 0 ? "+" : change.delta < 0 ? "−" : ""}${count(Math.abs(change.delta))}`)], [element("span", { class: side }, change.delta ? share : "=")], executed];
}

function placesOf(comparison) {
  const parts = [];
  for (const [word, places] of Object.entries(comparison.places)) {
    if (!places.length) continue;
    const rows = places.map((place) => ({ cells: [[dot(place.pipe), place.name], place.pipe, place.core, count(place.start), shortFrame(place.frame)] }));
    const total = comparison[word];
    const title = `${word[0].toUpperCase()}${word.slice(1)}: ${count(total)}${total > places.length ? `, the first ${places.length} of them` : ""}`;
    parts.push(element("details", { style: "margin-top:12px" }, element("summary", {}, title), grid(["Instruction", "Pipe", "Core", "#Start", "Line"], rows)));
  }
  return parts;
}

// Rows of two files side by side: [line of A, line of B, changed], 0 where a side has none.
function pairedLines(blocks) {
  const rows = [];
  for (const [what, a0, a1, b0, b1] of blocks) {
    for (let i = 0; i < Math.max(a1 - a0, b1 - b0); i++) rows.push([a0 + i < a1 ? a0 + i + 1 : 0, b0 + i < b1 ? b0 + i + 1 : 0, what !== "equal"]);
  }
  return rows;
}

const AROUND = 3; // lines around what changed, in text or in cycles

function sideBySide(diff, runs) {
  const texts = [diff.before, diff.after].map((path, number) => (runs[number].facts.sources[path] || "").split("\n"));
  const costs = [diff.before, diff.after].map((path, number) => runs[number].facts.lines[path] || {});
  const spent = (side, line) => { const [work, waits] = costs[side][line] || [0, 0]; return work + waits; };
  const rows = pairedLines(diff.blocks);
  const most = Math.max(1, ...rows.map(([a, b]) => Math.max(spent(0, a), spent(1, b))));
  const near = new Uint8Array(rows.length);
  rows.forEach(([a, b, changed], index) => {
    if (changed || spent(0, a) !== spent(1, b)) near.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
  });
  const box = element("div", { class: "source pair mono", "data-file": shortFrame(diff.after) });
  box.append(element("div", { class: "row head" }, ...["A: cycles", "line", shortFrame(diff.before), "B: cycles", "change", "line", shortFrame(diff.after)].map((word) => element("span", {}, word))));
  let skipped = 0;
  const rest = () => { if (skipped) box.append(element("div", { class: "row skip-lines" }, `${count(skipped)} ${skipped === 1 ? "line" : "lines"} alike in text and cycles`)); skipped = 0; };
  rows.forEach(([a, b, changed], index) => {
    if (!near[index]) { skipped++; return; }
    rest();
    const [before, after] = [spent(0, a), spent(1, b)];
    const cell = (value) => element("span", { class: "cell" }, value ? element("i", { style: `width:${Math.round((100 * value) / most)}%;background:var(--pipe-cube)` }) : null, element("b", {}, value ? count(value) : ""));
    const delta = after - before;
    const words = delta ? `${delta > 0 ? "+" : "−"}${count(Math.abs(delta))}` : "";
    box.append(element("div", { class: changed ? "row changed" : "row" },
      cell(before), element("span", { class: "no" }, a ? String(a) : ""), element("span", { class: a ? "" : "none" }, ...coloured(a ? texts[0][a - 1] : "")),
      cell(after), element("span", { class: `cell ${delta < 0 ? "better" : delta > 0 ? "worse" : ""}` }, words), element("span", { class: "no" }, b ? String(b) : ""), element("span", { class: b ? "" : "none" }, ...coloured(b ? texts[1][b - 1] : ""))));
  });
  rest();
  return box;
}

function sourcePanels(comparison, runs) {
  const shown = comparison.sources.filter((diff) => [diff.before, diff.after].every((path, number) => runs[number].facts.lines[path]));
  const parts = shown.map((diff) => sideBySide(diff, runs));
  return parts.length ? [element("h2", { style: "margin-top:16px" }, "Source, line by line"), ...parts] : [];
}

function paintCompare(comparison, app) {
  const head = ["#Before", "#After", "#Change", "#", "#Executed"];
  const pipes = comparison.pipes.map((change) => ({ cells: [[dot(change.what), change.what], change.where, ...changeCells(change)] }));
  const changed = comparison.instructions.filter((change) => change.delta || change.count_before !== change.count_after).slice(0, 40);
  const instructions = changed.map((change) => ({ pick: change.what, cells: [[dot(change.where), change.what], change.where, ...changeCells(change)] }));
  const lines = comparison.lines.filter((change) => change.delta).slice(0, 40).map((change) => ({ pick: change.what, cells: [change.what, ...changeCells(change)] }));
  const fidelity = comparison.fidelity;
  const words = fidelity.instructions
    ? `Matched instructions differ by ${(100 * fidelity.mean_error).toFixed(1)} % on average${fidelity.correlation === null ? "" : `; their durations correlate with r = ${fidelity.correlation.toFixed(3)}`}.`
    : "No instruction of one run is in the other.";
  $("panel-compare").replaceChildren(
    ...(comparison.reason ? [element("p", { class: "reason" }, element("b", {}, comparison.reason))] : []),
    element("p", {}, words),
    element("h2", {}, "Busy cycles by pipe"), grid(["Pipe", "Core", ...head], pipes),
    ...sourcePanels(comparison, app.runs),
    ...placesOf(comparison),
    element("div", { class: "two", style: "margin-top:16px" },
      element("div", {}, element("h2", {}, "Instructions"), grid(["Instruction", "Pipe", ...head], instructions, (name) => app.search(name))),
      element("div", {}, element("h2", {}, "Lines"), lines.length ? grid(["Line", ...head], lines, (line) => app.search(line)) : element("p", {}, "No line costs more or less than before."))),
  );
}
