"""Providers on the page: which are drawn and by which arrows, their figures, their table, and a browser that shows
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.report.page import outside as outside_module
from vpnrouter.report.page.contents import Contents, ShapeIndex, grade
from vpnrouter.report.page.drawing import Drawing, draw
from vpnrouter.report.page.outside import outside
from vpnrouter.report.page.page import page
from vpnrouter.report.schema import PROVIDERS, Rows

Make = Callable[..., dict[str, Any]]
BROKER: Final = "mqtt://broker:1883"


def row(vpn: str = "edge/blue", way: str = "in", messages: int = 5, **more: Any) -> dict[str, Any]:
    """A row of PROVIDERS."""
    router, _, name = vpn.partition("/")
    texts = {"connector": "c", "link": "l", "provider": BROKER}
    figures = dict.fromkeys(PROVIDERS.names[6:], 1)
    return {"router": router, "vpn": name, "direction": way, **texts, **figures} | {
        "messages": messages,
        **more,
    }


def drawing_of(contents: Contents) -> Drawing:
    """The drawing of all rows."""
    graded = grade(contents, ShapeIndex(contents.nodes, contents.edges))
    return draw(contents.nodes, contents.edges, graded, contents.providers)


@pytest.mark.parametrize(
    ("rows", "titles", "feeds", "left_out"),
    [
        ([], [], [], 0),
        # Links of one connector and direction are one arrow, the busiest come first.
        ([row(), row(link="m", messages=2), row(way="out", messages=6)],
         [BROKER], [("c: edge/blue → mqtt://broker:1883", 6), ("c: mqtt://broker:1883 → edge/blue", 7)], 0),
        # One provider of two message VPNs, by connectors of one name.
        ([row(), row("core/red")],
         [BROKER], [(f"c: {BROKER} → core/red", 5), (f"c: {BROKER} → edge/blue", 5)], 0),
        # Beyond the bound the busiest; nothing is drawn to a message VPN that is not, nor of no provider.
        ([row(connector=f"c{at}", messages=at) for at in range(1, 6)],
         [BROKER], [(f"c{at}: {BROKER} → edge/blue", at) for at in (5, 4, 3)], 2),
        ([row("core/hidden"), row("no/where"), row(provider=None)], [], [], 2),
        # What cannot be shown is spelt out, and no address is no trouble.
        ([row(provider="mqtt://[x\n")], ["mqtt://[x\\n"], [("c: mqtt://[x\\n → edge/blue", 5)], 0),
    ],
)  # fmt: skip
def test_what_is_drawn(
    rows: Rows,
    titles: list[str],
    feeds: list[tuple[str, int]],
    left_out: int,
    node: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Providers by name, arrows by connector and direction, with their messages, and how many are not drawn."""
    monkeypatch.setattr(outside_module, "REPORT_DRAWN_FEEDS", 3)
    nodes = [node("edge", "blue"), node("core", "red"), node("core", "hidden")]
    found = outside(rows, ShapeIndex(nodes, []), {0, 1})
    assert sorted(one.name for one in found.providers) == titles
    assert sorted((one.title, one.messages) for one in found.feeds) == sorted(feeds)
    counts = [one.messages for one in found.feeds]
    assert counts == sorted(counts, reverse=True)
    assert found.left_out == left_out
    for at, one in enumerate(found.feeds):
        assert [found.shape(each) for each in one.rows] == [f"feed-{at}"] * len(one.rows)
    sums = [sum(one.incoming + one.outgoing for one in found.providers)]
    assert sums == [sum(one.messages for one in found.feeds)]


@pytest.mark.parametrize(
    ("routers", "bridges", "providers"), [(3, 4, 2), (30, 90, 12), (90, 200, 60)]
)
def test_providers_stand_apart(
    meshes: ModuleType, routers: int, bridges: int, providers: int
) -> None:
    """Each has a shape with its name that lies on no router and on no other; each feed an arrow from the one to the
    other; bridges and message VPNs are as many as ever.
    """
    bare = meshes.mesh(routers, 2 * routers, bridges)
    contents = meshes.with_providers(bare, providers)
    drawing = drawing_of(contents)
    assert len(drawing.pills) == providers
    frames = [*drawing.boxes, *drawing.pills]
    for at, one in enumerate(frames):
        for other in frames[at + 1 :]:
            assert (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y
                or other.y + other.height <= one.y
            )
    assert all(pill.x > 0 and pill.x + pill.width < drawing.width for pill in drawing.pills)
    arrows = [arrow for arrow in drawing.arrows if arrow.feed]
    assert len(arrows) == 2 * providers
    cards = {card.row: card for box in drawing.boxes for card in box.cards}
    for arrow in arrows:
        feed = drawing.outside.feeds[arrow.row]
        ends = [drawing.pills[feed.provider], cards[feed.node]]
        for shape, point in zip(ends if feed.inward else ends[::-1], arrow.curve[::3], strict=True):
            assert shape.x - 1 <= point[0] <= shape.x + shape.width + 1
            assert shape.y - 1 <= point[1] <= shape.y + shape.height + 1
    assert len(drawing.arrows) - len(arrows) == bridges
    assert drawing_of(bare).pills == []


def test_without_connectors_nothing_is_said(mesh_30: Contents, text_30: str) -> None:
    """No section, no link to one, no word."""
    assert mesh_30.providers == []
    body = text_30[text_30.index("<body>") : text_30.index('<script type="application/json"')]
    assert "rovider" not in body.replace("a bridge or a provider", "")
    assert 'class="feed' not in body


def test_page_table_and_panel(meshes: ModuleType) -> None:
    """Each row with its share of a direction, linked to its arrow; the panel's figures are sums of a feed's links."""
    contents = meshes.with_providers(meshes.mesh(3, 5, 5), 2)
    text = page(meshes.summary_of(contents), contents)
    assert '<a href="#outside">Providers</a>' in text
    (table,) = re.findall(r'<table class="sheet" id="providers">.*?</table>', text, re.DOTALL)
    cells = [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td.*?</td>", line)]
        for line in re.findall(r"<tr id=.*?</tr>", table)
    ]
    assert [line[1:8] for line in cells[:2]] == [
        ["in, from it", "c1", "in-1", "berlin/trading", "2,001", "33.3 %", "62.5 KiB"],
        ["out, to it", "c1", "out-1", "berlin/trading", "2,001", "33.3 %", "62.5 KiB"],
    ]
    assert len(cells) == 8
    assert set(re.findall(r'href="#(feed-\d)"', table)) == {f"feed-{at}" for at in range(4)}
    (block,) = re.findall(r'id="details">(.*?)</script>', text)
    told = json.loads(block)
    assert [one["f"] for one in told["providers"].values()] == [
        ["4,001", "4,001"],
        ["2,001", "2,001"],
    ]
    for one in told["feeds"].values():
        assert len(one["f"]) == len(told["feedHeads"])
        assert len(one["l"]) == 2
        assert sum(int(count.replace(",", "")) for _, count in one["l"]) == int(
            one["f"][0].replace(",", "")
        )


PANEL: Final = "document.querySelector('#panel').innerText"


@pytest.mark.peers
def test_a_browser_shows_them(meshes: ModuleType, browse: Callable[..., Any]) -> None:
    """A click on a provider shows its figures and its arrows, which lead on; the search finds it; names lie on nothing
    else; nothing is complained of.
    """
    contents = meshes.with_providers(meshes.mesh(3, 5, 5), 2)
    browser = browse(page(meshes.summary_of(contents), contents))
    assert browser.run("document.querySelectorAll('#drawing g.provider').length") == 2
    browser.run("document.querySelector('#topology').scrollIntoView()")
    browser.settle()
    x, y = browser.run(
        "(() => { const box = document.querySelector('#provider-0').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.click(x, y)
    shown = browser.run(PANEL)
    assert "mqtt://broker-1.example.org:1883" in shown
    assert "4,001" in shown
    assert browser.run("location.hash") == "#provider-0"
    assert browser.run("document.querySelectorAll('#drawing .near').length") == 2
    assert browser.run("document.querySelectorAll('tr.chosen').length") == 0
    browser.run("document.querySelector('#panel .bridges a').click()")
    browser.settle()
    shown = browser.run(PANEL)
    assert shown.startswith("Connector")
    assert all(text in shown for text in ("in-0", "2,000", "in-1", "2,001"))
    browser.run("document.querySelector('#panel .whither a').click()")
    browser.settle()
    assert "Connectors (2)" in browser.run(PANEL)
    browser.run("document.querySelector('#search').focus()")
    browser.call("Input.insertText", text="broker-0")
    browser.settle()
    browser.press("Enter")
    assert browser.run(PANEL).startswith("Provider")
    fits = """[...document.querySelectorAll('.of-provider')].every((name, at) => {
      const text = name.getBoundingClientRect();
      const pill = document.querySelector(`#provider-${at} rect`).getBoundingClientRect();
      return pill.left <= text.left && text.right <= pill.right && pill.top <= text.top && text.bottom <= pill.bottom;
    })"""
    assert browser.run(fits)
    assert browser.complaints == []
    browser = browse(page(meshes.summary_of(contents), contents), "#feed-0")
    assert browser.run(PANEL).startswith("Connector")
    assert browser.complaints == []
