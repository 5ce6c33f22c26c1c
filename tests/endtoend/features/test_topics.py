"""Which messages cross a bridge and under which topics: mapping, exceptions, selectors."""

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


def test_strip_prefix(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """A prefix is taken off in whole levels only."""
    edge = site("edge", blue={})
    rules = [{"strip_prefix": "site1"}]
    core = site("core", yellow={"from-blue": bridge("blue", edge, ">", topic_mapping=rules)})
    core.bridges_up()
    here, publisher = listener(core), listener(edge)
    for topic in ("site1/a/b", "site10/a", "site1", "end"):
        publisher.publish(topic)
    assert [topic for topic, _ in heard(here)] == ["a/b", "site10/a", "site1"]


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
