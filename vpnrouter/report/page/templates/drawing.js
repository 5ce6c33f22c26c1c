const box = drawing.viewBox.baseVal;
const natural = { x: box.x, y: box.y, width: box.width, height: box.height };
let view = { ...natural };
const routerNames = all(".router-name");
let unit = 0;
function show() {
  drawing.setAttribute("viewBox", [view.x, view.y, view.width, view.height].map((part) => part.toFixed(2)).join(" "));
  // Names and lines keep a readable size on screen; restyling thousands of shapes has its price, so
  // that small steps are passed over.
  const real = Math.max(view.width / drawing.clientWidth, view.height / drawing.clientHeight) || 1;
  if (Math.abs(real / unit - 1) < 0.12) return;
  unit = real;
  drawing.style.setProperty("--unit", Math.max(unit, 0.6).toFixed(3));
  drawing.classList.toggle("far", unit > 2.2);
  for (const name of routerNames) name.classList.toggle("quiet", unit > Math.max(Number(name.dataset.until), 1.2));
}
function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
  const width = Math.min(Math.max(view.width * factor, Math.min(natural.width / 4, 240)), natural.width * 1.6);
  const real = width / view.width;
  view = { x: x - (x - view.x) * real, y: y - (y - view.y) * real, width, height: view.height * real };
  show();
}
function showAll() {
  view = { ...natural };
  show();
}
function pan(right, down) {
  view = { ...view, x: view.x + right * view.width, y: view.y + down * view.height };
  show();
}
// Brings a shape to the middle, and near enough to read.
function reveal(id) {
  const mark = document.getElementById(id);
  if (!mark) return;
  const spot = mark.getBBox();
  const readable = drawing.clientWidth * 1.3;
  const width = Math.min(Math.max(spot.width * 1.8, readable), natural.width, Math.max(view.width, readable));
  const height = width * natural.height / natural.width;
  view = { x: spot.x + spot.width / 2 - width / 2, y: spot.y + spot.height / 2 - height / 2, width, height };
  if (width >= natural.width) view = { ...natural };
  show();
}
function remember(id) {
  history.replaceState(null, "", `#${id}`);
}
const shapeAt = (target) => target.closest && target.closest(".edge, .node, .feed, .provider");

for (const button of all("[data-zoom]")) {
  button.addEventListener("click", () => (Number(button.dataset.zoom) ? zoom(Number(button.dataset.zoom)) : showAll()));
}
// The plain wheel scrolls the page until the drawing has been clicked into; with Ctrl, and from a
// touchpad's pinch, it always zooms.
drawing.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey && !drawing.contains(document.activeElement)) return;
  event.preventDefault();
  hideTip();
  const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
  zoom(Math.exp(event.deltaY / 500), spot.x, spot.y);
}, { passive: false });
let moved = false;
drawing.addEventListener("pointerdown", (down) => {
  if (down.button !== 0) return;
  const scale = drawing.getScreenCTM().a;
  const from = { ...view };
  moved = false;
  const move = (event) => {
    const right = event.clientX - down.clientX, below = event.clientY - down.clientY;
    if (!moved && Math.hypot(right, below) < 5) return;
    if (!moved) {
      moved = true;
      hideTip();
      drawing.setPointerCapture(down.pointerId);
      drawing.classList.add("moving");
    }
    view = { ...view, x: from.x - right / scale, y: from.y - below / scale };
    show();
  };
  const end = () => {
    drawing.classList.remove("moving");
    drawing.removeEventListener("pointermove", move);
    removeEventListener("pointerup", end);
    removeEventListener("pointercancel", end);
  };
  drawing.addEventListener("pointermove", move);
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
});
drawing.addEventListener("click", (event) => {
  if (moved) return;
  const mark = shapeAt(event.target);
  if (mark && choose(mark.id)) remember(mark.id);
  else drawing.focus({ preventScroll: true });
});
drawing.addEventListener("pointermove", (event) => {
  const mark = event.buttons ? null : shapeAt(event.target);
  if (mark) showTip(mark.id, event.clientX, event.clientY);
  else hideTip();
});
drawing.addEventListener("pointerleave", hideTip);
drawing.addEventListener("focusin", (event) => {
  const mark = shapeAt(event.target);
  if (!mark || !mark.matches(":focus-visible")) return;
  const spot = mark.getBoundingClientRect();
  showTip(mark.id, spot.x + spot.width / 2, spot.y + spot.height / 2);
});
drawing.addEventListener("focusout", hideTip);
const keys = {
  ArrowLeft: () => pan(-0.1, 0), ArrowRight: () => pan(0.1, 0), ArrowUp: () => pan(0, -0.1), ArrowDown: () => pan(0, 0.1),
  "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), 0: showAll,
};
drawing.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const mark = shapeAt(event.target);
  if (mark && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    if (choose(mark.id)) remember(mark.id);
  } else if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  } else if (event.key === "Escape") hideTip();
});

const views = all("[data-view]");
function colour(button) {
  one(".stage").dataset.by = button.dataset.view;
  for (const each of views) {
    each.setAttribute("aria-checked", String(each === button));
    each.tabIndex = each === button ? 0 : -1;
  }
}
views.forEach((button, at) => {
  button.addEventListener("click", () => colour(button));
  button.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = views[(at + step + views.length) % views.length];
    colour(next);
    next.focus();
  });
});

for (const each of all("[data-shape]")) {
  each.addEventListener("click", () => goTo(each.dataset.shape));
}
// report.html#edge-3 opens with that bridge chosen; links to it anywhere on the page lead here.
function goTo(id) {
  if (!choose(id)) return;
  reveal(id);
  one("#topology").scrollIntoView({ block: "start" });
  remember(id);
}
function chooseNamed() {
  goTo(decodeURIComponent(location.hash.slice(1)));
}
addEventListener("hashchange", chooseNamed);
document.addEventListener("click", (event) => {
  const anchor = event.target.closest && event.target.closest("a[href^='#edge-'], a[href^='#node-'], a[href^='#feed-'], a[href^='#provider-']");
  if (!anchor) return;
  event.preventDefault();
  goTo(anchor.getAttribute("href").slice(1));
});

// On paper all of the drawing is seen, and all that is folded is open.
let before = null;
addEventListener("beforeprint", () => {
  before = { view, closed: all("details:not([open])") };
  showAll();
  for (const each of before.closed) each.open = true;
});
addEventListener("afterprint", () => {
  if (!before) return;
  view = before.view;
  for (const each of before.closed) each.open = false;
  before = null;
  show();
});
addEventListener("resize", show);
