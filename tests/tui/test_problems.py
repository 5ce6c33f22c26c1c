from typing import Any

import pytest

from vpnrouter.limits import TUI_TROUBLES
from vpnrouter.tui.problems import BACKS_UP, DOWN, LOSING, NOTE, STALLED, Problem, problems_of
from vpnrouter.tui.router_state import RouterState


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


def found(store: RouterState) -> list[tuple[int, str]]:
    """Ranks and words."""
    return [(one.rank, one.word) for one in problems_of(store)]


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
    ("changes", "rank", "word", "why"),
    [
        (
            {"health": "down", "inboundFailureReason": "refused"},
            DOWN,
            "DOWN",
            "1m00s: refused",
        ),
        (
            {"health": "down", "remotes": [REMOTE | {"lastConnectionFailureReason": "no route"}]},
            DOWN,
            "DOWN",
            "1m00s: no route",
        ),
        (
            {"health": "down", "outboundState": "not-ready-connecting"},
            DOWN,
            "DOWN",
            "1m00s: inbound ready-in-sync, outbound not-ready-connecting",
        ),
        ({"health": "disabled"}, NOTE, "disabled", "disabled by"),
        ({"health": "msg-vpn-disabled"}, NOTE, "disabled", "message VPN v is disabled"),
        (
            {
                "health": "stalled",
                "inboundFailureReason": "503 Spool Over Quota",
                "rxInFlightMsgCount": 7,
                "lastRxAgeMs": 30_000,
            },
            STALLED,
            "STALLED",
            "1m00s: guaranteed messages are held, Direct ones cross: 503 Spool Over Quota",
        ),
        (
            {
                "health": "incomplete",
                "remoteSubscriptionRefusedCount": 1,
                "inboundFailureReason": "remote subscription refused: 403 Subscription ACL Denied: a",
            },
            BACKS_UP,
            "INCOMPLETE",
            "remote subscription refused: 403",
        ),
        (
            {"rxInFlightMsgCount": 7, "lastRxAgeMs": 30_000},
            STALLED,
            "STALLED",
            "7 messages from the remote wait since 30s",
        ),
        (
            {"txInFlightMsgCount": 7, "lastTxAgeMs": 30_000},
            STALLED,
            "STALLED",
            "7 messages to the remote",
        ),
        ({"rxImbalance": 2}, LOSING, "FAULT", "2 messages are not accounted for"),
        ({"remotes": [REMOTE]}, STALLED, "UNBOUND", "queue orders: 403 Permission Denied"),
        ({"parkedMsgCount": 4}, NOTE, "parked", "4 messages are set aside"),
    ],
)
def test_bridge(changes: dict[str, Any], rank: int, word: str, why: str) -> None:
    """Each thing that can be wrong with a bridge, and why."""
    store = RouterState()
    store.note_bridges(0.0, [bridge(**changes)])
    (one,) = problems_of(store)
    assert (one.rank, one.word, one.kind, one.name) == (rank, word, "bridge", "b")
    assert why in one.why


@pytest.mark.parametrize(
    ("changes", "rank", "word", "why"),
    [
        ({"bindCount": 0}, STALLED, "NO READER", "5 messages and no consumer"),
        ({"egressEnabled": False}, STALLED, "STALLED", "egress is off"),
        ({"oldestMsgAgeMs": 60_000}, STALLED, "STALLED", "5 unacknowledged, oldest 1m00s"),
        ({"msgSpoolUsage": 9_300_000}, BACKS_UP, "FULL", "93% of its quota"),
        ({"maxSpooledMsgCount": 6}, BACKS_UP, "FULL", "83% of its quota"),
        ({"imbalance": 1}, LOSING, "FAULT", "1 messages are not accounted for"),
    ],
)
def test_queue(changes: dict[str, Any], rank: int, word: str, why: str) -> None:
    """Each thing that can be wrong with a queue, and why."""
    store = RouterState()
    store.note_queues(0.0, [queue(**changes)])
    (one,) = problems_of(store)
    assert (one.rank, one.word, one.kind) == (rank, word, "queue")
    assert why in one.why


@pytest.mark.parametrize(
    ("link", "changes", "rank", "word", "why"),
    [
        pytest.param(
            {"state": "down"},
            {"state": "waiting", "failure": "cannot connect"},
            *(DOWN, "DOWN", "waiting: cannot connect"),
            id="between attempts",
        ),
        pytest.param(
            {"state": "down"},
            {"state": "logging-in", "failure": "no answer"},
            *(DOWN, "DOWN", "logging-in: no answer"),
            id="another attempt",
        ),
        pytest.param(
            {"state": "down"},
            {"state": "stopped", "failure": "gave up after 4 attempts"},
            *(DOWN, "DOWN", "stopped: gave up after 4 attempts"),
            id="no more attempts",
        ),
        pytest.param(
            {"state": "disabled"},
            {"state": "disabled"},
            *(NOTE, "disabled", "the connector or its message VPN is disabled"),
            id="disabled",
        ),
        pytest.param(
            {"state": "refused", "stateReason": "QoS 1 is granted"},
            {},
            *(DOWN, "REFUSED", "link l 1m00s: QoS 1 is granted"),
            id="a link is refused",
        ),
        pytest.param(
            {"state": "stopped", "stateReason": "a/b, id 7"},
            {},
            *(DOWN, "STOPPED", "link l 1m00s: a/b, id 7"),
            id="a link has stopped",
        ),
        pytest.param(
            {"state": "held", "stateReason": "queue q is full"},
            {},
            *(STALLED, "HELD", "link l 1m00s: queue q is full"),
            id="a link is held",
        ),
        pytest.param(
            {"parkedMsgCount": 3}, {}, *(NOTE, "parked", "link l: 3 messages"), id="parked"
        ),
    ],
)
def test_connector(
    link: dict[str, Any], changes: dict[str, Any], rank: int, word: str, why: str
) -> None:
    """Each thing that can be wrong with a connector and its links, and why."""
    store = RouterState()
    store.note_connectors(0.0, [connector(link, **changes)])
    assert problems_of(store) == [Problem(rank, word, "connector", "v", "c", why)]


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"deadLetterMsgCount": 6}, "link l: 6/s: dead letters"),
        ({"discards": {"refused": 4, "msg-too-big": 9}}, "link l: 13/s: msg-too-big"),
        ({"discards": {"loop-detected": 4, "no-subscription-match": 5}}, ""),
        ({}, ""),
    ],
)
def test_losses_of_links(link: dict[str, Any], why: str) -> None:
    """They are told while they grow; what goes round, and what nobody wanted, is no loss."""
    store = RouterState()
    none = dict.fromkeys(link.get("discards", ()), 0)
    store.note_connectors(0.0, [connector({"discards": none})])
    store.note_connectors(1.0, [connector(link)])
    expected = [Problem(LOSING, "LOSING", "connector", "v", "c", why)] if why else []
    assert problems_of(store) == expected
    store.note_connectors(2.0, [connector(link)])
    assert found(store) == []


def test_queue_that_backs_up() -> None:
    """More comes than goes, though its consumer works."""
    store = RouterState()
    store.note_queues(0.0, [queue()])
    store.note_queues(1.0, [queue(spooledMsgCount=105, ackedMsgCount=40, msgCount=65)])
    (one,) = problems_of(store)
    assert (one.rank, one.word) == (BACKS_UP, "BACKS UP")
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
    assert problems_of(store) == [
        Problem(LOSING, "LOSING", "msgVpn", "v", "", "30/s: transmit-congestion")
    ]
    store.note_msg_vpns(2.0, [vpn(discarded=later)])
    assert found(store) == []


def test_losses_of_bridges_and_queues() -> None:
    """The same, by direction and with what a queue did not take."""
    store = RouterState()
    store.note_bridges(0.0, [bridge(discardedTx={"transmit-congestion": 0})])
    store.note_queues(0.0, [queue()])
    store.note_bridges(1.0, [bridge(discardedTx={"transmit-congestion": 4})])
    store.note_queues(1.0, [queue(refused={"max-size": 3}, spooledMsgCount=5)])
    assert [(one.word, one.kind, one.why) for one in problems_of(store)] == [
        ("LOSING", "bridge", "4/s: transmit-congestion"),
        ("LOSING", "queue", "3/s: max-size"),
    ]


def test_the_worst_comes_first_and_the_list_is_bounded() -> None:
    """However much is wrong."""
    store = RouterState()
    store.note_msg_vpns(0.0, [vpn(state="down"), vpn(enabled=False)])
    many = [bridge(bridgeName=f"b{n}", health="disabled") for n in range(TUI_TROUBLES + 50)]
    store.note_bridges(0.0, [*many, bridge(health="down")])
    shown = problems_of(store)
    assert len(shown) == TUI_TROUBLES
    assert [one.rank for one in shown] == sorted(one.rank for one in shown)
    assert [one.kind for one in shown[:2]] == ["bridge", "msgVpn"]
