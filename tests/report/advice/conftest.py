"""Findings in a few words, and contexts to look them up in."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from vpnrouter.report.advice.context import MeshContext
from vpnrouter.report.schema import WARNING, Finding


@pytest.fixture
def finding() -> Callable[..., Finding]:
    """Makes a finding from its kind, its place "router/vpn" or "from > to" and other fields."""

    def make(kind: str, place: str = "", **more: Any) -> Finding:
        start, _, goal = place.rpartition(" > ")
        fields: dict[str, Any] = {"severity": WARNING}
        if goal:
            fields["router"], _, fields["vpn"] = goal.partition("/")
        if start:
            fields["peer_router"], _, fields["peer_vpn"] = start.partition("/")
        return Finding(kind=kind, **{**fields, **more})

    return make


@pytest.fixture
def context() -> Callable[..., MeshContext]:
    """Makes a context of findings, edges, nodes and what bridges subscribe to."""

    def make(
        *findings: Finding,
        edges: Sequence[Any] = (),
        nodes: Sequence[Any] = (),
        subscriptions: Sequence[Any] = (),
    ) -> MeshContext:
        return MeshContext(findings, list(nodes), list(edges), list(subscriptions))

    return make
