// Source beside its cost, line by line.

const KEYWORDS = new Set("auto bool break case char class const constexpr continue default do double else enum extern false float for if inline int int32_t int64_t uint32_t uint64_t uint8_t half long namespace nullptr return short signed sizeof static struct switch template true typedef typename unsigned using void while __gm__ __aicore__ AICORE reinterpret_cast static_cast".split(" "));

// Comments, strings, numbers and keywords of one line; enough for an eye that looks for a line.
function coloured(text) {
  const parts = [];
  const pattern = /(\/\/.*$|\/\*.*?\*\/)|("(?:[^"\\]|\\.)*")|(\b0x[0-9a-fA-F]+\b|\b\d+(?:\.\d+)?f?\b)|([A-Za-z_]\w*)/g;
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    const kind = found[1] ? "c" : found[2] ? "s" : found[3] ? "n" : KEYWORDS.has(found[4]) ? "k" : null;
    if (!kind) continue;
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push(element("span", { class: kind }, found[0]));
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

function paintSource(run, app) {
  const panel = $("panel-source");
  const { lines, sources } = run.facts;
  const cost = (path) => Object.values(lines[path] || {}).reduce((sum, [work, waits]) => sum + work + waits, 0);
  // what the user wrote comes first: the program in Python, then what was generated of it
  const python = (path) => Number(path.endsWith(".py") && cost(path) > 0);
  const files = [...new Set([...Object.keys(sources), ...Object.keys(lines)])].sort((a, b) => python(b) - python(a) || cost(b) - cost(a));
  if (!files.length) {
    panel.replaceChildren(element("p", {}, "The trace names no source lines: compile with -g to see them here."));
    return;
  }
  if (!files.includes(app.file)) app.file = files[0];
  const choose = element("select", { "aria-label": "File", onchange: (event) => { app.file = event.target.value; paintSource(run, app); } }, ...files.map((file) => element("option", { value: file, selected: file === app.file ? "" : null }, shortFrame(file))));
  const measured = lines[app.file] || {};
  const most = Math.max(1, ...Object.values(measured).map(([work]) => work));
  const mostWaits = Math.max(1, ...Object.values(measured).map(([, waits]) => waits));
  const text = sources[app.file];
  const wanted = text === undefined ? Object.keys(measured).map(Number).sort((a, b) => a - b) : null;
  const body = text === undefined ? wanted.map(() => "") : text.split("\n");
  if (text !== undefined && body.at(-1) === "") body.pop();
  const box = element("div", { class: "source mono", id: "source" });
  box.append(element("div", { class: "row head" }, element("span", { class: "cell" }, "cycles"), element("span", { class: "cell" }, "waiting"), element("span", { class: "cell" }, "executed"), element("span", { class: "no" }, "line"), element("span", {}, app.file)));
  body.forEach((content, index) => {
    const number = wanted ? wanted[index] : index + 1;
    const [work, waits, executed, conflicts] = measured[number] || [0, 0, 0, 0];
    const cell = (value, share, colour) => element("span", { class: "cell" }, value ? element("i", { style: `width:${Math.round(100 * share)}%;background:${colour}` }) : null, element("b", {}, value ? count(value) : ""));
    const row = element("div", { class: executed ? "row hot" : "row", "data-line": number, title: conflicts ? `${count(conflicts)} cycles of bank conflicts` : null },
      cell(work, work / most, "var(--pipe-cube)"), cell(waits, waits / mostWaits, "var(--pipe-fixpipe)"), cell(executed, 0, "none"),
      element("span", { class: "no" }, String(number)), element("span", {}, ...coloured(content)));
    if (executed) row.addEventListener("click", () => app.search(`${shortFrame(app.file)}:${number}`));
    box.append(row);
  });
  const hint = text === undefined ? (run.facts.confidential ? "Source text is left out of this page." : "The trace does not carry this file's text.") : "Click a line to find its instructions.";
  panel.replaceChildren(element("div", { class: "source-bar" }, choose, element("span", {}, hint)), box);
  markLine(app);
  if (!app.line || app.line.file !== app.file) showHottest(box, measured);
}

// The file opens where it costs most.
function showHottest(box, measured) {
  const [hottest] = Object.entries(measured).sort(([, a], [, b]) => b[0] + b[1] - a[0] - a[1])[0] || [];
  const row = hottest && box.querySelector(`.row[data-line="${hottest}"]`);
  if (!row) return;
  row.classList.add("hottest");
  box.scrollTop = Math.max(0, row.offsetTop - box.offsetTop - box.clientHeight / 2);
}

function markLine(app) {
  for (const row of document.querySelectorAll("#source .picked")) row.classList.remove("picked");
  if (!app.line || app.line.file !== app.file) return;
  const row = document.querySelector(`#source .row[data-line="${app.line.number}"]`);
  if (!row) return;
  row.classList.add("picked");
  const box = $("source");
  box.scrollTop = Math.max(0, row.offsetTop - box.offsetTop - box.clientHeight / 2);
}
