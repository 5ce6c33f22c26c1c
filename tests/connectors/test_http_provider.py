"""The state of a connector to an HTTP server, in memory: the test is the server, and time is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from vpnrouter import limits
from vpnrouter.connectors.http.pace import TROUBLED
from vpnrouter.connectors.http.provider import IDLE_NS, HttpProvider
from vpnrouter.connectors.settings import ProviderSettings
from vpnrouter.core.discard_reasons import CLIENT_NOT_CONNECTED, TRANSMIT_CONGESTION
from vpnrouter.testing.memory import MOST
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import Properties

OK: Final = b"HTTP/1.1 204 x\r\n\r\n"
ERROR: Final = b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"
ONCE: Final = {"quality_of_service": "at-most-once"}
WORK: Final = {"out": {"source": {"queue": "work"}}}


@pytest.fixture
def hooked(kit: Any, connected: Callable[..., Any]) -> Callable[..., Any]:
    """`hooked(links, …)`: a connector with a provider of so many connections, of which the first is made."""

    class Hooked(kit.Connected):  # type: ignore[misc]
        """Its connections are `lines`; `wanted` are those that were asked for and not made."""

        def more_connections(self, provider: Any, count: int) -> None:
            self.wanted += count

        def come(self, most: int, answer_timeout_s: int = 30) -> None:
            """Make the provider, and its first connection."""
            self.wanted = 0
            settings = ProviderSettings(
                "http://h:80", answer_timeout_s=answer_timeout_s, max_connections=most
            )
            self.provider = HttpProvider(
                self,
                self.world.vpn(),
                "http://h",
                "h",
                self.links.publisher,
                self.account,
                settings,
            )
            self.lines = [self.provider.added()]
            self.provider.begin()
            self.go()

        def more(self) -> None:
            """Make all connections that are asked for."""
            while self.wanted:
                self.wanted -= 1
                self.lines.append(self.provider.added())
            self.go()

        def go(self) -> None:
            """Do all work that is due."""
            for _ in range(5):
                self.world.settle()
                self.world.router.context.jobs.finish()

        def sent(self, line: int = 0) -> bytes:
            """The body of what was sent over a connection since it was last asked, b"" for nothing."""
            self.go()
            outbox = self.lines[line].outbox
            data = b""
            while outbox.chunks:
                data += outbox.take(MOST)
            return data.partition(b"\r\n\r\n")[2]

        def said(self, data: bytes, line: int = 0, *, early: bool = False) -> None:
            """Let the server answer over a connection; `early`: before it has read the request."""
            if not early:
                self.sent(line)
            self.lines[line].feed(data)
            self.go()

        def cut(self, line: int = 0) -> None:
            """Let the server close a connection."""
            self.lines[line].lost("closed")
            self.go()

        def put(self, *payloads: bytes, topic: str = "work", qos: int = 1) -> None:
            """Publish messages."""
            client = self.world.join(f"c{topic}{payloads[0].decode()}")
            for number, payload in enumerate(payloads, 1):
                client.publish(topic, payload, qos=qos, packet_id=number if qos else 0)
            self.go()

    def make(links: dict[str, Any] = WORK, most: int = 2, **more: Any) -> Any:
        provider = {"url": "http://127.0.0.1:1"}
        made = connected({}, provider=provider)
        world = made.world
        world.queue("work", "work")
        there = Hooked(world, links, provider=provider)
        there.come(most, **more)
        return there

    return make


def counts(there: Any, link: str = "out") -> tuple[int, int, int, int]:
    """Messages, delivered, returned and refused of a link."""
    counters = there.counters[link]
    return counters.messages, counters.delivered, counters.returned, counters.refused


def test_connections_are_made_as_they_are_needed(hooked: Any) -> None:
    """One connection more is asked for where a message waits, up to the most; one that is free is used first."""
    there = hooked(most=3)
    assert there.wanted == 0
    there.put(b"1")
    assert (there.sent(), there.wanted) == (b"1", 0)
    there.put(b"2")
    assert there.wanted == 1
    there.put(b"3", b"4", b"5")
    assert there.wanted == 2
    there.more()
    assert sorted(there.sent(line) for line in (1, 2)) == [b"2", b"3"]
    assert there.wanted == 0
    there.said(OK, 1)
    assert there.sent(1) == b"4"
    assert counts(there) == (5, 1, 0, 0)


@pytest.mark.parametrize("began", [b"", b"HTTP/1.1 2"])
def test_sent_again_at_once_over_a_new_connection(hooked: Any, began: bytes) -> None:
    """A request that a used connection ends without a byte of an answer goes over a new one, at once and once."""
    there = hooked()
    there.put(b"1")
    assert there.sent() == b"1"
    there.said(OK)
    there.put(b"2")
    assert there.sent() == b"2"
    if began:
        there.said(began)
    there.cut()
    there.more()
    if began:
        # Something of it came: the server has it, and it waits for its pause.
        assert len(there.lines) == 1
        return
    assert there.sent(1) == b"2"
    there.cut(1)
    assert there.wanted == 0
    assert counts(there) == (2, 1, 0, 0)
    there.world.advance(2)
    there.more()
    assert there.sent(2) == b"2"


def test_at_most_once_is_not_sent_again(hooked: Any) -> None:
    """What is sent at most once counts as delivered when it is sent, whatever becomes of the connection."""
    there = hooked({"out": {"source": {"queue": "work"}, **ONCE}})
    there.put(b"1")
    assert there.sent() == b"1"
    there.said(OK)
    there.put(b"2")
    assert there.sent() == b"2"
    there.cut()
    there.world.advance(10)
    assert there.wanted == 0
    assert counts(there) == (2, 2, 0, 0)
    assert there.balanced()


def test_idle_connections(hooked: Any) -> None:
    """A connection that ends while it is idle, or was idle for long, is no loss: another one is made when needed."""
    there = hooked()
    there.cut()
    assert (there.losses, there.wanted) == ([], 0)
    there.put(b"1")
    there.more()
    assert there.sent(1) == b"1"
    there.said(OK, 1)
    there.world.advance(IDLE_NS / SECOND_NS + 1)
    there.put(b"2")
    there.more()
    assert there.sent(2) == b"2"
    assert there.lines[1].closing
    there.said(OK, 2)
    # What comes unasked ends that connection alone.
    there.said(b"HTTP/1.1 408 x\r\n\r\n", 2)
    assert there.lines[2].closing
    assert there.losses == []
    assert counts(there) == (2, 2, 0, 0)


def test_the_provider_is_away(hooked: Any) -> None:
    """The connector is lost when a connection cannot be made and there is no other; messages go back uncounted."""
    there = hooked()
    there.put(b"1", b"2")
    assert (there.sent(), there.wanted) == (b"1", 1)
    there.provider.not_reached("refused")
    assert there.losses == []
    there.world.advance(2)
    assert there.wanted == 2
    there.wanted = 1
    there.cut()
    assert there.losses == []
    there.provider.not_reached("refused")
    assert [loss.why for loss in there.losses] == ["refused"]
    there.go()
    assert counts(there) == (2, 0, 2, 0)
    assert there.held("work") == [b"1", b"2"]
    there.come(2)
    assert there.sent() == b"1"


def test_no_answer_in_time(hooked: Any) -> None:
    """A request without an answer in time ends its connection, and counts when the message is sent again."""
    there = hooked(answer_timeout_s=5)
    there.put(b"1")
    there.sent()
    there.said(b"HTTP/1.1 200 O")
    there.world.advance(4)
    assert not there.lines[0].closing
    there.world.advance(3)
    assert there.lines[0].closing
    assert counts(there) == (1, 0, 0, 0)
    there.world.advance(2)
    there.more()
    assert there.sent(1) == b"1"
    assert counts(there) == (1, 0, 0, 1)


def test_trouble_is_shown_and_ends(hooked: Any) -> None:
    """While nothing succeeds the link is held, with the reason, and one request is under way; one answer ends that."""
    there = hooked(most=4)
    there.put(*[b"%d" % number for number in range(20)])
    for _ in range(TROUBLED):
        there.more()
        line = next(at for at, one in enumerate(there.lines) if one.exchange is not None)
        there.sent(line)
        there.said(ERROR, line)
    busy = [one for one in there.lines if one.exchange is not None]
    for _ in range(len(busy)):
        line = next(at for at, one in enumerate(there.lines) if one.exchange is not None)
        there.said(ERROR, line)
    assert there.state("out") == ("held", "the provider answered 500 x")
    assert all(one.exchange is None for one in there.lines)
    there.world.advance(3)
    there.go()
    (line,) = (at for at, one in enumerate(there.lines) if one.exchange is not None)
    there.said(OK, line)
    assert there.state("out") == ("up", "")
    assert len([one for one in there.lines if one.exchange is not None]) == len(there.lines)


def test_a_server_that_asks_to_be_left_alone(hooked: Any) -> None:
    """The link is held until then, says for how long it rests, and goes on when the server answers."""
    there = hooked()
    there.put(b"1", b"2")
    assert there.sent() == b"1"
    there.said(b"HTTP/1.1 503 x\r\nRetry-After: 40\r\nContent-Length: 0\r\n\r\n")
    held = ("held", "the provider answered 503 x; it asks to be left alone for 40 s")
    assert there.state("out") == held
    there.world.advance(39)
    there.go()
    assert all(one.exchange is None for one in there.lines)
    assert there.state("out") == held
    there.world.advance(2)
    there.go()
    (line,) = (at for at, one in enumerate(there.lines) if one.exchange is not None)
    there.said(OK, line)
    assert there.state("out") == ("up", "")


def test_messages_ahead_are_bounded(hooked: Any) -> None:
    """A link holds so many messages for each connection that it may use, and the others wait in the spool."""
    there = hooked(most=1)
    there.put(*[b"%d" % number for number in range(limits.HTTP_AHEAD + 1)])
    assert there.links.all["out"].in_flight == limits.HTTP_AHEAD
    there.said(OK)
    assert counts(there)[:2] == (limits.HTTP_AHEAD + 1, 1)


def test_replies_for_a_full_queue(hooked: Any) -> None:
    """Replies that a full queue refuses wait up to a bound; beyond they are counted, and those after it enter again."""
    links = {"out": {"source": {"queue": "work"}, "request": {"reply": True}}}
    there = hooked(links, most=1)
    full = there.world.queue("full", "re", max_spooled_msg_count=1)
    body = bytes(limits.HTTP_REPLY_BYTES)
    answer = b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    client = there.world.join("asks")
    asks = Properties(response_topic="re")
    many = limits.LINK_WAITING_BYTES // len(body) + 3
    for number in range(1, many + 1):
        client.publish("work", b"%d" % number, qos=1, packet_id=number, properties=asks)
        there.said(answer)
    vpn = there.world.vpn()
    assert full.spooled_count == 1
    lost = vpn.discards.counts[TRANSMIT_CONGESTION]
    assert 1 <= lost <= 3
    # What waits counts for the connector.
    assert there.account.held >= (many - lost - 1) * len(body)
    for _ in range(many - lost):
        full.purge()
        there.go()
        there.world.advance(1)
        there.go()
    full.purge()
    there.go()
    client.publish("work", b"last", qos=1, packet_id=many + 1, properties=asks)
    there.said(answer)
    there.go()
    assert full.spooled_count == 1
    assert vpn.discards.counts[TRANSMIT_CONGESTION] == lost
    assert counts(there)[:2] == (many + 1, many + 1)


def test_early_answer(hooked: Any) -> None:
    """An answer that comes before the request has left counts, but its connection is not used again."""
    there = hooked()
    there.put(b"1")
    there.said(OK, early=True)
    assert there.lines[0].closing
    assert counts(there) == (1, 1, 0, 0)
    there.put(b"2")
    there.more()
    assert there.sent(1) == b"2"


def test_an_expired_message_is_not_tried_again(hooked: Any) -> None:
    """A message that expires while it waits for its pause leaves the queue as others that have expired."""
    there = hooked()
    queue = there.world.vpn().queue("work")
    queue.settings.respect_ttl_enabled = True
    client = there.world.join("ttl")
    expires = Properties(message_expiry_interval=2)
    client.publish("work", b"1", qos=1, packet_id=1, properties=expires)
    there.go()
    assert there.sent() == b"1"
    there.said(ERROR)
    there.world.advance(5)
    there.go()
    assert there.sent() == b""
    assert there.balanced()
    assert queue.spooled_count == 0


def test_direct_messages_are_bounded(hooked: Any) -> None:
    """Direct messages wait for a connection up to their bound; beyond, and when the provider goes, they are counted."""
    there = hooked({"out": {"source": {"topic": "d/>"}, **ONCE}}, most=1)
    size = 1 << 20
    client = there.world.join("direct")
    most = limits.HTTP_WAITING_BYTES // (size + limits.SPOOL_BODY_COST + 3)
    for _ in range(most + 3):
        client.publish("d/x", bytes(size))
    there.go()
    counters = there.counters["out"]
    assert counters.delivered == most + 1
    assert dict(counters.discarded.counts) == {TRANSMIT_CONGESTION: 2}
    assert there.account.held >= most * size
    there.provider.end("it is over")
    assert dict(counters.discarded.counts) == {TRANSMIT_CONGESTION: 2, CLIENT_NOT_CONNECTED: most}
    assert counters.delivered == 1
    assert there.balanced()
    there.go()
    assert there.account.held == 0


def test_one_link_leaves_connections_to_others(hooked: Any) -> None:
    """Of several links none takes all connections."""
    links = {
        "out": {"source": {"queue": "work"}},
        "direct": {"source": {"topic": "d/>"}, **ONCE},
    }
    there = hooked(links, most=3)
    there.put(*[b"%d" % number for number in range(9)])
    there.more()
    there.more()
    assert len([one for one in there.lines if one.exchange is not None]) == 2
    there.put(b"d", topic="d/1", qos=0)
    there.more()
    assert b"d" in [there.sent(line) for line in range(len(there.lines))]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"token": "a b"}, "the token has characters"),
        ({"token": "a\r\nX: 1"}, "the token has characters"),
        ({"token": ""}, "the token has characters"),
        ({"username": "a:b", "password": b"x"}, "the username has a colon"),
    ],
)
def test_logins_that_cannot_be_sent(hooked: Any, settings: dict[str, Any], why: str) -> None:
    """A login that no header carries refuses the links, and is not in the reason."""
    there = hooked()
    there.provider.end("again")
    there.provider = HttpProvider(
        there,
        there.world.vpn(),
        "http://h",
        "h",
        there.links.publisher,
        there.account,
        ProviderSettings("http://h:80", **settings),
    )
    there.provider.added()
    there.provider.begin()
    there.go()
    state, reason = there.state("out")
    assert state == "refused"
    assert why in reason
    assert "a b" not in reason
