"""vpnrouter.topology.page.page: one offline HTML file, harmless whatever the data say."""

import base64
import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from vpnrouter.topology.page.page import Findings, page

Make = Callable[..., dict[str, Any]]

HOSTILE: Final = (
    "</script><script>document.title='owned'</script>",
    "</title></style></svg><img src=x onerror=\"document.title='owned'\">",
    "\"' onmouseover=document.title='owned' x='",
    "{{ 7 * 7 }}{% raw %}<!--",
    "https://example.org/a.js\u202e\x00\u2028",
)
VOID: Final = {"meta", "img", "link", "br", "hr", "input"}


class Outline(HTMLParser):
    """What a page is made of; any tag that is not closed in order is noted in `crossed`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.script: list[str] = []
        self.crossed: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.crossed.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.script.append(data)

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        """Attributes of the elements that have this class."""
        return [given for _, given in self.tags if name in (given.get("class") or "").split()]

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of the elements of this name."""
        return [given for name, given in self.tags if name == tag]


@pytest.fixture
def summary() -> dict[str, Any]:
    """The fields of a summary, all messages traced."""
    return {
        "files": 2,
        "rows": 5_000,
        "size_bytes": 80_000,
        "set_aside": [],
        "sampling": {"edge": 1.0, "core": 1.0},
        "routers": 2,
        "vpns": 3,
        "bridges": 2,
        "topics": 1,
        "ingress": 1_000,
        "ingress_estimated": 1_000,
        "bridged": 100,
        "bridged_estimated": 100,
        "delivered": 100,
        "delivered_estimated": 100,
        "discarded": 0,
        "rejected": 0,
        "first_ns": 1_371_000_000_000_000_000,
        "last_ns": 1_371_000_600_000_000_000,
        "seconds": 12.3,
        "page": "report.html",
    }


@pytest.fixture
def findings(node: Make, edge: Make, topic: Make, discard: Make) -> Findings:
    """Three VPNs, two bridges, something in every table."""
    return Findings(
        nodes=[node("core", "red"), node("core", "yellow"), node("edge", "blue")],
        edges=[
            edge("edge/blue", "core/yellow", messages=4_711),
            edge("core/yellow", "core/red", bridge="inner", messages=7),
        ],
        topics=[topic("flights/UA")],
        topic_count=1,
        discards=[discard("slow consumer")],
        timeline=[
            {"start_ns": at * 10**9, "ingress": at, "bridged": 1, "delivered": 1, "discarded": 0}
            for at in range(1, 4)
        ],
        timeline_width_ns=10**9,
    )


def hostile(names: tuple[str, ...], make: dict[str, Make]) -> Findings:
    """The same text in every place that data can reach."""
    node, edge, topic, discard = (make[name] for name in ("node", "edge", "topic", "discard"))
    nodes = [node(f"r{name}", f"v{name}") for name in names]
    ends = {"from_router": nodes[0]["router"], "from_vpn": nodes[0]["vpn"]}
    return Findings(
        nodes=nodes,
        edges=[
            edge("x/y", "x/y", bridge=name)
            | ends
            | {"to_router": row["router"], "to_vpn": row["vpn"]}
            for name, row in zip(names, nodes, strict=True)
        ],
        topics=[topic(name, router=name, vpn=name) for name in names],
        topic_count=len(names),
        discards=[
            discard(name, place=name, example_topic=name, router=name, vpn=name, event=name)
            for name in names
        ],
        timeline=[],
        timeline_width_ns=10**9,
    )


def test_the_page_is_made_of_the_data(summary: dict[str, Any], findings: Findings) -> None:
    """Well formed, with as many nodes, edges and rows as the data have, each shape with its row."""
    outline = Outline(page(summary, findings))
    assert outline.crossed == []
    assert len(outline.with_class("node")) == len(findings.nodes)
    assert len(outline.with_class("edge")) == len(findings.edges)
    assert len(outline.with_class("router")) == 2
    ids = [given["id"] for _, given in outline.tags if "id" in given]
    assert len(ids) == len(set(ids))
    assert {given["data-row"] for _, given in outline.tags if "data-row" in given} <= set(ids)
    assert {given["id"] for given in outline.of("table")} == {
        "edges",
        "nodes",
        "topics",
        "discards",
    }
    assert len([row for row in outline.of("tr") if "id" in row]) == 3 + 2 + 1 + 1


def test_the_page_needs_no_network(summary: dict[str, Any], findings: Findings) -> None:
    """Nothing is loaded, and a policy forbids loading; it allows the page's own script alone."""
    text = page(summary, findings)
    outline = Outline(text)
    assert not outline.of("link") + outline.of("img") + outline.of("iframe")
    assert [given for given in outline.of("script") if given] == []
    assert not re.search(r"url\(|@import|https?://", text)
    (policy,) = [
        given["content"] for given in outline.of("meta") if given.get("http-equiv") is not None
    ]
    digest = base64.b64encode(hashlib.sha256("".join(outline.script).encode()).digest()).decode()
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert len(text) < 1_000_000


def test_hostile_names_stay_text(
    summary: dict[str, Any], node: Make, edge: Make, topic: Make, discard: Make
) -> None:
    """Markup, quotes, templates and control characters in any name change nothing but the text."""
    make = {"node": node, "edge": edge, "topic": topic, "discard": discard}
    calm = tuple(f"name{n}" for n in range(len(HOSTILE)))
    aside = [{"path": name, "reason": name} for name in HOSTILE]
    bad = Outline(page(summary | {"set_aside": aside}, hostile(HOSTILE, make)))
    aside = [{"path": name, "reason": name} for name in calm]
    good = Outline(page(summary | {"set_aside": aside}, hostile(calm, make)))
    assert [tag for tag, _ in bad.tags] == [tag for tag, _ in good.tags]
    assert [set(given) for _, given in bad.tags] == [set(given) for _, given in good.tags]
    assert bad.script == good.script
    assert bad.crossed == []


def test_the_page_says_what_its_counts_are(summary: dict[str, Any], findings: Findings) -> None:
    """Exact where all was traced, estimates where rates are known, a warning where they are not."""
    exact = page(summary, findings)
    assert "counts are exact" in exact
    assert "Estimated" not in exact
    sampled = {"sampling": {"edge": 0.01, "core": 0.01}, "ingress_estimated": 12_345_678}
    estimated = page(summary | sampled, findings)
    assert "edge 1 %" in estimated
    assert "≈ 12.3M" in estimated
    assert "Estimated" in estimated
    unknown = page(summary | {"sampling": {}, "ingress_estimated": None}, findings)
    assert "do not state their sampling rate" in unknown


def test_what_was_set_aside_is_named(summary: dict[str, Any], findings: Findings) -> None:
    """The page names each file that is not part of it, with the reason."""
    aside = [{"path": "/traces/part-1.parquet", "reason": "damaged: no footer"}]
    text = page(summary | {"set_aside": aside}, findings)
    assert "1 file was set aside" in text
    assert "/traces/part-1.parquet" in text
    assert "damaged: no footer" in text


def test_a_mesh_without_bridges_has_a_page(summary: dict[str, Any], node: Make) -> None:
    """Empty tables are sentences, not empty tables."""
    bare = Findings(
        nodes=[node("solo", "default")],
        edges=[],
        topics=[],
        topic_count=0,
        discards=[],
        timeline=[],
        timeline_width_ns=10**9,
    )
    outline = Outline(page(summary | {"bridges": 0}, bare))
    assert outline.crossed == []
    assert len(outline.with_class("node")) == 1
    assert len(outline.with_class("empty")) == 3


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Opens a page in headless Chromium; returns its elements afterwards, and what it complained of."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: install it (on Debian: apt install chromium)")

    def run(text: str, fragment: str = "", *arguments: str) -> tuple[str, str]:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8", errors="replace")
        done = subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--enable-logging=stderr",
                f"--user-data-dir={tmp_path / 'profile'}",
                *(arguments or ("--dump-dom",)),
                f"{path.as_uri()}{fragment}",
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        spoken = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout, "\n".join(spoken)

    return run


@pytest.mark.peers
@pytest.mark.slow
def test_a_browser_shows_the_chosen_bridge(
    summary: dict[str, Any], findings: Findings, browse: Callable[..., tuple[str, str]]
) -> None:
    """Without script errors the page opens, with the busiest bridge's figures or the one linked to."""
    text = page(summary, findings)
    shown, complaints = browse(text)
    assert complaints == ""
    panel = shown[shown.index('<aside id="panel"') : shown.index("</aside>")]
    assert "fares: edge/blue → core/yellow" in panel
    assert "<dt>Messages</dt><dd>4,711</dd>" in panel
    linked, complaints = browse(text, "#edge-1")
    assert complaints == ""
    panel = linked[linked.index('<aside id="panel"') : linked.index("</aside>")]
    assert "inner: core/yellow → core/red" in panel
    assert "<dt>Messages</dt><dd>7</dd>" in panel


@pytest.mark.peers
@pytest.mark.slow
def test_a_browser_runs_nothing_hostile(
    summary: dict[str, Any],
    node: Make,
    edge: Make,
    topic: Make,
    discard: Make,
    browse: Callable[..., tuple[str, str]],
) -> None:
    """Hostile names are shown and not run, and nothing tries to reach the network."""
    make = {"node": node, "edge": edge, "topic": topic, "discard": discard}
    shown, complaints = browse(page(summary, hostile(HOSTILE, make)))
    assert complaints == ""
    assert "<title>Routing topology" in shown
    assert "owned" in shown
    assert Outline(shown).with_class("node")


@pytest.mark.peers
@pytest.mark.slow
def test_clicks_and_sorting_work(
    summary: dict[str, Any], findings: Findings, browse: Callable[..., tuple[str, str]]
) -> None:
    """A click on a shape fills the panel, one on a heading sorts, one on + zooms in."""
    text = page(summary, findings)
    clicks = """
    const click = (selector) => document.querySelector(selector)
      .dispatchEvent(new MouseEvent("click", {bubbles: true}));
    click("#edge-1");
    click("#edges th:nth-child(4) button"); click("#edges th:nth-child(4) button");
    click("[data-zoom='0.8']");
    """
    # The page's policy allows no script but its own: the test's goes in its place with both hashed.
    script = "".join(Outline(text).script)
    both = script + clicks
    hashes = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, both)
    ]
    shown, complaints = browse(text.replace(script, both).replace(*hashes))
    assert complaints == ""
    panel = shown[shown.index('<aside id="panel"') : shown.index("</aside>")]
    assert "inner: core/yellow → core/red" in panel
    rows = re.findall(r'<tr id="edges-(\d)"', shown)
    assert rows == ["1", "0"]
    width = float(view_width(text))
    zoomed = float(view_width(shown))
    assert zoomed == pytest.approx(width * 0.8, rel=0.01)


@pytest.mark.peers
@pytest.mark.slow
def test_a_picture_can_be_taken(
    summary: dict[str, Any],
    findings: Findings,
    browse: Callable[..., tuple[str, str]],
    tmp_path: Path,
) -> None:
    """The page renders to a PNG of the size asked for."""
    picture = tmp_path / "report.png"
    browse(page(summary, findings), "", f"--screenshot={picture}", "--window-size=1280,900")
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20], "big") == 1280


def view_width(text: str) -> str:
    """The width of the drawing's view box."""
    found = re.search(r'id="drawing"[^>]*viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', text)
    assert found is not None
    return found[1]
