"""Figures of a router that stands still."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vpnrouter.durations import Histogram
from vpnrouter.management.metrics.exposition import SECTIONS
from vpnrouter.management.metrics.families import (
    BridgeFigures,
    ConnectorFigures,
    ConnectorLinkFigures,
    ListenerFigures,
    LoopFigures,
    MsgVpnFigures,
    ProcessFigures,
    QueueFigures,
    RouterFigures,
    SpoolFigures,
    TraceFigures,
)

VALUES: Any = {
    "": 1,
    "reason": {"ttl-exceeded": 2},
    "direction": (3, 4),
    "state": "ready",
    "le": Histogram((1.0,), (1, 0), 0.5),
}


def filled(kind: Any, name: str, *labels: str, **given: Any) -> Any:
    """A row in which each family has a value."""
    values = {}
    for field, family in SECTIONS[name].families.items():
        values[field] = VALUES.get(family.split) or dict.fromkeys(family.info, "t")
    return kind(*labels, **values | given)


class StillFigures:
    """Figures of the message VPNs `names`, each with a bridge, and `queue_count` queues and links."""

    def __init__(self, names: list[str], queue_count: int = 1) -> None:
        self.names = names
        self.queue_count = queue_count
        self.given: dict[str, Any] = {}

    def router(self) -> RouterFigures:
        return filled(RouterFigures, "router")

    def process(self) -> ProcessFigures:
        return filled(ProcessFigures, "process")

    def loop(self) -> Iterator[LoopFigures]:
        yield filled(LoopFigures, "loop", "sockets")

    def spool(self) -> SpoolFigures | None:
        return filled(SpoolFigures, "spool")

    def traces(self) -> TraceFigures | None:
        return filled(TraceFigures, "trace")

    def listeners(self) -> Iterator[ListenerFigures]:
        yield filled(ListenerFigures, "listener", "mqtt", "127.0.0.1:1883")

    def msg_vpns(self, sees: Callable[[str], bool]) -> Iterator[MsgVpnFigures]:
        for name in filter(sees, self.names):
            yield filled(MsgVpnFigures, "msg_vpn", name)

    def bridges(self, sees: Callable[[str], bool]) -> Iterator[BridgeFigures]:
        for name in filter(sees, self.names):
            yield filled(BridgeFigures, "bridge", name, "to-far", **self.given)

    def connectors(self, sees: Callable[[str], bool]) -> Iterator[ConnectorFigures]:
        for name in filter(sees, self.names):
            yield filled(ConnectorFigures, "connector", name, "to-mosquitto")

    def connector_links(self, sees: Callable[[str], bool]) -> Iterator[ConnectorLinkFigures]:
        for name in filter(sees, self.names):
            for number in range(self.queue_count):
                labels = (name, "to-mosquitto", f"link-{number}", "rx")
                yield filled(ConnectorLinkFigures, "connector_link", *labels)

    def queues(self, sees: Callable[[str], bool]) -> Iterator[QueueFigures]:
        for name in filter(sees, self.names):
            for number in range(self.queue_count):
                yield filled(QueueFigures, "queue", name, f"q-{number}")


@pytest.fixture
def figures() -> StillFigures:
    """Two message VPNs, one of them with a name that needs to be escaped."""
    return StillFigures(["blue", 'a\\"b\nc'])
