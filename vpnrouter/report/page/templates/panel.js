const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
const data = JSON.parse(one("#details").textContent);
const drawing = one("#drawing");
const panel = one("#panel");
const tip = one("#tip");

function make(name, className, text, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}
// SVG elements, by the drawing's own namespace.
function shape(name, attributes, ...children) {
  const made = document.createElementNS(drawing.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
// By the first part of a shape's id: its details and headings, what it is called, and the figures of its tip.
const KINDS = {
  edge: [data.edges, data.edgeHeads, "Bridge", [0, 1, 6, 8, 10]],
  node: [data.nodes, data.nodeHeads, "Message VPN", [0, 2, 3, 4, 6]],
  feed: [data.feeds, data.feedHeads, "Connector", [0, 1, 4]],
  provider: [data.providers, data.providerHeads, "Provider", [0, 1]],
};
const kindOf = (id) => KINDS[id.split("-")[0]];
function detailsOf(id) {
  return kindOf(id)?.[0][id.split("-")[1]];
}
function headsOf(id) {
  return kindOf(id)[1];
}
function spell(ns) {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (ns >= unit * 0.9995) return `${Number((ns / unit).toPrecision(3))} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}
const plain = (number) => number.toLocaleString("en-US");

function rateChart(rates) {
  const width = 300, height = 64, most = Math.max(...rates, 1), step = width / rates.length;
  const points = rates.map((value, at) => `${(step * (at + 0.5)).toFixed(1)} ${(height * (1 - value / most)).toFixed(1)}`);
  const line = `M${points.join("L")}`;
  const last = (width - step / 2).toFixed(1), first = (step / 2).toFixed(1);
  const area = `${line}L${last} ${height}L${first} ${height}Z`;
  const svg = shape("svg", { viewBox: `0 -2 ${width} ${height + 3}`, class: "mini rate", role: "img", "aria-label": "Messages over time" },
    shape("path", { class: "area", d: area }), shape("path", { class: "line", d: line }));
  return make("div", "chart", undefined, make("h4", "", "Messages over time"), svg,
    make("p", "ends", undefined, make("span", "", data.from.slice(0, 16)), make("span", "", `peak ${plain(most)} in ${data.stretch}`), make("span", "", data.until.slice(11, 16))));
}
function latencyChart([start, counts, below]) {
  const width = 300, height = 64, most = Math.max(...counts, 1), step = width / Math.max(counts.length, 1);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "mini histogram", role: "img", "aria-label": "Latency histogram" });
  counts.forEach((count, at) => {
    if (!count) return;
    const high = Math.max((count / most) * height, 1.5);
    const low = 10 ** ((start + at) / data.steps), next = 10 ** ((start + at + 1) / data.steps);
    svg.append(shape("rect", { x: (at * step + 0.5).toFixed(1), y: (height - high).toFixed(1), width: Math.max(step - 1, 1).toFixed(1), height: high.toFixed(1), rx: 1 },
      Object.assign(shape("title", {}), { textContent: `${spell(low)} to ${spell(next)}: ${plain(count)}` })));
  });
  const ends = [spell(10 ** (start / data.steps)), "logarithmic", spell(10 ** ((start + counts.length) / data.steps))];
  const made = make("div", "chart", undefined, make("h4", "", "Latency"));
  if (counts.length) made.append(svg, make("p", "ends", undefined, ...ends.map((end) => make("span", "", end))));
  if (below) made.append(make("p", "note", `${plain(below)} messages arrived before they were sent, by the two clocks.`));
  return made;
}
function spanChart(spans, number) {
  const svg = shape("svg", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", class: "mini spans", role: "img", "aria-label": "When the link was up" },
    shape("rect", { class: "down", x: 0, y: 0, width: 1000, height: 14 }));
  for (const [from, until] of spans) svg.append(shape("rect", { class: "up", x: from, y: 0, width: Math.max(until - from, 2), height: 14 }));
  const shown = number > spans.length ? `, the last ${spans.length} shown` : "";
  return make("div", "chart", undefined, make("h4", "", `Link up ${number === 1 ? "once" : `${number} times`}${shown}`), svg);
}
function link(id) {
  const made = make("a", "", detailsOf(id).t);
  made.href = `#${id}`;
  return made;
}
// The arrows at a message VPN or a provider, and whether they lead to it.
function arrowsAt(id) {
  const [kind, text] = id.split("-"), number = Number(text), found = [];
  if (kind === "node") {
    for (const [edge, each] of Object.entries(data.edges)) {
      if (each.e.includes(number)) found.push([`edge-${edge}`, each.e[1] === number]);
    }
  }
  const end = { node: 0, provider: 1 }[kind];
  for (const [feed, each] of Object.entries(data.feeds)) {
    if (each.e[end] === number) found.push([`feed-${feed}`, each.i === (kind === "node")]);
  }
  return found;
}
function arrowList(title, arrows) {
  if (!arrows.length) return [];
  const list = make("ul", "bridges");
  for (const [id, inward] of arrows) list.append(make("li", inward ? "in" : "out", undefined, link(id), make("small", "", ` ${detailsOf(id).f[0]}`)));
  return [make("h4", "", `${title} (${arrows.length})`), list];
}
function linkList(links) {
  const list = make("dl");
  for (const [name, messages] of links) list.append(make("dt", "", name), make("dd", "", messages));
  return [make("h4", "", "Messages by link"), list];
}
function fill(id) {
  const found = detailsOf(id);
  const parts = [make("p", "kind", kindOf(id)[2]), make("h3", "", found.t)];
  const ends = id.startsWith("edge") ? found.e.map((end) => `node-${end}`) : id.startsWith("feed") ? [`node-${found.e[0]}`, `provider-${found.e[1]}`] : [];
  if (ends.length) parts.push(make("p", "whither", undefined, ...ends.filter(detailsOf).map(link)));
  if (found.w) {
    const list = make("ul", "found");
    for (const at of found.w) {
      const [severity, kind, detail] = data.findings[at];
      list.append(make("li", severity, undefined, make("b", "", kind), ` ${detail}`));
    }
    if (found.m) list.append(make("li", "", `and ${plain(found.m)} more`));
    parts.push(list);
  }
  if (found.r && found.r.length > 1) parts.push(rateChart(found.r));
  if (found.h) parts.push(latencyChart(found.h));
  if (found.u) parts.push(spanChart(found.u, found.n));
  const figures = make("dl");
  headsOf(id).forEach((head, at) => {
    if (found.f[at] !== "–") figures.append(make("dt", "", head), make("dd", "", found.f[at]));
  });
  parts.push(figures);
  if (found.l) parts.push(...linkList(found.l));
  const arrows = arrowsAt(id);
  parts.push(...arrowList("Bridges", arrows.filter(([at]) => at.startsWith("edge"))), ...arrowList("Connectors", arrows.filter(([at]) => at.startsWith("feed"))));
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

let chosen = "";
function choose(id) {
  if (!detailsOf(id)) return false;
  chosen = id;
  for (const before of all(".chosen, .near")) before.classList.remove("chosen", "near");
  const mark = document.getElementById(id);
  if (mark) mark.classList.add("chosen");
  const row = /^(edge|node)-/.test(id) ? document.getElementById(id.replace("-", "s-")) : null;
  if (row) row.classList.add("chosen");
  drawing.classList.toggle("around", /^(node|provider)-/.test(id));
  for (const [arrow] of arrowsAt(id)) document.getElementById(arrow)?.classList.add("near");
  fill(id);
  return true;
}

function showTip(id, x, y) {
  const found = detailsOf(id);
  const lines = headsOf(id).map((head, at) => [head, found.f[at]]);
  const wanted = kindOf(id)[3];
  const figures = make("dl");
  for (const at of wanted) if (lines[at][1] !== "–") figures.append(make("dt", "", lines[at][0]), make("dd", "", lines[at][1]));
  const first = found.w ? data.findings[found.w[0]] : undefined;
  tip.replaceChildren(make("strong", "", found.t), figures);
  if (first) tip.append(make("p", first[0], first[1] + (found.w.length > 1 ? ` and ${found.w.length - 1 + (found.m || 0)} more` : "")));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(x + 14, document.documentElement.clientWidth - box.width - 8)}px`;
  tip.style.top = `${y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16}px`;
}
function hideTip() {
  tip.hidden = true;
}
