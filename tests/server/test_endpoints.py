"""Endpoints as the configuration wants them, over a spool on disk."""

from typing import Any

import pytest

from vpnrouter.core.guaranteed.counters import DISCARDED
from vpnrouter.core.guaranteed.endpoint import DAMAGED, LAST_VALUE
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition, read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    QUEUE,
    REPLAY_LOG,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, REJECTED
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED, UNMATCHED
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber, Subscription
from vpnrouter.errors import Refused
from vpnrouter.server.apply.assemble import vpn_of
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.units import SECOND_NS

EMPTY = "msg_vpns: {blue: {}}"
ONE = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>]}}}}"
BOTH = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>]}, p: {subscriptions: [b]}}}}"
TOLD = "vpnrouter: queue q of message VPN blue is not configured any more; it is shut down and keeps its 1 messages"


def queues(vpn: Any) -> dict[str, int]:
    """Queues by name, and their numbers."""
    return {name: one.number for (kind, name), one in vpn.endpoints.items() if kind == QUEUE}


@pytest.fixture
def change(stored: Any, configured: Any) -> Any:
    """`change(one, text)` lets a running core have another configuration, and commits."""

    def run(one: Any, text: str) -> None:
        one.spooling.change(one.router, configured(text))
        one.commit()

    return run


def test_numbers(stored: Any, change: Any) -> None:
    """A queue keeps its number as long as it is there; nobody gets one that somebody had."""
    one = stored(ONE)
    first = queues(one.router.vpns["blue"])
    one = stored(BOTH)
    both = queues(one.router.vpns["blue"])
    assert both["q"] == first["q"]
    change(one, ONE)
    change(one, BOTH)
    again = queues(one.router.vpns["blue"])
    assert again["q"] == first["q"]
    assert again["p"] > both["p"]
    assert queues(stored(BOTH).router.vpns["blue"]) == again


def test_subscriptions_change(stored: Any, configured: Any, change: Any) -> None:
    """Those that go attract no more, those that stay are not taken away meanwhile, exceptions count."""
    one = stored(ONE)
    vpn = one.router.vpns["blue"]
    assert [one.publish(topic) for topic in ("a/1", "b/1")] == [SPOOLED, UNMATCHED]
    kept = vpn.endpoints[QUEUE, "q"].subscriptions["a/>"]
    change(one, ONE.replace("a/>", 'a/>, b/1, "!a/2"'))
    assert vpn.endpoints[QUEUE, "q"].subscriptions["a/>"] is kept
    found = [one.publish(topic) for topic in ("a/1", "b/1", "a/2", "!a/2")]
    assert found == [SPOOLED, SPOOLED, UNMATCHED, UNMATCHED]
    change(one, ONE)
    assert [one.publish(topic) for topic in ("b/1", "a/2")] == [UNMATCHED, SPOOLED]
    assert len(one.payloads("q")) == 4
    change(one, ONE.replace("subscriptions", "topic_syntax: mqtt, subscriptions").replace(">", "+"))
    assert [one.publish(topic) for topic in ("a/1", "a/1/2")] == [SPOOLED, UNMATCHED]


def test_exceptions_at_the_start(stored: Any) -> None:
    """A start reads them as a reload does."""
    one = stored(ONE.replace("a/>", 'a/>, "!a/2"'))
    assert [one.publish(topic) for topic in ("a/1", "a/2")] == [SPOOLED, UNMATCHED]


def test_an_empty_queue_goes(stored: Any, change: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With its definition in the store, and without a word; its consumers are told."""
    one = stored(BOTH)
    endpoint = one.router.vpns["blue"].endpoints[QUEUE, "p"]
    change(one, ONE)
    assert endpoint.deleted
    assert one.publish("b") == UNMATCHED
    names = [definition.name for definition in read_definitions(one.spooling.store)[0]]
    assert names == ["q"]
    assert capsys.readouterr().err == ""


def test_a_queue_with_messages_stays(
    stored: Any, change: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shut down, with what it has, told once; over restarts too, each of which tells it; until it is empty."""
    one = stored(ONE)
    assert one.publish("a/1", b"1") == SPOOLED
    change(one, EMPTY)
    change(one, EMPTY)
    assert capsys.readouterr().err.count(TOLD) == 1
    endpoint = one.router.vpns["blue"].endpoints[QUEUE, "q"]
    assert not endpoint.settings.ingress_enabled
    assert not endpoint.settings.egress_enabled
    assert one.publish("a/1") == UNMATCHED
    one = stored(EMPTY)
    assert capsys.readouterr().err.count(TOLD) == 1
    assert one.payloads("q") == [b"1"]
    assert not one.router.vpns["blue"].endpoints[QUEUE, "q"].settings.egress_enabled
    one.router.vpns["blue"].endpoints[QUEUE, "q"].purge()
    change(one, EMPTY)
    assert one.router.vpns["blue"].endpoints == {}
    one = stored(EMPTY)
    assert one.router.vpns["blue"].endpoints == {}
    assert list(one.spooling.store.scan(keys.BODIES)) == []


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("how", ["purge", "delete", "move"])
def test_it_goes_when_it_is_empty(stored: Any, change: Any, how: str, restart: bool) -> None:
    """However its last message leaves; with a message left it stays."""
    one = stored(BOTH)
    for number in (1, 2):
        one.publish(f"a/{number}", b"1")
    left = BOTH.replace("q: {subscriptions: [a/>]}, ", "")
    if restart:
        one = stored(left)
    else:
        change(one, left)
    vpn = one.router.vpns["blue"]
    queue = vpn.endpoints[QUEUE, "q"]
    for row in queue.browse(0, 2):
        one.commit()
        assert vpn.endpoints[QUEUE, "q"] is queue
        if how == "purge":
            queue.purge()
        elif how == "delete":
            queue.delete_message(row.msg_id)
        else:
            queue.move_message(row.msg_id, vpn.endpoints[QUEUE, "p"])
        if how == "purge":
            break
    one.commit()
    vpn.context.jobs.finish()
    one.commit()
    assert (QUEUE, "q") not in vpn.endpoints
    assert queue.deleted
    assert len(one.payloads("p")) == (2 if how == "move" else 0)


@pytest.mark.parametrize("dead_letters", [False, True])
@pytest.mark.parametrize("how", ["max_ttl", "life time", "last value", "damaged"])
def test_it_goes_when_the_last_message_is_lost(
    stored: Any, change: Any, how: str, dead_letters: bool
) -> None:
    """A message that nobody takes out leaves the queue as well, with and without a dead message queue."""
    dead = '"#DEAD_MSG_QUEUE": {}' if dead_letters else ""
    text = "msg_vpns: {blue: {queues: {%s}}}"
    settings = "respect_ttl_enabled: true, max_ttl: " + ("5" if how == "max_ttl" else "0")
    one = stored(text % f"q: {{subscriptions: [a], {settings}}}, {dead}")
    context = one.router.vpns["blue"].context
    message = Message(b"a", b"1", b"")
    message.persistent = True
    if how == "life time":
        message.expires_ns = context.now_ns + 5 * SECOND_NS
    one.spooling.spool.publish(one.router.vpns["blue"], message, one, 0)
    one.commit()
    change(one, text % dead)
    queue = one.router.vpns["blue"].endpoints[QUEUE, "q"]
    (row,) = queue.browse(0, 2)
    if how == "last value":
        queue.lose(row.msg_id, DISCARDED, LAST_VALUE)
    elif how == "damaged":
        queue.lose(row.msg_id, DISCARDED, DAMAGED)
    else:
        context.now_ns += 7 * SECOND_NS
        context.timers.run(context.now_ns)
    one.commit()
    context.jobs.finish()
    one.commit()
    assert queue.deleted
    assert (QUEUE, "q") not in one.router.vpns["blue"].endpoints
    if dead_letters:
        expired = how in ("max_ttl", "life time")
        assert one.payloads("#DEAD_MSG_QUEUE") == ([b"1"] if expired else [])


@pytest.mark.parametrize("outcome", [ACCEPTED, FAILED, REJECTED])
def test_it_goes_when_a_transaction_settles_the_last_message(
    stored: Any, change: Any, hand: Any, outcome: int
) -> None:
    """A transaction may settle what its consumer had before the queue was removed."""
    one = stored(BOTH.replace("[a/>]", "[a/>], max_redelivery_count: 1"))
    one.publish("a/1", b"1")
    queue = one.router.vpns["blue"].endpoints[QUEUE, "q"]
    consumer = hand(queue, "c", 10)
    queue.bind(consumer, CONSUME, CONSUME)
    one.commit()
    (message_id,) = consumer.unacked
    queue.redeliveries[message_id] = 1
    holder = queue.enlist(consumer, [message_id])
    change(one, BOTH.replace("q: {subscriptions: [a/>]}, ", ""))
    assert not queue.deleted
    queue.settle(holder, message_id, outcome)
    queue.discharged(holder)
    one.commit()
    one.router.vpns["blue"].context.jobs.finish()
    assert queue.deleted


@pytest.mark.parametrize("restart", [False, True])
def test_a_queue_that_comes_back(stored: Any, change: Any, restart: bool) -> None:
    """It goes on with what it has."""
    one = stored(ONE)
    one.publish("a/1", b"1")
    change(one, EMPTY)
    if restart:
        one = stored(EMPTY)
    change(one, ONE)
    assert one.publish("a/2", b"2") == SPOOLED
    assert one.payloads("q") == [b"1", b"2"]
    assert one.router.vpns["blue"].endpoints[QUEUE, "q"].settings.egress_enabled
    assert stored(ONE).payloads("q") == [b"1", b"2"]


def test_an_empty_queue_that_is_gone_at_the_start(
    stored: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is told of a queue without messages."""
    stored(BOTH)
    one = stored(EMPTY)
    assert one.router.vpns["blue"].endpoints == {}
    one.close()
    assert capsys.readouterr().err == ""
    assert read_definitions(stored(EMPTY).spooling.store)[0] == []


def attract(one: Any, topics: str) -> None:
    """Give the topic endpoint t a subscription, as a consumer does."""
    endpoint = one.router.vpns["blue"].endpoints[TOPIC_ENDPOINT, "t"]
    endpoint.vpn.subscribe(Subscription(parse_filter(topics, MQTT), endpoint))
    one.commit()
    (definition,) = (d for d in read_definitions(one.spooling.store)[0] if d.name == "t")
    definition.subscription = topics
    one.spooling.spool.ledger.put(keys.endpoint(definition.number), definition.encode())
    one.commit()


ENDPOINT = "msg_vpns: {blue: {topic_endpoints: {t: {}}}}"


@pytest.mark.parametrize("restart", [False, True])
def test_a_topic_endpoint_that_is_not_configured(stored: Any, change: Any, restart: bool) -> None:
    """It attracts nothing, and nothing either when it comes back, before somebody consumes from it."""
    one = stored(ENDPOINT)
    attract(one, "a/#")
    one.publish("a/1")
    if restart:
        one = stored(EMPTY)
    else:
        change(one, EMPTY)
    assert one.publish("a/2") == UNMATCHED
    change(one, ENDPOINT)
    assert one.publish("a/3") == UNMATCHED
    one = stored(ENDPOINT)
    assert one.publish("a/4") == UNMATCHED
    assert one.payloads("t", kind=TOPIC_ENDPOINT) == [b"x"]


LOG = "msg_vpns: {blue: {replay_logs: {log: {max_spool_usage: 1}}, queues: {q: {subscriptions: [a/>]}}}}"
CHOSEN = 'topic_filter: {enabled: true, subscriptions: [a/>, "!a/2"]}'


def test_a_replay_log(stored: Any, change: Any) -> None:
    """It logs, then what its changed filter lets through, over a restart too; and goes with all it has."""
    one = stored(LOG)
    one.publish("a/1", b"1")
    one.publish("b", b"2")
    change(one, LOG.replace("max_spool_usage: 1", f"max_spool_usage: 1, {CHOSEN}"))
    for number, topic in enumerate(("a/1", "a/2", "b"), 3):
        one.publish(topic, b"%d" % number)
    wanted = [b"1", b"2", b"3"]
    assert one.payloads("log", kind=REPLAY_LOG) == wanted
    one = stored(LOG)
    assert one.payloads("log", kind=REPLAY_LOG) == wanted
    one.publish("c", b"6")
    assert one.payloads("log", kind=REPLAY_LOG) == [*wanted, b"6"]
    change(one, ONE)
    assert one.spooling.spool.replay_logs == {}
    one.publish("a/1", b"7")
    one = stored(LOG)
    assert one.payloads("log", kind=REPLAY_LOG) == []
    assert one.payloads("q") == [b"1", b"3", b"4", b"7"]


def test_a_replay_log_that_is_gone_at_the_start(
    stored: Any, change: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a reload: nobody consumes from it, so nobody is to be asked. A new one is another."""
    one = stored(LOG)
    one.publish("b")
    one = stored(ONE)
    assert (REPLAY_LOG, "log") not in one.router.vpns["blue"].endpoints
    one.commit()
    assert list(one.spooling.store.scan(keys.BODIES)) == []
    change(one, LOG)
    one.publish("b", b"2")
    one = stored(LOG)
    assert one.payloads("log", kind=REPLAY_LOG) == [b"2"]
    assert "not configured" not in capsys.readouterr().err


GREEN = ONE.replace("blue", "green").replace("{green", "{blue: {}, green")
LOTS = GREEN.replace("queues", "replay_logs: {log: {}}, queues")


@pytest.mark.parametrize("restart", [False, True])
def test_a_message_vpn_that_goes_and_comes_back(
    stored: Any, change: Any, restart: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its queues keep what they have, as single queues do, and what was retained; its replay log goes."""
    one = stored(LOTS)
    one.publish("a/1", b"1", "green")
    retained = Message(b"r", b"kept", b"", True)
    one.router.vpns["green"].publish(retained)
    one.commit()
    if restart:
        one = stored(EMPTY)
    else:
        green = one.router.vpns.pop("green")
        change(one, EMPTY)
        one.spooling.remove(green)
        one.commit()
    said = capsys.readouterr().err
    assert said.count("queue q of message VPN green is not configured any more") == 1
    assert one.spooling.spool.usage > 0
    again = stored(GREEN)
    assert again.payloads("q", "green") == [b"1"]
    assert again.router.vpns["green"].retained.has(b"r")
    assert again.publish("a/2", b"2", "green") == SPOOLED


@pytest.mark.parametrize("restart", [False, True])
def test_a_message_vpn_that_a_reload_brings_back(
    stored: Any, configured: Any, restart: bool
) -> None:
    """At once, without a restart; queues that it has no more stay there, shut down."""
    one = stored(GREEN.replace("q:", "p: {subscriptions: [b]}, q:"))
    one.publish("a/1", b"1", "green")
    one.publish("b", b"2", "green")
    one.router.vpns["green"].publish(Message(b"r", b"kept", b"", True))
    one.commit()
    if restart:
        one = stored(EMPTY)
    else:
        one.spooling.remove(one.router.vpns.pop("green"))
    one.commit()
    config = configured(GREEN)
    one.router.add(vpn_of(one.router, "green", config.msg_vpns["green"], bytes(16)))
    one.spooling.change(one.router, config)
    green = one.router.vpns["green"]
    assert one.publish("a/2", b"3", "green") == SPOOLED
    assert one.payloads("q", "green") == [b"1", b"3"]
    assert one.payloads("p", "green") == [b"2"]
    assert green.endpoints[QUEUE, "q"].settings.egress_enabled
    assert not green.endpoints[QUEUE, "p"].settings.egress_enabled
    assert green.retained.has(b"r")
    held = sum(endpoint.spooled_bytes for endpoint in green.endpoints.values())
    assert green.spooled_bytes == held == one.spooling.spool.usage
    again = stored(GREEN)
    assert again.payloads("q", "green") == [b"1", b"3"]
    assert again.payloads("p", "green") == [b"2"]


FULL = (
    "msg_vpns: {blue: {max_subscription_count: 2, topic_endpoints: {te: },"
    " queues: {q: {subscriptions: [a, b, c, d]}, p: {subscriptions: [e]}}}}"
)


def test_subscriptions_of_the_configuration_count_towards_no_bound(
    stored: Any, change: Any
) -> None:
    """A router starts, and is changed, whatever `max_subscription_count` says and clients have used up."""
    one = stored(FULL.replace("[e]", "[]"))
    vpn = one.router.vpns["blue"]
    assert vpn.subscription_count == 0
    client = Subscriber("c", Outbox(vpn.context.ready, 0), FRAME_OWN)
    for text in ("x", "y"):
        vpn.subscribe(Subscription(parse_filter(text, MQTT), client))
    with pytest.raises(Refused, match="Max Num Subscriptions"):
        vpn.subscribe(Subscription(parse_filter("z", MQTT), client))
    change(one, FULL)
    assert [one.publish(topic) for topic in "abcde"] == [SPOOLED] * 5
    assert vpn.subscription_count == 2
    change(one, FULL.replace("[a, b, c, d]", "[d]"))
    assert [one.publish(topic) for topic in "abcde"] == [UNMATCHED] * 3 + [SPOOLED] * 2
    vpn.drop(client)
    assert vpn.subscription_count == 0


def test_what_a_client_gave_a_topic_endpoint_is_there_after_any_bound(stored: Any) -> None:
    """A stored subscription beyond bounds that were lowered stops no start, and still attracts."""
    one = stored(FULL)
    endpoint = one.router.vpns["blue"].endpoints[TOPIC_ENDPOINT, "te"]
    definition = EndpointDefinition(
        endpoint.number, "blue", TOPIC_ENDPOINT, "te", True, "t/1/2/3", ("u", "c")
    )
    one.spooling.spool.ledger.put(keys.endpoint(endpoint.number), definition.encode())
    one.commit()
    lowered = FULL.replace("count: 2", "count: 1, authentication: {basic: {enabled: false}}")
    again = stored(lowered.replace("blue: {", "blue: {max_topic_levels: 2, "))
    vpn = again.router.vpns["blue"]
    assert list(vpn.endpoints[TOPIC_ENDPOINT, "te"].subscriptions) == ["t/1/2/3"]
    assert vpn.subscription_count == 1
