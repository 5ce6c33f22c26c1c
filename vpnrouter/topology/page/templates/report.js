"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // What is chosen in the drawing is explained by its row in a table: headings beside cells.
  const panel = one("#panel");
  function choose(shape) {
    const row = document.getElementById(shape.dataset.row);
    if (!row) return;
    for (const before of all(".chosen")) before.classList.remove("chosen");
    row.classList.add("chosen");
    for (const mark of all(`#drawing [data-row="${shape.dataset.row}"]`)) mark.classList.add("chosen");
    const headings = all("th", row.closest("table"));
    const list = document.createElement("dl");
    Array.from(row.cells).forEach((cell, at) => {
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = headings[at].textContent;
      value.textContent = cell.textContent;
      list.append(term, value);
    });
    const title = document.createElement("h3");
    title.textContent = row.dataset.title;
    panel.replaceChildren(title, list);
  }
  for (const shape of all("[data-row]")) {
    shape.addEventListener("click", () => {
      choose(shape);
      if (shape.id) history.replaceState(null, "", `#${shape.id}`);
    });
    shape.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(shape);
      }
    });
  }
  // report.html#edge-3 opens with that bridge chosen.
  function chooseNamed() {
    const shape = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (shape && shape.dataset.row) choose(shape);
  }
  addEventListener("hashchange", chooseNamed);
  const first = document.getElementById(panel.dataset.first);
  if (first) choose(first);
  chooseNamed();

  for (const table of all("table.sheet")) {
    const body = table.tBodies[0];
    all("th", table).forEach((heading, at) => {
      one("button", heading).addEventListener("click", () => {
        const numeric = heading.classList.contains("n");
        const now = heading.getAttribute("aria-sort");
        const descending = now ? now === "ascending" : numeric;
        for (const other of all("th", table)) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const key = (row) => row.cells[at].dataset.key;
        const order = numeric
          ? (a, b) => Number(key(a)) - Number(key(b))
          : (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true });
        const rows = Array.from(body.rows).sort(order);
        if (descending) rows.reverse();
        body.append(...rows);
      });
    });
  }

  const drawing = one("#drawing");
  const whole = drawing.viewBox.baseVal;
  const natural = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let view = { ...natural };
  function show() {
    drawing.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  }
  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const width = Math.min(Math.max(view.width * factor, natural.width / 40), natural.width * 2);
    const real = width / view.width;
    view = { x: x - (x - view.x) * real, y: y - (y - view.y) * real, width, height: view.height * real };
    show();
  }
  for (const button of all("[data-zoom]")) {
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) zoom(factor);
      else {
        view = { ...natural };
        show();
      }
    });
  }
  // The plain wheel scrolls the page; with Ctrl, and from a touchpad's pinch, it zooms.
  drawing.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    zoom(Math.exp(event.deltaY / 400), spot.x, spot.y);
  }, { passive: false });
  drawing.addEventListener("pointerdown", (down) => {
    if (down.button !== 0 || down.target.closest("[data-row]")) return;
    const scale = drawing.getScreenCTM().a;
    const from = { ...view };
    drawing.setPointerCapture(down.pointerId);
    drawing.classList.add("moving");
    const move = (event) => {
      view = { ...view, x: from.x - (event.clientX - down.clientX) / scale, y: from.y - (event.clientY - down.clientY) / scale };
      show();
    };
    const end = () => {
      drawing.classList.remove("moving");
      drawing.removeEventListener("pointermove", move);
    };
    drawing.addEventListener("pointermove", move);
    drawing.addEventListener("pointerup", end, { once: true });
    drawing.addEventListener("pointercancel", end, { once: true });
  });
})();
