// The summary above the timeline, the detail beside it, and the tables below.

function paintSummary(runs, comparison) {
  const facts = runs[0].facts;
  $("title").textContent = runs.map((run) => (runs.length > 1 ? `${run.letter}: ` : "") + run.facts.title).join(" · ");
  $("title").title = $("title").textContent;
  const kpis = [];
  const kpi = (value, unit, small, extra) => kpis.push(element("div", { class: small ? "kpi small" : "kpi", title: HELP[unit.split(" ").slice(0, 2).join(" ")] || HELP[unit] || null }, element("b", {}, value), element("span", {}, unit), extra));
  if (comparison) {
    const { before, after, delta } = comparison.total;
    const side = delta < 0 ? "better" : delta > 0 ? "worse" : "";
    kpi(`${count(before)} → ${count(after)}`, "cycles", false, element("span", { class: `delta ${side}` }, delta === 0 ? "the same" : `${delta > 0 ? "+" : "−"}${percent(Math.abs(delta), before)}`));
    kpi(`${count(comparison.matched)}`, "matched", true);
    kpi(`${count(comparison.added)} / ${count(comparison.removed)} / ${count(comparison.moved)}`, "added / removed / moved", true);
  } else {
    kpi(count(facts.cycles), "cycles");
    kpi(micros(facts.cycles, facts.mhz).split(" ")[0], `${micros(facts.cycles, facts.mhz).split(" ")[1]} at ${facts.mhz} MHz${facts.soc ? ` · ${facts.soc}` : ""}`);
    kpi(count(facts.instructions), "instructions", true);
    kpi(String(facts.cores.length), facts.cores.length === 1 ? "core" : "cores", true);
    for (const [share, what, why] of speedOfLight(facts)) kpis.push(element("div", { class: "kpi small light", title: why }, element("b", {}, `${Math.round(100 * share)} %`), element("span", {}, what)));
    const wrong = facts.checks.filter((check) => check.status === "mismatch");
    if (facts.checks.length && !wrong.length) kpi(`${facts.checks.length}`, facts.checks.length === 1 ? "output compared" : "outputs compared", true);
    $("wrong").replaceChildren(...(wrong.length ? [element("p", {}, element("b", {}, `${wrong.length} of ${facts.checks.length} ${facts.checks.length === 1 ? "output is" : "outputs are"} wrong`), " · which line made the first wrong element: ", element("code", {}, `insight-trace why ${facts.workspace || "WORKSPACE"} --first-mismatch`))] : []));
    if (facts.memory?.asked) kpi(percent(facts.memory.hits, facts.memory.asked), `of ${bytesText(facts.memory.asked)} found in L2`, true);
    if (facts.launch?.around) kpi(micros(facts.launch.around + facts.cycles, facts.mhz), "with the launch around it", true);
    const vector = facts.pipes.filter((pipe) => pipe.pipe === "VECTOR").reduce((sum, pipe) => sum + pipe.busy, 0);
    if (facts.conflictCycles) kpi(percent(facts.conflictCycles, Math.max(vector, facts.conflictCycles)), `of the vector unit's time are bank conflicts (${count(facts.conflictCycles)} cycles)`, true);
    if (facts.cacheMisses) kpi(count(facts.cacheMisses), "instruction cache misses", true);
  }
  $("kpis").replaceChildren(...kpis);
  paintTrust(runs);
  const notes = [...runs.flatMap((run) => run.facts.notes), ...(comparison ? comparison.notes : [])];
  $("notes").replaceChildren(...notes.map((note) => element("p", {}, note)));
}

// What a number means, for those who point at it.
const HELP = {
  cycles: "From the first start to the last end, on the core's clock",
  instructions: "Executed, on all cores",
  "of the": "Cycles that operands in the same banks of the unified buffer added, of the cycles in which the vector unit worked",
  "with the": "From the launch to the end, with what the runtime does around the kernel",
};

// How near the run comes to the roofs of the chip: [share, what, what it means].
function speedOfLight(facts) {
  const found = [];
  for (const item of facts.arithmetic) found.push([item.giga_per_s / item.roof_giga_per_s, `of the ${item.unit} roof`, `${item.giga_per_s.toFixed(1)} of ${item.roof_giga_per_s.toFixed(1)} G operations a second that the ${item.unit} units of the cores that ran can do (${facts.roofs.chip})`]);
  const moved = facts.traffic.filter((item) => item.roof_gb_per_s);
  if (moved.length && facts.cycles) {
    // of all cores together, over the whole run
    const cores = Math.max(1, facts.cores.length);
    const shares = moved.map((item) => [(item.bytes * facts.mhz) / 1000 / facts.cycles / (item.roof_gb_per_s * cores), item]);
    const [share, item] = shares.reduce((a, b) => (a[0] >= b[0] ? a : b));
    found.push([share, "of the memory roof", `${item.path.replace("_TO_", "→")} carries ${((item.bytes * facts.mhz) / 1000 / facts.cycles).toFixed(1)} GB/s over the whole run; one core's path carries ${item.roof_gb_per_s} at most, and ${cores} ran (${facts.roofs.chip})`]);
  }
  return found.filter(([share]) => share > 0);
}

// How far the totals can be trusted, where the runs say so.
function paintTrust(runs) {
  const lines = runs.map(({ facts, letter }) => {
    const parts = [];
    if (facts.expected_cycles) parts.push(`${count(facts.expected_cycles.low)} to ${count(facts.expected_cycles.high)} cycles on a chip (90 % interval)`);
    if (facts.estimates) parts.push(`${(100 * facts.estimates.share).toFixed(0)} % of the time rests on estimates`);
    const told = (facts.estimates?.numbers || []).map((one) => `${one.parameter}: ${count(one.cycles)} cycles of ${count(one.instructions)} instructions (${one.source})`);
    return parts.length ? element("p", { title: told.join("\n") || null }, (runs.length > 1 ? `${letter}: ` : "") + parts.join(" · ")) : null;
  });
  $("trust").replaceChildren(...lines.filter(Boolean));
}

// The estimated number that times an instruction; "" where its number is measured or published.
function estimateOf(facts, name) {
  const found = (facts.estimates?.numbers || []).find(({ parameter }) => /^(move|vector)\./.test(parameter) && parameter.split(".")[1] === name);
  return found ? `${found.parameter}: ${found.source}` : "";
}

function paintFindings(run, app) {
  const { findings } = run.facts;
  const notes = findings.filter((finding) => finding.severity === "note");
  $("findings-card").hidden = !findings.length;
  $("findings-title").textContent = `Findings: ${count(findings.length)}`;
  $("findings").replaceChildren(...findings.filter((finding) => finding.severity !== "note").map((finding) => findingItem(run, finding, app)));
  $("finding-notes").hidden = !notes.length;
  $("finding-notes").open = notes.length === findings.length && notes.length <= 3;
  $("finding-notes").querySelector("summary").textContent = notes.length === 1 ? "1 note" : `${count(notes.length)} notes`;
  $("finding-notes").querySelector("ol").replaceChildren(...notes.map((finding) => findingItem(run, finding, app)));
}

function findingItem(run, finding, app) {
  const where = finding.places.map((place) => {
    const text = `${place.what || "line"} · ${place.frame ? shortFrame(place.frame) : place.core}`;
    return place.row < 0 ? element("span", {}, text) : element("button", { class: "jump", onclick: () => app.pick({ run, row: place.row }, true) }, text);
  });
  const more = [finding.count > 1 ? `${count(finding.count)} times` : "", finding.memory && finding.begin >= 0 ? `${finding.memory} bytes ${count(finding.begin)} to ${count(finding.end)}` : "", finding.cycles ? `costs ${count(finding.cycles)} cycles` : ""].filter(Boolean);
  return element("li", {},
    element("span", { class: `badge ${finding.severity}` }, finding.severity),
    element("div", {}, element("span", {}, element("b", {}, finding.category), ` ${finding.message}`), finding.fix ? element("p", {}, `To fix it: ${finding.fix}`) : null,
      element("div", { class: "places" }, ...where, ...more.map((text) => element("span", {}, text)))));
}

// Cores in numbers: the timeline's strips for those who read or listen.
function paintCores(run, app) {
  if (!run) return;
  const { facts } = run;
  const names = [...new Set(facts.pipes.filter((pipe) => pipe.busy && !/^RVEC|PUSHQ|SCALARLDST/.test(pipe.pipe)).map((pipe) => pipe.pipe))];
  const busy = new Map(facts.pipes.map((pipe) => [`${pipe.core}:${pipe.pipe}`, pipe]));
  const rows = facts.ranges.map(({ core }) => {
    const name = facts.coreNames[core];
    const own = facts.cores.find((item) => item.core === name);
    const cells = names.map((pipe) => (busy.get(`${name}:${pipe}`) ? percent(busy.get(`${name}:${pipe}`).busy, own?.cycles) : ""));
    const bars = element("div", { class: "load", "aria-hidden": "true" }, ...names.map((pipe) => element("i", { style: `height:${Math.round((20 * (busy.get(`${name}:${pipe}`)?.busy || 0)) / Math.max(1, own?.cycles || 1))}px;background:${pipeVariable(pipe)}` })));
    const closed = app.timeline.folded.has(app.timeline.key(run, core));
    const button = element("button", { class: "jump", "aria-expanded": String(!closed), onclick: () => { app.timeline.fold(run, core, !closed); app.timeline.refresh(); } }, closed ? "open" : "fold");
    return { cells: [name, [bars], own ? count(own.begin) : "", own ? count(own.cycles) : "", ...cells, own ? percent(own.nothing, own.cycles) : "", [button]] };
  });
  const panel = [grid(["Core", "Load", "#Begins", "#Cycles", ...names.map((name) => `#${name}`), "#Nothing runs", "Lanes"], rows)];
  if (facts.phases.length) {
    const phases = facts.phases.map((phase) => ({ cells: [phase.name, phase.entered ? count(phase.entered) : "", count(phase.instructions), count(phase.cycles), percent(phase.cycles, facts.cycles)] }));
    panel.push(element("h2", { style: "margin-top:14px" }, "Phases of the critical path"), grid(["Phase", "#Times", "#Instructions", "#Cycles", "#Share"], phases));
  }
  if (facts.marks.length) {
    const own = new Map(facts.cores.map((core) => [core.core, core.cycles]));
    const marks = facts.marks.map((mark) => ({ cells: [mark.name, mark.core, count(mark.count), count(mark.cycles), percent(mark.cycles, own.get(mark.core))] }));
    panel.push(element("h2", { style: "margin-top:14px" }, "Marks"), grid(["Mark", "Core", "#Times", "#Cycles", "#Share of the core"], marks));
  }
  $("panel-cores").replaceChildren(...panel);
}

function paintAdvice(run, many, onpick, app) {
  const items = run.facts.advice.map((advice) => element(
    "li",
    {},
    element("div", { class: "saves" }, ...(advice.saves
      ? [element("b", {}, count(advice.saves)), element("span", { title: advice.simulated ? "The run was timed again with this change" : "A bound: no change of this kind can save more" }, advice.simulated ? "cycles less" : "cycles at most")]
      : [element("span", {}, "note")])),
    element("div", {}, advice.text, element("div", { class: "places" },
      advice.frame ? element("button", { class: "jump", onclick: () => onpick(advice.frame) }, "show the line") : null,
      advice.row >= 0 ? element("button", { class: "jump", onclick: () => app.pick({ run, row: advice.row }, true) }, "show in timeline") : null)),
  ));
  if (!items.length) items.push(element("li", {}, element("div"), element("div", {}, run.facts.cycles ? "Nothing stands out." : "Nothing ran: the trace holds no instruction.")));
  $("advice").replaceChildren(...items);
  if (many) $("advice-card").querySelector("h2").textContent = `What to fix first in ${run.letter}`;
}

function paintPipes(runs) {
  const parts = [];
  const one = runs.length === 1;
  for (const run of runs) {
    const cycles = new Map(run.facts.cores.map((core) => [core.core, core.cycles]));
    const lastOfKind = new Set([/cube/, /vec/].map((kind) => run.facts.cores.filter((core) => kind.test(core.core)).reduce((a, b) => (a && a.end >= b.end ? a : b), null)?.core));
    for (const [core, total] of cycles) {
      if (!one && core !== run.facts.slowest) continue; // side by side, the core that ends last says enough
      if (cycles.size > MANY_CORES && !lastOfKind.has(core)) continue; // the tab Cores has them all
      parts.push(element("div", { class: "pipe-core" }, (one ? "" : `${run.letter} · `) + core));
      for (const pipe of run.facts.pipes.filter((item) => item.core === core && (item.busy || item.waiting))) {
        const share = (part) => `${total ? (100 * part) / total : 0}%`;
        const colour = pipeVariable(pipe.pipe);
        parts.push(element("div", { class: "pipe-row", title: `busy ${count(pipe.busy)}, waiting ${count(pipe.waiting)}, idle ${count(pipe.idle)} cycles` },
          element("span", {}, pipe.pipe),
          element("div", { class: "track" }, element("i", { style: `width:${share(pipe.busy)};background:${colour}` }), element("i", { class: "hatch", style: `width:${share(pipe.waiting)}` })),
          element("span", { class: "num" }, percent(pipe.busy, total))));
      }
    }
    const shares = run.facts.critical.filter((share) => share.cycles);
    if (!shares.length) continue;
    const total = run.facts.cycles;
    const named = shares.filter((share) => share.cycles >= 0.03 * total).map((share) => `${share.pipe} ${share.doing} ${percent(share.cycles, total)}`);
    parts.push(
      element("div", { class: "pipe-core" }, `${one ? "" : `${run.letter} · `}critical path: ${named.join(" · ")}`),
      element("div", { class: "track path" }, ...shares.map((share) => element("i", {
        class: share.doing === "work" ? null : "hatch",
        title: `${share.pipe} ${share.doing}, ${count(share.cycles)} cycles`,
        style: `width:${(100 * share.cycles) / total}%;${share.doing === "work" ? `background:${pipeVariable(share.pipe)}` : ""}`,
      }))),
    );
  }
  $("pipes").replaceChildren(...parts);
}

// A text, a text that leads to another instruction, or a heat map: rows of digits, ! for what is no number.
function sectionLine(line, run, app) {
  if (typeof line === "string") return element("div", { class: "code mono" }, line);
  if (line.heat) {
    const cells = [...line.heat.join("")].map((digit) => element("i", digit === "!" ? { class: "odd" } : { style: `opacity:${(Number(digit) / 9).toFixed(2)}` }));
    return element("div", { class: "heatmap", role: "img", "aria-label": "heat map", style: `grid-template-columns:repeat(${line.heat[0].length},1fr)` }, ...cells);
  }
  if (line.row < 0) return element("div", { class: "code mono" }, line.text);
  return element("button", { class: "jump", onclick: () => app.pick({ run, row: line.row }, true) }, line.text);
}

// Where the cycles go, while nothing is chosen.
function hotSpots(app) {
  const run = app.run || app.runs[0];
  const lines = run.facts.hotLines.filter((line) => line.cycles || line.waiting);
  const most = Math.max(1, ...lines.map((line) => line.cycles + line.waiting));
  const parts = [element("h3", {}, "Hot spots")];
  for (const line of lines) {
    parts.push(element("div", { class: "spot" },
      element("button", { class: "jump", onclick: () => { app.showLine(run, line.frame); app.search(shortFrame(line.frame)); } }, shortFrame(line.frame)),
      element("span", { class: "num" }, line.cycles ? `${count(line.cycles)} cycles` : `${count(line.waiting)} waiting`),
      element("div", { class: "track" }, element("i", { style: `width:${(100 * line.cycles) / most}%;background:var(--pipe-cube)` }), element("i", { class: "hatch", style: `width:${(100 * line.waiting) / most}%` })),
      element("div", { class: "code mono" }, line.what)));
  }
  parts.push(element("div", { class: "empty" }, "Click an instruction to see its cycles, operands, source line and the flags that tie it to other pipes. Shift + drag measures a span."));
  return parts;
}

async function paintDetail(selection, app) {
  const box = $("detail");
  if (!selection) {
    box.replaceChildren(...hotSpots(app));
    return;
  }
  const { run, row } = selection;
  await Promise.all([run.loadDetails(run.coreOf(row)), run.needArrows()]);
  if (app.selection !== selection) return;
  const segment = run.segmentOf(row);
  const facts = run.facts;
  const entries = [];
  const entry = (name, value) => { if (value !== null && value !== undefined && value !== "") entries.push(element("dt", {}, name), element("dd", {}, ...(Array.isArray(value) ? value : [value]))); };
  entry("Cycles", `${count(run.length[row])}  (${micros(run.length[row], facts.mhz)})`);
  entry("Start", `${count(run.start[row] + facts.origin)}`);
  entry("End", `${count(run.end[row] + facts.origin)}`);
  if (run.issued[row] > 0) entry("Issued", `${count(run.issued[row])} cycles before it started${facts.stalls[run.stall[row]] !== "none" ? `, held by: ${facts.stalls[run.stall[row]]}` : ""}`);
  if (run.bytes[row]) entry("Moved", `${bytesText(run.bytes[row])}${run.length[row] ? `, ${((run.bytes[row] * facts.mhz) / run.length[row] / 1000).toFixed(1)} GB/s` : ""}`);
  if (run.asked[row]) entry("L2", `${percent(run.asked[row] - run.missed[row], run.asked[row])} of ${bytesText(run.asked[row] * facts.request)} found there`);
  if (run.used[row] >= 0) entry("Vector lanes", `${run.used[row]} %`);
  if (run.read[row] > 0) entry("Read conflicts", `${count(run.read[row])} cycles`);
  if (run.write[row] > 0) entry("Write conflicts", `${count(run.write[row])} cycles`);
  const estimate = estimateOf(facts, run.nameOf(row));
  if (estimate) entry("Time", [element("span", { class: "about" }, "≈ estimated "), estimate]);
  entry("Tile op", run.opOf(row));
  entry("Critical path", run.critical[row] ? "yes" : "no");
  entry("Address", facts.pcs[run.pc[row]]);
  const frame = run.frameOf(row);
  if (frame) entry("Line", [element("button", { class: "jump", id: "detail-line", onclick: () => app.showLine(run, frame) }, shortFrame(frame))]);
  const parts = [
    element("h3", {}, run.nameOf(row)),
    element("div", { class: "sub" }, dot(segment.pipe), `${segment.label} · ${facts.coreNames[segment.core]}${app.runs.length > 1 ? ` · run ${run.letter}` : ""}`),
    element("dl", {}, ...entries),
  ];
  const [path, line] = splitFrame(frame);
  const text = facts.sources[path]?.split("\n")[line - 1];
  if (text !== undefined) parts.push(element("div", { class: "code mono", style: "margin-top:8px" }, text.trim()));
  const stack = facts.stacks[run.stack[row]];
  if (stack && stack.includes("\n")) parts.push(element("h4", {}, "Called from"), element("div", { class: "code mono" }, stack.split("\n").map(shortFrame).join("\n")));
  const operands = run.detailOf(row).split(",").filter(Boolean);
  if (operands.length) parts.push(element("h4", {}, "Operands"), element("div", { class: "code mono" }, operands.join("\n")));
  const link = (arrow, other, word) => element("li", {}, element("button", { class: "jump", onclick: () => app.pick({ run, row: other }, true) }, `${word} ${run.nameOf(other)}`), ` · ${facts.flags[run.arrow_label[arrow]]}`);
  const incoming = run.arrowsOf(run.arrowsIn, row).map((arrow) => link(arrow, run.arrow_from[arrow], "waits for"));
  const outgoing = run.arrowsOf(run.arrowsOut, row).map((arrow) => link(arrow, run.arrow_to[arrow], "lets go"));
  if (incoming.length + outgoing.length) parts.push(element("h4", {}, "Flags"), element("ul", {}, ...incoming, ...outgoing));
  const found = (run.marked.get(row) || []).map((place) => facts.findings[place]);
  if (found.length) parts.push(element("h4", {}, "Findings"), element("ul", {}, ...found.map((finding) => element("li", {}, element("b", {}, `${finding.severity} `), finding.message, finding.fix ? ` To fix it: ${finding.fix}` : ""))));
  // whatever else the writer of the page knows of single instructions
  for (const section of facts.sections) {
    const lines = section.texts[section.entries[row]];
    if (lines) parts.push(element("h4", {}, section.title), ...lines.map((line) => sectionLine(line, run, app)));
  }
  box.replaceChildren(...parts);
}

function paintInstructions(run, app) {
  const most = Math.max(1, ...run.facts.hot.map((item) => item.cycles));
  const rows = run.facts.hot.filter((item) => item.cycles || item.waiting).map((item) => ({
    pick: item,
    cells: [
      [dot(item.pipe), item.what, estimateOf(run.facts, item.what) ? element("span", { class: "about", title: `Its time is an estimate: ${estimateOf(run.facts, item.what)}` }, " ≈") : ""], item.pipe, count(item.cycles),
      [element("span", { class: "heat", style: `width:${Math.round((120 * item.cycles) / most)}px;background:${pipeVariable(item.pipe)}` })],
      count(item.waiting), count(item.count), item.conflicts ? count(item.conflicts) : "", shortFrame(item.frame),
    ],
  }));
  $("panel-instructions").replaceChildren(grid(["Instruction", "Pipe", "#Cycles", "", "#Waiting", "#Executed", "#Conflicts", "Line"], rows, (item) => app.search(item.what)));
}

function paintWaits(run, app) {
  const cycles = new Map(run.facts.cores.map((core) => [core.core, core.cycles]));
  const rows = run.facts.waits.map((wait) => ({
    pick: wait.frame,
    cells: [[dot(wait.pipe), wait.pipe], [dot(wait.waits_for), wait.waits_for], wait.event, count(wait.cycles), percent(wait.cycles, cycles.get(wait.core)), count(wait.count), wait.core, shortFrame(wait.frame)],
  }));
  const left = element("div", {}, element("h2", {}, "Who waits for whom"), rows.length ? grid(["Pipe", "Waits for", "Event", "#Cycles", "#Share", "#Times", "Core", "Line"], rows, (frame) => app.showLine(run, frame)) : element("p", {}, "No pipe waited."));
  const right = element("div", {}, element("h2", {}, `Pipes that worked at the same time, ${run.facts.slowest}`));
  const core = run.facts.cores.find((item) => item.core === run.facts.slowest);
  if (core) {
    const names = run.facts.pipes.filter((pipe) => pipe.core === core.core && pipe.busy).map((pipe) => pipe.pipe);
    const table = element("table", { class: "matrix" }, element("tr", {}, element("th"), ...names.map((name) => element("th", {}, name))));
    for (const a of names) {
      table.append(element("tr", {}, element("th", {}, a), ...names.map((b) => {
        const both = a === b ? run.facts.pipes.find((pipe) => pipe.core === core.core && pipe.pipe === a).busy : core.overlap[`${a}+${b}`] ?? core.overlap[`${b}+${a}`] ?? 0;
        const share = core.cycles ? both / core.cycles : 0;
        return element("td", { style: `background:color-mix(in srgb, ${a === b ? pipeVariable(a) : "var(--accent)"} ${Math.round(share * 75)}%, var(--soft))`, title: `${count(both)} cycles` }, percent(both, core.cycles));
      })));
    }
    const path = run.facts.critical.filter((share) => share.cycles).slice(0, 8).map((share) => ({ cells: [[dot(share.pipe), share.pipe], share.doing, count(share.cycles), percent(share.cycles, run.facts.cycles)] }));
    right.append(table, element("h2", { style: "margin-top:14px" }, "The critical path"), grid(["Pipe", "", "#Cycles", "#Share"], path));
  }
  $("panel-waits").replaceChildren(element("div", { class: "two" }, left, right));
}
