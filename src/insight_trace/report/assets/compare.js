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
    ...placesOf(comparison),
    element("div", { class: "two", style: "margin-top:16px" },
      element("div", {}, element("h2", {}, "Instructions"), grid(["Instruction", "Pipe", ...head], instructions, (name) => app.search(name))),
      element("div", {}, element("h2", {}, "Lines"), lines.length ? grid(["Line", ...head], lines, (line) => app.search(line)) : element("p", {}, "No line costs more or less than before."))),
  );
}
