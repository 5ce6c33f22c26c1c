"""Messages for one receiver among several: deliver-to-one, and shared subscriptions of bridges."""

from collections import Counter
from typing import Any


def test_deliver_to_one(site: Any, bridge: Any, listener: Any, paho: Any, say: Any) -> None:
    """A message for one goes to a consumer at home, else over the bridge of the best priority that is up.

    A subscription with deliver_always_enabled, and a bridge of priority `da`, get a copy of each.
    """
    edge = site("edge", blue={})
    always = {"topic": "jobs/>", "deliver_always_enabled": True}
    core = site(
        "core",
        first={"b": bridge("blue", edge, "jobs/>", remote_deliver_to_one_priority="p1")},
        second={"b": bridge("blue", edge, "jobs/>", remote_deliver_to_one_priority="p2")},
        archive={"b": bridge("blue", edge, always)},
        audit={"b": bridge("blue", edge, "jobs/>", remote_deliver_to_one_priority="da")},
    )
    core.bridges_up(4)
    first, second, archive, audit = (listener(core, index) for index in range(4))
    publisher = paho(edge.port("mqtt"), "publisher")

    def one(topic: str) -> None:
        say(publisher, topic, deliver_to_one="true")
        for client in (archive, audit):
            assert client.next() == (topic, b"")

    one("jobs/1")
    assert first.next() == ("jobs/1", b"")
    home = paho(edge.port("mqtt"), "home")
    home.subscribe("jobs/#")
    one("jobs/2")
    assert home.next() == ("jobs/2", b"")
    say(publisher, "jobs/3")
    for client in (home, first, second, archive, audit):
        assert client.next() == ("jobs/3", b"")
    home.stop()
    one("jobs/4")
    assert first.next() == ("jobs/4", b"")
    for client in (home, first, second, archive, audit):
        assert client.arrived.empty()


def test_deliver_to_one_without_the_best(
    site: Any, bridge: Any, listener: Any, paho: Any, say: Any
) -> None:
    """When the router with the best priority is gone, the next one gets what is for one."""
    edge = site("edge", blue={})
    routers = [
        site(name, v={"b": bridge("blue", edge, "jobs/>", remote_deliver_to_one_priority=priority)})
        for name, priority in (("second", "p2"), ("first", "p1"))
    ]
    for router in routers:
        router.bridges_up()
    publisher = paho(edge.port("mqtt"), "publisher")
    second, first = (listener(router) for router in routers)
    say(publisher, "jobs/1", deliver_to_one="1")
    assert first.next() == ("jobs/1", b"")
    first.stop()
    assert routers[1].stop() == 0
    edge.says("down: 503 Service Unavailable")
    say(publisher, "jobs/2", deliver_to_one="1")
    assert second.next() == ("jobs/2", b"")
    assert second.arrived.empty()


def test_two_bridges_share(site: Any, bridge: Any, listener: Any, paho: Any, heard: Any) -> None:
    """Two bridges in one group take turns: each message enters one of both VPNs, half of them each."""
    edge = site("edge", blue={})
    topics = ["#share/workers/orders/>", "end"]
    core = site(
        "core", a={"b": bridge("blue", edge, *topics)}, b={"b": bridge("blue", edge, *topics)}
    )
    core.bridges_up(2)
    clients = [listener(core, index) for index in range(2)]
    publisher = paho(edge.port("mqtt"), "publisher")
    for number in range(40):
        publisher.publish(f"orders/{number}")
    publisher.publish("end")
    found = [heard(client) for client in clients]
    assert [len(each) for each in found] == [20, 20]
    assert Counter(found[0] + found[1]) == Counter((f"orders/{n}", b"") for n in range(40))


def test_a_bridge_and_clients_share(
    site: Any, bridge: Any, listener: Any, paho: Any, heard: Any
) -> None:
    """A bridge takes turns with the clients of the remote VPN that are in the same group."""
    edge = site("edge", blue={})
    topics = ["$share/workers/orders/+", "end"]
    core = site("core", a={"b": bridge("blue", edge, *topics, topic_syntax="mqtt")})
    core.bridges_up()
    here, member = listener(core), paho(edge.port("mqtt"), "member")
    member.subscribe("$share/workers/orders/+")
    member.subscribe("end")
    publisher = paho(edge.port("mqtt"), "publisher")
    for number in range(20):
        publisher.publish(f"orders/{number}")
    publisher.publish("end")
    found = heard(here), heard(member)
    assert [len(each) for each in found] == [10, 10]
    assert Counter(found[0] + found[1]) == Counter((f"orders/{n}", b"") for n in range(20))
