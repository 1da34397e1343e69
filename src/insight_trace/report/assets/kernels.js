// The table of kernels: sorted by a click on a column's name, filtered by what is typed.
(() => {
  const table = $("kernels");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  setTheme(firstTheme());

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

  sort(1); // the longest first
  heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => sort(place)));
  $("filter").addEventListener("input", (event) => {
    const words = event.target.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(words);
      if (!row.hidden) shown++;
    }
    $("count").textContent = `${shown} ${shown === 1 ? "kernel" : "kernels"}`;
  });
  document.documentElement.dataset.ready = "1";
})();
