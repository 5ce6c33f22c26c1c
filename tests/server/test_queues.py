"""What management sees of endpoints, and does with their messages, over a spool on disk."""

import itertools
from types import ModuleType
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.counters import Counters
from vpnrouter.core.guaranteed import refusals, unit_of_work
from vpnrouter.core.guaranteed.counters import EndpointCounters
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.flow import ACCEPTED
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED
from vpnrouter.core.message import Message
from vpnrouter.errors import TopicError
from vpnrouter.management.status import queues as module
from vpnrouter.management.status.clients import holder_of, matching
from vpnrouter.management.status.queues import ActionResult, Queues
from vpnrouter.management.status.stats_baseline import (
    EndpointBaselines,
    bridge_base,
    bridge_counts,
    endpoint_counts,
    reasons_since,
)
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.properties import Properties

TWO = (
    "msg_vpns: {green: {}, blue: {client_usernames: {ann: {}}, queues: {q: {subscriptions: [a/>], owner: ann,"
    " permission: read-only, max_msg_spool_usage: 3, max_ttl: 60, respect_ttl_enabled: true},"
    " p: {max_spooled_msg_count: 3, access_type: non-exclusive,"
    " reject_msg_to_sender_on_discard_behavior: always}},"
    " topic_endpoints: {t: {}}, replay_logs: {log: {ingress_enabled: false}}}}"
)


@pytest.fixture
async def one(stored: Any) -> Any:
    """A core with two queues, whose commits this trio run hears of."""
    made = stored(TWO)
    made.spooling.serve_with(None)
    return made


@pytest.fixture
def queues(one: Any) -> Queues:
    """What management asks."""
    return Queues(one.router, one.spooling.spool)


def offer(one: Any, *payloads: bytes) -> None:
    """Publish to q; the commit is still to come."""
    for payload in payloads:
        message = Message(b"a/1", payload, b"")
        message.persistent = True
        message.qos = 1
        one.spooling.spool.publish(one.router.vpns["blue"], message, one, 0)


async def publish(one: Any, *payloads: bytes) -> None:
    """Publish to q, and wait until it has everything."""
    one.told.clear()
    offer(one, *payloads)
    one.spooling.committer.step()
    with trio.fail_after(20):
        while len(one.told) < len(payloads):
            one.spooling.committer.step()
            await trio.sleep(0.001)
    assert set(one.told) == {SPOOLED}


def ids(queues: Queues, name: str) -> list[int]:
    """The messages of a queue."""
    return [row.msg_id for row in queues.msgs("blue", name, 0, 1_000)]


def payloads(queues: Queues, name: str) -> list[bytes | None]:
    """The payloads of a queue."""
    return [queues.payload("blue", name, number) for number in ids(queues, name)]


async def test_names(queues: Queues) -> None:
    """Queues under their names, other kinds behind a prefix; replay logs are not shown."""
    assert sorted(queues.queue_names("blue")) == ["#topic-endpoint/t", "p", "q"]
    assert queues.queue_names("green") == []
    assert queues.queue_names("none") == ()
    status = queues.queue("blue", "#topic-endpoint/t")
    assert status is not None
    assert status.endpoint_type == "topic-endpoint"


async def test_status(one: Any, queues: Queues) -> None:
    """Attributes as written, and what the endpoint counts."""
    await publish(one, b"1", b"22")
    status = queues.queue("blue", "q")
    assert status is not None
    assert (status.owner, status.permission, status.max_msg_spool_usage) == ("ann", "read-only", 3)
    assert (status.access_type, status.max_ttl) == ("exclusive", 60)
    assert status.reject_msg_to_sender_on_discard_behavior == "when-queue-enabled"
    assert (status.msg_count, status.spooled_msg_count, status.imbalance) == (2, 2, 0)
    assert status.lowest_msg_id == ids(queues, "q")[0]
    assert status.msg_spool_usage == status.msg_spool_peak_usage > 0
    assert 0 <= status.oldest_msg_age_ms < 60_000
    other = queues.queue("blue", "p")
    assert other is not None
    assert (other.access_type, other.oldest_msg_age_ms) == ("non-exclusive", -1)
    assert other.reject_msg_to_sender_on_discard_behavior == "always"


async def test_messages(one: Any, queues: Queues) -> None:
    """By rising id, from behind one, so many; with life time and payload."""
    await publish(one, b"1", b"22", b"333")
    first, second, third = queues.msgs("blue", "q", 0, 10)
    assert [row.content_size for row in (first, second, third)] == [1, 2, 3]
    assert queues.msgs("blue", "q", first.msg_id, 1) == [second]
    assert first.topic == "a/1"
    assert first.expiry_time == first.spooled_time + 60
    assert first.undelivered
    assert queues.payload("blue", "q", third.msg_id) == b"333"
    assert queues.payload("blue", "q", third.msg_id + 1) is None


async def test_consumers(one: Any, queues: Queues, hand: Any) -> None:
    """What they hold is shown with them and is left alone."""
    await publish(one, b"1", b"2", b"3")
    endpoint = one.router.vpns["blue"].endpoints[0, "q"]
    flow = hand(endpoint, "reader", 1)
    endpoint.bind(flow, CONSUME, CONSUME)
    with trio.fail_after(20):
        while not flow.unacked:
            one.spooling.committer.step()
            await trio.sleep(0.001)
    (row,) = queues.tx_flows("blue", "q")
    assert (row.client_name, row.used_window_size) == ("reader", 1)
    assert row.activity_state == "active-consumer"
    held, *waiting = ids(queues, "q")
    assert not queues.msgs("blue", "q", 0, 1)[0].undelivered
    assert await queues.delete_msgs(
        "blue", "q", [held, waiting[0], waiting[0], 999]
    ) == ActionResult(1)
    assert await queues.copy_msgs("blue", "q", "p", None, move=True) == ActionResult(1)
    assert await queues.delete_msgs("blue", "q", None) == ActionResult(0)
    assert payloads(queues, "q") == [b"1"]
    assert payloads(queues, "p") == [b"3"]


async def test_purge(one: Any, queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is answered the messages are gone from the disk, however many rounds that takes."""
    monkeypatch.setattr(unit_of_work, "ROUND", 2)
    await publish(one, *[b"x"] * 9)
    with trio.fail_after(20):
        assert await queues.delete_msgs("blue", "q", None) == ActionResult(9)
    assert list(one.spooling.store.scan(keys.BODIES)) == []
    status = queues.queue("blue", "q")
    assert status is not None
    assert (status.msg_count, status.deleted_msg_count, status.imbalance) == (0, 9, 0)


async def test_what_is_counted_is_meant(one: Any, queues: Queues) -> None:
    """All messages are also those whose commit is on its way: the count of the queue has them already."""
    for move in (False, True):
        offer(one, b"1")
        status = queues.queue("blue", "q")
        assert status is not None
        assert status.msg_count == 1
        with trio.fail_after(20):
            assert await queues.copy_msgs("blue", "q", "p", None, move=move) == ActionResult(1)
            offer(one, b"3")
            assert await queues.delete_msgs("blue", "q", None) == ActionResult(1 if move else 2)
            assert await queues.delete_msgs("blue", "p", None) == ActionResult(1)


@pytest.mark.parametrize("move", [False, True])
async def test_copy_and_move(
    one: Any, queues: Queues, move: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, in order, over several portions; or some. It ends where the other takes no more."""
    monkeypatch.setattr(module, "PORTION", 2)
    await publish(one, b"1", b"2", b"3", b"4", b"5")
    last = ids(queues, "q")[-1]
    with trio.fail_after(20):
        assert await queues.copy_msgs(
            "blue", "q", "p", [last, last + 9], move=move
        ) == ActionResult(1)
        done = await queues.copy_msgs("blue", "q", "p", None, move=move)
    assert done == ActionResult(2, "503 Max message usage exceeded")
    assert payloads(queues, "p") == [b"5", b"1", b"2"]
    assert payloads(queues, "q") == ([b"3", b"4"] if move else [b"1", b"2", b"3", b"4", b"5"])
    for name in ("q", "p"):
        status = queues.queue("blue", name)
        assert status is not None
        assert status.imbalance == 0


async def test_a_queue_onto_itself(
    one: Any, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a copy adds is not copied again."""
    monkeypatch.setattr(module, "PORTION", 2)
    await publish(one, b"1", b"2", b"3")
    with trio.fail_after(20):
        assert await queues.copy_msgs("blue", "q", "q", None, move=False) == ActionResult(3)
        assert await queues.copy_msgs("blue", "q", "q", None, move=True) == ActionResult(6)
    assert payloads(queues, "q") == [b"1", b"2", b"3"] * 2


async def test_what_is_not_there(queues: Queues) -> None:
    """No queue, nothing."""
    assert queues.queue("blue", "none") is None
    assert queues.queue("none", "q") is None
    assert queues.tx_flows("blue", "none") == ()
    assert queues.msgs("blue", "none", 0, 9) == ()
    assert queues.payload("blue", "none", 1) is None
    assert await queues.delete_msgs("blue", "none", None) == ActionResult(0)
    assert await queues.copy_msgs("blue", "q", "none", None, move=True) == ActionResult(0)


async def test_replay(stored: Any) -> None:
    """Everything that was logged comes once more; what cannot be says why; status tells how it went."""
    one = stored(
        "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>]}, p: {access_type: non-exclusive}},"
        " replay_logs: {log: {ingress_enabled: true, egress_enabled: true, max_spool_usage: 10}}}}"
    )
    one.spooling.serve_with(None)
    queues = Queues(one.router, one.spooling.spool)
    await publish(one, b"1", b"2")
    logged = ids(queues, "q")
    assert await queues.delete_msgs("blue", "q", None) == ActionResult(2)
    assert await queues.start_replay("blue", "q", "other", 0, 0) == refusals.REPLAY_DISABLED
    assert await queues.start_replay("blue", "none", "", 0, 0) == refusals.UNKNOWN_QUEUE
    assert await queues.start_replay("blue", "p", "", 0, 0) == refusals.REPLAY_NON_EXCLUSIVE
    assert await queues.start_replay("blue", "q", "", 0, 999) == refusals.REPLAY_MESSAGE
    status = queues.queue("blue", "q")
    assert status is not None
    assert (status.replay_state, status.replay_start_count) == ("complete", 0)
    assert not await queues.cancel_replay("blue", "q")
    assert await queues.start_replay("blue", "q", "log", 0, logged[0]) == ""
    with trio.fail_after(20):
        while not ids(queues, "q"):
            one.spooling.committer.step()
            await trio.sleep(0.001)
    assert payloads(queues, "q") == [b"2"]
    status = queues.queue("blue", "q")
    assert status is not None
    assert status.replay_state in {"active", "pending-complete"}
    assert status.replay_start_count == 1
    assert await queues.cancel_replay("blue", "q")
    status = queues.queue("blue", "q")
    assert status is not None
    assert (status.replay_state, status.replay_failure_count) == ("failed", 1)
    assert (status.replay_success_count, status.last_replay_failure_reason) == (
        0,
        refusals.REPLAY_CANCELLED,
    )


async def test_highest_and_last_message(one: Any, queues: Queues, stored: Any, hand: Any) -> None:
    """The highest id is of what is in the queue now, the last spooled one of what came last, be it gone or not."""

    def shown() -> tuple[int, int, int]:
        status = queues.queue("blue", "q")
        assert status is not None
        return status.lowest_msg_id, status.highest_msg_id, status.last_spooled_msg_id

    assert shown() == (0, 0, 0)
    await publish(one, b"1", b"2", b"3")
    first, second, third = ids(queues, "q")
    assert shown() == (first, third, third)
    assert await queues.delete_msgs("blue", "q", [third]) == ActionResult(1)
    assert shown() == (first, second, third)

    one = stored(TWO)
    one.spooling.serve_with(None)
    queues = Queues(one.router, one.spooling.spool)
    assert shown() == (first, second, second)
    endpoint = one.router.vpns["blue"].endpoints[0, "q"]
    flow = hand(endpoint, "reader", 10)
    endpoint.bind(flow, CONSUME, CONSUME)
    with trio.fail_after(20):
        while len(flow.unacked) < 2:
            one.spooling.committer.step()
            await trio.sleep(0.001)
    assert shown() == (first, second, second)
    for number in (first, second):
        endpoint.settle(flow, number, ACCEPTED)
    assert shown() == (0, 0, second)
    await publish(one, b"4")
    newest = ids(queues, "q")[0]
    assert newest > third
    assert shown() == (newest, newest, newest)


async def test_attributes_of_the_running_endpoint(stored: Any) -> None:
    """Whatever is written for a queue or topic endpoint is shown of the running one, by the words of its kind."""
    written = (
        "delivery_count_enabled: true, delivery_delay: 5, respect_dmq_eligible_enabled: true,"
        " redelivery: {enabled: false, delay: {enabled: true, initial_interval: 11, max_interval: 12,"
        " multiplier: 150}}, reject_low_priority_msg: {enabled: true, limit: 13}"
    )
    one = stored(
        f"msg_vpns: {{blue: {{queues: {{q: {{{written}, partition: {{rebalance_delay: 14,"
        f" rebalance_max_handoff_time: 15}}}}}}, topic_endpoints: {{t: {{{written},"
        " reject_msg_to_sender_on_discard_behavior: when-topic-endpoint-enabled}}}}"
    )
    queues = Queues(one.router, one.spooling.spool)
    for name, rejecting in (
        ("q", "when-queue-enabled"),
        ("#topic-endpoint/t", "when-topic-endpoint-enabled"),
    ):
        shown = queues.queue("blue", name)
        assert shown is not None
        assert (shown.delivery_count_enabled, shown.delivery_delay) == (True, 5)
        assert (shown.redelivery_enabled, shown.redelivery_delay_enabled) == (False, True)
        assert shown.redelivery_delay_initial_interval == 11
        assert shown.redelivery_delay_max_interval == 12
        assert shown.redelivery_delay_multiplier == 150
        assert (shown.reject_low_priority_msg_enabled, shown.reject_low_priority_msg_limit) == (
            True,
            13,
        )
        assert shown.respect_dmq_eligible_enabled
        assert shown.reject_msg_to_sender_on_discard_behavior == rejecting
    shown = queues.queue("blue", "q")
    assert shown is not None
    assert shown.partition_rebalance_delay == 14
    assert shown.partition_rebalance_max_handoff_time == 15


# -- matching --------------------------------------------------------------------------------------


FILTERS = ["a", "a/b", "a/+", "+/b", "#", "a/#", "b/+", "+/+"]
TOPICS = ["a", "a/b", "b/b", "a/b/c", "c"]

wants = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(FILTERS),
        st.sampled_from(["", "", "$share/g/", "$share/h/"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(
    wants,
    st.lists(
        st.sampled_from(
            [f"{mark}{text}" for mark in ("", "!") for text in ("a/b", "a/>", "b/*", ">")]
        )
    ),
    st.sets(st.integers(0, 3), max_size=2),
    st.sampled_from(TOPICS),
)
def test_who_matches_gets_it(
    kit: ModuleType, subscribed: Any, attracted: list[str], leave: set[int], topic: str
) -> None:
    """Each client that is named gets one copy; of each group that is named one member gets one; nobody else does."""
    world = kit.MemoryRouter()
    clients = [
        world.connect(
            f"c{number}",
            level=4 + number % 2,
            clean_start=False,
            **({"properties": Properties(session_expiry_interval=60)} if number % 2 else {}),
        )
        for number in range(4)
    ]
    for number, text, share, identified in subscribed:
        clients[number].subscribe(f"{share}{text}", 7 if identified and number % 2 else 0)
    link = kit.FakeLink(world.vpn(), "far/v")
    for text in attracted:
        link.subscribe(text)
    for number in leave:
        clients[number].lose()
    publisher = world.connect("publisher")
    entries = world.vpn().cache.entries
    known = dict(entries)
    found = matching(world.vpn(), topic)
    assert dict(entries) == known, "looking changes nothing"
    publisher.publish(topic)
    got = {
        f"c{number}": len(client.payloads())
        for number, client in enumerate(clients)
        if number not in leave
    }
    got["#bridge/far/v"] = link.offered
    plain = {each.subscriber.client_name for each in found if not each.filter.share}
    groups: dict[Any, set[str]] = {}
    for each in found:
        if each.filter.share:
            groups.setdefault(each.filter, set()).add(each.subscriber.client_name)
    choices = itertools.product(*[sorted(members) for members in groups.values()])
    possible = [{name: (name in plain) + choice.count(name) for name in got} for choice in choices]
    assert got in possible


QUEUES = (
    "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>, '!a/no']}, p: {subscriptions: [a/*]}},"
    " topic_endpoints: {t: {}}}}"
)


@pytest.mark.parametrize("topic", ["a/1", "a/no", "a/1/2", "b", "$queue/q", "$queue/none"])
def test_queues(stored: Any, topic: str) -> None:
    """The queues that are named keep the message, and no others; exceptions and topics of queues included."""
    one = stored(QUEUES)
    vpn = one.router.vpns["blue"]
    named = {holder_of(each.subscriber) for each in matching(vpn, topic)}
    one.publish(topic)
    kept = {("queue", name) for name in ("q", "p") if one.payloads(name)}
    assert named == kept
    assert (TOPIC_ENDPOINT, "t") in vpn.endpoints
    assert (QUEUE, "q") in vpn.endpoints


@pytest.mark.parametrize("topic", ["", "a/\0", "a/+", "#", "a/" * 200])
def test_no_topic(kit: ModuleType, topic: str) -> None:
    """What nobody could publish to is refused as a publisher would be."""
    with pytest.raises(TopicError):
        matching(kit.MemoryRouter().vpn(), topic)


# -- cleared ---------------------------------------------------------------------------------------


COUNT = st.integers(0, 9)
flows = st.tuples(
    COUNT, COUNT, st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 9)), COUNT
)


class Held:
    """What is asked of an endpoint."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.counters = EndpointCounters()
        self.spooled_bytes = 0

    def go_on(self, given: Any) -> None:
        """Messages come and go; `held` of them are there then."""
        acked, moved, discarded, more = given
        counters = self.counters
        gone = acked + moved + sum(discarded.values())
        counters.spooled += gone + more
        counters.acked += acked
        counters.moved += moved
        counters.redelivered += acked
        counters.bind_failures["full"] = counters.bind_failures.get("full", 0) + moved
        for reason, count in discarded.items():
            counters.discarded.add(reason, count)
        counters.peak_bytes = max(counters.peak_bytes, self.spooled_bytes)


@given(flows, flows, COUNT, st.integers(-2, 2))
def test_endpoints(before: Any, after: Any, recovered: int, fault: int) -> None:
    """What is shown is what happened since; the balance is what it was, be it 0 or a fault."""
    endpoint: Any = Held(1)
    live = endpoint.counters
    live.recovered = recovered
    endpoint.go_on(before)
    live.spooled += fault
    cleared = EndpointBaselines()
    assert cleared.counters(endpoint) is live
    held = recovered + before[3]
    assert live.imbalance(held) == fault
    endpoint.spooled_bytes, live.peak_bytes = 5, 50
    cleared.clear(endpoint)
    shown = cleared.counters(endpoint)
    assert (shown.spooled, shown.acked, shown.moved, shown.peak_bytes) == (0, 0, 0, 5)
    assert (shown.discarded.counts, shown.bind_failures) == ({}, {})
    assert shown.recovered == held + fault
    assert shown.imbalance(held) == fault
    endpoint.go_on(after)
    shown = cleared.counters(endpoint)
    assert (shown.acked, shown.redelivered) == (after[0], after[0])
    assert shown.discarded.counts == after[2]
    assert shown.imbalance(held + after[3]) == fault
    assert live.imbalance(held + after[3]) == fault


def _counts_of(live: object) -> list[str]:
    """Names of the numbers that can be written; compiled classes have no list of them."""
    found = []
    for name in dir(live):
        if name[0] != "_" and isinstance(getattr(live, name), int):
            try:
                setattr(live, name, getattr(live, name))
            except AttributeError:
                continue
            found.append(name)
    assert len(found) > 10
    return found


def test_everything_is_taken_off() -> None:
    """No count of an endpoint or a bridge is forgotten when another one is added."""
    for kind, since in ((EndpointCounters, endpoint_counts), (Counters, bridge_counts)):
        live, base = kind(), kind()
        names = _counts_of(live)
        for number, name in enumerate(names, 100):
            setattr(live, name, number)
            setattr(base, name, 90)
        shown = since(live, base)  # type: ignore[operator]
        for number, name in enumerate(names, 100):
            kept = name.startswith(("last_", "peak_"))
            assert getattr(shown, name) == (number if kept else number - 90), name


@given(flows, flows, COUNT, st.integers(-2, 2))
def test_bridges(before: Any, after: Any, in_flight: int, fault: int) -> None:
    """The same for a bridge, in both directions; what was in flight comes afterwards."""
    live = Counters()

    def go_on(given: Any) -> None:
        delivered, sent, discarded, _ = given
        lost = sum(discarded.values())
        live.data_rx(delivered + lost, 100, 7)
        live.delivered_rx_msg_count += delivered
        live.offered_tx_msg_count += sent + lost
        live.data_tx(sent, 100, 8)
        for reason, count in discarded.items():
            live.discard_rx(reason, count)
            live.discard_tx(reason, count)

    go_on(before)
    live.data_rx_msg_count += in_flight + fault
    live.offered_tx_msg_count += in_flight + fault
    base = bridge_base(live)
    shown = bridge_counts(live, base)
    assert shown.data_rx_msg_count == shown.offered_tx_msg_count == in_flight + fault
    assert (shown.delivered_rx_msg_count, shown.discarded_rx_msg_count) == (0, 0)
    go_on(after)
    shown = bridge_counts(live, base)
    assert shown.rx_imbalance(in_flight) == live.rx_imbalance(in_flight) == fault
    assert shown.tx_imbalance(in_flight) == live.tx_imbalance(in_flight) == fault
    assert shown.delivered_rx_msg_count == after[0]
    assert shown.discarded_tx.counts == after[2]
    assert (shown.last_data_rx_ns, shown.last_data_tx_ns) == (7, 8)


def test_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the one that was cleared longest ago shows everything again."""
    monkeypatch.setattr(limits, "CLEARED_COUNTS", 2)
    cleared = EndpointBaselines()
    endpoints: list[Any] = [Held(number) for number in range(3)]
    for number in (0, 1, 0, 2):
        endpoints[number].counters.acked += 4
        cleared.clear(endpoints[number])
    assert [cleared.counters(each).acked for each in endpoints] == [0, 4, 0]


def test_reasons() -> None:
    """What did not happen again is left out."""
    assert reasons_since({"a": 3, "b": 2}, {"a": 3, "b": 1}) == {"b": 1}
    live = {"a": 1}
    assert reasons_since(live, {}) == live
    assert reasons_since(live, {}) is not live
