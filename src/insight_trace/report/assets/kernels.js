// The table of kernels: sorted by a click on a column's name, filtered by what is typed.
(() => {
  const table = document.getElementById("kernels");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let theme = dark ? "dark" : "light";
  try { theme = localStorage.getItem("insight-trace-theme") || theme; } catch { /* a page from disk may have no storage */ }
  document.documentElement.dataset.theme = theme;

  function sort(place) {
    // numbers begin with the largest, names with the first
    const numeric = heads[place].classList.contains("num") || [...body.rows].every((row) => row.cells[place].dataset.sort !== "" && !Number.isNaN(Number(row.cells[place].dataset.sort)));
    const before = heads[place].getAttribute("aria-sort");
    const up = before === "none" ? !numeric : before === "descending";
    for (const head of heads) head.setAttribute("aria-sort", "none");
    heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[place].dataset.sort;
    const order = [...body.rows].sort((a, b) => (numeric ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b), "en", { numeric: true })));
    body.append(...(up ? order : order.reverse()));
  }

  heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => sort(place)));
  document.getElementById("filter").addEventListener("input", (event) => {
    const words = event.target.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(words);
      if (!row.hidden) shown++;
    }
    document.getElementById("count").textContent = `${shown} ${shown === 1 ? "kernel" : "kernels"}`;
  });
  document.documentElement.dataset.ready = "1";
})();
