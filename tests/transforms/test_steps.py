"""Each step changes what it says of a message, and nothing else, in the terms of MQTT and in those of AMQP."""

import json
from typing import Any, Final

import pytest

from vpnrouter import limits
from vpnrouter.config.configured_transform import transform_of
from vpnrouter.config.connector import ConnectorLink
from vpnrouter.core import conversion
from vpnrouter.core.guaranteed.message_record import read_headers
from vpnrouter.core.message import AMQP, Message
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.publish_block import message_block

BODY: Final = {"site": {"name": "oslo"}, "t": [1, 2.5, "x"], "n": None, "ok": True}
NOW_NS: Final = 5 * SECOND_NS


def steps(*written: Any, **more: Any) -> Any:
    """The transform of a link."""
    link = {"source": {"address": "a/#"}, "transform": list(written), **more}
    transform = transform_of(ConnectorLink.model_validate(link))
    assert transform is not None
    return transform


def message(encoding: str, payload: bytes | None = None, **pairs: str) -> Message:
    """A message on a/b/c, with these user properties."""
    if payload is None:
        payload = json.dumps(BODY).encode()
    properties = Properties(content_type="text/plain", user_properties=list(pairs.items()))
    block = message_block(properties)
    if encoding == "mqtt":
        return Message(b"a/b/c", payload, block)
    return Message(b"a/b/c", conversion.from_mqtt(b"a/b/c", payload, block), encoding=AMQP)


def said(one: Message) -> dict[str, object]:
    """Its properties, without headers."""
    return {
        name: value
        for name, value in one.properties().items()
        if not name.startswith("JMS") and name != "priority"
    }


encodings = pytest.mark.parametrize("encoding", ["mqtt", "amqp"])

PROPERTIES: Final = {
    "one more": ({"set_property": {"b": "2"}}, {"a": "1", "x-1": "y", "b": "2"}),
    "in the place of one": ({"set_property": {"a": "2"}}, {"a": "2", "x-1": "y"}),
    "of the topic": ({"set_property": {"a": "{topic} {level:3}"}}, {"a": "a/b/c c", "x-1": "y"}),
    "of another": ({"set_property": {"b": "<{property:a}>"}}, {"a": "1", "x-1": "y", "b": "<1>"}),
    "of the payload": (
        {"set_property": {"a": "{payload:/site/name} {payload:/t/1} {json:/t/2} {payload:/n}"}},
        {"a": 'oslo 2.5 "x" null', "x-1": "y"},
    ),
    "with braces": ({"set_property": {"a": "{{topic}}"}}, {"a": "{topic}", "x-1": "y"}),
    "one out": ({"remove_property": ["a", "not there"]}, {"x-1": "y"}),
    "all that begin so": ({"remove_property": ["x-*"]}, {"a": "1"}),
    "all": ({"remove_property": ["*"]}, {}),
    "when": ({"when": "a = '1'", "set_property": {"a": "3"}}, {"a": "3", "x-1": "y"}),
    "when not": ({"when": "a = '2'", "set_property": {"a": "3"}}, {"a": "1", "x-1": "y"}),
}


@encodings
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(encoding: str, name: str) -> None:
    """Properties are set and taken out; payload and topic stay."""
    step, wanted = PROPERTIES[name]
    one = message(encoding, a="1", **{"x-1": "y"})
    assert steps(step).change(one, NOW_NS) == ""
    assert {key: str(value) for key, value in said(one).items()} == wanted
    assert (one.topic, json.loads(one.mqtt().payload)) == (b"a/b/c", BODY)


PAYLOADS: Final = {
    "a template": ({"payload": "{property:a}:{payload:/ok}"}, "1:true"),
    "wrapped": (
        {"payload": '{{"data": {payload}, "at": "{topic}"}}'},
        {"data": BODY, "at": "a/b/c"},
    ),
    "a part": ({"payload_at": "/site"}, {"name": "oslo"}),
    "a text in it": ({"payload_at": "/site/name"}, "oslo"),
    "all of it": ({"payload_at": ""}, BODY),
    "a value": (
        {"edit_payload": {"set": {"/site/name": "bergen"}}},
        BODY | {"site": {"name": "bergen"}},
    ),
    "a new one": ({"edit_payload": {"set": {"/of": "{level:1}"}}}, BODY | {"of": "a"}),
    "one behind": ({"edit_payload": {"set": {"/t/-": "z"}}}, BODY | {"t": [1, 2.5, "x", "z"]}),
    "a copy": ({"edit_payload": {"set": {"/u": "{json:/t}"}}}, BODY | {"u": [1, 2.5, "x"]}),
    "exchanged": (
        {"edit_payload": {"set": {"/n": "{json:/ok}", "/ok": "{json:/n}"}}},
        BODY | {"n": True, "ok": None},
    ),
    "without one": (
        {"edit_payload": {"remove": ["/site/name", "/t/0", "/none/there"]}},
        BODY | {"site": {}, "t": [2.5, "x"]},
    ),
}


@encodings
@pytest.mark.parametrize("name", PAYLOADS)
def test_payloads(encoding: str, name: str) -> None:
    """The payload is changed; the properties stay."""
    step, wanted = PAYLOADS[name]
    one = message(encoding, a="1")
    assert steps(step).change(one, NOW_NS) == ""
    payload = one.mqtt().payload.decode()
    assert (payload if isinstance(wanted, str) else json.loads(payload)) == wanted
    assert {key: str(value) for key, value in said(one).items()} == {"a": "1"}


@encodings
def test_the_rest(encoding: str) -> None:
    """Topic, priority and life time, in turn: a step sees what the steps before have left."""
    one = message(encoding)
    chain = steps(
        {"topic": "new/{level:2}"},
        {"priority": 7},
        {"when": "JMSPriority > 6", "expiry": 60},
        {"set_property": {"of": "{topic}"}},
    )
    assert chain.change(one, NOW_NS) == ""
    assert (one.topic, one.priority) == (b"new/b", 7)
    assert one.expires_ns == NOW_NS + 60 * SECOND_NS
    assert str(said(one)["of"]) == "new/b"


def test_what_properties_say_goes_with_them() -> None:
    """Partition key, priority and eligibility are those of the properties that the message has afterwards."""
    pairs = {"JMSXGroupID": "k", "priority": "7", "dmq-eligible": "false", "deliver-to-one": "true"}
    one = message("mqtt", **pairs)
    read_headers(one)
    assert (one.priority, one.dmq_eligible, one.deliver_to_one) == (7, False, True)
    lane = one.lane
    assert steps({"set_property": {"a": "1"}}).change(one, 0) == ""
    assert (one.lane, one.priority, one.dmq_eligible, one.deliver_to_one) == (lane, 7, False, True)
    assert steps({"set_property": {"JMSXGroupID": "other"}}).change(one, 0) == ""
    assert one.lane not in {0, lane}
    assert steps({"remove_property": ["*"]}).change(one, 0) == ""
    assert (one.lane, one.priority, one.dmq_eligible, one.deliver_to_one) == (0, 4, True, False)


def test_work_is_counted() -> None:
    """A large payload that is read as JSON costs more of a turn than a small one."""
    costs = []
    for size in (100, 100_000):
        one = message("mqtt", json.dumps({"a": "x" * size}).encode())
        conversion.MEASURE.work()
        assert steps({"edit_payload": {"set": {"/b": "1"}}}).change(one, 0) == ""
        costs.append(conversion.MEASURE.work())
    assert 0 < costs[0] * 100 < costs[1]


def test_types_of_amqp_stay() -> None:
    """A number among application properties is one for selectors afterwards, also where another one was set."""
    content = conversion.section(0x74, {"n": 7, "t": True}) + conversion.section(0x77, "text")
    one = Message(b"t", content, encoding=AMQP)
    assert steps({"set_property": {"a": "1"}}).change(one, 0) == ""
    found = one.properties()
    assert (found["n"], found["t"], str(found["a"])) == (7, True, "1")
    assert steps({"payload": "other"}).change(one, 0) == ""
    assert one.payload.endswith(conversion.section(0x77, "other"))
    assert one.properties()["n"] == 7


DEEP: Final = b"[" * 100_000 + b"]" * 100_000
FAILURES: Final = {
    "no JSON": ({"payload_at": "/a"}, b"{", "step 1 (payload_at /a): its payload is no JSON"),
    "no text": ({"payload": "{payload}"}, b"\xff", "its payload is no text in UTF-8"),
    "nothing there": ({"payload_at": "/a/b"}, b'{"a":{}}', "the payload has nothing at /a/b"),
    "no such element": ({"payload_at": "/9"}, b"[1]", "the payload has nothing at /9"),
    "a leading zero": ({"payload_at": "/00"}, b"[1]", "the payload has nothing at /00"),
    "in a text": ({"edit_payload": {"set": {"/a/b": "1"}}}, b'{"a":"x"}', "has nothing at /a/b"),
    "no property": ({"topic": "{property:b}"}, b"", "it has no property b"),
    "no level": ({"topic": "{level:4}"}, b"", "its topic has no level 4"),
    "too deep": ({"payload_at": "/0"}, DEEP, "its payload is nested too deeply"),
    "too large": (
        {"payload_at": "/0"},
        b" " * (limits.TRANSFORM_JSON_BYTES + 1),
        "larger than the 262,144 bytes that are read as JSON",
    ),
    "grows": (
        {"payload": "{payload}" * 300},
        b"x" * 1_000,
        "the result is longer than 262,144 characters",
    ),
    "a long property": (
        {"set_property": {"a": "{payload}"}},
        b"x" * 16_385,
        "the result is longer than 16,384 characters",
    ),
    "no number": ({"payload_at": "/0"}, b"[NaN]", "nothing that JSON can say"),
    "a long number": ({"payload_at": "/0"}, b"[" + b"1" * 5_000 + b"]", "its payload is no JSON"),
}


@encodings
@pytest.mark.parametrize("name", FAILURES)
def test_what_cannot_be_changed(encoding: str, name: str) -> None:
    """It is told why, and the message is as it was, whatever the steps before had done."""
    step, payload, told = FAILURES[name]
    one, other = message(encoding, payload, a="1"), message(encoding, payload, a="1")
    assert told in steps(step).change(one, NOW_NS)
    why = steps({"topic": "x"}, {"priority": 9}, {"set_property": {"z": "1"}}, step).change(one, 0)
    if "level" not in name:
        assert told.removeprefix("step 1 ") in why
        assert why.startswith("step 4 (")
    assert (one.topic, one.payload, one.block) == (other.topic, other.payload, other.block)
    assert (one.priority, one.expires_ns) == (other.priority, 0)
    assert said(one) == said(other)


MISTAKES: Final = {
    "nothing": ({}, "a step has exactly one of set_property"),
    "two things": ({"topic": "a", "priority": 3}, "not topic and priority"),
    "no placeholder": ({"topic": "{nobody}"}, "topic: has {nobody}, which is none of {topic}"),
    "no level": ({"topic": "{level:0}"}, "has {level:0}"),
    "no pointer": ({"payload_at": "a"}, "a is no JSON pointer: it begins with /"),
    "no escape": ({"edit_payload": {"remove": ["/~2"]}}, "~ is written ~0"),
    "no selector": ({"when": "a =", "priority": 1}, "when: "),
    "an open brace": ({"payload": "{topic"}, "has a { without its }"),
    "priority": ({"priority": 10}, "priority"),
    "expiry": ({"expiry": 0}, "expiry"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    """What is no step says so."""
    step, told = MISTAKES[name]
    with pytest.raises(
        ValueError, match="(?s).*" + told.translate({ord(one): f"\\{one}" for one in "{}"})
    ):
        steps(step)
