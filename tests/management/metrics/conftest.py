"""Figures of a router that stands still."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vpnrouter.durations import Histogram
from vpnrouter.management.metrics.exposition import SECTIONS
from vpnrouter.settings.kinds import Kind
from vpnrouter.settings.shown import Row

VALUES: Any = {
    "": 1,
    "reason": {"ttl-exceeded": 2},
    "direction": (3, 4),
    "state": "ready",
    "le": Histogram((1.0,), (1, 0), 0.5),
}


def filled(name: str, *labels: str, **given: Any) -> Any:
    """A row in which each family has a value."""
    values = {}
    for field, family in SECTIONS[name].families.items():
        values[field] = VALUES.get(family.split) or dict.fromkeys(family.info, "t")
    return (*labels, *(values | given).values())


class StillFigures:
    """Figures of the message VPNs `names`, each with a bridge, and `queue_count` queues and links."""

    def __init__(self, names: list[str], queue_count: int = 1) -> None:
        self.names = names
        self.queue_count = queue_count
        self.given: dict[str, Any] = {}

    def router(self) -> Row:
        return filled("router")

    def process(self) -> Row:
        return filled("process")

    def loop(self) -> Iterator[Row]:
        yield filled("loop", "sockets")

    def spool(self) -> Row | None:
        return filled("spool")

    def traces(self) -> Row | None:
        return filled("trace")

    def trace_uploads(self) -> Row | None:
        return filled("trace_upload")

    def listeners(self) -> Iterator[Row]:
        yield filled("listener", "mqtt", "127.0.0.1:1883")

    def rows(self, kind: Kind, sees: Callable[[str], bool]) -> Iterator[Row]:
        found: Iterator[Row] = getattr(self, f"{kind.section}s")(sees)
        return found

    def msg_vpns(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        for name in filter(sees, self.names):
            yield filled("msg_vpn", name)

    def bridges(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        for name in filter(sees, self.names):
            yield filled("bridge", name, "to-far", **self.given)

    def connectors(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        for name in filter(sees, self.names):
            yield filled("connector", name, "to-mosquitto")

    def connector_links(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        for name in filter(sees, self.names):
            for number in range(self.queue_count):
                labels = (name, "to-mosquitto", f"link-{number}", "rx")
                yield filled("connector_link", *labels)

    def queues(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        for name in filter(sees, self.names):
            for number in range(self.queue_count):
                yield filled("queue", name, f"q-{number}")


@pytest.fixture
def figures() -> Row:
    """Two message VPNs, one of them with a name that needs to be escaped."""
    return StillFigures(["blue", 'a\\"b\nc'])
