"""Connectors over AMQP 1.0 in memory: what crosses how often, what a provider may do wrong, and what it is asked."""

from typing import Any

import pytest

from vpnrouter.connectors.visited import PATH_NAME
from vpnrouter.core.conversion import properties_of_content
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.core.scram import salted_password, verifier_of
from vpnrouter.limits import KNOWN_MESSAGES
from vpnrouter.wire.amqp import frames, sasl
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Received,
    Rejected,
    Released,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
)
from vpnrouter.wire.amqp.types import Symbol

ONCE = {"quality_of_service": "once-and-only-once"}
MOST_ONCE = {"quality_of_service": "at-most-once"}
QUALITIES = ("at-most-once", "duplicates-ok", "once-and-only-once")
ARTEMIS = "apache-activemq-artemis"
IN = {"in": {"source": {"address": "queue://far"}, "target": {"queue": "near"}}}
OUT = {"out": {"source": {"queue": "work"}, "target": {"address": "queue://far"}}}


def publish(router: Any, topic: str, *texts: str, qos: int = 1) -> None:
    """Let a client of the router publish."""
    client = router.world.join(f"p-{topic.replace('/', '-')}-{texts[0]}")
    for number, text in enumerate(texts, 1):
        client.pub(topic, text.encode(), qos, number if qos else 0)
        client.got()
    client.disconnect()


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("qos", [0, 1])
def test_the_link_decides_how_a_message_leaves(
    amqp_connected: Any, amqp_kit: Any, quality: str, qos: int
) -> None:
    """It is settled at once, or when the provider has accepted it; Artemis is told by what it would know it again."""
    there = amqp_connected({"out": {**OUT["out"], "quality_of_service": quality}})
    there.world.queue("work", "out/#")
    there.join(product=ARTEMIS)
    publish(there, "out/a", "1", qos=qos)
    ((transfer, payload),) = there.transfers()
    assert amqp_kit.body_of(payload) == "1"
    assert transfer.settled is (quality == "at-most-once")
    application = amqp_kit.application_of(payload)
    assert application[PATH_NAME] == there.world.vpn().vpn_id
    assert ("_AMQ_DUPL_ID" in application) is (quality == "once-and-only-once")
    # Whoever gets it knows it again, though MQTT has no ids.
    name = properties_of_content(payload).message_id
    assert isinstance(name, str)
    assert application.get("_AMQ_DUPL_ID", name) == name
    if not transfer.settled:
        assert len(there.held("work")) == 1
        there.answer(transfer)
    assert there.held("work") == []
    assert there.balanced()


@pytest.mark.parametrize("dies", ["connection", "router"])
def test_a_message_has_the_same_id_over_all_connections(
    amqp_connected: Any, amqp_kit: Any, dies: str
) -> None:
    """Once-and-only-once outward is the provider's to see to, by an id that lasts and is nobody else's."""
    there = amqp_connected({"out": {**OUT["out"], **ONCE}})
    there.world.queue("work", "out/#")
    there.join(product=ARTEMIS)
    publish(there, "out/a", "1", "2")
    first = [amqp_kit.application_of(each)["_AMQ_DUPL_ID"] for _, each in there.transfers()]
    assert len(set(first)) == 2
    there.cut()
    if dies == "router":
        there.lose_router(there.world.restart())
    there.join(product=ARTEMIS)
    # The first one is suspected of having ended the connection: it is sent alone.
    again = []
    while found := there.transfers():
        assert dies == "router" or len(found) == 1
        for transfer, payload in found:
            again.append(amqp_kit.application_of(payload)["_AMQ_DUPL_ID"])
            there.answer(transfer)
    assert again == first


@pytest.mark.parametrize(
    ("product", "told"),
    [
        ("RabbitMQ", "offers nothing by which it would know a message again"),
        ("vpnrouter", "offers nothing by which it would know a message again"),
        ("", "offers nothing by which it would know a message again"),
        (ARTEMIS, ""),
    ],
)
def test_once_outward_needs_a_provider_that_knows_messages(
    amqp_connected: Any, product: str, told: str
) -> None:
    """A quality that the provider cannot keep is refused, and the other link goes on."""
    there = amqp_connected({"out": {**OUT["out"], **ONCE}, "plain": OUT["out"]})
    there.world.queue("work", "out/#")
    there.join(product=product)
    state, reason = there.state("out")
    assert state == ("refused" if told else "up")
    assert told in reason
    assert there.state("plain")[0] == "up"


def knowing(there: Any, count: int = 100) -> None:
    """Connect to a provider that knows the last deliveries of each link by their tags."""
    there.join(grants=False, product="vpnrouter", offered_capabilities=[Symbol(KNOWS)])
    asked = there.attached["out"]
    assert asked.desired_capabilities == [Symbol(KNOWS)]
    there.grant(asked, properties={Symbol(KNOWS): count} if count else None)


@pytest.mark.parametrize("dies", ["connection", "router"])
def test_a_delivery_has_the_same_tag_over_all_connections(amqp_connected: Any, dies: str) -> None:
    """By that the other router knows it again; no other message has it."""
    there = amqp_connected({"out": {**OUT["out"], **ONCE}})
    there.world.queue("work", "out/#")
    knowing(there)
    assert there.state("out") == ("up", "")
    publish(there, "out/a", "1", "2")
    first = [transfer.delivery_tag for transfer, _ in there.transfers()]
    assert len(set(first)) == 2
    there.cut()
    if dies == "router":
        there.lose_router(there.world.restart())
    knowing(there)
    again = []
    while found := there.transfers():
        for transfer, _ in found:
            again.append(transfer.delivery_tag)
            there.answer(transfer)
    assert again == first
    assert there.held("work") == []


def test_a_provider_that_has_no_room_to_know_deliveries(amqp_connected: Any) -> None:
    """The link is refused, and asked for again."""
    there = amqp_connected({"out": {**OUT["out"], **ONCE}})
    there.world.queue("work", "out/#")
    knowing(there, 0)
    told = "the provider has no room to know its messages again"
    assert there.state("out") == ("refused", told)
    there.world.advance(10.1)
    (again,) = [each for each in there.got() if isinstance(each, Attach)]
    there.grant(again, properties={Symbol(KNOWS): 5})
    assert there.state("out") == ("up", "")


def test_no_more_is_sent_than_the_provider_knows_again(amqp_connected: Any) -> None:
    """What it has accepted counts until that is synced here: after a crash it would be sent again."""
    there = amqp_connected({"out": {**OUT["out"], **ONCE}})
    there.world.queue("work", "out/#")
    knowing(there, 3)
    publish(there, "out/a", *"12345")
    first = there.transfers()
    assert len(first) == 3
    for transfer, _ in first[:2]:
        there.answer(transfer)
    # The unit that has them is being committed.
    world = there.world
    batch = world.spool.end_round()
    assert [each for each in there.received() if type(each) is tuple] == []
    world.store.commit(batch)
    world.spool.committed()
    assert len(there.transfers()) == 2


REFUSALS: list[tuple[Any, str]] = [
    (Rejected(Error("amqp:not-allowed", "no")), "rejected it: amqp:not-allowed: no"),
    (Rejected(), "rejected it: it gives no reason"),
    (Released(), "released it"),
    (Modified(True, True), "could not deliver it here"),
    (Modified(True), "could not deliver it"),
]


@pytest.mark.parametrize(
    ("state", "told", "settled"),
    [
        *((state, told, settled) for state, told in REFUSALS for settled in (True, False)),
        (None, "released it", True),
    ],
)
def test_what_the_provider_refuses_is_tried_again_and_given_up(
    amqp_connected: Any, state: Any, told: str, settled: bool
) -> None:
    """Whatever it says; what is behind crosses. An outcome that it has not settled is settled by us."""
    there = amqp_connected({"out": {**OUT["out"], "reject_attempts": 2, "then": "skip"}})
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "bad")
    for _ in range(2):
        ((transfer, _),) = there.transfers()
        number = transfer.delivery_id
        there.send(Disposition(True, number, number, settled, state))
    publish(there, "out/a", "good")
    ((transfer, _),) = there.transfers()
    there.answer(transfer)
    assert there.held("work") == []
    assert there.balanced()
    assert len(there.told) == 1
    assert told in there.told[0]


def test_a_state_that_is_no_outcome_settles_nothing(amqp_connected: Any) -> None:
    """A provider that says how far it has come has not said what becomes of the message (3.4.1)."""
    there = amqp_connected(OUT)
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "1")
    ((transfer, _),) = there.transfers()
    there.answer(transfer, Received(0, 5), settled=False)
    assert len(there.held("work")) == 1
    there.answer(transfer)
    assert there.held("work") == []


def test_no_more_is_sent_than_the_provider_has_credit_for(amqp_connected: Any) -> None:
    """Of the link, and of the session's window; a drain uses it up."""
    there = amqp_connected(OUT)
    there.world.queue("work", "out/#")
    there.join(credit=2)
    publish(there, "out/a", *"12345")
    first = there.transfers()
    assert len(first) == 2
    for transfer, _ in first:
        there.answer(transfer)
    assert there.transfers() == []
    handle = there.attached["out"].handle + 100
    there.send(Flow(2, 1, 0, 1, handle, 2, 10))
    assert len(there.transfers()) == 1
    there.send(Flow(3, 1_000, 0, 1, handle, 3, 5, drain=True))
    said = there.got()
    assert len([each for each in said if type(each) is tuple]) == 2
    (flow,) = [each for each in said if isinstance(each, Flow)]
    assert (flow.link_credit, flow.delivery_count, flow.drain) == (0, 8, True)


@pytest.mark.parametrize("credit", [1 << 31, (1 << 32) - 1])
def test_credit_without_an_end(amqp_connected: Any, credit: int) -> None:
    """What a provider means that takes as much as comes: all numbers up to the largest one are credit (2.6.7)."""
    there = amqp_connected(OUT)
    there.world.queue("work", "out/#")
    there.join(credit=credit)
    publish(there, "out/a", "1", "2")
    for _ in range(2):
        for transfer, _ in there.transfers():
            there.answer(transfer)
        there.send(Flow(0, 5_000, 0, 5_000, there.attached["out"].handle + 100, 1, credit))
        publish(there, "out/a", "3")
        assert len(there.transfers()) == 1


SECRET = "s3cr3t-w0rd"
SAYS = Error(Symbol("amqp:a"), f"no {SECRET} here")
ECHOES = {
    "close": lambda there: there.send(Close(SAYS)),
    "end": lambda there: there.send(End(SAYS)),
    "condition": lambda there: there.send(Close(Error(Symbol(f"amqp:{SECRET}")))),
    "detach": lambda there: there.send(Detach(there.attached["out"].handle + 100, True, SAYS)),
    "rejected": lambda there: [
        there.answer(transfer, Rejected(SAYS)) for transfer, _ in there.transfers()
    ],
}
"""Ways in which a provider repeats the password."""


@pytest.mark.parametrize("way", ECHOES)
def test_a_password_that_the_provider_repeats(amqp_connected: Any, way: str) -> None:
    """It is shown nowhere."""
    links = {"out": {**OUT["out"], "reject_attempts": 1}}
    there = amqp_connected(links, username="u", password=SECRET)
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "1", "2")
    ECHOES[way](there)
    said = [each.why + each.blame for each in there.losses]
    said += [there.state("out")[1], *there.told]
    assert any("***" in each for each in said), said
    assert not any(SECRET in each for each in said)


def test_a_provider_that_gives_no_credit(amqp_connected: Any) -> None:
    """It is told of the link: the queue there is full, perhaps. It goes on by itself."""
    there = amqp_connected(OUT, answer_timeout=10)
    there.world.queue("work", "out/#")
    there.join(credit=0)
    there.world.advance(4.1)
    assert there.state("out") == ("up", "")
    publish(there, "out/a", "1")
    for _ in range(3):
        there.world.advance(2.1)
    told = "the provider gives no credit, as one does whose queue is full"
    assert there.state("out") == ("held", told)
    there.cut()
    assert there.state("out") == ("down", "")
    there.join(credit=0)
    for _ in range(4):
        there.world.advance(2.1)
    assert there.state("out") == ("held", told)
    handle = there.attached["out"].handle + 100
    there.send(Flow(0, 1_000, 0, 1, handle, 0, 5))
    assert there.state("out") == ("up", "")
    ((transfer, _),) = there.transfers()
    there.answer(transfer)
    assert there.balanced()


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_link_decides_how_a_message_comes(amqp_connected: Any, quality: str) -> None:
    """What is guaranteed is accepted when it is in the synced spool; what is not is asked for as settled."""
    there = amqp_connected({"in": {**IN["in"], "quality_of_service": quality}})
    there.world.queue("near")
    there.join()
    most_once = quality == "at-most-once"
    assert there.attached["in"].snd_settle_mode == (1 if most_once else 0)
    there.gives("in", there_message("1"), settled=most_once)
    assert there.outcomes() == ({} if most_once else {0: "Accepted"})
    assert there.bodies("near") == ["1"]
    assert there.balanced()


def there_message(text: str, **more: Any) -> bytes:
    """A message of the provider."""
    return _KIT[0].message(text, **more)  # type: ignore[no-any-return]


_KIT: list[Any] = []


@pytest.fixture(autouse=True)
def _kit(amqp_kit: Any) -> None:
    _KIT[:] = [amqp_kit]


AGAIN = {
    "the same id": ({"message_id": "a"}, 0, {"message_id": "a"}, 0, 1),
    "the same id, marked": ({"message_id": "a"}, 0, {"message_id": "a"}, 3, 1),
    "another id": ({"message_id": "a"}, 0, {"message_id": "b"}, 0, 2),
    "no id, marked": ({}, 0, {}, 1, 1),
    "no id, not marked": ({}, 0, {}, 0, 2),
    "the same id, another subject": (
        {"message_id": "a"},
        0,
        {"message_id": "a", "subject": "s"},
        0,
        2,
    ),
}
"""What a message says, and how often it was delivered before; the one that comes later; how many enter."""


@pytest.mark.parametrize("dies", ["connection", "router", "nothing"])
@pytest.mark.parametrize("case", AGAIN)
def test_once_inward_a_message_is_known_again(amqp_connected: Any, case: str, dies: str) -> None:
    """By what its sender wrote, over connections and restarts, since a provider may not have got our answer."""
    said, count, later, later_count, entered = AGAIN[case]
    there = amqp_connected({"in": {**IN["in"], **ONCE}})
    there.world.queue("near")
    there.join()
    there.gives("in", there_message("1", count=count, **said))
    assert there.outcomes() == {0: "Accepted"}
    if dies != "nothing":
        there.cut()
        if dies == "router":
            there.lose_router(there.world.restart())
        there.join()
    number = there.count
    there.gives("in", there_message("1", count=later_count, **later))
    assert there.outcomes() == {number: "Accepted"}
    assert there.bodies("near") == ["1"] * entered
    assert there.balanced()


def test_the_last_messages_are_known(amqp_connected: Any) -> None:
    """So many, whatever came before them; their rows do not grow beyond that."""
    there = amqp_connected({"in": {**IN["in"], **ONCE}}, window=10_000)
    there.world.queue("near")
    there.join()
    known = there.client.known
    for number in range(KNOWN_MESSAGES + 2):
        known.remember(b"%016d" % number)
    assert b"%016d" % 1 not in known
    assert b"%016d" % 2 in known
    there.world.settle()
    there.cut()
    there.lose_router(there.world.restart())
    there.join()
    assert b"%016d" % 1 not in there.client.known
    assert b"%016d" % (KNOWN_MESSAGES + 1) in there.client.known


def test_the_window_counts_what_is_not_answered(amqp_connected: Any) -> None:
    """More is asked for when half of it is free."""
    there = amqp_connected(IN, window=4)
    there.world.queue("near")
    said = there.join()
    flows = [each for each in said if isinstance(each, Flow)]
    assert flows[-1].link_credit == 4
    there.gives("in", there_message("1"))
    assert [each for each in there.got() if isinstance(each, Flow)] == []
    there.gives("in", there_message("2"))
    (flow,) = [each for each in there.got() if isinstance(each, Flow)]
    assert (flow.link_credit, flow.delivery_count) == (4, 2)
    # What has come, and is not in the synced spool yet, counts.
    there.gives("in", *[there_message(text) for text in "3456"])
    assert [each for each in there.received() if isinstance(each, Flow)] == []
    assert [each.link_credit for each in there.got() if isinstance(each, Flow)] == [2, 4]


def test_messages_in_parts(amqp_connected: Any) -> None:
    """They are put together, given up where they are aborted, and rejected where they are too large."""
    there = amqp_connected(IN)
    there.world.queue("near")
    there.join()
    handle = there.attached["in"].handle + 100
    whole = there_message("x" * 300)
    there.send(Transfer(handle, 0, b"0", 0, False, more=True), payload=whole[:100])
    there.send(Transfer(handle, more=True), payload=whole[100:200])
    there.send(Transfer(handle), payload=whole[200:])
    there.send(Transfer(handle, 1, b"1", 0, False, more=True), payload=whole[:100])
    there.send(Transfer(handle, aborted=True))
    part = b"y" * 60_000
    most = there.attached["in"].max_message_size
    there.send(Transfer(handle, 2, b"2", 0, False, more=True), payload=part)
    for _ in range(most // len(part)):
        there.send(Transfer(handle, more=True), payload=part)
    assert there.account.held < most
    there.send(Transfer(handle), payload=part)
    there.count = 3
    there.gives("in", there_message("behind"))
    assert there.outcomes() == {0: "Accepted", 2: "Rejected", 3: "Accepted"}
    assert there.bodies("near") == ["x" * 300, "behind"]
    assert there.balanced()


@pytest.mark.parametrize(
    "payload", [b"", b"\x00", b"\x00\x53\x75", b"\xff" * 9, b"\x00\x53\x73\xd1"]
)
def test_what_is_no_message_is_rejected(amqp_connected: Any, payload: bytes) -> None:
    """It can never enter, and costs itself alone. One without any section is an empty message."""
    there = amqp_connected(IN)
    there.world.queue("near")
    there.join()
    there.gives("in", payload, there_message("behind"))
    empty = payload == b""
    assert there.outcomes() == {0: "Accepted" if empty else "Rejected", 1: "Accepted"}
    assert there.bodies("near")[-1] == "behind"
    assert there.balanced()


def test_a_message_does_not_come_back(amqp_connected: Any) -> None:
    """One that has been here does not enter, and one that came from the provider does not go there."""
    links = {
        "in": {"source": {"address": "topic://t"}, "target": {"topic": "in/{1}"}},
        "out": {"source": {"topic": "in/>"}, "target": {"address": "topic://t"}},
    }
    there = amqp_connected(links)
    there.world.queue("near", "in/#")
    there.join()
    own = there.world.vpn().vpn_id
    there.gives("in", there_message("1", more={PATH_NAME: f"x/y {own}"}), there_message("2"))
    assert there.outcomes() == {0: "Accepted", 1: "Accepted"}
    assert there.bodies("near") == ["2"]
    assert there.transfers() == []
    assert there.links.all["in"].counters.discarded.counts == {"loop-detected": 1}


TOPICS = {
    ("queue://far", None, "elsewhere"): "far",
    ("topic://far/#", "topic://far/x", "elsewhere"): "far/x",
    ("topic://far/#", "far/y", "elsewhere"): "far/y",
    ("topic://far", None, "elsewhere"): "far",
    ("their/own", "x", "elsewhere"): "their/own",
}
"""(address, `to` of the message, –) → its topic here, without a target."""


@pytest.mark.parametrize("case", TOPICS)
def test_topics_of_messages_that_come(amqp_connected: Any, case: tuple[str, str, str]) -> None:
    """A message of a topic has the topic that it was sent to; one of a queue the name of the queue."""
    address, to, _ = case
    there = amqp_connected({"in": {"source": {"address": address}}})
    there.world.queue("near", "#")
    there.join()
    there.gives("in", there_message("1", to=to))
    assert there.outcomes() == {0: "Accepted"}
    endpoint = there.world.vpn().queue("near")
    (row,) = endpoint.browse(0, 10)
    assert row.message.topic.decode() == TOPICS[case]


BROKERS = {
    # product, version, link → address, capabilities, name of the link, durable
    "artemis queue": (ARTEMIS, "2.42", "queue://a b", {}, ("a b", ["queue"], "in", 0)),
    "artemis topic": (ARTEMIS, "2.42", "topic://t", {}, ("t", ["topic"], "in", 0)),
    "artemis durable": (
        ARTEMIS,
        "2.42",
        "topic://t",
        {"subscription": "s"},
        ("t", ["topic"], "s", 2),
    ),
    "artemis shared": (
        ARTEMIS,
        "2.42",
        "topic://t",
        {"subscription": "s", "shared": True},
        ("t", ["topic", "shared", "global"], "s|global", 2),
    ),
    "rabbitmq 4": ("RabbitMQ", "4.1.0", "queue://a b", {}, ("/queues/a%20b", [], "in", 0)),
    "rabbitmq 3": ("RabbitMQ", "3.10.8", "queue://a b", {}, ("/amq/queue/a b", [], "in", 0)),
    "rabbitmq 3 topic": ("RabbitMQ", "3.10.8", "topic://t", {}, ("/topic/t", [], "in", 0)),
    "rabbitmq 4 topic": ("RabbitMQ", "4.1.0", "topic://t", {}, None),
    "ourselves": ("vpnrouter", "", "queue://q", {}, ("queue://q", [], "in", 0)),
    "ours, topic": ("vpnrouter", "", "topic://t", {}, ("topic://t", [], "in", 0)),
    "unknown": ("something", "", "queue://q", {}, ("q", ["queue"], "in", 0)),
    "its own": (ARTEMIS, "", "a::b", {}, ("a::b", None, "in", 0)),
}


@pytest.mark.parametrize("case", BROKERS)
def test_what_each_broker_is_asked(amqp_connected: Any, case: str) -> None:
    """As the table says: address, capabilities, name and durability."""
    product, version, address, more, asked = BROKERS[case]
    there = amqp_connected({"in": {"source": {"address": address, **more}}})
    said: dict[object, object] = {Symbol("product"): product, Symbol("version"): version}
    there.join(properties=said)
    if asked is None:
        assert there.state("in")[0] == "refused"
        assert "name a queue" in there.state("in")[1]
        return
    (attach,) = there.attached.values()
    source = attach.source
    capabilities = source.capabilities
    assert (source.address, capabilities or [], attach.name, source.durable) == (
        asked[0],
        asked[1] or [],
        asked[2],
        asked[3],
    )


def test_a_selector_is_the_providers_to_evaluate(amqp_connected: Any) -> None:
    """It is sent as the registered filter, and a provider that ignores it is told from one that has it."""
    links = {"in": {"source": {"address": "queue://q", "selector": "x > 1"}}}
    there = amqp_connected(links)
    there.join(grants=False)
    (asked,) = there.attached.values()
    ((name, chosen),) = asked.source.filter.items()
    assert (name, chosen.value) == ("jms-selector", "x > 1")
    # A number would have to be an ulong: Artemis knows no other.
    assert chosen.descriptor == Symbol("apache.org:selector-filter:string")
    there.grant(asked, source=asked.source._replace(filter=None))
    assert there.state("in") == ("refused", "the provider knows no selectors")


def test_a_durable_subscription_ends_with_its_link(amqp_connected: Any) -> None:
    """The provider is asked to forget it, and keeps it over connections before."""
    links = {"in": {"source": {"address": "topic://t", "subscription": "s"}}}
    there = amqp_connected(links)
    there.join(product=ARTEMIS)
    there.cut()
    there.configured = there.configured.model_copy(update={"links": {}})
    there.begin(there.session)
    there.join(product=ARTEMIS, grants=False)
    (ending,) = there.attached.values()
    assert (ending.name, ending.role, ending.source) == ("s", True, None)
    there.grant(ending)
    (detach,) = there.got()
    assert isinstance(detach, Detach)
    assert detach.closed
    # Until the provider has said so, another connection asks again.
    assert there.session.asked == {"s": 1}
    there.send(Detach(ending.handle + 100, True))
    assert there.session.asked == {}
    assert there.losses[1:] == []


@pytest.mark.parametrize("answer", ["it ends", "nobody knows it"])
def test_durable_subscriptions_end_with_their_connector(amqp_connected: Any, answer: str) -> None:
    """It logs in once more, has the provider end them, and goes when that is done."""
    links = {
        "one": {"source": {"address": "topic://t", "subscription": "s"}},
        "two": {"source": {"address": "topic://t", "subscription": "all", "shared": True}},
    }
    there = amqp_connected(links)
    there.join(product=ARTEMIS)
    there.cut()
    there.session.leave()
    there.dial(leaving=True)
    there.login()
    there.let_in(properties={Symbol("product"): ARTEMIS})
    endings = there.got()
    assert {each.name: each.desired_capabilities for each in endings} == {
        "s": None,
        "all|global": ["shared", "global"],
    }
    for number, ending in enumerate(endings):
        assert there.client.connection.closing is False
        if answer == "it ends":
            there.grant(ending)
            assert [type(each).__name__ for each in there.received()] == ["Detach"]
        else:
            there.grant(ending, source=None)
        there.send(Detach(ending.handle + 100, True))
        assert there.client.connection.closing is (number == 1)
    assert there.losses[-1].why == "the subscriptions are over"


def test_a_link_that_is_refused_is_asked_for_again(amqp_connected: Any) -> None:
    """The reason is told; others go on; it works as soon as the provider lets it."""
    there = amqp_connected({**IN, **OUT})
    there.world.queue("near")
    there.world.queue("work")
    there.join(grants=False)
    asked = there.attached["in"]
    there.grant(asked, source=None)
    there.send(Detach(asked.handle + 100, True, Error("amqp:not-found", "no queue far")))
    told = "the provider refused it: amqp:not-found: no queue far"
    assert there.state("in") == ("refused", told)
    there.grant(there.attached["out"])
    there.got()
    assert there.state("out")[0] == "up"
    there.world.advance(10.1)
    (again,) = [each for each in there.got() if isinstance(each, Attach)]
    there.grant(again)
    assert there.state("in") == ("up", "")


def test_a_link_that_is_detached_gives_its_messages_back(amqp_connected: Any) -> None:
    """They leave by the next link."""
    there = amqp_connected(OUT)
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "1")
    assert len(there.transfers()) == 1
    handle = there.attached["out"].handle + 100
    there.send(Detach(handle, True, Error("amqp:resource-deleted")))
    assert there.state("out") == ("refused", "the provider detached it: amqp:resource-deleted")
    there.world.advance(10.1)
    (again,) = [each for each in there.got() if isinstance(each, Attach)]
    there.grant(again)
    ((transfer, _),) = there.transfers()
    there.answer(transfer)
    assert there.held("work") == []
    assert there.balanced()


def test_direct_messages_wait_for_credit(amqp_connected: Any, amqp_kit: Any) -> None:
    """They leave in order when there is some; with the connection they are lost, and count as that."""
    there = amqp_connected(
        {"out": {"source": {"topic": "d/>"}, "target": {"address": "topic://t"}, **MOST_ONCE}}
    )
    there.join(credit=1)
    publish(there, "d/a", *"1234", qos=0)
    assert [amqp_kit.body_of(payload) for _, payload in there.transfers()] == ["1"]
    handle = there.attached["out"].handle + 100
    there.send(Flow(1, 1_000, 0, 1, handle, 1, 1))
    assert [amqp_kit.body_of(payload) for _, payload in there.transfers()] == ["2"]
    there.cut()
    counters = there.links.all["out"].counters
    assert (counters.messages, counters.delivered) == (4, 2)
    assert counters.discarded.counts == {"client-not-connected": 2}
    assert there.account.held == 0


def test_what_was_agreed_over_another_protocol_is_forgotten(amqp_connected: Any) -> None:
    """A connector that spoke MQTT before has filters and packet identifiers in its session."""
    there = amqp_connected({"in": {**IN["in"], **ONCE}})
    there.world.queue("near")
    session = there.session
    session.level = 5
    session.asked = {"a/#": 2}
    session.keep()
    session.remember(7, b"12345678")
    session.remember(8, b"")
    there.join()
    assert list(there.attached) == ["in"]
    assert (session.asked, session.received) == ({}, set())
    there.gives("in", there_message("1", message_id="a"))
    assert there.outcomes() == {0: "Accepted"}
    assert there.bodies("near") == ["1"]


# -- login -------------------------------------------------------------------------------------------

LOGINS = {
    "nobody": ({}, ("PLAIN", "ANONYMOUS"), ("ANONYMOUS", b"r-blue-there")),
    "plain": (
        {"username": "u", "password": "p"},
        ("ANONYMOUS", "PLAIN"),
        ("PLAIN", b"\0u\0p"),
    ),
    "no login for nobody": ({}, ("PLAIN",), "offers no login for nobody: its mechanisms are PLAIN"),
    "no login for a name": (
        {"username": "u", "password": "p"},
        ("ANONYMOUS", "GSSAPI"),
        "offers no login for a username: its mechanisms are ANONYMOUS, GSSAPI",
    ),
    "external": (
        {"url": "amqps://h", "client_cert": {"certificate": "c", "key": "k"}},
        ("ANONYMOUS", "EXTERNAL"),
        ("EXTERNAL", b""),
    ),
}


@pytest.mark.parametrize("case", LOGINS)
def test_the_mechanism_that_is_chosen(amqp_connected: Any, case: str) -> None:
    """By who logs in, and what the provider offers."""
    provider, offered, chosen = LOGINS[case]
    there = amqp_connected({}, **provider)
    there.dial()
    if isinstance(chosen, str):
        offer = SaslMechanisms([Symbol(name) for name in offered])
        there.raw(SASL_HEADER + frames.encode(offer, 0, SASL))
        assert chosen in there.losses[0].why
        return
    init = there.login(*offered)
    assert (init.mechanism, init.initial_response) == chosen


@pytest.mark.parametrize("proves", ["in the outcome", "in a challenge", "not", "wrongly"])
def test_scram(amqp_connected: Any, proves: str) -> None:
    """Both sides prove that they know the password, and neither shows it."""
    there = amqp_connected({}, username="u=,", password="secret")
    there.dial()
    init = there.login("PLAIN", "SCRAM-SHA-256")
    first = sasl.read_client_first(init.initial_response)
    assert (init.mechanism, first.username) == ("SCRAM-SHA-256", "u=,")
    salted = salted_password(b"secret", b"salt", 4_096)
    stored = verifier_of(salted, b"salt", 4_096)
    said = sasl.server_first(first.nonce + "more", b"salt", 4_096)
    there.raw(frames.encode(SaslChallenge(said), 0, SASL))
    (derivation,) = there.derivations
    derivation.finish(derivation.work())
    (answer,) = there.received()
    assert isinstance(answer, SaslResponse)
    final = sasl.read_client_final(answer.response, first.header)
    proved = sasl.scram_message(first, said, final)
    assert stored.accepts(final.proof, proved)
    signature = sasl.server_final(stored.signature(proved))
    if proves == "in a challenge":
        there.raw(frames.encode(SaslChallenge(signature), 0, SASL))
        assert there.received() == [SaslResponse(b"")]
    data = {"in the outcome": signature, "wrongly": b"v=" + b"A" * 44}.get(proves)
    there.raw(frames.encode(SaslOutcome(0, data), 0, SASL))
    if proves.startswith("in"):
        assert there.bytes().startswith(AMQP_HEADER)
    else:
        assert there.losses[0].why == "the provider has not proved that it knows the password"


@pytest.mark.parametrize(
    ("challenge", "told"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not go on from the client's"),
        (b"r=NONCE,s=c2FsdA==,i=4096", "does not go on from the client's"),
        (b"r=NONCEx,s=c2FsdA==,i=1", "wants 1 iterations"),
        (b"r=NONCEx,s=c2FsdA==,i=999999999", "wants 999,999,999 iterations"),
        (b"r=NONCEx,s=c2FsdA==,i=x", "has a nonce, a salt and a count"),
        (b"r=NONCEx,s=!,i=4096", "base64 is due"),
        (b"", "has a nonce, a salt and a count"),
        (b"\xff", "not well-formed UTF-8"),
    ],
)
def test_challenges_that_are_none(amqp_connected: Any, challenge: bytes, told: str) -> None:
    """They end the login, and cost no computation."""
    there = amqp_connected({}, username="u", password="p")
    there.dial()
    init = there.login("SCRAM-SHA-256")
    nonce = sasl.read_client_first(init.initial_response).nonce.encode()
    there.raw(frames.encode(SaslChallenge(challenge.replace(b"NONCE", nonce)), 0, SASL))
    assert there.derivations == []
    assert told in there.losses[0].why


# -- providers that do wrong -------------------------------------------------------------------------


def sasl_frame(performative: Any) -> bytes:
    """A frame of SASL."""
    return frames.encode(performative, 0, SASL)


EARLY = {
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak AMQP 1.0"),
    "AMQP 0-9-1": (b"AMQP\x00\x00\x09\x01", "does not speak AMQP 1.0"),
    "no SASL": (AMQP_HEADER, "in another way than by SASL"),
    "open before login": (SASL_HEADER + frames.encode(Open("x")), "out of turn"),
    "a huge frame": (SASL_HEADER + b"\x7f\xff\xff\xff\x02\x01\x00\x00", "a frame of 2147483647"),
    "a tiny frame": (SASL_HEADER + b"\x00\x00\x00\x04\x02\x01\x00\x00", "a frame of 4 bytes"),
    "no performative": (SASL_HEADER + b"\x00\x00\x00\x0a\x02\x01\x00\x00\xff\xff", "broke"),
    "outcome first": (SASL_HEADER + sasl_frame(SaslOutcome(0)), "out of turn"),
    "refused": (None, "username or password is wrong"),
    "an unknown code": (77, "code 77"),
}


@pytest.mark.parametrize("case", EARLY)
def test_before_the_login(amqp_connected: Any, case: str) -> None:
    """The attempt fails for a reason that is told."""
    data, told = EARLY[case]
    there = amqp_connected({})
    there.dial()
    if isinstance(data, bytes):
        there.raw(data)
    else:
        there.login()
        there.raw(sasl_frame(SaslOutcome(data or 1)))
    (loss,) = there.losses
    assert told in loss.why
    assert not loss.joined


LATE: dict[str, tuple[Any, bytes, str]] = {
    "a second open": (Open("x"), b"", "out of turn"),
    "SASL again": (SaslInit("PLAIN"), b"", "out of turn"),
    "a second begin": (Begin(0, 0, 1, 1), b"", "nobody asked for this session"),
    "an unknown link": (Attach("x", 200, True), b"", "nobody asked for this link"),
    "detach of nothing": (Detach(777), b"", "handle 777"),
    "flow of nothing": (Flow(0, 1, 0, 1, 777, 0, 1), b"", "handle 777"),
    "transfer to nothing": (Transfer(777, 0, b"x", 0), b"x", "handle 777"),
    "transfer on our link": (Transfer(101, 0, b"x", 0), b"x", "on a link that we send on"),
    "no id": (Transfer(100, None, b"x", 0, more=True), b"x", "a delivery without an id"),
    "backwards": (Disposition(True, 5, 3, True, Accepted()), b"", "last before first"),
    "end": (
        End(Error("amqp:internal-error", "oops")),
        b"",
        "ended the session: amqp:internal-error",
    ),
    "close": (Close(Error("amqp:connection:forced", "bye")), b"", "amqp:connection:forced: bye"),
    "redirect": (
        Close(Error("amqp:connection:redirect", None, {Symbol("network-host"): "other"})),
        b"",
        "amqp:connection:redirect, and names another address: other",
    ),
}


@pytest.mark.parametrize("case", LATE)
def test_after_the_login(amqp_connected: Any, case: str) -> None:
    """It costs the connection; what was on its way is in its queue, and leaves over the next one."""
    performative, payload, told = LATE[case]
    there = amqp_connected({**IN, **OUT})
    there.world.queue("near")
    there.world.queue("work", "out/#")
    there.join()
    assert {name: each.handle for name, each in there.attached.items()} == {"out": 0, "in": 1} or {
        name: each.handle for name, each in there.attached.items()
    } == {"in": 0, "out": 1}
    publish(there, "out/a", "1")
    assert len(there.transfers()) == 1
    if payload and isinstance(performative, Transfer) and performative.handle in (100, 101):
        name = "out" if "our link" in case else "in"
        performative = performative._replace(handle=there.attached[name].handle + 100)
    there.send(performative, payload=payload)
    (loss,) = there.losses
    assert told in loss.why
    assert loss.joined
    assert len(there.held("work")) == 1
    there.join()
    ((transfer, _),) = there.transfers()
    there.answer(transfer)
    assert there.held("work") == []
    assert there.balanced()


def test_more_messages_than_credit(amqp_connected: Any) -> None:
    """They end the connection: what it holds for a provider is bounded."""
    there = amqp_connected(IN, window=2)
    there.world.queue("near")
    there.join()
    handle = there.attached["in"].handle + 100
    data = b"".join(
        frames.encode(Transfer(handle, number, b"x", 0, False), payload=there_message("x"))
        for number in range(3)
    )
    there.raw(data)
    assert "a message without credit" in there.losses[0].why


def test_signs_of_life(amqp_connected: Any) -> None:
    """Each side gives them as often as the other wants; a provider that gives none is lost."""
    there = amqp_connected({}, keepalive=10)
    there.dial()
    there.login()
    opening = there.let_in(idle_time_out=4_000)
    assert opening.idle_time_out == 10_000
    there.world.advance(2.1)
    assert there.bytes() == frames.EMPTY
    there.raw(frames.EMPTY)
    there.world.advance(9)
    assert there.losses == []
    for _ in range(4):
        there.world.advance(6)
    assert [loss.why for loss in there.losses] == ["the provider gives no sign of life"]


def test_a_message_that_is_never_answered(amqp_connected: Any) -> None:
    """The connection is made anew, as if the provider had ended it for this message."""
    there = amqp_connected(OUT, answer_timeout=10)
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "1")
    assert len(there.transfers()) == 1
    for _ in range(8):
        there.world.advance(2)
        if there.losses:
            break
        there.raw(frames.EMPTY)
    (loss,) = there.losses
    assert "has not answered a message for" in loss.why
    assert (loss.link, loss.message_id > 0) == ("out", True)


def test_a_message_by_which_the_provider_ends_is_found(amqp_connected: Any, amqp_kit: Any) -> None:
    """It is sent alone then, and given up after its attempts; those behind it cross."""
    there = amqp_connected({"out": {**OUT["out"], "reject_attempts": 2, "then": "skip"}})
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", "poison", "2", "3")
    for _ in range(6):
        for transfer, payload in there.transfers():
            if amqp_kit.body_of(payload) == "poison":
                there.send(Close(Error("amqp:internal-error")))
                break
            there.answer(transfer)
        if there.losses:
            there.losses.clear()
            there.join()
    assert there.held("work") == []
    assert there.balanced()
    assert len(there.told) == 1


# -- pause ---------------------------------------------------------------------------------------


def pause(there: Any, name: str, *, paused: bool = True) -> None:
    """Pause a link, or let it go on."""
    there.links.all[name].pause(paused)


def credits_of(there: Any) -> list[int | None]:
    """The credit that the router has given since."""
    return [each.link_credit for each in there.got() if isinstance(each, Flow)]


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_paused_link_takes_its_credit_back(amqp_connected: Any, quality: str) -> None:
    """What was on its way is taken as its quality says; beyond the credit of before it is a fault of the provider."""
    there = amqp_connected({"in": {**IN["in"], "quality_of_service": quality}}, window=4)
    there.world.queue("near")
    there.join()
    settled = quality == "at-most-once"
    there.gives("in", there_message("0", message_id="0"), settled=settled)
    there.got()
    pause(there, "in")
    assert credits_of(there) == [0]
    there.gives("in", *(there_message(f"{n}", message_id=f"{n}") for n in (1, 2)), settled=settled)
    assert credits_of(there) == []
    assert there.bodies("near") == (["0", "1", "2"] if settled else ["0"])
    pause(there, "in", paused=False)
    there.got()
    assert there.bodies("near") == ["0", "1", "2"]
    assert there.balanced()
    pause(there, "in")
    there.got()
    for number in range(3, 12):
        there.gives("in", there_message(f"{number}", message_id=f"{number}"), settled=settled)
        if there.losses:
            break
    assert "without credit" in there.losses[0].why
    assert number <= 3 + 4 + 4


def test_a_link_that_is_paused_before_it_is_attached(amqp_connected: Any) -> None:
    """It is given no credit until it goes on; then messages come."""
    there = amqp_connected({"in": {**IN["in"], "paused": True}})
    there.world.queue("near")
    assert not [each for each in there.join() if isinstance(each, Flow)]
    assert there.links.all["in"].status.state.value == "paused"
    pause(there, "in", paused=False)
    assert credits_of(there) == [1_000]
    there.gives("in", there_message("1", message_id="1"))
    there.got()
    assert there.bodies("near") == ["1"]


def test_a_paused_link_sends_nothing(amqp_connected: Any, amqp_kit: Any) -> None:
    """What is on its way is settled, the rest waits; Direct messages that wait for credit wait on."""
    links = {
        **OUT,
        "direct": {"source": {"topic": "d/>"}, "target": OUT["out"]["target"], **MOST_ONCE},
    }
    there = amqp_connected(links)
    there.world.queue("work", "out/#")
    there.join(credit=1)
    publish(there, "out/a", "1", "2")
    publish(there, "d/a", "3", "4", qos=0)
    sent = there.transfers()
    assert [amqp_kit.body_of(each) for _, each in sent] == ["1", "3"]
    for name in links:
        pause(there, name)
        handle = there.attached[name].handle + 100
        there.send(Flow(0, 1 << 30, 0, 1 << 30, handle, 1, 10))
    there.answer(sent[0][0])
    assert there.transfers() == []
    assert there.balanced()
    for name in links:
        pause(there, name, paused=False)
    again = there.transfers()
    assert sorted(amqp_kit.body_of(each) for _, each in again) == ["2", "4"]
