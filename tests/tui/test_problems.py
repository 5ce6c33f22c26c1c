import re
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.limits import TUI_TROUBLES
from vpnrouter.tui import problems
from vpnrouter.tui.problems import KINDS, LINK_WORDS, RANKS, Problem, problems_of
from vpnrouter.tui.router_state import RouterState
from vpnrouter.units import DAY_S


def bridge(**changes: Any) -> dict[str, Any]:
    """A bridge that is well; keywords replace attributes."""
    return {
        "msgVpnName": "v", "bridgeName": "b", "health": "up", "inboundState": "ready-in-sync",
        "outboundState": "not-applicable", "inboundFailureReason": "", "outboundFailureReason": "",
        "stateAgeMs": 60_000, "rxInFlightMsgCount": 0, "txInFlightMsgCount": 0, "lastRxAgeMs": 100,
        "lastTxAgeMs": -1, "rxImbalance": 0, "txImbalance": 0, "parkedMsgCount": 0,
        "remoteSubscriptionRefusedCount": 0, "discardedRx": {}, "discardedTx": {},
        "rxMsgRate": 0, "txMsgRate": 0, "remotes": [],
    } | changes  # fmt: skip


def connector(link: Any = (), **changes: Any) -> dict[str, Any]:
    """A connector that is well; keywords replace its attributes, and `link` those of its link."""
    one = {
        "linkName": "l", "enabled": True, "state": "up", "stateReason": "", "stateSince": 60,
        "msgRate": 0, "deadLetterMsgCount": 0, "parkedMsgCount": 0, "discards": {},
    } | dict(link)  # fmt: skip
    return {
        "msgVpnName": "v", "connectorName": "c", "state": "up", "failure": "", "rxMsgRate": 0,
        "txMsgRate": 0, "links": [one],
    } | changes  # fmt: skip


def queue(**changes: Any) -> dict[str, Any]:
    """A queue that is well, with messages and a consumer."""
    return {
        "msgVpnName": "v", "queueName": "q", "endpointType": "queue", "msgCount": 5,
        "msgSpoolUsage": 1_000, "maxMsgSpoolUsage": 10, "maxSpooledMsgCount": 0, "oldestMsgAgeMs": 100, "bindCount": 1,
        "egressEnabled": True, "txUnackedMsgCount": 5, "imbalance": 0, "discarded": {},
        "refused": {}, "spooledMsgCount": 5, "ackedMsgCount": 0, "movedMsgCount": 0,
        "deletedMsgCount": 0,
    } | changes  # fmt: skip


def vpn(**changes: Any) -> dict[str, Any]:
    """A message VPN that is well."""
    row = {"msgVpnName": "v", "enabled": True, "state": "up", "discarded": {}}
    return row | {"rxMsgRate": 0, "txMsgRate": 0} | changes


def found(store: RouterState) -> list[tuple[str, str]]:
    """Kinds and words."""
    return [(one.kind, one.word) for one in problems_of(store)]


def test_what_is_well_is_no_trouble() -> None:
    """A quiet overview means that all is well."""
    store = RouterState()
    store.note_msg_vpns(0.0, [vpn()])
    store.note_bridges(0.0, [bridge(), bridge(rxInFlightMsgCount=3)])
    store.note_connectors(
        0.0,
        [
            connector(),
            connector({"state": "down"}, state="connecting"),
            connector({"state": "opening"}),
            connector({"state": "disabled", "enabled": False}),
        ],
    )
    store.note_queues(0.0, [queue(), queue(endpointType="session", bindCount=0)])
    assert found(store) == []


REMOTE = {
    "up": True, "enabled": True, "queueBinding": "orders", "boundToQueue": False,
    "lastQueueBindFailureReason": "403 Permission Denied", "lastConnectionFailureReason": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "word", "why"),
    [
        (
            {"health": "down", "inboundFailureReason": "refused"},
            "DOWN",
            "1m00s: refused",
        ),
        (
            {"health": "down", "remotes": [REMOTE | {"lastConnectionFailureReason": "no route"}]},
            "DOWN",
            "1m00s: no route",
        ),
        (
            {"health": "down", "outboundState": "not-ready-connecting"},
            "DOWN",
            "1m00s: inbound ready-in-sync, outbound not-ready-connecting",
        ),
        ({"health": "disabled"}, "disabled", "disabled by"),
        ({"health": "msg-vpn-disabled"}, "disabled", "message VPN v is disabled"),
        (
            {"health": "paused", "rxInFlightMsgCount": 7, "lastRxAgeMs": 30_000},
            "paused",
            "paused: guaranteed messages wait at the remote",
        ),
        (
            {
                "health": "stalled",
                "inboundFailureReason": "503 Spool Over Quota",
                "rxInFlightMsgCount": 7,
                "lastRxAgeMs": 30_000,
            },
            "STALLED",
            "1m00s: guaranteed messages are held, Direct ones cross: 503 Spool Over Quota",
        ),
        (
            {
                "health": "incomplete",
                "remoteSubscriptionRefusedCount": 1,
                "inboundFailureReason": "remote subscription refused: 403 Subscription ACL Denied: a",
            },
            "INCOMPLETE",
            "remote subscription refused: 403",
        ),
        (
            {"rxInFlightMsgCount": 7, "lastRxAgeMs": 30_000},
            "STALLED",
            "7 messages from the remote wait since 30s",
        ),
        (
            {"txInFlightMsgCount": 7, "lastTxAgeMs": 30_000},
            "STALLED",
            "7 messages to the remote",
        ),
        ({"rxImbalance": 2}, "FAULT", "2 messages not accounted for"),
        ({"remotes": [REMOTE]}, "UNBOUND", "queue orders: 403 Permission Denied"),
        ({"parkedMsgCount": 4}, "parked", "4 messages set aside"),
        (
            {"txInFlightMsgCount": 1, "lastTxAgeMs": 30_000},
            "STALLED",
            "1 message to the remote waits since 30s",
        ),
    ],
)
def test_bridge(changes: dict[str, Any], word: str, why: str) -> None:
    """Each thing that can be wrong with a bridge, and why."""
    store = RouterState()
    store.note_bridges(0.0, [bridge(**changes)])
    (one,) = problems_of(store)
    assert (one.word, one.kind, one.name) == (word, "bridge", "b")
    assert why in one.why


@pytest.mark.parametrize(
    ("changes", "word", "why"),
    [
        ({"bindCount": 0}, "NO READER", "5 messages and no consumer"),
        ({"bindCount": 0, "msgCount": 1}, "NO READER", "1 message and no consumer"),
        ({"egressEnabled": False}, "STALLED", "egress is off"),
        ({"oldestMsgAgeMs": 60_000}, "STALLED", "5 unacknowledged, oldest 1m00s"),
        ({"msgSpoolUsage": 9_300_000}, "FULL", "9.3MB of 10 MB (93%)"),
        ({"maxSpooledMsgCount": 6}, "FULL", "5 of 6 messages (83%)"),
        ({"imbalance": 1}, "FAULT", "1 message not accounted for"),
    ],
)
def test_queue(changes: dict[str, Any], word: str, why: str) -> None:
    """Each thing that can be wrong with a queue, and why."""
    store = RouterState()
    store.note_queues(0.0, [queue(**changes)])
    (one,) = problems_of(store)
    assert (one.word, one.kind) == (word, "queue")
    assert why in one.why


@pytest.mark.parametrize(
    ("link", "changes", "word", "why"),
    [
        pytest.param(
            {"state": "down"},
            {"state": "waiting", "failure": "cannot connect"},
            *("DOWN", "waiting: cannot connect"),
            id="between attempts",
        ),
        pytest.param(
            {"state": "down"},
            {"state": "logging-in", "failure": "no answer"},
            *("DOWN", "logging-in: no answer"),
            id="another attempt",
        ),
        pytest.param(
            {"state": "down"},
            {"state": "stopped", "failure": "gave up after 4 attempts"},
            *("DOWN", "stopped: gave up after 4 attempts"),
            id="no more attempts",
        ),
        pytest.param(
            {"state": "disabled"},
            {"state": "disabled"},
            *("disabled", "the connector or its message VPN is disabled"),
            id="disabled",
        ),
        pytest.param(
            {"state": "refused", "stateReason": "QoS 1 is granted"},
            {},
            *("REFUSED", "link l 1m00s: QoS 1 is granted"),
            id="a link is refused",
        ),
        pytest.param(
            {"state": "stopped", "stateReason": "a/b, id 7"},
            {},
            *("STOPPED", "link l 1m00s: a/b, id 7"),
            id="a link has stopped",
        ),
        pytest.param(
            {"state": "held", "stateReason": "queue q is full"},
            {},
            *("HELD", "link l 1m00s: queue q is full"),
            id="a link is held",
        ),
        pytest.param(
            {"state": "paused", "waitingMsgCount": 1},
            {},
            *("paused", "link l is paused: 1 message waiting"),
            id="a link is paused",
        ),
        pytest.param(
            {"state": "paused", "waitingMsgCount": 2},
            {"state": "paused", "waitingMsgCount": 2},
            *("paused", "paused: 2 messages waiting"),
            id="paused",
        ),
        pytest.param({"parkedMsgCount": 3}, {}, *("parked", "link l: 3 messages"), id="parked"),
    ],
)
def test_connector(link: dict[str, Any], changes: dict[str, Any], word: str, why: str) -> None:
    """Each thing that can be wrong with a connector and its links, and why."""
    store = RouterState()
    store.note_connectors(0.0, [connector(link, **changes)])
    assert problems_of(store) == [Problem(word, "connector", "v", "c", why)]


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"deadLetterMsgCount": 6}, "link l: 6/s: dead letters"),
        ({"discards": {"refused": 4, "msg-too-big": 9}}, "link l: 13/s: msg-too-big"),
        ({"discards": {"loop-detected": 4}}, ""),
        ({"discards": {"no-subscription-match": 5}}, "link l: 5/s: no-subscription-match"),
        ({"discards": {"no-subscription-match": 5}, "qualityOfService": "at-most-once"}, ""),
        ({"discards": {"refused": 5}, "qualityOfService": "at-most-once"}, "link l: 5/s: refused"),
        ({}, ""),
    ],
)
def test_losses_of_links(link: dict[str, Any], why: str) -> None:
    """They are told while they grow; what goes round is no loss, nor are Direct messages that nobody wants."""
    store = RouterState()
    none = dict.fromkeys(link.get("discards", ()), 0)
    store.note_connectors(0.0, [connector({"discards": none})])
    store.note_connectors(1.0, [connector(link)])
    direct = "qualityOfService" in link or "dead letters" in why
    word = "LOSING" if direct else "LOST"
    expected = [Problem(word, "connector", "v", "c", why)] if why else []
    assert problems_of(store) == expected
    store.note_connectors(2.0, [connector(link)])
    assert found(store) == []


def test_queue_that_backs_up() -> None:
    """More comes than goes, though its consumer works."""
    store = RouterState()
    store.note_queues(0.0, [queue()])
    store.note_queues(1.0, [queue(spooledMsgCount=105, ackedMsgCount=40, msgCount=65)])
    (one,) = problems_of(store)
    assert (one.word, one.kind) == ("BACKS UP", "queue")
    assert "+60/s" in one.why


def test_losses_are_told_while_they_happen() -> None:
    """By their worst reason; what nobody wanted is no loss, and old losses are history."""
    store = RouterState()
    store.note_msg_vpns(
        0.0, [vpn(discarded={"transmit-congestion": 5, "no-subscription-match": 0})]
    )
    assert found(store) == []
    later = {"transmit-congestion": 35, "no-subscription-match": 1_000_000, "msg-too-big": 0}
    store.note_msg_vpns(1.0, [vpn(discarded=later)])
    assert problems_of(store) == [Problem("LOSING", "msgVpn", "v", "", "30/s: transmit-congestion")]
    store.note_msg_vpns(2.0, [vpn(discarded=later)])
    assert found(store) == []


def test_losses_of_bridges_and_queues() -> None:
    """The same, by direction, with what a queue gave up and what it did not take."""
    store = RouterState()
    store.note_bridges(0.0, [bridge(discardedTx={"transmit-congestion": 0})])
    store.note_queues(0.0, [queue()])
    store.note_bridges(1.0, [bridge(discardedTx={"transmit-congestion": 4})])
    changes = {"refused": {"max-size": 3}, "discarded": {"max-ttl-expired": 2}}
    store.note_queues(1.0, [queue(**changes, spooledMsgCount=5)])
    assert [(one.word, one.kind, one.why) for one in problems_of(store)] == [
        ("LOST", "queue", "2/s: max-ttl-expired"),
        ("REFUSING", "queue", "3/s: max-size"),
        ("LOSING", "bridge", "4/s: transmit-congestion"),
    ]


def test_guaranteed_messages_that_a_bridge_brings_for_nobody() -> None:
    """They are lost: no queue takes them, and they are gone from the remote queue."""
    store = RouterState()
    store.note_bridges(0.0, [bridge(guaranteedUnmatchedMsgCount=0)])
    store.note_bridges(1.0, [bridge(guaranteedUnmatchedMsgCount=500)])
    assert problems_of(store) == [
        Problem("LOST", "bridge", "v", "b", "500/s guaranteed: no queue here takes them")
    ]


@pytest.mark.parametrize(
    ("days", "word", "why"),
    [
        (-1, "EXPIRED", "the certificate expired 1d00h ago, at 2026-11-21 03:00:00"),
        (0, "EXPIRED", "expired 0s ago"),
        (13.5, "EXPIRES", "the certificate expires in 13d12h"),
        (15, "", ""),
    ],
)
def test_certificates(days: float, word: str, why: str) -> None:
    """From two weeks before they expire."""
    now_s = 1_795_316_400.0
    store = RouterState()
    store.note_router({"certificateExpiries": {"mqtts [::]:8883": int(now_s + days * DAY_S)}})
    found = problems_of(store, now_s)
    assert [(one.word, one.kind, one.name) for one in found] == (
        [(word, "router", "mqtts [::]:8883")] if word else []
    )
    assert all(why in one.why for one in found)


def test_full_by_what_is_nearest_to_its_quota() -> None:
    """Ten of ten messages, although they are a few bytes."""
    store = RouterState()
    store.note_queues(0.0, [queue(msgCount=10, maxSpooledMsgCount=10, msgSpoolUsage=362)])
    assert [one.why for one in problems_of(store)] == ["10 of 10 messages (100%)"]


def test_order_of_a_bad_day() -> None:
    """Down, lost and stalled bridges and connectors, then full queues, then queues without readers."""
    store = RouterState()
    many = [queue(queueName=f"q{n:02}", bindCount=0) for n in range(25)]
    store.note_queues(0.0, [*many, queue(queueName="full", msgSpoolUsage=9_300_000)])
    store.note_bridges(0.0, [bridge()])
    stalled = [bridge(bridgeName=f"s{n}", health="stalled") for n in range(5)]
    unbound = bridge(bridgeName="u", remotes=[REMOTE])
    wasting = bridge(bridgeName="w", guaranteedUnmatchedMsgCount=9)
    store.note_bridges(0.0, [bridge(bridgeName="w", guaranteedUnmatchedMsgCount=0)])
    store.note_bridges(1.0, [*stalled, unbound, wasting, bridge(bridgeName="d", health="down")])
    store.note_connectors(0.0, [connector(state="waiting", failure="no answer")])
    found = [(one.word, one.kind, one.name) for one in problems_of(store)]
    assert found[:5] == [
        ("DOWN", "bridge", "d"),
        ("DOWN", "connector", "c"),
        ("LOST", "bridge", "w"),
        ("UNBOUND", "bridge", "u"),
        ("STALLED", "bridge", "s0"),
    ]
    assert found[9:11] == [("FULL", "queue", "full"), ("NO READER", "queue", "q00")]


def test_words_and_kinds_are_ranked() -> None:
    """Each that a rule gives has its place."""
    source = Path(problems.__file__).read_text("utf-8")
    words = re.findall(r'(?:problem|Problem)\(\s*"([^"]+)"', source) + list(LINK_WORDS.values())
    assert len(words) > 20
    assert set(words) <= set(RANKS)
    assert len(set(RANKS)) == len(RANKS)
    kinds = re.findall(r'Problem\((?:"[^"]+"|word), "([^"]+)"', source)
    assert set(kinds) == set(KINDS)


def test_the_worst_comes_first_and_the_list_is_bounded() -> None:
    """However much is wrong."""
    store = RouterState()
    store.note_msg_vpns(0.0, [vpn(state="down"), vpn(enabled=False)])
    many = [bridge(bridgeName=f"b{n}", health="disabled") for n in range(TUI_TROUBLES + 50)]
    store.note_bridges(0.0, [*many, bridge(health="down")])
    shown = problems_of(store)
    assert len(shown) == TUI_TROUBLES
    assert [one.rank for one in shown] == sorted(one.rank for one in shown)
    assert [one.kind for one in shown[:2]] == ["msgVpn", "bridge"]
