for (const hidden of all(".tools[hidden]")) hidden.hidden = false;
const keyOf = (cell) => cell.dataset.key ?? cell.textContent;

for (const table of all("table.sheet")) {
  const body = table.tBodies[0];
  const headings = all("th", table);
  headings.forEach((heading, at) => {
    one("button", heading).addEventListener("click", () => {
      const numeric = heading.classList.contains("n");
      const now = heading.getAttribute("aria-sort");
      const descending = now ? now === "ascending" : numeric;
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const order = numeric
        ? (a, b) => Number(keyOf(a.cells[at])) - Number(keyOf(b.cells[at]))
        : (a, b) => keyOf(a.cells[at]).localeCompare(keyOf(b.cells[at]), undefined, { numeric: true });
      const rows = Array.from(body.rows).sort(order);
      if (descending) rows.reverse();
      body.append(...rows);
    });
  });
  const text = one(`[data-filter="${table.id}"]`);
  const choices = all(`select[data-of="${table.id}"]`);
  const count = one(`[data-count="${table.id}"]`);
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      const fits = (!wanted || row.textContent.toLowerCase().includes(wanted)) &&
        choices.every((choice) => !choice.value || row.cells[Number(choice.dataset.choice)].textContent === choice.value);
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = shown === body.rows.length ? "" : `${plain(shown)} of ${plain(body.rows.length)} rows`;
    for (const pick of all(`[data-pick][data-of="${table.id}"]`)) {
      const choice = choices.find((each) => each.dataset.choice === pick.dataset.choiceAt);
      pick.setAttribute("aria-pressed", String(choice?.value === pick.dataset.pick));
    }
  };
  text.addEventListener("input", filter);
  for (const choice of choices) choice.addEventListener("change", filter);
  for (const pick of all(`[data-pick][data-of="${table.id}"]`)) {
    pick.addEventListener("click", () => {
      const choice = choices.find((each) => each.dataset.choice === pick.dataset.choiceAt);
      choice.value = choice.value === pick.dataset.pick ? "" : pick.dataset.pick;
      filter();
    });
  }
}

show();
choose(panel.dataset.first);
chooseNamed();
