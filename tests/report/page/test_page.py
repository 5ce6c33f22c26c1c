"""The report as one HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.limits import REPORT_PAGE_SHAPE_FINDINGS, REPORT_PAGE_SPANS
from vpnrouter.report.page import panel
from vpnrouter.report.page.charts import histograms, rates_of
from vpnrouter.report.page.contents import Contents, ShapeIndex, grade
from vpnrouter.report.page.outside import outside
from vpnrouter.report.page.page import advice_items, page, verdict
from vpnrouter.report.schema import ADVICE, CHANGES, CLOCKS, END_TO_END, FINDINGS, PAIRS, VPNS, WAYS


def block_of(contents: Contents) -> dict[str, Any]:
    """The block, read back."""
    places = ShapeIndex(contents.nodes, contents.edges)
    text = panel.details(
        contents,
        grade(contents, places),
        places,
        rates_of(contents, places),
        histograms(contents.latencies, places),
        outside(contents.providers, places, places.drawn_nodes),
    )
    assert not set("<>&\u2028\u2029") & set(text)
    read: dict[str, Any] = json.loads(text)
    return read


def test_markup_is_escaped() -> None:
    """No text can end the script element or begin another, and it is read back whole."""
    text = "</script><!--\u2028&amp;"
    escaped = panel.embedded({text: [text]})
    assert not set("<>&\u2028") & set(escaped)
    assert json.loads(escaped) == {text: [text]}


def test_each_shape_has_its_details(mesh_30: Contents) -> None:
    """Every node and edge, a text under each heading, rates and histograms as the rows have them."""
    block = block_of(mesh_30)
    assert len(block["edges"]) == len(mesh_30.edges)
    assert len(block["nodes"]) == len(mesh_30.nodes)
    assert {len(one["f"]) for one in block["edges"].values()} == {len(block["edgeHeads"])}
    assert {len(one["f"]) for one in block["nodes"].values()} == {len(block["nodeHeads"])}
    for at, row in enumerate(mesh_30.edges):
        one = block["edges"][str(at)]
        counted = [rate["messages"] for rate in mesh_30.rates if rate["bridge"] == row["bridge"]]
        assert sum(one.get("r", [])) == sum(counted)
        assert one["f"][0] == f"{row['messages']:,}"
        start, goal = (mesh_30.nodes[end] for end in one["e"])
        assert (start["router"], goal["vpn"]) == (row["from_router"], row["to_vpn"])


def test_findings_and_spans_are_bounded(mesh_30: Contents) -> None:
    """The worst findings and the latest spans are kept, and how many there are is said."""
    edge = mesh_30.edges[0]
    key = {
        name: edge[name] for name in ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
    }
    finding = next(row for row in mesh_30.findings if row["bridge"] is not None) | {
        "router": edge["to_router"],
        "vpn": edge["to_vpn"],
        "peer_router": edge["from_router"],
        "peer_vpn": edge["from_vpn"],
        "bridge": edge["bridge"],
    }
    first, last = mesh_30.span
    many = REPORT_PAGE_SHAPE_FINDINGS
    contents = Contents(
        nodes=mesh_30.nodes,
        edges=[edge],
        findings=[finding | {"severity": "info"}] * many + [finding | {"severity": "error"}] * 3,
        links=[
            key | {"up_ns": first + at, "down_ns": first + at, "reason": None} for at in range(99)
        ]
        + [key | {"up_ns": (first + last) // 2, "down_ns": None, "reason": None}],
        span=mesh_30.span,
    )
    block = block_of(contents)
    one = block["edges"]["0"]
    assert len(one["w"]) == many
    assert one["m"] == 3
    assert [block["findings"][at][0] for at in one["w"][:4]] == ["error"] * 3 + ["info"]
    assert (len(one["u"]), one["n"]) == (REPORT_PAGE_SPANS, 100)
    assert one["u"][-1] == [500, 1_000]


Make = Callable[..., dict[str, Any]]

HOSTILE: Final = (
    "</script><script>document.title='owned'</script>",
    "</title></style></svg><img src=x onerror=\"document.title='owned'\">",
    "\"' onmouseover=document.title='owned' x='",
    "{{ 7 * 7 }}{% raw %}<!--",
    "https://example.org/a.js\u202e\x00\u2028",
)
NUMBERS: Final = {
    *("messages", "bytes", "value", "rank", "score", "before", "after", "corrected", "pairs"),
    *("hops", "component", "articulation", "centrality", "bridges_in", "bridges_out", "links"),
    *("widest", "drift_ppm"),
}
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
def summary(contents: Contents, meshes: ModuleType) -> dict[str, Any]:
    """The fields of a summary, all messages traced."""
    given: dict[str, Any] = meshes.summary_of(contents)
    return given | {
        "ingress_estimated": 1_000,
        "bridged_estimated": 100,
        "delivered_estimated": 100,
    }


@pytest.fixture
def contents(node: Make, edge: Make, topic: Make, discard: Make) -> Contents:
    """Three VPNs, two bridges, something in every table."""
    return Contents(
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


def everywhere(columns: list[str], text: str) -> dict[str, Any]:
    """A row with the text in every column that has no number."""
    return {
        column: 1 if column in NUMBERS or column.endswith("_ns") else text for column in columns
    }


def hostile(names: tuple[str, ...], make: dict[str, Make]) -> Contents:
    """The same text in every place that data can reach."""
    node, edge, topic, discard = (make[name] for name in ("node", "edge", "topic", "discard"))
    nodes = [node(f"r{name}", f"v{name}") for name in names]
    ends = {"from_router": nodes[0]["router"], "from_vpn": nodes[0]["vpn"]}
    return Contents(
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
        findings=[everywhere(FINDINGS.names, name) | {"severity": "error"} for name in names],
        advice=[everywhere(ADVICE.names, name) | {"rank": 1} for name in names],
        changes=[everywhere(CHANGES.names, name) for name in names],
        end_to_end=[everywhere(END_TO_END.names, name) for name in names],
        clocks=[everywhere(CLOCKS.names, name) for name in names],
        ways=[everywhere(WAYS.names, name) for name in names],
        vpns=[everywhere(VPNS.names, name) for name in names],
        pairs=[everywhere(PAIRS.names, name) for name in names],
        notes=list(names),
        timeline=[],
        timeline_width_ns=10**9,
    )


def test_the_page_is_made_of_the_data(summary: dict[str, Any], contents: Contents) -> None:
    """Well formed, with as many nodes, edges and rows as the data have, each shape with its row."""
    outline = Outline(page(summary, contents))
    assert outline.crossed == []
    assert len(outline.with_class("node")) == len(contents.nodes)
    assert len(outline.with_class("edge")) == len(contents.edges)
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


def test_the_page_needs_no_network(summary: dict[str, Any], contents: Contents) -> None:
    """Nothing is loaded, and a policy forbids loading; it allows the page's own script alone."""
    text = page(summary, contents)
    outline = Outline(text)
    assert not outline.of("link") + outline.of("img") + outline.of("iframe")
    assert [given.get("type") for given in outline.of("script")] == ["application/json", None]
    assert not re.search(r"url\(|@import|https?://", text)
    (policy,) = [
        given["content"] for given in outline.of("meta") if given.get("http-equiv") is not None
    ]
    digest = base64.b64encode(hashlib.sha256(outline.script[-1].encode()).digest()).decode()
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
    assert bad.script[-1] == good.script[-1]
    assert bad.crossed == []


def test_the_page_says_what_its_counts_are(summary: dict[str, Any], contents: Contents) -> None:
    """Exact where all was traced, estimates where rates are known, a warning where they are not."""
    exact = page(summary, contents)
    assert "counts are exact" in exact
    assert "Estimated" not in exact
    sampled = {"sampling": {"edge": 0.01, "core": 0.01}, "ingress_estimated": 12_345_678}
    estimated = page(summary | sampled, contents)
    assert "edge 1 %" in estimated
    assert "≈ 12.3M" in estimated
    assert "Estimated" in estimated
    unknown = page(summary | {"sampling": {}, "ingress_estimated": None}, contents)
    assert "do not state their sampling rate" in unknown


def test_what_was_set_aside_is_named(summary: dict[str, Any], contents: Contents) -> None:
    """The page names each file that is not part of it, with the reason."""
    aside = [{"path": "/traces/part-1.parquet", "reason": "damaged: no footer"}]
    text = page(summary | {"set_aside": aside}, contents)
    assert "1 file was set aside" in text
    assert "/traces/part-1.parquet" in text
    assert "damaged: no footer" in text


def test_a_mesh_without_bridges_has_a_page(summary: dict[str, Any], node: Make) -> None:
    """Empty tables are sentences, not empty tables."""
    bare = Contents(
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
    assert len(outline.with_class("empty")) == 5


def test_every_table_has_its_place(mesh_30: Contents, meshes: ModuleType) -> None:
    """With something in every table, each has its section, advice stands first, ids are unique."""
    text = page(meshes.summary_of(mesh_30), mesh_30)
    outline = Outline(text)
    assert outline.crossed == []
    ids = [given["id"] for _, given in outline.tags if "id" in given]
    assert len(ids) == len(set(ids))
    assert {given["id"] for given in outline.of("table") if "id" in given} == {
        *("findings", "changes", "end_to_end", "clocks", "ways", "discards", "topics", "vpns"),
        *("pairs", "edges", "nodes", "usage", "what_if", "blast_radius", "growth"),
    }
    sections = [given["id"] for given in outline.of("section")]
    assert sections[:3] == ["advice", "topology", "found"]
    anchors = {str(given["href"]).removeprefix("#") for given in outline.of("a")}
    assert anchors <= set(ids)
    assert len(outline.with_class("advice-item")) == len(mesh_30.advice)
    assert "taken off for" in text
    assert mesh_30.notes[0] in text


class Named(HTMLParser):
    """Collects elements with a label, the text that is seen within them, and heads of tables without text."""

    def __init__(self) -> None:
        super().__init__()
        self.labelled: list[tuple[str, str]] = []
        self.bare = 0
        self._open: list[tuple[str, str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        if tag in {"g", "button", "th"}:
            self._open.append((tag, dict(attrs).get("aria-label") or "", []))

    def handle_data(self, data: str) -> None:
        """Text is seen within all elements around it."""
        for _, _, texts in self._open:
            texts.append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if self._open and self._open[-1][0] == tag:
            _, label, texts = self._open.pop()
            seen = " ".join(text for text in texts if text)
            self.bare += tag == "th" and not seen
            if label and re.search(r"\w", seen):
                self.labelled.append((label, seen))


def test_labels_have_what_is_seen(meshes: ModuleType) -> None:
    """Who speaks to a computer says what is written on a shape; and each column has a head."""
    contents = meshes.mesh(4, 8, 10)
    parser = Named()
    parser.feed(page(meshes.summary_of(contents), contents))
    assert len(parser.labelled) > 12
    assert [one for one in parser.labelled if one[1] not in one[0]] == []
    assert parser.bare == 0


def test_missing_figures_are_dashes(mesh_30: Contents, meshes: ModuleType) -> None:
    """Rows whose every optional column is null make a page too."""
    ends = {"from_router", "from_vpn", "to_router", "to_vpn"}
    edges = [
        {name: value if name in ends else None for name, value in row.items()}
        for row in mesh_30.edges
    ]
    bare = Contents(nodes=mesh_30.nodes, edges=edges, span=mesh_30.span)
    outline = Outline(page(meshes.summary_of(mesh_30), bare))
    assert outline.crossed == []
    assert len(outline.with_class("edge")) == len(edges)


def test_what_is_not_drawn_is_said(
    mesh_30: Contents, meshes: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound the page draws less, says how much less, and links only to what is drawn."""
    monkeypatch.setattr("vpnrouter.report.page.drawing.REPORT_DRAWN_SHAPES", 20)
    text = page(meshes.summary_of(mesh_30), mesh_30)
    outline = Outline(text)
    drawn = len(outline.with_class("edge"))
    assert 0 < drawn <= 20
    assert f"{60 - 20} message VPNs and {90 - drawn} bridges" in text
    ids = {given["id"] for _, given in outline.tags if "id" in given}
    assert {str(given["href"])[1:] for given in outline.of("a")} <= ids


@pytest.mark.peers
def test_a_browser_runs_nothing_hostile(
    summary: dict[str, Any],
    node: Make,
    edge: Make,
    topic: Make,
    discard: Make,
    browse: Callable[..., Any],
) -> None:
    """Hostile names are shown and not run, also in panel, tooltip and search; nothing is loaded."""
    make = {"node": node, "edge": edge, "topic": topic, "discard": discard}
    browser = browse(page(summary, hostile(HOSTILE, make)))
    for at in range(len(HOSTILE)):
        browser.run(f"location.hash = 'edge-{at}'")
        browser.settle()
        assert browser.run("document.querySelector('#panel h3').textContent")
    browser.run(
        """(() => { const box = document.querySelector('#search'); box.value = 'owned';
        box.dispatchEvent(new Event('input')); })()"""
    )
    assert browser.run("document.querySelectorAll('#matches [role=option]').length") > 0
    assert browser.run("document.title").startswith("Routing topology")
    assert browser.run("document.querySelectorAll('img, [onmouseover]').length") == 0
    assert browser.complaints == []
    assert browser.requests[1:] == []


def found(*kinds: tuple[str, str]) -> Contents:
    """Contents with findings of (kind, severity)."""
    blank = dict.fromkeys(FINDINGS.names)
    rows = [blank | {"kind": kind, "severity": severity} for kind, severity in kinds]
    return Contents(nodes=[], edges=[], findings=rows)


@pytest.mark.parametrize(
    ("kinds", "tone", "text"),
    [
        ((), "good", "No errors, no warnings"),
        ((("covered", "info"),), "good", "No errors, no warnings"),
        ((("black_hole", "warning"),), "warning", "No errors, 1 warning"),
        ((("loop", "error"), ("loop", "error")), "error", "2 errors, 0 warnings"),
    ],
)
def test_the_worst_sets_the_tone(kinds: tuple[tuple[str, str], ...], tone: str, text: str) -> None:
    """One error is an error; notes alone are no trouble."""
    said = verdict(found(*kinds))
    assert (said.tone, said.text) == (tone, text)


def test_findings_are_counted_by_what_they_are_about() -> None:
    """Areas without findings are left out, the most frequent kind comes first."""
    said = verdict(
        found(
            ("loop", "error"),
            ("black_hole", "warning"),
            ("black_hole", "warning"),
            ("covered", "info"),
        )
    )
    assert [(one.name, one.errors, one.warnings, one.infos) for one in said.areas] == [
        ("trouble", 1, 2, 0),
        ("subscriptions", 0, 0, 1),
    ]
    assert said.areas[0].kinds == "black hole 2, loop 1"


def test_advice_keeps_its_rank_and_finds_its_place() -> None:
    """By rank whatever the order of the rows; control characters are spelt out."""
    blank: dict[str, Any] = dict.fromkeys(ADVICE.names)
    rows = [
        blank
        | {"rank": 2, "advice": "second\u202e", "action": "add_link", "router": "c", "vpn": "z"},
        blank | {"rank": 1, "advice": "first", "router": "a", "vpn": "x"},
    ]
    nodes = [{"router": "a", "vpn": "x"}]
    given = advice_items(Contents(nodes=nodes, edges=[], advice=rows), ShapeIndex(nodes, []))
    assert [one.advice for one in given] == ["first", r"second\u202e"]
    assert [one.rank for one in given] == [1, 2]
    assert [one.shape for one in given] == ["node-0", None]
    assert given[1].action == "add link"
