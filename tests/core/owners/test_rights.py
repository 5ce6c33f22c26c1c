"""A right that is taken away is gone at once, live and stored, for every form of what attracts messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername, Credentials
from vpnrouter.core.discard_reasons import SUBSCRIBE_TOPIC_ACL
from vpnrouter.core.guaranteed.endpoint_settings import MODIFY_TOPIC, TOPIC_ENDPOINT
from vpnrouter.events.log import Event, EventLog
from vpnrouter.events.table import SESSION_END
from vpnrouter.server.apply.message_vpn_change import RightsJob
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.amqp.performatives import Rejected, TransactionalState

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

LIVE = "live"
STORED = "stored"
RESTARTED = "restarted"
AWAY = (STORED, RESTARTED)

PASSING = ["link", "Direct link", "shared", "shared, global"]
SHARED = ["shared, durable", "shared, durable, global"]
DURABLE = ["durable", "durable, global", *SHARED]

CELLS = [
    *(("mqtt", f"session, QoS {qos}", state) for qos in (1, 2) for state in AWAY),
    *(("amqp", form, LIVE) for form in PASSING),
    *(("amqp", form, state) for form in DURABLE for state in (LIVE, *AWAY)),
]

DENIED = "amqp:unauthorized-access"


def deny(*filters: str) -> TopicRule:
    """Everything but these."""
    return TopicRule(True, [(text, MQTT) for text in filters])


@pytest.mark.parametrize(("protocol", "form", "state"), CELLS)
def test_what_waits_is_not_given_out_past_the_acl(
    stage: Any, user: Any, tmp_path: Path, protocol: str, form: str, state: str
) -> None:
    """Topics that the ACL profile denies by now are discarded, and come again when they are allowed again."""
    here = stage(tmp_path if state == RESTARTED else None)
    ann = user(here, protocol, form, "ann")
    ann.topic = ann.wide
    ann.credit = 0
    assert ann.make() == ""
    for name in ("a", "b"):
        here.publish(b"first " + name.encode(), f"secret/{name}")
    if state in AWAY:
        ann.leave()
    here.allow(subscribe=deny("secret/a"))
    for name in ("a", "b"):
        here.publish(b"second " + name.encode(), f"secret/{name}")
    if state == RESTARTED:
        here.restart()
        here.allow(subscribe=deny("secret/a"))
    ann.credit = 100
    if state in AWAY:
        assert ann.make() == ""
    else:
        ann.peer.credit(1, 100)
    assert ann.took() == [b"first b", b"second b"]
    assert here.world.vpn().discards.counts[SUBSCRIBE_TOPIC_ACL] == 1
    here.allow()
    here.publish(b"third a", "secret/a")
    assert ann.took() == [b"third a"]
    held = [one for (_, name), one in here.world.vpn().endpoints.items() if name != "q"]
    assert [one.spooled_count for one in held] == [0] * len(held)


@pytest.mark.parametrize("form", DURABLE)
def test_a_topic_that_came_before_is_asked_about_again(stage: Any, user: Any, form: str) -> None:
    """Where messages of a topic were delivered already, those that wait follow a changed ACL profile, and back."""
    here = stage()
    here.allow(subscribe=deny("other/#"))
    ann = user(here, "amqp", form, "ann")
    ann.topic = ann.wide
    ann.credit = 1
    assert ann.make() == ""
    here.publish(b"1", "secret/a")
    assert ann.took() == [b"1"]
    here.publish(b"2", "secret/a")
    here.allow(subscribe=deny("secret/a"))
    ann.peer.credit(1, 100, 1)
    assert ann.took() == []
    here.allow(subscribe=deny("other/#"))
    here.publish(b"3", "secret/a")
    assert ann.took() == [b"3"]


@pytest.mark.parametrize("form", [*PASSING, *DURABLE])
def test_what_is_made_while_rights_change(stage: Any, user: Any, form: str) -> None:
    """A subscription of a client that was not judged by a new ACL profile yet attracts what that allows."""
    here = stage()
    ann = user(here, "amqp", form, "ann")
    ann.topic = ann.wide
    ann.connect()
    vpn = here.world.vpn()
    vpn.acl_profiles = {"default": AclProfile("default", subscribe=deny("secret/a"))}
    job = RightsJob(vpn, LinkRegistry(here.world.router))
    assert ann.attach() == ""
    assert job.step()
    for name in ("a", "b"):
        here.publish(name.encode(), f"secret/{name}")
    assert ann.took() == [b"b"]
    assert SUBSCRIBE_TOPIC_ACL not in vpn.discards.counts


@pytest.mark.parametrize("form", DURABLE)
def test_a_drain_passes_over_what_is_denied(stage: Any, user: Any, form: str) -> None:
    """More denied messages than a consumer has credit for do not end its drain before those that it may have."""
    here = stage()
    ann = user(here, "amqp", form, "ann")
    ann.topic = ann.wide
    ann.credit = 0
    assert ann.make() == ""
    for _ in range(5):
        here.publish(b"denied", "secret/a")
    here.publish(b"last", "secret/b")
    here.allow(subscribe=deny("secret/a"))
    ann.peer.credit(1, 2, drain=True)
    assert ann.peer.bodies() == [b"last"]


@pytest.mark.parametrize(
    "taken",
    [
        {"allow_shared_subscriptions_enabled": False},
        {"share": deny("s")},
        {"allow_guaranteed_msg_receive_enabled": False},
    ],
    ids=["client profile", "share name", "receiving"],
)
@pytest.mark.parametrize("form", SHARED)
def test_the_right_to_share_is_taken_away(
    stage: Any, user: Any, form: str, taken: dict[str, Any]
) -> None:
    """Consumers are let go and nothing is attracted; what was there comes when the right is back."""
    here = stage()
    ann = user(here, "amqp", form, "ann")
    ann.credit = 0
    assert ann.make() == ""
    here.publish(b"before")
    here.allow(**taken)
    assert ann.took() == []
    assert ann.ended
    here.publish(b"meanwhile")
    assert user(here, "amqp", form, "ann").make() == DENIED
    here.allow()
    here.publish(b"after")
    back = user(here, "amqp", form, "ann")
    assert back.make() == ""
    assert back.took() == [b"before", b"after"]


@pytest.mark.parametrize("taken", ["receiving", "permission"])
@pytest.mark.parametrize("protocol", ["mqtt", "amqp"])
def test_a_consumer_loses_its_queue(stage: Any, user: Any, protocol: str, taken: str) -> None:
    """A consumer of a queue is let go when it may not receive any more, or the queue is another one's by now."""
    here = stage()
    ann = user(here, protocol, "queue", "ann")
    assert ann.make() == ""
    queue = here.world.vpn().queue("q")
    assert len(queue.flows) == 1
    if taken == "receiving":
        here.allow(allow_guaranteed_msg_receive_enabled=False)
    else:
        settings = queue.settings.copy()
        settings.owner = "bob"
        queue.take_settings(settings)
    here.publish(b"1")
    assert ann.took() == []
    assert queue.flows == []
    assert queue.spooled_count == 1


@pytest.mark.parametrize("form", ["shared", "shared, global"])
def test_passing_shared_subscriptions_end_without_the_right(
    stage: Any, user: Any, form: str
) -> None:
    """A shared subscription that is not durable ends with the right to share it."""
    here = stage()
    ann = user(here, "amqp", form, "ann")
    assert ann.make() == ""
    here.allow(allow_shared_subscriptions_enabled=False)
    assert ann.took() == []
    assert ann.ended
    assert here.names() == []


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("form", DURABLE)
def test_subscriptions_end_with_their_client_username(
    stage: Any, user: Any, form: str, restart: bool
) -> None:
    """When a client username is removed its subscriptions go, and those of the same names of others stay."""
    here = stage()
    for username in ("ann", "bob"):
        one = user(here, "amqp", form, username)
        assert one.make() == ""
        one.leave()
    here.publish(b"1")
    left = (ClientUsername("bob"),)
    if restart:
        here.world = here.world.restart(usernames=left, basic=True)
    else:
        here.world.vpn().credentials = Credentials(True, left)
        told = EventLog("here", lambda: 1)
        heard: list[Event] = []
        told.listeners.append(heard.append)
        here.world.router.context.events = told
        here.judge()
        (end,) = [event.text for event in heard if event.kind is SESSION_END]
        assert end.endswith("client username ann is gone; 1 messages discarded")
    assert len(here.names()) == 1
    assert here.world.vpn().endpoints_of == {"bob": 1}
    here.world.vpn().credentials = Credentials(False, left)
    for username, expected in (("ann", []), ("bob", [b"1"])):
        one = user(here, "amqp", form, username)
        assert one.make() == ""
        assert one.took() == expected


def test_a_transaction_does_not_publish_what_is_denied_by_now(
    stage: Any, user: Any, forms: ModuleType
) -> None:
    """A message that its client may not publish any more rolls its transaction back."""
    here = stage()
    ann = user(here, "amqp", "transaction", "ann")
    assert ann.make() == ""
    here.allow(publish=deny("secret/#"))
    assert ann.take() == "amqp:transaction:rollback"
    assert here.watcher.messages() == []
    here.allow()
    peer = ann.peer
    txn = peer.declare()
    state = peer.sent(forms.amqp.message(b"2"), 1, state=TransactionalState(txn))
    assert not isinstance(state, Rejected)
    assert not isinstance(peer.discharge(txn), Rejected)
    assert [one.payload for one in here.watcher.messages()] == [b"2"]


def test_a_topic_endpoint_gives_out_what_its_consumer_may_have(stage: Any) -> None:
    """What a topic endpoint holds for another client username, or from before a change, follows the consumer's ACL."""
    here = stage()
    world = here.world
    dead = world.queue("#DEAD_MSG_QUEUE")
    world.queue("te", kind=TOPIC_ENDPOINT, permission=MODIFY_TOPIC)
    first = world.join("first", username="ann")
    assert first.sub("$topic-endpoint/te/secret/#") == 1
    first.lose()
    for name in ("a", "b"):
        here.publish(name.encode(), f"secret/{name}")
    here.allow(subscribe=deny("secret/a"))
    second = world.join("second", username="bob")
    assert second.sub("$topic-endpoint/te/secret/#") == 1
    taken = [message.payload for message in second.rest]
    second.puback(*second.rest)
    assert taken + second.take() == [b"b"]
    assert world.vpn().discards.counts[SUBSCRIBE_TOPIC_ACL] == 1
    assert [row.message.payload for row in dead.browse(0, 9)] == [b"a"]
