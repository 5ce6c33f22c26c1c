"""How a bridge stands: why it does not run, and what is told once only."""

from typing import Any

import pytest

from vpnrouter.bridges.bridge import Inbound, Input
from vpnrouter.bridges.terms import LinkEvent
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.msg_vpn import TlsServerCert
from vpnrouter.server.bridges.approach import Approach
from vpnrouter.server.bridges.standing import Standing, facts_of

REMOTE = {"name": "blue", "location": "h"}


@pytest.fixture
def approach(bridge_sea: Any) -> Approach:
    """What a bridge with one remote knows."""
    sea = bridge_sea.Sea(None, None, 0.0)
    core = bridge_sea.Island(sea, "core", "yellow")
    return Approach(
        core.book,
        core.connector,
        core.vpn,
        "b",
        Bridge.model_validate({"remote_msg_vpns": [REMOTE], "max_ttl": 3}),
        TlsServerCert(),
    )


def written(**fields: Any) -> Bridge:
    """A configuration of the bridge."""
    return Bridge.model_validate({"remote_msg_vpns": [REMOTE]} | fields)


def test_facts(approach: Approach) -> None:
    """The record says what is written."""
    facts = facts_of(approach)
    assert (facts.router, facts.msg_vpn, facts.name, facts.max_ttl) == ("core", "yellow", "b", 3)


def test_why_it_does_not_run(approach: Approach, capsys: pytest.CaptureFixture[str]) -> None:
    """Each reason not to connect is in the record; with the last one gone the bridge runs."""
    standing = Standing(facts_of(approach), 0)
    record = standing.record
    approach.take(written(enabled=False), TlsServerCert())
    assert not standing.may_run(approach, 1)
    assert record.inbound_state is Inbound.DISABLED
    assert record.inbound_failure_reason == "Bridge disabled"
    approach.take(written(), TlsServerCert())
    approach.vpn.enabled = False
    assert not standing.may_run(approach, 2)
    assert record.inbound_failure_reason == "Local message-vpn is disabled"
    approach.vpn.enabled = True
    approach.take(written(remote_msg_vpns=[]), TlsServerCert())
    for _ in range(3):
        assert not standing.may_run(approach, 3)
    assert record.inbound_failure_reason == "No remote message-vpns configured"
    approach.take(written(remote_msg_vpns=[REMOTE | {"enabled": False}]), TlsServerCert())
    assert not standing.may_run(approach, 4)
    assert record.inbound_failure_reason == "Remote message-vpns disabled"
    told = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == ["No remote message-vpns configured", "Remote message-vpns disabled"]
    approach.take(written(), TlsServerCert())
    assert standing.may_run(approach, 5)
    assert record.inbound_state is Inbound.PREPARE_WAIT_TO_CONNECT


def test_a_failure_is_told_once(approach: Approach, capsys: pytest.CaptureFixture[str]) -> None:
    """A remote that is away for days fills no log; another reason is told."""
    standing = Standing(facts_of(approach), 0)
    assert standing.may_run(approach, 1)
    for number, why in enumerate(["refused", "refused", "no route", "refused"]):
        standing.record.handle(Input.DIAL, number)
        standing.failed(why, number)
        standing.record.handle(Input.NEXT_REMOTE, number)
    told = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == ["refused", "no route", "refused"]
    assert standing.record.failures == 4


def test_a_move_that_comes_to_nothing(
    approach: Approach, capsys: pytest.CaptureFixture[str]
) -> None:
    """A half that ends in a move is told of only when no other takes its place."""
    standing = Standing(facts_of(approach), 0)
    record = standing.record
    assert standing.may_run(approach, 1)
    for given in (Input.DIAL, Input.RESOLVED, Input.CONNECTED, Input.WELCOMED):
        record.handle(given, 2)
    standing.subscribed("", 3)
    standing.lost("409 Client Name Taken Over", 4, moving=True)
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in told] == ["up"]
    for _ in range(2):
        standing.stranded()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("down: 409 Client Name Taken Over")


def test_stalls_are_told_once_a_minute(approach: Approach, capsys: Any) -> None:
    """The state follows each stall; people hear of it when it is news."""
    standing = Standing(facts_of(approach), 0)
    assert standing.may_run(approach, 0)
    for given in (Input.DIAL, Input.RESOLVED, Input.CONNECTED, Input.WELCOMED):
        standing.record.handle(given, 0)
    standing.flow_event(LinkEvent.UNBOUND, "503 Unknown Queue", 0, in_sync=False)
    assert "not bound to its queue: 503 Unknown Queue" in capsys.readouterr().err
    for now_s, told in ((0, True), (30, False), (61, True)):
        now_ns = now_s * 1_000_000_000
        standing.flow_event(LinkEvent.STALLED, "503 Queue Shutdown", now_ns, in_sync=True)
        assert standing.record.inbound_state is Inbound.STALLED
        assert standing.record.inbound_failure_reason == "503 Queue Shutdown"
        standing.flow_event(LinkEvent.RELEASED, "", now_ns, in_sync=True)
        assert standing.record.inbound_state is Inbound.READY_IN_SYNC
        said = capsys.readouterr().err
        assert ("stalled: 503 Queue Shutdown" in said, "goes on" in said) == (told, told)


def test_a_release_before_all_is_subscribed(approach: Approach) -> None:
    """Then the bridge goes on subscribing; a stall that comes after the link is of no interest."""
    standing = Standing(facts_of(approach), 0)
    assert standing.may_run(approach, 0)
    for given in (Input.DIAL, Input.RESOLVED, Input.CONNECTED, Input.WELCOMED):
        standing.record.handle(given, 0)
    standing.flow_event(LinkEvent.STALLED, "why", 0, in_sync=False)
    standing.flow_event(LinkEvent.RELEASED, "", 0, in_sync=False)
    assert standing.record.inbound_state is Inbound.READY_SUBSCRIBING
    standing.record.handle(Input.LOST, 0, "gone")
    standing.flow_event(LinkEvent.STALLED, "why", 0, in_sync=False)
    assert standing.record.inbound_state is Inbound.NOT_READY_WAIT_CLEANUP
