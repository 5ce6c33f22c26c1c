"""The report page in a real browser: without network, without errors, with mouse, keys and paper."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.report.page.contents import Contents
from vpnrouter.report.page.page import page

pytestmark = pytest.mark.peers

Browse = Callable[..., Any]

VIEW_WIDTH: Final = "document.querySelector('#drawing').viewBox.baseVal.width"
PANEL: Final = "document.querySelector('#panel').innerText"


@pytest.fixture
def opened(text_30: str, browse: Browse) -> Iterator[Any]:
    """The page of 30 routers, at its drawing; nothing may have been complained of in the end."""
    browser = browse(text_30)
    browser.run("document.querySelector('#topology').scrollIntoView()")
    browser.settle()
    yield browser
    assert browser.complaints == []
    assert [address[:5] for address in browser.requests] == ["file:"]


def spot_of(browser: Any, selector: str) -> tuple[float, float]:
    """The middle of an element in the window."""
    x, y = browser.run(
        f"(() => {{ const box = document.querySelector(`{selector}`).getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    return x, y


def spot_on_line(browser: Any, row: int) -> tuple[float, float]:
    """A place in the window where a click meets the arrow of this row, and nothing lies above it."""
    found = browser.run(
        f"""(() => {{
          const line = document.querySelector("#edge-{row} .line");
          const grip = line.getScreenCTM();
          for (let part = 0.05; part < 1; part += 0.01) {{
            const at = line.getPointAtLength(line.getTotalLength() * part).matrixTransform(grip);
            const top = document.elementFromPoint(at.x, at.y);
            if (top && top.closest("#edge-{row}")) return [at.x, at.y];
          }}
          return null;
        }})()"""
    )
    assert found is not None, f"the arrow of edge {row} lies under others everywhere"
    return found[0], found[1]


def test_it_opens_with_all_shapes(opened: Any, mesh_30: Contents) -> None:
    """As many nodes and edges as the data, all within the drawing, the busiest bridge's figures beside."""
    count = "document.querySelectorAll('#drawing {}').length"
    assert opened.run(count.format("g.node")) == len(mesh_30.nodes)
    assert opened.run(count.format("g.edge")) == len(mesh_30.edges)
    assert opened.run(count.format("g.router")) == 30
    busiest = max(mesh_30.edges, key=lambda row: row["messages"])
    assert f"{busiest['messages']:,}" in opened.run(PANEL)
    outside = opened.run(
        """(() => { const all = document.querySelector('#drawing').getBoundingClientRect();
        return [...document.querySelectorAll('#drawing .node')].filter((node) => {
          const box = node.getBoundingClientRect();
          return box.left < all.left || box.right > all.right || box.top < all.top || box.bottom > all.bottom;
        }).length; })()"""
    )
    assert outside == 0
    assert opened.run("document.documentElement.scrollWidth <= innerWidth")


def test_a_click_on_an_edge_shows_its_figures(opened: Any, mesh_30: Contents) -> None:
    """A real click: name, figures, curve, histogram and findings of that bridge in the panel."""
    row = next(
        at
        for at, edge in enumerate(mesh_30.edges)
        if edge["messages"] > 0 and edge["latency_p99_ns"]
    )
    edge = mesh_30.edges[row]
    opened.click(*spot_on_line(opened, row))
    shown = opened.run(PANEL)
    assert f"{edge['bridge']}: {edge['from_router']}/{edge['from_vpn']}" in shown
    assert f"{edge['messages']:,}" in shown
    assert opened.run("document.querySelectorAll('#panel .rate .line').length") == 1
    assert opened.run("document.querySelectorAll('#panel .histogram rect').length") > 3
    assert opened.run("document.querySelectorAll('#panel .spans .up').length") >= 1
    assert opened.run("location.hash") == f"#edge-{row}"
    assert opened.run(f"document.querySelector('#edges-{row}').classList.contains('chosen')")


def test_a_click_on_a_node_shows_its_figures_and_bridges(opened: Any, mesh_30: Contents) -> None:
    """The panel names the bridges of a message VPN, and they stand out in the drawing."""
    node = mesh_30.nodes[0]
    opened.click(*spot_of(opened, "#node-0 .card"))
    shown = opened.run(PANEL)
    assert f"{node['router']}/{node['vpn']}" in shown
    assert f"{node['ingress']:,}" in shown
    name = (node["router"], node["vpn"])
    mine = [
        edge
        for edge in mesh_30.edges
        if name in {(edge["from_router"], edge["from_vpn"]), (edge["to_router"], edge["to_vpn"])}
    ]
    assert opened.run("document.querySelectorAll('#panel .bridges li').length") == len(mine)
    assert opened.run("document.querySelectorAll('#drawing .edge.near').length") == len(mine)


def test_a_finding_is_told_of_in_the_panel(opened: Any, mesh_30: Contents) -> None:
    """The link in an advice leads to its bridge, whose findings the panel lists."""
    opened.run("document.querySelector('.advice-item a').click()")
    opened.settle()
    first = mesh_30.advice[0]
    shown = opened.run(PANEL)
    assert first["bridge"] in shown
    assert opened.run("document.querySelectorAll('#panel .found .error').length") >= 1


def test_zooming_and_moving(opened: Any) -> None:
    """Buttons, wheel, keys and dragging change the view; one button shows all again."""
    whole = opened.run(VIEW_WIDTH)
    opened.click(*spot_of(opened, "[data-zoom='0.8']"))
    assert opened.run(VIEW_WIDTH) == pytest.approx(whole * 0.8, rel=0.01)
    opened.click(*spot_of(opened, "[data-zoom='0']"))
    assert opened.run(VIEW_WIDTH) == pytest.approx(whole, rel=0.001)
    x, y = spot_of(opened, "#drawing")
    opened.run("document.querySelector('#drawing').focus({preventScroll: true})")
    opened.point("mouseWheel", x, y, deltaX=0, deltaY=-240)
    opened.settle()
    wheeled = opened.run(VIEW_WIDTH)
    assert wheeled < whole * 0.9
    opened.press("-")
    assert opened.run(VIEW_WIDTH) > wheeled
    opened.press("0")
    left = "document.querySelector('#drawing').viewBox.baseVal.x"
    before = opened.run(left)
    opened.point("mousePressed", x, y, button="left", clickCount=1)
    for step in range(1, 6):
        opened.point("mouseMoved", x + 20 * step, y, button="left", buttons=1)
    opened.point("mouseReleased", x + 100, y, button="left", clickCount=1)
    opened.settle()
    assert opened.run(left) < before - 20


def test_the_plain_wheel_scrolls_the_page_first(opened: Any) -> None:
    """Whoever scrolls past the drawing is not caught in it."""
    whole = opened.run(VIEW_WIDTH)
    opened.point("mouseWheel", *spot_of(opened, "#drawing"), deltaX=0, deltaY=240)
    opened.settle()
    assert opened.run(VIEW_WIDTH) == whole


def test_colours_change_with_the_view(opened: Any, mesh_30: Contents) -> None:
    """By trouble, a bridge with an error is red and one without is not; keys switch as well."""
    broken = next(
        at
        for at, edge in enumerate(mesh_30.edges)
        if any(
            row["severity"] == "error" and row["bridge"] == edge["bridge"]
            for row in mesh_30.findings
        )
    )
    colour = f"getComputedStyle(document.querySelector('#edge-{broken} .line')).stroke"
    by_load = opened.run(colour)
    opened.click(*spot_of(opened, "[data-view='trouble']"))
    assert by_load != "rgb(208, 51, 58)"
    assert opened.run(colour) == "rgb(208, 51, 58)"
    assert opened.run("getComputedStyle(document.querySelector('.ramp.trouble')).display") == "flex"
    assert opened.run("getComputedStyle(document.querySelector('.ramp.load')).display") == "none"
    opened.press("ArrowRight")
    assert opened.run("document.querySelector('.stage').dataset.by") == "latency"
    checked = "[...document.querySelectorAll('[data-view][aria-checked=true]')].length"
    assert opened.run(checked) == 1


def test_a_tooltip_follows_the_mouse(opened: Any, mesh_30: Contents) -> None:
    """Hovering shows figures, leaving hides them."""
    opened.point("mouseMoved", *spot_of(opened, "#node-0 .card"))
    opened.settle()
    tip = opened.run(
        "document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').innerText"
    )
    assert f"{mesh_30.nodes[0]['router']}/{mesh_30.nodes[0]['vpn']}" in tip
    opened.point("mouseMoved", 5, 5)
    opened.settle()
    assert opened.run("document.querySelector('#tip').hidden")


def test_searching_finds_by_keyboard(opened: Any, mesh_30: Contents) -> None:
    """Typing names what matches; Enter chooses the first and brings it near."""
    wanted = mesh_30.nodes[7]
    opened.run("document.querySelector('#search').focus()")
    opened.call("Input.insertText", text=f"{wanted['router']}/{wanted['vpn']}".upper())
    opened.settle()
    assert opened.run("document.querySelectorAll('#matches [role=option]').length") >= 1
    assert opened.run("document.querySelectorAll('#drawing .match').length") >= 1
    opened.press("Enter")
    assert opened.run("location.hash") == "#node-7"
    assert opened.run("document.querySelector('#matches').hidden")


def test_shapes_are_chosen_by_keyboard(opened: Any) -> None:
    """An arrow that has the focus is chosen with Enter."""
    opened.run("document.querySelector('#edge-3').focus()")
    opened.press("Enter")
    assert opened.run("location.hash") == "#edge-3"


def test_tables_sort_and_filter(opened: Any, mesh_30: Contents) -> None:
    """A click on a heading sorts, the next the other way; text and choices leave what fits."""
    heading = "document.querySelector('#edges th:nth-child(4) button')"
    column = (
        "[...document.querySelectorAll('#edges tbody tr')].map((row) => row.cells[3])"
        ".map((cell) => Number(cell.dataset.key ?? cell.textContent))"
    )
    messages = sorted(edge["messages"] for edge in mesh_30.edges)
    opened.run(f"{heading}.scrollIntoView({{block: 'center'}})")
    for expected in (messages[::-1], messages):
        opened.click(*spot_of(opened, "#edges th:nth-child(4) button"))
        assert opened.run(column) == expected
    visible = (
        "[...document.querySelectorAll('#findings tbody tr')].filter((row) => !row.hidden).length"
    )
    opened.run(
        """(() => { const choice = document.querySelector('select[data-of=findings]');
        choice.value = 'error'; choice.dispatchEvent(new Event('change')); })()"""
    )
    errors = [row for row in mesh_30.findings if row["severity"] == "error"]
    assert opened.run(visible) == len(errors)
    opened.run("document.querySelector('[data-pick=trouble]').click()")
    opened.run(
        """(() => { const text = document.querySelector('[data-filter=findings]');
        text.value = 'FLAPPING'; text.dispatchEvent(new Event('input')); })()"""
    )
    flapping = [row for row in errors if row["kind"] == "flapping_link"]
    assert opened.run(visible) == len(flapping)
    assert f"{len(flapping)} of {len(mesh_30.findings)}" in opened.run(
        "document.querySelector('[data-count=findings]').textContent"
    )


def test_a_link_opens_a_bridge(mesh_30: Contents, text_30: str, browse: Browse) -> None:
    """report.html#edge-5 opens with that bridge chosen."""
    browser = browse(text_30, "#edge-5")
    assert mesh_30.edges[5]["bridge"] in browser.run(PANEL)
    assert browser.complaints == []


def test_pictures_and_paper(opened: Any, tmp_path: Path) -> None:
    """A screenshot in light and in dark that differ, and a PDF in which the drawing is whole."""
    light = opened.picture(tmp_path / "light.png")
    assert light[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(light[16:20], "big") == 1400
    assert len(light) > 50_000
    opened.colours("dark")
    opened.settle()
    dark = opened.picture(tmp_path / "dark.png")
    assert len(dark) > 50_000
    assert dark != light
    opened.run("document.querySelector(\"[data-zoom='0.8']\").click()")
    zoomed = opened.run(VIEW_WIDTH)
    printed = opened.paper(tmp_path / "report.pdf")
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 100_000
    assert opened.run(VIEW_WIDTH) == pytest.approx(zoomed)


@pytest.mark.slow
def test_a_large_mesh_stays_usable(meshes: ModuleType, browse: Browse) -> None:
    """1,500 bridges: all drawn, the file reasonable, a click answered, a zoom shown."""
    contents = meshes.mesh(300, 700, 1_500)
    text = page(meshes.summary_of(contents), contents)
    assert len(text) < 6_000_000
    browser = browse(text)
    assert browser.run("document.querySelectorAll('#drawing g.edge').length") == 1_500
    assert browser.run("document.querySelectorAll('#drawing g.node').length") == 700
    browser.run("document.querySelector('#topology').scrollIntoView()")
    busiest = max(range(1_500), key=lambda at: contents.edges[at]["messages"])
    browser.click(*spot_on_line(browser, busiest))
    assert contents.edges[busiest]["bridge"] in browser.run(PANEL)
    browser.run("document.querySelector(\"[data-zoom='0.8']\").click()")
    browser.settle()
    assert browser.complaints == []


LYING = """(() => {
  const boxes = (selector) => [...document.querySelectorAll(selector)].map((one) =>
    [one.textContent || one.parentNode.id, one.getBoundingClientRect()]);
  const labels = boxes("#drawing .edge text");
  const others = [...boxes("#drawing .card"), ...boxes("#drawing .router-name")];
  const found = [];
  labels.forEach(([text, one], at) => {
    for (const [other, two] of [...labels.slice(at + 1), ...others])
      if (one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom)
        found.push(`${text} lies on ${other}`);
  });
  return [labels.length, found];
})()"""


def test_labels_of_bridges_lie_on_nothing(browse: Browse, meshes: ModuleType) -> None:
    """As the browser draws small meshes, no label is on another, on a card or on the name of a router."""
    for routers, vpns, bridges in ((2, 4, 4), (4, 8, 10), (7, 14, 16)):
        contents = meshes.mesh(routers, vpns, bridges)
        browser = browse(page(meshes.summary_of(contents), contents))
        browser.settle()
        count, found = browser.run(LYING)
        assert count > 0
        assert found == [], (routers, vpns, bridges)


@pytest.mark.parametrize("width", [1400, 1024, 390])
def test_the_page_is_no_wider_than_the_window(
    browse: Browse, meshes: ModuleType, width: int
) -> None:
    """On a desk and on a phone: wide tables scroll by themselves."""
    contents = meshes.mesh(7, 14, 16)
    browser = browse(page(meshes.summary_of(contents), contents))
    try:
        browser.resize(width, 900)
        browser.settle()
        wide = browser.run(
            """[...document.querySelectorAll("body *")].filter((one) =>
            !one.closest(".scroll, nav, svg") && one.getBoundingClientRect().right > innerWidth + 1)
            .map((one) => one.tagName + "." + one.className)"""
        )
        assert wide == []
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    finally:
        # The window is that of all tests.
        browser.resize(1400, 900)
