"""vpnrouter.report.page.details: the block behind panel and tooltips."""

import json
from typing import Any

from vpnrouter.limits import REPORT_PAGE_SHAPE_FINDINGS, REPORT_PAGE_SPANS
from vpnrouter.report.page import details
from vpnrouter.report.page.charts import histograms, rates_of
from vpnrouter.report.page.figures import Contents, Places, grade


def block_of(contents: Contents) -> dict[str, Any]:
    """The block, read back."""
    places = Places(contents.nodes, contents.edges)
    text = details.details(
        contents,
        grade(contents, places),
        places,
        rates_of(contents, places),
        histograms(contents.latencies, places),
    )
    assert not set("<>&\u2028\u2029") & set(text)
    read: dict[str, Any] = json.loads(text)
    return read


def test_markup_is_escaped() -> None:
    """No text can end the script element or begin another, and it is read back whole."""
    text = "</script><!--\u2028&amp;"
    escaped = details.embedded({text: [text]})
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
