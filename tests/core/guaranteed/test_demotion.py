"""vpnrouter.core.deliver: deliver-to-one where a message goes as Direct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.unit_of_work import SPOOLED

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def test_deliver_to_one(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Endpoints keep it as ever; of those who get it as Direct, one does, in turn."""
    queue = world.endpoint("q", "a/#")
    listeners = [spool_kit.Listener(world.vpn, name) for name in "xyz"]
    for listener in listeners:
        listener.subscribe("a/#")
    for _ in range(6):
        assert world.publish("a/b", deliver_to_one="true") == SPOOLED
    world.commit()
    assert [listener.count for listener in listeners] == [2, 2, 2]
    assert queue.spooled_count == 6
    assert world.direct("a/b", deliver_to_one="true") == ""
    world.commit()
    assert sum(listener.count for listener in listeners) == 7
    assert queue.spooled_count == 7
