"""vpnrouter.core.router and context: one router's message VPNs and clocks, and what these share."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.wire.mqtt.packets import Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

FILTERS = ["#", "a/+", "a/b", "$share/g/#"]
actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("publish"), st.sampled_from("xy"), st.sampled_from(["a/b", "c"]), st.booleans()
        ),
        st.tuples(st.just("subscribe"), st.sampled_from("xy"), st.sampled_from(FILTERS)),
        st.tuples(st.just("unsubscribe"), st.sampled_from("xy"), st.sampled_from(FILTERS)),
        st.tuples(st.just("lose"), st.sampled_from("xy")),
        st.tuples(st.just("bad"), st.sampled_from("xy")),
        st.tuples(st.just("wait")),
    ),
    max_size=20,
)


def state(world: MemoryRouter) -> list[Any]:
    """Everything of the green VPN that traffic could touch."""
    vpn = world.vpn("green")
    return [
        vpn.totals(),
        dict(vpn.cache.entries),
        (vpn.cache.evicted, vpn.cache.invalidated, vpn.route_table.stamp),
        sorted(vpn.clients),
        sorted(vpn.publishers),
        dict(vpn.connections_of),
        (vpn.subscription_count, len(vpn.trie), len(vpn.retained)),
        [(group.name, len(group.members), group._turn) for group in vpn.groups.values()],
    ]


@given(actions, st.sampled_from([0.0, 1.0]))
def test_message_vpns_share_nothing(
    kit: ModuleType, script: list[tuple[Any, ...]], sample: float
) -> None:
    """With the same client ids, filters and topics in both, whatever happens in blue leaves green as it was."""
    world: MemoryRouter = kit.MemoryRouter("blue", "green", sample=sample)
    will = Will(b"a/b", b"gone", retain=True)
    lasting = Properties(session_expiry_interval=5)
    blue = {}
    green = {}
    for name in "xy":
        blue[name] = world.connect(name, "blue", properties=lasting, will=will)
        green[name] = world.connect(name, "green")
    for text in FILTERS:
        green["x"].subscribe(text)
    green["y"].publish("a/b", b"before", retain=True)
    green["y"].publish("c", b"before")
    for client in green.values():
        client.drain()
    before = state(world)
    for action, *rest in script:
        name = rest[0] if rest else ""
        if action == "wait":
            world.advance(6)
        elif blue.get(name) is None or blue[name].closed:
            blue[name] = world.connect(
                name, "blue", clean_start=False, properties=lasting, will=will
            )
        elif action == "publish":
            blue[name].publish(rest[1], b"x", retain=rest[2])
        elif action == "subscribe":
            blue[name].drain()
            blue[name].subscribe(rest[1])
        elif action == "unsubscribe":
            blue[name].drain()
            blue[name].unsubscribe(rest[1])
        elif action == "lose":
            blue[name].lose()
        elif action == "bad":
            blue[name].raw(b"\x00\x00")
    assert state(world) == before
    for client in green.values():
        assert client.drain() == b""
        assert not client.closed
