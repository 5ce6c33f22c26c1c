"""Which messages cross a bridge and under which topics: mapping, exceptions, selectors, one receiver among several."""

from collections import Counter
from typing import Any

import pytest


def test_mapping_in(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """What comes in is renamed by the first rule that matches; the remote's clients see no change."""
    edge = site("edge", blue={})
    rules = [
        {"from": "plant/*/temperature/*", "to": "climate/{2}/of/{1}"},
        {"from": "end", "to": "end"},
        {"add_prefix": "blue"},
    ]
    core = site("core", yellow={"from-blue": bridge("blue", edge, ">", topic_mapping=rules)})
    core.bridges_up()
    here, there = listener(core), listener(edge)
    for topic in ("plant/7/temperature/oven", "plant/7/pressure/oven", "alarm", "end"):
        there.publish(topic, topic.encode())
    assert heard(here) == [
        ("climate/oven/of/7", b"plant/7/temperature/oven"),
        ("blue/plant/7/pressure/oven", b"plant/7/pressure/oven"),
        ("blue/alarm", b"alarm"),
    ]
    assert [topic for topic, _ in heard(there)] == [
        "plant/7/temperature/oven",
        "plant/7/pressure/oven",
        "alarm",
    ]


def test_mapping_out(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """The remote's bridge gets what the rules for `out` say, and asks only for what it will see."""
    head = {"from": "cmd/>", "to": "site1/cmd/{1}", "direction": "out"}
    topics = ["site1/cmd/stop", "end"]
    core = site("core", yellow={"from-blue": bridge("blue", "v:edge", "x", topic_mapping=[head])})
    edge = site("edge", blue={"from-yellow": bridge("yellow", core, *topics, router="core")})
    edge.bridges_up()
    core.bridges_up()
    here, there = listener(edge), listener(core)
    for topic in ("cmd/stop", "cmd/go", "end"):
        there.publish(topic)
    assert heard(here) == [("site1/cmd/stop", b"")]
    assert [topic for topic, _ in heard(there)] == ["cmd/stop", "cmd/go"]
    assert edge.bridge("from-yellow")["dataRxMsgCount"] == 2


def test_mapping_both(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """A prefix put before what comes in is taken off what goes out, though the remote is not named."""
    rules = [{"from": "end", "to": "end"}, {"add_prefix": "site1", "direction": "both"}]
    edge = site("edge", blue={"from-yellow": bridge("yellow", "v:core", "orders/>", "end")})
    from_blue = bridge("blue", edge, "orders/>", "end", topic_mapping=rules)
    core = site("core", yellow={"from-blue": from_blue})
    for router in (edge, core):
        router.bridges_up()
    blue, yellow = listener(edge), listener(core)
    blue.publish("orders/7", b"from blue")
    assert yellow.next() == ("site1/orders/7", b"from blue")
    assert blue.next() == ("orders/7", b"from blue")
    yellow.publish("site1/orders/8", b"from yellow")
    assert blue.next() == ("orders/8", b"from yellow")
    yellow.publish("orders/9", b"no rule matches")
    yellow.publish("end")
    assert heard(blue) == [("orders/9", b"no rule matches")]
    assert [topic for topic, _ in heard(yellow)] == ["site1/orders/8", "orders/9"]


@pytest.mark.parametrize(
    ("syntax", "topics"),
    [("smf", [">", "!secret/>", "!*/private"]), ("mqtt", ["#", "!secret/#", "!+/private"])],
)
def test_exceptions(
    site: Any, bridge: Any, listener: Any, heard: Any, syntax: str, topics: list[str]
) -> None:
    """What an exception names does not cross, whatever the other filters say; all else does."""
    edge = site("edge", blue={})
    core = site("core", yellow={"from-blue": bridge("blue", edge, *topics, topic_syntax=syntax)})
    core.bridges_up()
    here, publisher = listener(core), listener(edge)
    for topic in ("secret/1", "a/private", "a/private/b", "a", "secrets", "secret/x/y", "end"):
        publisher.publish(topic)
    assert [topic for topic, _ in heard(here)] == ["a/private/b", "a", "secrets"]
    assert core.bridge("from-blue")["dataRxMsgCount"] == 4


def test_selectors(site: Any, bridge: Any, listener: Any, heard: Any, say: Any) -> None:
    """Only messages whose user properties fulfil the condition of a filter come by that filter."""
    edge = site("edge", blue={})
    topics = [
        {"topic": "alarms/>", "selector": "severity > 3 AND region LIKE 'eu-%'"},
        "alarms/all",
        "end",
    ]
    core = site("core", yellow={"from-blue": bridge("blue", edge, *topics)})
    core.bridges_up()
    here, there = listener(core), listener(edge)
    say(there, "alarms/1", severity="4", region="eu-west")
    say(there, "alarms/2", severity="3", region="eu-west")
    say(there, "alarms/3", severity="9", region="us-east")
    say(there, "alarms/4")
    say(there, "alarms/all")
    say(there, "alarms/all", severity="5", region="eu-east")
    say(there, "end")
    assert [topic for topic, _ in heard(here)] == ["alarms/1", "alarms/all", "alarms/all"]
    assert len(heard(there)) == 6
    assert core.bridge("from-blue")["dataRxMsgCount"] == 4


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
