"""Events on the topics of their message VPN."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber, Subscription
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.events import table
from vpnrouter.events.log import EventLog
from vpnrouter.selectors import parse_selector
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.events.publisher import EventPublisher
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter

TEXT = """
msg_vpns:
  blue: {event: {publish: {PUBLISH}}}
  red: {}
"""


class Taker(Subscriber):
    """Notes topic and payload of what it gets."""

    def __init__(self, vpn: MessageVpn, text: str, dialect: int, name: str = "taker") -> None:
        super().__init__(name, Outbox(vpn.context.ready, 1), FRAME_OWN)
        self.got: list[tuple[str, str]] = []
        vpn.subscribe(Subscription(parse_filter(text, dialect), self))

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        self.got.append((message.topic.decode(), message.payload.decode()))


class Rig:
    """A router in memory with a log, a publisher, and who subscribes to everything of it in each form."""

    def __init__(self, config: RouterConfig) -> None:
        self.router = build_router(config, 7, bytes(16))
        self.log = EventLog("here", lambda: 1)
        self.router.context.events = self.log
        self.config = config
        self.publisher = EventPublisher(self.router, lambda: self.config)
        self.log.listeners.append(self.publisher)
        self.blue = self.router.vpns["blue"]
        self.mqtt = Taker(self.blue, "$SYS/LOG/#", MQTT)
        self.smf = Taker(self.blue, "#LOG/>", SMF)
        self.other = Taker(self.router.vpns["red"], "$SYS/LOG/#", MQTT)
        self.publisher.watch()

    def publish(self) -> None:
        """Publish what waits."""
        self.router.context.jobs.finish()

    def published(self) -> list[tuple[str, str]]:
        """What was published since, in the form for MQTT."""
        self.publish()
        assert [(f"$SYS/{topic[1:]}", text) for topic, text in self.smf.got] == self.mqtt.got
        found = self.mqtt.got
        self.mqtt.got, self.smf.got = [], []
        assert self.other.got == []
        return found


@pytest.fixture
def rig(configured: Callable[..., RouterConfig]) -> Callable[[str], Rig]:
    """`rig(publish)`: the keys below `publish`."""
    return lambda publish: Rig(configured(TEXT.replace("PUBLISH", publish)))


def test_topics_are_those_of_the_field(rig: Callable[[str], Rig]) -> None:
    """Level, scope, router, event, message VPN, and the client of a client's event."""
    one = rig("client_enabled: true, msg_vpn_enabled: true")
    one.log.raise_event(table.LINK_DOWN, "blue", "bridge", "down")
    one.log.raise_event(table.CONNECT, "blue", "a/b", "in")
    assert one.published() == [
        (
            "$SYS/LOG/WARN/VPN/here/VPN_BRIDGING_LINK_DOWN/blue",
            "VPN: VPN_BRIDGING_LINK_DOWN: blue down",
        ),
        (
            "$SYS/LOG/INFO/CLIENT/here/CLIENT_CLIENT_CONNECT/blue/a/b",
            "CLIENT: CLIENT_CLIENT_CONNECT: blue a/b in",
        ),
    ]


@pytest.mark.parametrize(
    ("publish", "scopes"),
    [("", []), ("client_enabled: true", ["CLIENT"]), ("msg_vpn_enabled: true", ["VPN"])],
)
def test_only_what_is_enabled(rig: Callable[[str], Rig], publish: str, scopes: list[str]) -> None:
    """Each scope has its switch; events of the router, and of other message VPNs, are not published."""
    one = rig(publish)
    for vpn in ("blue", "red", "none", ""):
        for kind in (table.LINK_UP, table.CONNECT, table.CONNECT_FAIL, table.STARTUP):
            one.log.raise_event(kind, vpn, "x")
    assert [topic.split("/")[3] for topic, _ in one.published()] == scopes


def test_hostile_names(rig: Callable[[str], Rig]) -> None:
    """What an MQTT client must not be sent in a topic is encoded; lines stay lines."""
    one = rig("client_enabled: true")
    one.log.raise_event(table.CONNECT, "blue", "+/#\n", "in")
    one.publish()
    assert one.mqtt.got[0][0].endswith("/blue/%2B/%23\\n")
    assert one.smf.got[0][0].endswith("/blue/+/#\\n")


def test_one_form(configured: Callable[..., RouterConfig]) -> None:
    """Each form has its switch, and a tag stands before the text."""
    publish = "{client_enabled: true, topic_format: {smf_enabled: false}}"
    one = Rig(
        configured(f"msg_vpns: {{blue: {{event: {{publish: {publish}, log_tag: T}}}}, red: }}")
    )
    one.log.raise_event(table.CONNECT, "blue", "c", "in")
    one.publish()
    assert one.smf.got == []
    assert [text for _, text in one.mqtt.got] == ["T CLIENT: CLIENT_CLIENT_CONNECT: blue c in"]


@pytest.mark.parametrize(
    ("mode", "first"),
    [
        ("on-with-format-v1", "$SYS/LOG/INFO/SUB_ADD/a/*/>"),
        ("on-with-format-v2", "$SYS/LOG/INFO/SUB/here/ADD/blue/new/a/*/>"),
    ],
)
def test_subscriptions(rig: Callable[[str], Rig], mode: str, first: str) -> None:
    """They come and go in either format, as SMF filters; those of the publisher's own topics too."""
    one = rig(f"subscription_mode: {mode}")
    taker = Taker(one.blue, "a/+/b/#", MQTT, "new")
    one.blue.unsubscribe(taker, "a/+/b/#")
    topics = [topic for topic, _ in one.published()]
    assert topics[0] == first.replace("a/*/>", "a/*/b/>")
    assert topics[1] == topics[0].replace("ADD", "DEL")
    one.blue.announce(Message(b"$SYS/LOG/x", b"", b""))
    one.mqtt.got.clear()
    assert one.published() == []


def test_no_unsubscribe_events_at_the_end(rig: Callable[[str], Rig]) -> None:
    """Where that mode is on, a client that goes tells nothing of its subscriptions."""
    one = rig("subscription_mode: on-with-no-unsubscribe-events-on-disconnect-format-v1")
    taker = Taker(one.blue, "a", MQTT)
    one.blue.unsubscribe(taker, "a")
    assert len(one.published()) == 2
    taker = Taker(one.blue, "a", MQTT)
    taker.connected = False
    one.blue.drop(taker)
    assert len(one.published()) == 1


def test_what_waits_is_bounded(rig: Callable[[str], Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """A storm of logins costs a bounded queue."""
    monkeypatch.setattr(limits, "EVENTS_TO_PUBLISH", 3)
    one = rig("client_enabled: true")
    for _ in range(5):
        one.log.raise_event(table.CONNECT, "blue", "c", "in")
    assert len(one.published()) == 3
    assert one.publisher.lost == 2


def test_publishing_feeds_nothing(rig: Callable[[str], Rig]) -> None:
    """What is published raises no event, even where its receiver has no room."""
    one = rig("client_enabled: true, msg_vpn_enabled: true, subscription_mode: on-with-format-v2")
    one.log.raise_event(table.CONNECT, "blue", "c", "in")
    before = one.log.last_event_id
    for _ in range(3):
        one.publish()
    assert one.log.last_event_id == before
    assert len(one.mqtt.got) == 1


def test_a_reload_holds_for_what_comes(
    rig: Callable[[str], Rig], configured: Callable[..., Any]
) -> None:
    """The switches are asked at each event."""
    one = rig("client_enabled: true")
    one.config = configured(TEXT.replace("PUBLISH", ""))
    one.log.raise_event(table.CONNECT, "blue", "c", "in")
    assert one.published() == []


def test_selectors_of_many_receivers(rig: Callable[[str], Rig]) -> None:
    """What they cost, and many events, is shared out among turns; events stay in their order."""
    one = rig("client_enabled: true")
    context = one.router.context
    terms = " OR ".join(f"p{number} = 1" for number in range(500))
    takers = [Taker(one.blue, "$SYS/LOG/none", MQTT, f"t{number}") for number in range(20)]
    for number, taker in enumerate(takers):
        selector = parse_selector(f"{terms} OR q{number} IS NULL")
        there = parse_filter("$SYS/LOG/#", MQTT)
        one.blue.subscribe(Subscription(there, taker, selector=selector))
    for number in range(10):
        one.log.raise_event(table.CONNECT, "blue", f"c{number}", "in")
    turns = 0
    while len(context.jobs):
        context.jobs.step()
        turns += 1
        assert context.work + MEASURE.work() < 2 * limits.TURN_WORK
    assert turns > 10
    topics = [topic for topic, _ in one.mqtt.got]
    assert [topic[-2:] for topic in topics] == [f"c{number}" for number in range(10)]
    assert all([topic for topic, _ in taker.got] == topics for taker in takers)
