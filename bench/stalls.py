"""Checks whether one message VPN can stall another or hold the router's memory: attacks, and a client that pings.

`python -m bench.stalls` starts a router with three message VPNs. Clients of `red` (anybody) and `blue` (hashed
passwords) attack it, one attack after the other; a client of `green` pings it all the time, and a process that only
echoes, so that the machine's own pauses can be told from the router's. What an attack opened stays open until the
memory has been looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bench import stalls_amqp, stalls_random
from bench.machine import cores, notes, raise_descriptor_limit
from bench.ours import Vpnrouter, ready_addresses, ready_line
from bench.processes import running
from bench.products import Address, directory
from bench.turns import Turns, between, read_turns
from vpnrouter.wire.link import encode as flows
from vpnrouter.wire.link import encode as link
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.packets import (
    Connect,
    Packet,
    Pingreq,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties

GOAL_MS: Final = 20.0
"""Milliseconds that the worst ping may be over the machine's own worst."""

ATTACKERS: Final = "127.0.0.9"
"""Where attacks come from; the pinger comes from 127.0.0.1."""

HASH: Final = (
    "$scrypt$ln=14,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$bm90LXRoZS1oYXNoLW9mLWFueS1wYXNzd29yZC1hdC1hbGw"
)


def configuration(folder: Path, hashed: str) -> dict[str, Any]:
    """The router under attack."""
    open_to_all = {"authentication": {"basic": {"enabled": False}}}
    queue = {"subscriptions": ["spool/>"], "permission": "consume", "max_msg_spool_usage": 50}
    return {
        "router": {"name": "stalls", "data_dir": str(folder / "data")},
        "listeners": [
            *(
                {"protocol": protocol, "bind": "127.0.0.1:0", "msg_vpn": vpn}
                for protocol, vpn in (("mqtt", "red"), ("mqtt", "blue"), ("mqtt", "green"))
            ),
            {"protocol": "ws", "bind": "127.0.0.1:0", "msg_vpn": "red"},
            {"protocol": "amqp", "bind": "127.0.0.1:0", "msg_vpn": "red"},
            {"protocol": "link", "bind": "127.0.0.1:0"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {
            "red": {
                **open_to_all,
                "queues": {"q": queue, "many": {**queue, "access_type": "non-exclusive"}},
                "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
            },
            "blue": {"client_usernames": {"true": {"password": hashed}}},
            "green": open_to_all,
        },
    }


@dataclass
class Target:
    """The router, and what an attack holds open."""

    red: Address
    blue: Address
    ws: Address
    http: Address
    link: Address
    amqp: Address
    seconds: float
    held: list[socket.socket] = field(default_factory=list)

    def connect(self, at: Address) -> socket.socket:
        """A connection from where attacks come from; it is held until the attack is over."""
        sock = socket.create_connection(at, timeout=5.0, source_address=(ATTACKERS, 0))
        self.held.append(sock)
        return sock

    def client(self, name: str, login: Connect | None = None) -> socket.socket:
        """A client that is logged in."""
        sock = self.connect(self.red)
        sock.sendall(encode(login or Connect(name, protocol_level=5), 5))
        sock.recv(4_096)
        return sock

    def bridge(self, name: str) -> socket.socket:
        """A bridge of another router that is logged in."""
        sock = self.connect(self.link)
        features = frames.REUSE | frames.FLOWS
        sock.sendall(link.hello(frames.Hello("far", name, "v", "red", features=features)))
        answer = sock.recv(4_096)
        if isinstance(decode(answer, 0, len(answer)), frames.Welcome):
            return sock
        raise RuntimeError(f"the bridge {name} was not let in: {answer!r}")

    def release(self) -> None:
        """Let go of everything."""
        for sock in self.held:
            sock.close()
        self.held.clear()


def pour(target: Target, sock: socket.socket, data: bytes) -> int:
    """Send, and read nothing, for as long as an attack lasts; how many bytes left."""
    until = time.monotonic() + target.seconds
    view = memoryview(data)
    sent = 0
    sock.settimeout(0.2)
    with contextlib.suppress(OSError):
        while sent < len(view) and time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                sent += sock.send(view[sent : sent + 65_536])
    return sent


def converse(target: Target, sock: socket.socket, data: bytes, *, finish: bool = False) -> None:
    """Send all, read and throw away what comes, for as long as an attack lasts or until nothing more comes."""
    until = time.monotonic() + target.seconds
    view = memoryview(data)
    sent = 0
    sock.settimeout(0.02)
    quiet = 0
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < until and quiet < 25:
            quiet += 1
            with contextlib.suppress(TimeoutError):
                if sent < len(view):
                    sent += sock.send(view[sent : sent + 65_536])
                    quiet = 0
            with contextlib.suppress(TimeoutError):
                if not sock.recv(1 << 20):
                    return
                quiet = 0
            if finish and sent == len(view):
                return


def packet(kind: int, body: bytes) -> bytes:
    """A packet of any size, whether it is legal or not."""
    return bytes([kind]) + varint(len(body)) + body


def text(piece: str) -> bytes:
    """A string as MQTT has it."""
    data = piece.encode()
    return struct.pack("!H", len(data)) + data


def subscribe(
    filters: list[str], user: list[tuple[str, str]] | None = None, number: int = 1
) -> bytes:
    """One SUBSCRIBE."""
    requests = [SubscriptionRequest(each, 1) for each in filters]
    return encode(Subscribe(number, requests, Properties(user_properties=user)), 5)


def many(*packets: Packet) -> bytes:
    """Packets one after the other."""
    return b"".join([encode(each, 5) for each in packets])


# -- attacks -------------------------------------------------------------------------------------------


def selectors(target: Target) -> None:
    """Forty queues that are not there with one selector of 8 KB, again and again."""
    wish = [("selector", " OR ".join(["a = 'b'"] * 700))]
    queues = [f"$queue/{number}" for number in range(39)]
    converse(target, target.client("a1"), subscribe([*queues, "$queue/q"], wish) * 50)


def long_reason(target: Target) -> None:
    """A start of a replay of 65,000 characters."""
    converse(
        target, target.client("a2"), subscribe(["$queue/q"], [("replay-from", "x" * 65_000)]) * 20
    )


def retained_often(target: Target) -> None:
    """5,000 retained messages, and `#` two thousand times over."""
    source = target.client("a3-source")
    messages = [Publish(b"r/%d" % number, bytes(64), retain=True) for number in range(5_000)]
    converse(target, source, many(*messages))
    converse(target, target.client("a3"), subscribe(["#"] * 2_000))


def retained_bytes(target: Target) -> None:
    """Sixty retained messages of 9 MB."""
    sock = target.client("a4")
    sock.settimeout(10.0)
    with contextlib.suppress(OSError):
        for number in range(60):
            sock.sendall(encode(Publish(b"big/%d" % number, bytes(9_000_000), retain=True), 5))


def filters(target: Target) -> None:
    """One SUBSCRIBE with 900,000 filters, then ten with as many as may be."""
    piece = b"".join([text(f"f/{number}") + b"\0" for number in range(900_000)])
    converse(target, target.client("a5"), packet(0x82, b"\0\1\0" + piece), finish=True)
    sock = target.client("a5-again")
    for number in range(10):
        converse(target, sock, subscribe([f"g/{number}/{each}/+" for each in range(4_096)]))


def cached(target: Target) -> None:
    """65,000 cached topics alike in eight levels, then filters that nearly match them, and away again."""
    topics = [Publish(b"a/b/c/d/e/f/g/h/%d/x" % number, b"") for number in range(65_000)]
    converse(target, target.client("a6-source"), many(*topics))
    sock = target.client("a6")
    names = [f"+/b/+/d/+/f/+/h/+/y{number}" for number in range(100)]
    converse(target, sock, subscribe(names))
    converse(target, sock, encode(Unsubscribe(2, names), 5))


def many_on_the_way(target: Target, client: str, end: str) -> None:
    """8,192 filters that all match the first levels and end with `end`, and messages on topics that nobody has seen."""
    sock = target.client(client)
    names = [
        "/".join(["a" if number >> bit & 1 else "+" for bit in range(13)]) + end
        for number in range(8_192)
    ]
    converse(target, sock, subscribe(names[:4_096]) + subscribe(names[4_096:], number=2))
    topics = [Publish(b"a/" * 13 + b"%d" % number, b"") for number in range(3_000)]
    converse(target, target.client(f"{client}-source"), many(*topics))


def branching(target: Target) -> None:
    """8,192 filters that all match."""
    many_on_the_way(target, "a7", "/#")


def near_misses(target: Target) -> None:
    """8,192 filters of which none matches, but only in the last level."""
    many_on_the_way(target, "a23", "/none")


def long_acks(target: Target) -> None:
    """Acknowledgements of nothing, each with as many user properties as may be."""
    pairs = b"\x26\0\1a\0\1b" * 1_000
    block = varint(len(pairs)) + pairs
    converse(target, target.client("a24"), packet(0x40, b"\0\1\0" + block) * 5_000)


def leaving(target: Target) -> None:
    """Clients with 8,000 subscriptions that go, one after the other."""
    until = time.monotonic() + target.seconds
    turn = 0
    while time.monotonic() < until:
        turn += 1
        sock = target.client(f"a8-{turn}")
        for part in range(2):
            names = [f"l/{part}/{number}/+" for number in range(4_000)]
            converse(target, sock, subscribe(names, number=part + 1), finish=True)
        with contextlib.suppress(OSError):
            sock.settimeout(2.0)
            sock.recv(65_536)
        sock.close()


def unacknowledged(target: Target) -> None:
    """Consumers of a queue that go, one after the other, each with 10,000 messages that it has not acknowledged."""
    until = time.monotonic() + target.seconds
    messages = b"".join(
        [
            encode(Publish(b"spool/x", b"x", qos=1, packet_id=number), 5)
            for number in range(1, 10_001)
        ]
    )
    converse(target, target.client("a25"), messages)
    turn = 0
    while time.monotonic() < until:
        turn += 1
        sock = target.client(f"a25-{turn}")
        converse(target, sock, encode(Subscribe(1, [SubscriptionRequest("$queue/q", 1)]), 5))
        sock.close()


def pings(target: Target) -> None:
    """60 MB of PINGREQ by a client that reads nothing."""
    pour(target, target.client("a9"), encode(Pingreq(), 5) * 30_000_000)


def refused(target: Target) -> None:
    """Refused SUBSCRIBEs by a client that reads nothing."""
    pour(target, target.client("a10"), subscribe(["$queue/nothing"] * 20) * 50_000)


def properties(target: Target) -> None:
    """A message, and a SUBSCRIBE, with two million user properties."""
    pairs = b"\x26\0\0\0\0" * 1_900_000
    block = varint(len(pairs)) + pairs
    converse(target, target.client("a11"), packet(0x30, text("p") + block), finish=True)
    converse(
        target,
        target.client("a11-s"),
        packet(0x82, b"\0\1" + block + text("p") + b"\0"),
        finish=True,
    )


def new_topics(target: Target) -> None:
    """A flood of messages on topics that nobody has seen."""
    sock = target.client("a12")
    until = time.monotonic() + target.seconds
    turn = 0
    sock.settimeout(5.0)
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            topics = [encode(Publish(b"n/%d/%d" % (turn, each), b""), 5) for each in range(5_000)]
            sock.sendall(b"".join(topics))
            turn += 1


def fan_out(target: Target) -> None:
    """A flood of small messages on two topics in turn, to 200 receivers that read nothing."""
    for number in range(200):
        sock = target.client(f"a13-{number}")
        sock.sendall(subscribe(["o/#"]))
    pour(target, target.client("a13"), many(Publish(b"o/1", b""), Publish(b"o/2", b"")) * 2_000_000)


def large(target: Target) -> None:
    """Messages of 4 MB to 50 receivers that read nothing."""
    for number in range(50):
        sock = target.client(f"a14-{number}")
        sock.sendall(encode(Subscribe(1, [SubscriptionRequest("big")]), 5))
    sock = target.client("a14")
    sock.settimeout(5.0)
    until = time.monotonic() + target.seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            sock.sendall(encode(Publish(b"big", bytes(4_000_000)), 5))


def strangers(target: Target) -> None:
    """1,100 connections that say nothing, and 300 with most of a CONNECT of 1 MB."""
    for number in range(1_400):
        try:
            sock = target.connect(target.red)
            if number >= 1_100:
                sock.settimeout(0.5)
                sock.sendall(packet(0x10, bytes(1_000_000))[:-1])
        except OSError:
            continue
    time.sleep(target.seconds)


def wrong_logins(target: Target) -> None:
    """300 logins with wrong passwords, most of which hang up at once."""
    for number in range(300):
        with contextlib.suppress(OSError):
            sock = target.connect(target.blue)
            sock.sendall(encode(Connect(f"w{number}", username="true", password=b"wrong"), 4))
            if number % 4:
                target.held.pop().close()
    time.sleep(target.seconds)


def unfinished(target: Target) -> None:
    """Thirty clients with most of a message of 9 MB, which never ends."""
    for number in range(30):
        sock = target.client(f"a17-{number}")
        sock.settimeout(2.0)
        with contextlib.suppress(OSError):
            sock.sendall(encode(Publish(b"u", bytes(9_000_000)), 5)[:-1])


def wills(target: Target) -> None:
    """1,500 clients that left: a will of 60 KB with a delay of a century, a session for ever, a long client id."""
    for number in range(1_500):
        will = Will(b"w", bytes(60_000), properties=Properties(will_delay_interval=0xFFFF_FFFE))
        login = Connect(f"{'i' * 1_000}{number}", protocol_level=5, will=will)
        login.properties.session_expiry_interval = 0xFFFF_FFFF
        with contextlib.suppress(OSError):
            target.client("", login).close()
            target.held.pop()


def handshake(target: Target) -> None:
    """A WebSocket handshake with a byte that is no text, and one that never ends."""
    for tail in (b"Sec-WebSocket-Protocol: \xff\r\n\r\n", b"Sec-WebSocket-Protocol: "):
        with contextlib.suppress(OSError):
            sock = target.connect(target.ws)
            sock.sendall(
                b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + tail
            )


def expiry(target: Target) -> None:
    """A message for the spool that lives as long as MQTT can say."""
    properties_ = Properties(message_expiry_interval=0xFFFF_FFFF)
    message = Publish(b"spool/x", b"x", qos=1, packet_id=1, properties=properties_)
    converse(target, target.client("a20"), encode(message, 5))


def documents(target: Target) -> None:
    """A configuration with 150,000 message VPNs for the API to look at."""
    vpns: dict[str, dict[str, str]] = {f"v{number}": {} for number in range(150_000)}
    body = json.dumps({"document": {"router": {"name": "x"}, "msg_vpns": vpns}})
    head = (
        "POST /vpnrouter/v1/config/examine HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sock = socket.create_connection(target.http, timeout=5.0)
    target.held.append(sock)
    converse(target, sock, (head + body).encode())


def link_filters(target: Target) -> None:
    """A bridge that subscribes to as many filters as it may, again and again, a tenth of them with selectors."""
    wishes = b""
    for turn in range(40):
        filters = [(0, f"f/{turn}/{number}/*") for number in range(4_000)]
        selectors = {each: "a = 1 OR b LIKE '%x'" for _, each in filters[::10]}
        wishes += link.subscribe(frames.Subscribe(turn, filters, selectors))
    converse(target, target.bridge("b1"), wishes)


def link_positions(target: Target) -> None:
    """BINDs to a queue, each of which names as many positions as fit that nobody sent."""
    ranges = [(number * 3 + 1, 1) for number in range(65_000)]
    asked = b"".join(
        [
            flows.bind(frames.Bind(number, "q", 255, accepted={bytes(16): ranges}))
            for number in range(1, 30)
        ]
    )
    converse(target, target.bridge("b2"), asked)


def link_topics(target: Target) -> None:
    """A flood of messages over a link on topics that nobody has seen, half of them with a long path."""
    sock = target.bridge("b3")
    path = [f"r{number}/v" for number in range(7)] + ["far/v"]
    long = frames.Extension(path, 8, message_id=7)
    messages = [
        link.message(frames.Direct(b"n/%d" % number, b"", b"", long if number & 1 else None))
        for number in range(60_000)
    ]
    converse(target, sock, b"".join(messages))


def link_settlements(target: Target) -> None:
    """A million settlements of what was never sent."""
    sock = target.bridge("b4")
    bound = flows.bind(frames.Bind(1, "q", 255))
    said = flows.ack(frames.Ack(1, 255, [(number * 3 + 1, 2) for number in range(1_000)]))
    converse(target, sock, bound + said * 1_000)


def random_amqp(target: Target) -> None:
    """Random sessions of AMQP, one after the other; what the router refuses ends a session."""
    attacker = stalls_amqp.Attacker(lambda: target.connect(target.amqp), target.seconds)
    for seed, data in enumerate(stalls_random.sessions(stalls_random.amqp_session)):
        with contextlib.suppress(OSError):
            attacker.say(attacker.session(f"random-{seed}"), data)


def random_mqtt(target: Target) -> None:
    """Random sessions of MQTT 5, one after the other, a reader beside them."""
    reader = target.client("random-reader")
    reader.sendall(subscribe(["a/#", "f/#"]))
    for seed, data in enumerate(stalls_random.sessions(stalls_random.mqtt_session)):
        with contextlib.suppress(OSError):
            converse(target, target.client(f"random-{seed}"), b"".join(data))


def by_amqp(attack: Callable[[stalls_amqp.Attacker], None]) -> Callable[[Target], None]:
    """An attack by clients of AMQP."""

    def run(target: Target) -> None:
        attack(stalls_amqp.Attacker(lambda: target.connect(target.amqp), target.seconds))

    return run


ATTACKS: Final[dict[str, Callable[[Target], None]]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        *(
            selectors,
            long_reason,
            retained_often,
            filters,
            cached,
            branching,
            leaving,
            unacknowledged,
            pings,
            refused,
        ),
        *(
            properties,
            new_topics,
            fan_out,
            large,
            strangers,
            wrong_logins,
            unfinished,
            wills,
            handshake,
        ),
        *(link_filters, link_positions, link_topics, link_settlements),
        *(expiry, documents, retained_bytes),
        *(near_misses, long_acks, random_mqtt, random_amqp),
    )
} | {name: by_amqp(attack) for name, attack in stalls_amqp.ATTACKS.items()}


# -- measuring -----------------------------------------------------------------------------------------


class Pinger:
    """The process that pings all the time."""

    def __init__(self, at: Address) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.stalls_pinger", f"{at[0]}:{at[1]}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line() != "ready\n":
            raise RuntimeError("the pinger did not get through")

    def _line(self) -> str:
        return "" if self._process.stdout is None else self._process.stdout.readline()

    def interval(self) -> dict[str, Any]:
        """What it was like since the last call."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def close(self) -> None:
        """End it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()


def turns(target: Target) -> Turns:
    """The turns of the event loop since the start of the router, none where it does not answer."""
    with contextlib.suppress(OSError):
        return read_turns(target.http)
    return {}


def longest_ms(before: Turns, after: Turns) -> float:
    """The longest turn of sockets and jobs in an interval took at most so many milliseconds."""
    longest = 0.0
    for counts in between(before, after).values():
        for bound, count in counts.items():
            if count:
                longest = max(longest, bound * 1_000)
    return longest


def resident_mb(pid: int) -> float:
    """Megabytes of memory that a process has, 0 when it is gone."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


@contextlib.contextmanager
def attacked(command: list[str], core: int | None) -> Iterator[tuple[Target, Pinger, int]]:
    """A router, what is attacked there, and its pinger."""
    hashed = subprocess.run(
        [*command, "hash-password"], input="right\n", capture_output=True, text=True, check=True
    ).stdout.strip()
    with directory("stalls") as folder:
        path = folder / "router.yaml"
        path.write_text(yaml.safe_dump(configuration(folder, hashed)), encoding="utf-8")
        log = folder / "log"
        with running([*command, "run", str(path)], core=core, log=log) as process:
            line = ready_line(process, log)
            first = ready_addresses(line)
            mqtt = [
                (host, int(port))
                for host, _, port in (
                    word[5:].rpartition(":") for word in line.split() if word.startswith("mqtt=")
                )
            ]
            target = Target(
                mqtt[0], mqtt[1], first["ws"], first["http"], first["link"], first["amqp"], 3.0
            )
            pinger = Pinger(mqtt[2])
            try:
                yield target, pinger, process.pid
            finally:
                target.release()
                pinger.close()


def run(command: list[str], names: list[str], seconds: float) -> list[dict[str, Any]]:
    """One row for each attack; a router that an attack ended is started anew for the next."""
    pinned = cores() or (None, None)
    rows: list[dict[str, Any]] = []
    left = list(names)
    while left:
        with attacked(command, pinned[0]) as (target, pinger, pid):
            target.seconds = seconds
            pinger.interval()
            time.sleep(1.0)
            quiet = pinger.interval()
            while left:
                name = left.pop(0)
                before = resident_mb(pid)
                earlier = turns(target)
                pinger.interval()
                with contextlib.suppress(OSError):
                    ATTACKS[name](target)
                time.sleep(0.5)
                found = pinger.interval()
                grown = resident_mb(pid) - before
                target.release()
                time.sleep(0.5)
                alive = not found["dead"]
                own = max(quiet["worst_ms"], found["echo_ms"])
                longest = longest_ms(earlier, turns(target))
                rows.append(
                    {
                        "attack": name,
                        "worst_ping_ms": round(found["worst_ms"], 1),
                        "own_worst_ms": round(own, 1),
                        "longest_turn_ms": longest,
                        "memory_mb": round(grown, 1),
                        "alive": alive,
                        "good": alive and found["worst_ms"] <= own + GOAL_MS,
                    }
                )
                show(rows[-1])
                if not alive:
                    break
    return rows


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    mark = "" if row["good"] else "  <-" if row["alive"] else "  <- the router is gone"
    print(
        f"{row['attack']:18} {row['worst_ping_ms']:10.1f} {row['own_worst_ms']:10.1f}"
        f" {row['longest_turn_ms']:>12} {row['memory_mb']:10.1f}{mark}",
        flush=True,
    )


def main() -> None:
    """Run the attacks that the arguments name, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--router-command", default="", help="starts a router with `run CONFIG`")
    parser.add_argument("--only", default="", help="names of attacks, with commas between them")
    parser.add_argument("--seconds", type=float, default=3.0, help="longest part of an attack")
    options = parser.parse_args()
    raise_descriptor_limit(8_192)
    command = Vpnrouter(options.router_command).command
    names = options.only.split(",") if options.only else list(ATTACKS)
    print(json.dumps(notes()))
    titles = f"{'worst ping':>10} {'own worst':>10} {'longest turn':>12} {'memory':>10}"
    print(f"{'attack':18} {titles}   (ms, ms, ms at most, MB)")
    rows = run(command, names, options.seconds)
    if not all(row["good"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
