"""Lines about failed handshakes, and how many of them."""

from vpnrouter import limits
from vpnrouter.server.net.tls import HandshakeFailures


def test_a_line_says_who_where_and_why() -> None:
    """Listener, peer and reason stand in one line."""
    lines: list[str] = []
    HandshakeFailures(lines.append).note("link listener 127.0.0.1:1", "192.0.2.1:5", "no", 0.0)
    assert lines == [
        "vpnrouter: link listener 127.0.0.1:1: TLS handshake with 192.0.2.1:5 failed: no"
    ]


def test_lines_beyond_the_bound_are_counted() -> None:
    """TLS_FAILURE_LINES a second are written; the number of the others comes with the next one."""
    lines: list[str] = []
    failures = HandshakeFailures(lines.append)
    for number in range(limits.TLS_FAILURE_LINES + 3):
        failures.note("x", str(number), "no", 10.0 + number / 1000)
    assert len(lines) == limits.TLS_FAILURE_LINES
    failures.note("x", "late", "no", 11.0)
    assert lines[limits.TLS_FAILURE_LINES] == "vpnrouter: 3 more TLS handshakes failed before"
    assert "late" in lines[-1]
    failures.note("x", "later", "no", 12.0)
    assert len(lines) == limits.TLS_FAILURE_LINES + 3


def test_a_steady_stream_stays_within_the_bound() -> None:
    """Hundreds of failures a second are that many lines and no more, the counts included."""
    lines: list[str] = []
    failures = HandshakeFailures(lines.append)
    for number in range(1_000):
        failures.note("x", "y", "no", number / 100)
    assert len(lines) <= 10 * limits.TLS_FAILURE_LINES
