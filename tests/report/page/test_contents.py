"""vpnrouter.report.page.figures: a table for each of the schema's."""

from dataclasses import fields

from vpnrouter.report.page.figures import Contents


def test_only_the_mesh_is_required() -> None:
    """Every other table may be missing, and missing tables are not shared between reports."""
    one, other = Contents(nodes=[], edges=[]), Contents(nodes=[], edges=[])
    one.findings.append({})
    assert other.findings == []
    assert {field.name for field in fields(Contents)} >= {
        *(
            "nodes",
            "edges",
            "rates",
            "latencies",
            "end_to_end",
            "clocks",
            "links",
            "ways",
            "lengths",
        ),
        *("vpns", "pairs", "changes", "advice", "findings", "topics", "discards", "timeline"),
    }
