"""A mesh to describe row by row, as its digests would."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.analysis import find_subscriptions
from vpnrouter.report.schema import Finding

SECOND: Final = 1_000_000_000
START: Final = 1_700_000_000 * SECOND
SPAN: Final = (START, START + 1_000 * SECOND)


@dataclass
class Mesh:
    """Rows of STATES, USES, PLACES and EDGES; message VPNs are written "router/vpn", times are seconds."""

    make: Callable[[str, list[dict[str, Any]]], DataFrame]
    states: list[dict[str, Any]] = field(default_factory=list)
    uses: list[dict[str, Any]] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    span: tuple[int, int] = SPAN

    def state(
        self, event: str, at: str, client: str, filter_: str, second: float, syntax: str | None
    ) -> None:
        """A row of STATES."""
        router, vpn = at.split("/")
        ts_ns = START + round(second * SECOND)
        self.states.append(
            {"event": event, "router": router, "vpn": vpn, "client": client, "topic": filter_}
            | {"ts_ns": ts_ns, "topic_syntax": syntax}
        )

    def sub(
        self,
        at: str,
        client: str,
        filter_: str,
        syntax: str | None = "mqtt",
        since: float = 0,
        until: float | None = None,
    ) -> None:
        """A subscription, perhaps given up again."""
        self.state("subscribe", at, client, filter_, since, syntax)
        if until is not None:
            self.state("unsubscribe", at, client, filter_, until, syntax)

    def use(
        self,
        at: str,
        event: str,
        topic: str,
        count: int = 100,
        weight: float | None = -1.0,
        **more: Any,
    ) -> None:
        """A row of USES; traced in full unless a weight is given."""
        router, vpn = at.split("/")
        self.uses.append(
            {"router": router, "vpn": vpn, "event": event, "topic": topic, "count": count}
            | {"bytes": count * 10, "weight": float(count) if weight == -1.0 else weight, **more}
        )

    def publish(self, at: str, topic: str, count: int = 100, **more: Any) -> None:
        """Messages that enter evenly over the span, in ten stretches."""
        self.use(at, "ingress", topic, count, **more)
        router, vpn = at.split("/")
        for stretch in range(10):
            self.places.append(
                {"router": router, "vpn": vpn, "event": "ingress", "count": count // 10}
                | {"start_ns": START + stretch * 100 * SECOND}
            )

    def deliver(self, at: str, client: str, topic: str, count: int = 100) -> None:
        """Messages that a client gets."""
        self.use(at, "deliver", topic, count, client=client)

    def bridge(
        self, start: str, goal: str, *filters: str, name: str = "b", since: float = 0
    ) -> str:
        """A bridge that attracts from `start` to `goal`; gives the name of its client."""
        from_router, from_vpn = start.split("/")
        to_router, to_vpn = goal.split("/")
        self.edges.append(
            {"from_router": from_router, "from_vpn": from_vpn, "to_router": to_router}
            | {"to_vpn": to_vpn, "bridge": name}
        )
        client = f"#bridge/{goal}/{name}"
        for filter_ in filters:
            self.sub(start, client, filter_, None, since)
        return client

    def cross(
        self,
        start: str,
        goal: str,
        topic: str,
        count: int = 100,
        name: str = "b",
        seen: str = "both",
    ) -> None:
        """Messages that cross a bridge; `seen` by "both" ends, or only by the "sender" or the "receiver"."""
        if seen != "receiver":
            router, vpn = goal.split("/")
            peer = {"bridge": name, "peer_router": router, "peer_vpn": vpn}
            self.use(start, "bridge_send", topic, count, client=f"#bridge/{goal}/{name}", **peer)
        if seen != "sender":
            router, vpn = start.split("/")
            peer = {"bridge": name, "peer_router": router, "peer_vpn": vpn}
            self.use(goal, "bridge_receive", topic, count, **peer)

    def digests(self) -> dict[str, DataFrame]:
        """The rows as frames."""
        return {name: self.make(name, getattr(self, name)) for name in ("states", "uses", "places")}

    def find(self, *kinds: str) -> list[Finding]:
        """The findings, of these kinds only if any are named."""
        found = find_subscriptions(self.digests(), self.edges, self.span)
        return [one for one in found if not kinds or one.kind in kinds]


@pytest.fixture
def mesh(digest_of: Callable[[str, list[dict[str, Any]]], DataFrame]) -> Mesh:
    """A mesh without anything in it."""
    return Mesh(digest_of)


@pytest.fixture(scope="module")
def mesh_type() -> type[Mesh]:
    """For tests that describe one mesh together."""
    return Mesh
