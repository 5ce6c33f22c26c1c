"""A ring of five message VPNs on three routers, every edge both ways, over a network that fails at random.

The short form runs always; `VPNROUTER_LONG=1` makes the faults last longer.
"""

import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from vpnrouter.testing.network import FROM_TARGET, TO_TARGET, FaultyLink, FaultyNetwork

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))

RING: Final = (("a", "v0"), ("b", "v1"), ("b", "v2"), ("c", "v3"), ("a", "v4"))
"""The VPNs in the order of the ring, each with its router."""

ROUTERS: Final = ("a", "b", "c")

HEARTBEAT_MS: Final = 200


class Ring:
    """Three routers, and a link for each bridge: VPN n has one to VPN n-1 and one to VPN n+1."""

    def __init__(self, site: Any, bridge: Any, network: FaultyNetwork) -> None:
        self.links: list[FaultyLink] = []
        leads: list[tuple[FaultyLink, str]] = []
        vpns: dict[str, dict[str, Any]] = {name: {} for name in ROUTERS}
        quick = {"retry_delay": 0, "heartbeat_interval": HEARTBEAT_MS}
        for index, (router, vpn) in enumerate(RING):
            bridges = vpns[router][vpn] = {}
            for far_router, far_vpn in (RING[index - 1], RING[(index + 1) % len(RING)]):
                link = network.link()
                leads.append((link, far_router))
                bridges[f"from-{far_vpn}"] = bridge(
                    far_vpn, link, ">", router=far_router, remote_connection=quick
                )
        self.routers = {name: site(name, wait=False, **vpns[name]) for name in ROUTERS}
        for each in self.routers.values():
            each.await_ready()
        for link, name in leads:
            link.target = ("127.0.0.1", self.routers[name].port("link"))
            self.links.append(link)

    def ports(self) -> list[int]:
        """The MQTT port of each VPN, in the order of the ring."""
        seen = dict.fromkeys(ROUTERS, 0)
        found = []
        for router, _ in RING:
            found.append(self.routers[router].port("mqtt", seen[router]))
            seen[router] += 1
        return found

    def rows(self) -> list[dict[str, Any]]:
        """All bridges of all routers."""
        return [row for router in self.routers.values() for row in router.bridges()]

    def whole(self) -> bool:
        """Whether every bridge is in sync and, where a peer uses its link, serves it."""
        # Where both sides have dialled, the peer's bridge is a row of its own for a while.
        rows = [row for row in self.rows() if not row["bridgeName"].startswith("#")]
        assert len(rows) == 2 * len(RING)
        return all(row["inboundState"] == "ready-in-sync" for row in rows)

    def messages(self) -> int:
        """Messages that crossed any bridge so far."""
        return sum(row["dataRxMsgCount"] + row["dataTxMsgCount"] for row in self.rows())


class Trouble:
    """Breaks links at random from a thread, one fault after the other, and heals them again."""

    def __init__(self, links: list[FaultyLink], draws: random.Random) -> None:
        self.count = 0
        self._links = links
        self._draws = draws
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(self._draws.uniform(0.02, 0.25)):
            link = self._draws.choice(self._links)
            fault = self._draws.choice(FAULTS)
            fault(link, self._draws)
            self.count += 1
            if self._draws.random() < 0.7:
                link.heal()

    def stop(self) -> None:
        """No more faults; every link carries again."""
        self._ended.set()
        self._thread.join(20)
        for link in self._links:
            link.heal()


def _cut_soon(link: FaultyLink, draws: random.Random) -> None:
    link.cut_after(draws.randrange(1, 3000), draws.choice((TO_TARGET, FROM_TARGET)))


FAULTS: Final[tuple[Callable[[FaultyLink, random.Random], None], ...]] = (
    lambda link, _draws: link.cut(),
    lambda link, _draws: link.close(),
    lambda link, _draws: link.orphan(),
    lambda link, _draws: link.freeze(),
    lambda link, _draws: link.unreachable(),
    lambda link, draws: link.stall(draws.choice((TO_TARGET, FROM_TARGET))),
    lambda link, draws: link.delay(draws.uniform(0.001, 0.05)),
    _cut_soon,
)


@pytest.fixture
def ring(site: Any, bridge: Any, network: FaultyNetwork) -> Ring:
    """The ring, its bridges up."""
    return Ring(site, bridge, network)


@pytest.mark.slow
def test_a_ring_over_a_bad_network(ring: Ring, paho: Any, patiently: Any) -> None:
    """Nothing comes twice while links fail; afterwards the ring is whole, and all arrives once everywhere."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    patiently(ring.whole, "all bridges in sync")
    ports = ring.ports()
    heard = [paho(port, "heard") for port in ports]
    for client in heard:
        client.subscribe("#")
    speakers = [paho(port, "speaks") for port in ports]
    trouble = Trouble(ring.links, random.Random(seed))
    ends = time.monotonic() + (30 if LONG else 6)
    number = 0
    while time.monotonic() < ends:
        for index, client in enumerate(speakers):
            client.client.publish(f"during/{index}", str(number))
        number += 1
        time.sleep(0.01)
        if number % 80 == 0:
            assert_balanced(ring)
    trouble.stop()
    print(f"{trouble.count} faults, {number} messages in each VPN")
    began = time.monotonic()
    converged(ring)
    print(f"whole again after {time.monotonic() - began:.1f} s")
    for index, client in enumerate(speakers):
        client.publish(f"mark/{index}")
    for client in heard:
        found = until_marks(client)
        assert len(found) == len(set(found))
        for index in range(len(RING)):
            of_one = [int(payload) for topic, payload in found if topic == f"during/{index}"]
            assert of_one
            if client is heard[index]:
                assert of_one == list(range(number))
    # From here on the network is good: each message once in each VPN.
    wanted = []
    for turn in range(40):
        for index, client in enumerate(speakers):
            client.publish(f"after/{index}", str(turn).encode())
            wanted.append((f"after/{index}", str(turn).encode()))
    for client in heard:
        found = [client.next() for _ in wanted]
        assert sorted(found) == sorted(wanted)
        for index in range(len(RING)):
            turns = [int(payload) for topic, payload in found if topic == f"after/{index}"]
            assert turns == list(range(40))
    # Nothing goes round for ever: what counts messages stands still.
    assert_stands_still(ring)
    assert all(client.arrived.empty() for client in heard)
    assert_balanced(ring)
    for router in ring.routers.values():
        assert not router.told("Traceback"), router.err


def assert_stands_still(ring: Ring) -> None:
    """The last copies of what was published are discarded soon, and then no message moves for a second."""
    deadline = time.monotonic() + 60
    before = -1
    while ring.messages() != before:
        assert time.monotonic() < deadline, "messages still move"
        before = ring.messages()
        time.sleep(1.0)


def assert_balanced(ring: Ring) -> None:
    """What came was delivered, discarded or is in flight; what was offered was sent, discarded or is in flight."""
    for row in ring.rows():
        assert (row["rxImbalance"], row["txImbalance"]) == (0, 0), row
        received = row["deliveredRxMsgCount"] + sum(row["discardedRx"].values())
        assert row["dataRxMsgCount"] == received + row["rxInFlightMsgCount"], row
        sent = row["dataTxMsgCount"] + sum(row["discardedTx"].values())
        assert row["offeredTxMsgCount"] == sent + row["txInFlightMsgCount"], row


def converged(ring: Ring) -> None:
    """Wait until the ring is whole; a bridge that flapped waits up to half a minute before it tries.

    A half-open link looks whole until three heartbeats are missed, so it has to stay whole for longer.
    """
    deadline = time.monotonic() + 60
    since = time.monotonic()
    failures = -1
    while time.monotonic() - since < 10 * HEARTBEAT_MS / 1000:
        rows = ring.rows()
        assert time.monotonic() < deadline, [
            (row["bridgeName"], row["inboundState"], row["inboundFailureReason"]) for row in rows
        ]
        now = sum(row["failureCount"] for row in rows)
        if not ring.whole() or now != failures:
            since = time.monotonic()
        failures = now
        time.sleep(0.05)


def until_marks(client: Any) -> list[tuple[str, bytes]]:
    """What `client` heard before the last of the marks that each VPN sent, without the marks."""
    found: list[tuple[str, bytes]] = []
    marks: list[str] = []
    while len(marks) < len(RING):
        topic, payload = client.next()
        if topic.startswith("mark/"):
            marks.append(topic)
        else:
            found.append((topic, payload))
    assert len(set(marks)) == len(RING)
    return found
