"""Stateful fuzz driver of MQTT against a whole router: what clients may say, with extreme but legal values.

    python -m fuzz.sessions [--seconds 60] [--seed N]

Several clients connect, publish, subscribe, acknowledge rightly and wrongly, bind to queues, leave wills, read or
do not, disconnect or break off. Settings change, and the router is restarted and killed in between. whole_router.py
says what counts as a finding. The driver prints the seed first, so that a finding can be repeated as far as the
timing of two processes allows. On a finding it prints the last steps and exits 1.
"""

from __future__ import annotations

import contextlib
import random
import socket
import string
import struct
import sys
from pathlib import Path
from typing import Any, Final, TypeVar, final

from fuzz.whole_router import AttackingSocket, Finding, WholeRouter, attack, drive
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Auth,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Publish,
    Subscribe,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.packets import SubscriptionRequest as Request
from vpnrouter.wire.mqtt.properties import Properties

CONFIG: Final = """\
router: {name: fuzzed, data_dir: ./data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: watch}
trace: {directory: ./traces, sample: 0.2}
msg_vpns:
  watch:
    authentication: {basic: {enabled: false}}
  blue:
    authentication: {basic: {enabled: true}}
    max_msg_spool_usage: 20
    max_retained_msg_count: 200
    client_profiles:
      small: {max_subscription_count: 12, max_egress_flow_count: 2, max_outbox_bytes: 65536}
    acl_profiles:
      some:
        client_connect: {default_action: allow}
        publish_topic: {default_action: allow, exceptions: ["secret/>", "$queue/closed"]}
        subscribe_topic: {default_action: allow, exceptions: ["secret/>"]}
    client_usernames:
      all: {password: all}
      some: {password: some, acl_profile: some, client_profile: small}
    queues:
      q: {subscriptions: ["a/>", "q/*"], max_spooled_msg_count: 40, access_type: exclusive}
      shared: {subscriptions: ["a/b"], access_type: non-exclusive, max_redelivery_count: 2, max_ttl: 1,
               respect_ttl_enabled: true, dead_msg_queue: dead}
      parts: {subscriptions: ["p/>"], access_type: non-exclusive, partition: {count: 3}}
      last: {subscriptions: ["l/>"], max_msg_spool_usage: 0}
      dead: {access_type: non-exclusive}
      closed: {permission: no-access}
      late: {subscriptions: ["a/+"], topic_syntax: mqtt, delivery_delay: 1}
    topic_endpoints:
      te: {permission: modify-topic}
    replay_logs:
      log: {max_spool_usage: 2}
"""

NUMBERS: Final = (0, 1, 2, 3, 127, 128, 255, 256, 16_383, 16_384, 65_534, 65_535, 0x7FFFFFFF)
NUMBERS_32: Final = (*NUMBERS, 0x80000000, 2_816_000_000, 0xFFFFFFFE, 0xFFFFFFFF)
LEVELS: Final = ("a", "b", "", "c d", "secret", "q", "p", "l", "é", "\u2028", "\x1b[2J", "😀", "-")
SPECIAL: Final = (
    "$queue/q",
    "$queue/shared",
    "$queue/parts",
    "$queue/closed",
    "$queue/nothing",
    "$queue/late",
)
BINDINGS: Final = (
    *SPECIAL,
    "$queue/",
    "$browse/q",
    "$browse/",
    "$topic-endpoint/te/a/#",
    "$topic-endpoint/te/+/b",
    "$topic-endpoint/te/",
    "$topic-endpoint/none/x",
)
NAMES: Final = ("one", "two", "three", "four", "five", "honest", "ü", "x" * 300, "a b", "#x", "$x")
SELECTORS: Final = (
    "",
    "a = 1",
    "x IS NULL",
    "NOT " * 200 + "a",
    "(" * 90 + "a" + ")" * 90,
    "a LIKE '%" + "_" * 500 + "'",
    "a IN ('" + "','".join(map(str, range(300))) + "')",
    "JMSPriority BETWEEN 1 AND 9 OR a <> 'é'",
    "\x00",
    "a = 'x" * 50,
)
_T = TypeVar("_T")

CLIENTS: Final = 7
STEPS_BETWEEN_LOOKS: Final = 150


@final
class Peer(AttackingSocket):
    """One socket of the attacker and what it knows of the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.level = 5
        self.came = b""
        self.deliveries: list[tuple[int, int]] = []
        self.published: list[int] = []
        self.reads = True

    def close(self, *, reset: bool = False) -> None:
        """Hang up."""
        if self.sock is not None and reset:
            linger = struct.pack("ii", 1, 0)
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        super().close()
        self.came = b""
        self.deliveries.clear()
        self.published.clear()

    def listen(self) -> None:
        """Read what came, and remember which messages need an acknowledgement."""
        chunk = self.take() if self.reads else b""
        if not chunk:
            return
        self.came += chunk
        try:
            start = 0
            while size := frame_at(self.came, start, len(self.came), 1 << 28):
                self._note(decode(self.came, start, size, self.level))
                start += size
            self.came = self.came[start:]
        except ProtocolError as error:
            raise Finding(f"the router broke the protocol: {error}") from error

    def _note(self, packet: Packet) -> None:
        if isinstance(packet, Publish) and packet.qos and len(self.deliveries) < 500:
            self.deliveries.append((packet.packet_id, packet.qos))


@final
class Sessions:
    """All clients of one run."""

    def __init__(self, router: WholeRouter, draw: random.Random) -> None:
        self._router = router
        self._draw = draw
        self._peers = [Peer() for _ in range(CLIENTS)]
        self.count = 0

    # -- values ----------------------------------------------------------------------------------

    def _number(self) -> int:
        return self._draw.choice(NUMBERS_32)

    def _maybe(self, value: _T, chance: float = 0.3) -> _T | None:
        return value if self._draw.random() < chance else None

    def _text(self) -> str:
        match self._draw.randrange(6):
            case 0:
                return ""
            case 1:
                return self._draw.choice(string.ascii_letters) * self._draw.choice((1, 255, 65_535))
            case 2:
                return self._draw.choice(LEVELS)
            case _:
                return "".join(self._draw.choices(string.printable, k=self._draw.randrange(30)))

    def _user_properties(self) -> list[tuple[str, str]]:
        return [(self._text(), self._text()) for _ in range(self._draw.choice((0, 0, 0, 1, 2, 40)))]

    def _topic(self) -> str:
        draw = self._draw
        match draw.randrange(12):
            case 0 | 1 | 2:
                return draw.choice(SPECIAL)
            case 3:
                return "/".join(["a"] * draw.choice((128, 129, 250)))
            case 4:
                return "a/" + "x" * draw.choice((1, 250, 251, 65_500))
            case 5:
                return "$SYS/" + draw.choice(LEVELS)
            case _:
                return "/".join(draw.choices(LEVELS, k=draw.randrange(1, 5))) or "a"

    def _filter(self) -> str:
        draw = self._draw
        match draw.randrange(10):
            case 0 | 1:
                return draw.choice(BINDINGS)
            case 2:
                return f"$share/{draw.choice(('g', 'h', 'ü'))}/{self._plain_filter()}"
            case 3:
                return draw.choice(
                    ("#", "+/+", "+", "/#", "$SYS/#", "#/", "a/#/b", "$share/g", "$share//a")
                )
            case _:
                return self._plain_filter()

    def _plain_filter(self) -> str:
        levels = [*LEVELS, "+", "+", "+"]
        text = "/".join(self._draw.choices(levels, k=self._draw.randrange(1, 6)))
        return text + "/#" if self._draw.randrange(3) == 0 else text or "a"

    def _payload(self) -> bytes:
        return b"p" * self._draw.choice((0, 0, 1, 10, 100, 5_000, 70_000))

    def _publish_properties(self) -> Properties:
        if self._draw.randrange(2):
            return Properties()
        return Properties(
            payload_format_indicator=self._maybe(self._draw.randrange(2)),
            message_expiry_interval=self._maybe(self._number(), 0.5),
            content_type=self._maybe(self._text()),
            response_topic=self._maybe("a/" + self._draw.choice(LEVELS)),
            correlation_data=self._maybe(self._draw.randbytes(self._draw.choice((0, 1, 60_000)))),
            topic_alias=self._maybe(self._draw.choice((1, 2, 10, 65_535))),
            user_properties=self._user_properties(),
        )

    # -- what clients do -------------------------------------------------------------------------

    def connect(self, peer: Peer) -> None:
        """Open a connection and say CONNECT."""
        draw = self._draw
        peer.close()
        try:
            sock = socket.create_connection(("127.0.0.1", self._router.ports["mqtt"][0]), 10)
        except OSError:
            self._router.examine()
            return
        sock.setblocking(False)
        peer.sock = sock
        peer.reads = draw.randrange(12) != 0
        peer.level = draw.choice((4, 5, 5))
        will = None
        if draw.randrange(3) == 0:
            properties = Properties(
                will_delay_interval=self._maybe(self._number(), 0.6),
                message_expiry_interval=self._maybe(self._number(), 0.6),
                user_properties=self._user_properties(),
            )
            topic = self._topic().encode()
            will = Will(
                topic, self._payload(), draw.randrange(3), draw.randrange(2) == 0, properties
            )
        username = draw.choice(("all", "all", "some", "none"))
        packet = Connect(
            draw.choice((*NAMES, "")),
            draw.randrange(2) == 0,
            draw.choice((0, 0, 1, 65_535)),
            peer.level,
            username,
            username.encode(),
            will,
            Properties(
                session_expiry_interval=self._maybe(self._number(), 0.6),
                receive_maximum=self._maybe(draw.choice((1, 2, 65_535))),
                maximum_packet_size=self._maybe(draw.choice((1, 20, 100, 0xFFFFFFFF)), 0.1),
                topic_alias_maximum=self._maybe(draw.choice(NUMBERS[:12])),
                request_response_information=self._maybe(draw.randrange(2)),
                request_problem_information=self._maybe(draw.randrange(2)),
                user_properties=self._user_properties(),
            ),
        )
        self._send(peer, packet)

    def publish(self, peer: Peer) -> None:
        """Publish some messages, with any properties."""
        draw = self._draw
        for _ in range(draw.choice((1, 1, 1, 5, 40))):
            qos = draw.randrange(3)
            packet_id = draw.choice((1, 2, 3, 65_535, draw.randrange(1, 65_536))) if qos else 0
            packet = Publish(
                self._topic().encode(),
                self._payload(),
                qos,
                draw.randrange(4) == 0,
                bool(qos) and draw.randrange(5) == 0,
                packet_id,
                self._publish_properties(),
            )
            if draw.randrange(6) == 0:
                packet.topic = b""
            if qos == 2:
                peer.published.append(packet_id)
            self._send(peer, packet)

    def subscribe(self, peer: Peer) -> None:
        """SUBSCRIBE to one or many filters, some of which bind to queues."""
        draw = self._draw
        properties = Properties(
            subscription_identifiers=[draw.choice((1, 2, 127, 128, 268_435_455))]
            if draw.randrange(2)
            else []
        )
        if draw.randrange(3) == 0:
            properties.user_properties = [
                ("selector", draw.choice(SELECTORS)),
                ("browse", draw.choice(("true", "false", ""))),
                (
                    "replay-from",
                    draw.choice(
                        ("", "beginning", "id:1", "id:x", "2020-01-01T00:00:00Z", "9" * 999)
                    ),
                ),
            ][: draw.randrange(4)]
        requests = []
        for _ in range(draw.choice((1, 1, 2, 20))):
            filter_ = self._filter()
            no_local = draw.randrange(4) == 0 and not filter_.startswith("$share")
            flags = (no_local, draw.randrange(2) == 0, draw.randrange(3))
            requests.append(Request(filter_, draw.randrange(3), *flags))
        self._send(peer, Subscribe(draw.randrange(1, 65_536), requests, properties))

    def unsubscribe(self, peer: Peer) -> None:
        """UNSUBSCRIBE from what may or may not be there."""
        filters = [self._filter() for _ in range(self._draw.choice((1, 3, 20)))]
        self._send(peer, Unsubscribe(self._draw.randrange(1, 65_536), filters))

    def acknowledge(self, peer: Peer) -> None:
        """Acknowledge what came, mostly rightly; in any order."""
        draw = self._draw
        peer.listen()
        draw.shuffle(peer.deliveries)
        for packet_id, qos in peer.deliveries[: draw.randrange(1, 60)]:
            kind = 4 if qos == 1 else draw.choice((5, 5, 7))
            code = draw.choice((0, 0, 0, 0x10, 0x80, 0x97))
            self._send(peer, Ack(kind, packet_id, code if kind < 6 else 0))
            if qos == 2 and draw.randrange(2):
                self._send(peer, Ack(7, packet_id))
        del peer.deliveries[:60]
        for packet_id in peer.published[: draw.randrange(1, 20)]:
            self._send(peer, Ack(6, packet_id))
        del peer.published[:20]

    def acknowledge_wrongly(self, peer: Peer) -> None:
        """Send any acknowledgement."""
        draw = self._draw
        kind = draw.choice((4, 5, 6, 7))
        code = draw.choice((0, 0x92)) if kind > 5 else draw.choice((0, 0x10, 0x80, 0x83, 0x99))
        self._send(
            peer, Ack(kind, draw.randrange(1, 65_536), code, Properties(reason_string=self._text()))
        )

    def leave(self, peer: Peer) -> None:
        """End the connection in one of many ways."""
        draw = self._draw
        match draw.randrange(5):
            case 0:
                peer.close(reset=True)
            case 1:
                whole = encode(Publish(b"a/b", b"x" * 1_000, 1, packet_id=9), peer.level)
                peer.say(whole[: draw.randrange(1, len(whole))])
                peer.close()
            case 2:
                properties = Properties(
                    session_expiry_interval=self._maybe(self._number()),
                    reason_string=self._maybe(self._text()),
                )
                self._send(peer, Disconnect(draw.choice((0, 4, 0x80, 0x81)), properties))
            case 3:
                self._send(peer, Auth(0x18, Properties(authentication_method="x")))
            case _:
                peer.close()

    def ping(self, peer: Peer) -> None:
        """Send PINGREQ, once or many times."""
        peer.say(encode(Pingreq(), peer.level) * self._draw.choice((1, 1, 500)))

    def scramble(self, peer: Peer) -> None:
        """Send a packet with one byte changed."""
        packet = Publish(self._topic().encode(), b"xyz", 1, packet_id=5)
        raw = bytearray(encode(packet, peer.level))
        raw[self._draw.randrange(len(raw))] = self._draw.randrange(256)
        peer.say(bytes(raw))

    def change(self, _: Peer) -> None:
        """Change a setting, or act, by the management API; refusals are fine, faults are not."""
        draw = self._draw
        vpn = "/SEMP/v2/config/msgVpns/blue"
        queue = draw.choice(("q", "shared", "parts", "late"))
        action = "/SEMP/v2/action/msgVpns/blue"
        choices: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("PATCH", vpn, {"maxTopicLevels": draw.choice((3, 128))}),
            ("PATCH", vpn, {"maxTopicBytes": draw.choice((250, 65_535))}),
            ("PATCH", vpn, {"maxSubscriptionCount": draw.choice((60, 500_000))}),
            ("PATCH", vpn, {"maxMsgSpoolUsage": draw.choice((0, 1, 20))}),
            ("PATCH", vpn, {"enabled": draw.randrange(4) != 0}),
            (
                "PATCH",
                f"{vpn}/queues/{queue}",
                {"maxTtl": draw.choice((0, 1)), "respectTtlEnabled": True},
            ),
            ("PATCH", f"{vpn}/queues/{queue}", {"egressEnabled": draw.randrange(3) != 0}),
            ("PATCH", f"{vpn}/queues/{queue}", {"ingressEnabled": draw.randrange(3) != 0}),
            (
                "PATCH",
                f"{vpn}/queues/{queue}",
                {"accessType": draw.choice(("exclusive", "non-exclusive"))},
            ),
            ("DELETE", f"{vpn}/queues/{queue}", {}),
            (
                "POST",
                f"{vpn}/queues",
                {"queueName": queue, "ingressEnabled": True, "egressEnabled": True},
            ),
            ("PATCH", f"{vpn}/clientUsernames/some", {"enabled": draw.randrange(3) != 0}),
            (
                "PATCH",
                f"{vpn}/clientProfiles/small",
                {"allowGuaranteedMsgReceiveEnabled": draw.randrange(2) == 0},
            ),
            (
                "PATCH",
                f"{vpn}/aclProfiles/some",
                {"subscribeTopicDefaultAction": draw.choice(("allow", "disallow"))},
            ),
            ("PUT", f"{action}/queues/{queue}/deleteMsgs", {}),
            ("PUT", f"{action}/clients/{draw.choice(NAMES[:5])}/disconnect", {}),
        )
        method, path, body = draw.choice(choices)
        self._router.note(f"{method} {path} {body}")
        try:
            status, text = self._router.ask(method, path, body)
        except OSError:
            self._router.examine()
            return
        if status >= 500 and status != 503:
            raise Finding(f"{method} {path} {body}: {status} {text}")

    # -- the run ---------------------------------------------------------------------------------

    def _send(self, peer: Peer, packet: Packet) -> None:
        shown = repr(packet)
        self._router.note(
            f"{self._peers.index(peer)} {shown if len(shown) < 400 else shown[:400] + '…'}"
        )
        # A drawn text may be longer than its field, and a property no part of MQTT 3.1.1.
        with contextlib.suppress(ValueError):
            peer.say(encode(packet, peer.level))

    def step(self) -> None:
        """One client does one thing."""
        self.count += 1
        peer = self._draw.choice(self._peers)
        if peer.sock is None:
            self.connect(peer)
            return
        acts = (
            *(
                (self.publish, 30),
                (self.subscribe, 14),
                (self.unsubscribe, 4),
                (self.acknowledge, 20),
            ),
            *((self.acknowledge_wrongly, 2), (self.leave, 4), (self.ping, 2), (self.scramble, 1)),
            *((self.connect, 2), (self.change, 2)),
        )
        (act,) = self._draw.choices([act for act, _ in acts], [weight for _, weight in acts])
        act(peer)
        peer.listen()

    def steps(self) -> None:
        """Take the steps between two looks at the router."""
        for _ in range(STEPS_BETWEEN_LOOKS):
            self.step()

    def hang_up(self) -> None:
        """All clients go."""
        for peer in self._peers:
            peer.close()


def fuzz(draw: random.Random, seconds: float, folder: Path) -> str:
    """Run for so long; what was done. Raises Finding."""
    with WholeRouter(folder, CONFIG) as router:
        sessions = Sessions(router, draw)
        attack(router, draw, seconds, sessions.steps, sessions.hang_up)
        return f"{sessions.count} steps"


if __name__ == "__main__":
    sys.exit(drive(__doc__ or "", fuzz))
