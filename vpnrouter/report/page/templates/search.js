const search = one("#search");
const matches = one("#matches");
const names = Object.entries({ node: data.nodes, edge: data.edges, provider: data.providers, feed: data.feeds })
  .flatMap(([kind, shapes]) => Object.entries(shapes).map(([at, each]) => [`${kind}-${at}`, each.t]))
  .map(([id, name]) => [id, name, name.toLowerCase()]);
const MATCHES = 12;
let active = -1;

function closeMatches() {
  matches.hidden = true;
  active = -1;
  search.setAttribute("aria-expanded", "false");
  search.removeAttribute("aria-activedescendant");
}
function activate(at) {
  const options = all("[role=option]", matches);
  if (!options.length) return;
  active = (at + options.length) % options.length;
  options.forEach((option, index) => option.setAttribute("aria-selected", String(index === active)));
  search.setAttribute("aria-activedescendant", options[active].id);
  options[active].scrollIntoView({ block: "nearest" });
}
function find() {
  const wanted = search.value.trim().toLowerCase();
  const found = wanted ? names.filter(([, , name]) => name.includes(wanted)) : [];
  const ids = new Set(found.map(([id]) => id));
  drawing.classList.toggle("searched", wanted !== "");
  for (const mark of all(".edge, .node, .feed, .provider", drawing)) mark.classList.toggle("match", ids.has(mark.id));
  matches.replaceChildren(...found.slice(0, MATCHES).map(([id, name], at) => {
    const option = make("li", id.split("-")[0], name);
    option.id = `match-${at}`;
    option.dataset.id = id;
    option.setAttribute("role", "option");
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      take(id);
    });
    return option;
  }));
  if (wanted && found.length !== Math.min(found.length, MATCHES)) matches.append(make("li", "more", `and ${found.length - MATCHES} more`));
  if (wanted && !found.length) matches.append(make("li", "more", "nothing of this name"));
  matches.hidden = !wanted;
  search.setAttribute("aria-expanded", String(wanted !== ""));
  active = -1;
  if (found.length) activate(0);
}
function take(id) {
  closeMatches();
  choose(id);
  reveal(id);
  remember(id);
}
search.addEventListener("input", find);
search.addEventListener("blur", closeMatches);
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    activate(active + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    const option = all("[role=option]", matches)[active];
    if (option) take(option.dataset.id);
  } else if (event.key === "Escape") {
    search.value = "";
    find();
  }
});
