"""Subscriptions of one client that cover each other or overlap."""

from typing import Any

import pytest

from vpnrouter.report.subscriptions import unused
from vpnrouter.report.subscriptions.unused import compared


def client(*filters: tuple[str, str], count: int | None = None, name: str = "c") -> dict[str, Any]:
    """A client as the job collects it."""
    listed = [{"filter": text, "syntax": syntax} for text, syntax in filters]
    place = {"router": "r", "vpn": "v", "client": name}
    return {**place, "count": count or len(filters), "filters": listed}


def told(*filters: tuple[str, str]) -> set[tuple[str, str | None, str]]:
    """What is found about one client: kind, filter, detail."""
    return {(one.kind, one.topic, one.detail) for one in compared([client(*filters)])}


def test_pairs() -> None:
    """One finding for each covered filter, and one for each pair of the others that meet."""
    assert told(("a/+", "mqtt"), ("a/b", "mqtt"), ("c", "mqtt")) == {
        ("covered", "a/b", "covered by a/+")
    }
    assert told(("a/+", "mqtt"), ("+/b", "mqtt")) == {
        ("overlapping", "+/b", "a/+ matches a/b as well")
    }
    assert told(("a/b", "mqtt"), ("a/c", "mqtt"), ("b/+", "mqtt")) == set()


def test_dialects() -> None:
    """The same text, or the same topics, in both dialects: one of the two is not needed."""
    assert told(("a/b", "mqtt"), ("a/b", "smf")) == {("covered", "a/b", "covered by a/b (mqtt)")}
    assert told(("a/*", "smf"), ("a/+", "mqtt")) == {("covered", "a/+", "covered by a/* (smf)")}
    # Literal in one dialect, a wildcard in the other.
    assert told(("a/*", "smf"), ("a/*", "mqtt")) == {("covered", "a/*", "covered by a/* (smf)")}


def test_shared() -> None:
    """Shared subscriptions are compared within their group."""
    assert told(("$share/g/a/#", "mqtt"), ("$share/h/a/#", "mqtt"), ("a/#", "mqtt")) == set()
    assert told(("$share/g/a/#", "mqtt"), ("$share/g/a/b", "mqtt")) == {
        ("covered", "$share/g/a/b", "covered by $share/g/a/#")
    }


def test_malformed_filters_are_passed_over() -> None:
    """What the router would have refused says nothing."""
    assert told(("a+", "mqtt"), ("#", "mqtt")) == set()


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients beyond the bounds are named, the small ones first examined."""
    monkeypatch.setattr(unused, "REPORT_CLIENT_FILTERS", 3)
    monkeypatch.setattr(unused, "REPORT_FILTER_PAIRS", 2)
    rows = [
        client(("a", "mqtt"), ("b", "mqtt"), ("#", "mqtt"), name="three"),
        client(("a", "mqtt"), ("#", "mqtt"), name="two"),
        client(("a", "mqtt"), ("#", "mqtt"), count=9, name="nine"),
    ]
    found = compared(rows)
    assert [(one.kind, one.client) for one in found] == [
        ("covered", "two"),
        ("not_examined", "nine"),
        ("not_examined", "three"),
    ]


def test_from_frames(mesh: Any) -> None:
    """Current subscriptions only, by client."""
    mesh.sub("r/v", "one", "a/#")
    mesh.sub("r/v", "one", "a/b")
    mesh.sub("r/v", "one", "a/c", since=0, until=500)
    mesh.sub("r/v", "two", "a/d")
    mesh.sub("r/v", "#bridge/q/v/b", "a/>", None)
    mesh.sub("r/v", "#bridge/q/v/b", "!a/b", None)
    mesh.sub("r/v", "#bridge/q/v/b", "a/*", None)
    mesh.sub("r/v", "plain", "x")
    mesh.sub("r/v", "plain", "x", "smf")
    found = mesh.find()
    assert {(one.kind, one.client, one.bridge, one.topic) for one in found} == {
        ("covered", "one", None, "a/b"),
        ("covered", "#bridge/q/v/b", "b", "a/*"),
        ("covered", "plain", None, "x"),
    }
    assert {one.severity for one in found} == {"info"}
