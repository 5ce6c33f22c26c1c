"""What the operator is told of bridges on stderr."""

import pytest

from vpnrouter import limits
from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.events import table
from vpnrouter.server.events.event_context import PeerLog, raise_named
from vpnrouter.server.net.tls import HandshakeFailures
from vpnrouter.wire.link.frames import Hello


def test_peers(capsys: pytest.CaptureFixture[str]) -> None:
    """Bridges of others that come, go and are refused are told with where they come from."""
    log = PeerLog(HandshakeFailures().note)
    record = Bridge(BridgeFacts("edge", "blue", "#bridge/core/yellow/b"), 0)
    record.remote_address = "192.0.2.7:1"
    log.peer_up(record)
    log.peer_down(record, "closed")
    log.peer_rejected(Hello("core", "b", "yellow", "blue"), "192.0.2.7:1", "403 Forbidden")
    lines = capsys.readouterr().err.splitlines()
    peer = "VPN blue remote bridge #bridge/core/yellow/b at 192.0.2.7:1"
    assert lines == [
        f"vpnrouter: {table.LINK_UP.name}: {peer}: up",
        f"vpnrouter: {table.LINK_DOWN.name}: {peer}: down: closed",
        (
            f"vpnrouter: {table.LINK_REJECTED.name}: VPN blue remote bridge b of VPN yellow on core at 192.0.2.7:1:"
            " rejected: 403 Forbidden"
        ),
    ]


def test_a_peer_that_is_refused_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal is told once for each reason and address, and again after a login; the memory for it is bounded."""
    log = PeerLog(HandshakeFailures().note)
    record = Bridge(BridgeFacts("edge", "blue", "#bridge/core/yellow/b"), 0)

    def rejected(reason: str, port: int, bridge: str = "b") -> int:
        log.peer_rejected(Hello("core", bridge, "yellow", "blue"), f"192.0.2.7:{port}", reason)
        return len(capsys.readouterr().err.splitlines())

    assert [rejected("403 Forbidden", port) for port in range(5)] == [1, 0, 0, 0, 0]
    assert [rejected("503 Too Many Clients", 1), rejected("403 Forbidden", 1)] == [1, 1]
    log.peer_up(record)
    capsys.readouterr()
    assert [rejected("403 Forbidden", 1), rejected("403 Forbidden", 2)] == [1, 0]
    for number in range(limits.LINK_REJECTED_TOLD):
        assert rejected("403 Forbidden", 1, f"other{number}") == 1
    assert rejected("403 Forbidden", 1) == 1


def test_say(capsys: pytest.CaptureFixture[str]) -> None:
    """What has no event name is told without one."""
    raise_named("", "hello")
    assert capsys.readouterr().err == "vpnrouter: hello\n"
