"""A router whose memory is measured while the clients of a plan are at work, and what counts as growth.

A finding is memory beyond the bound while the clients are there, many times what they sent, or memory that is not
given back: the same plan, run again, leaves more behind each time.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, final

from fuzz.growth.talking import Enough
from fuzz.whole_router import Finding, HonestClient, WholeRouter
from vpnrouter import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.growth.plans import Plan, Talker

MIB: Final = 1 << 20

CLIENT_BYTES: Final = 64 * MIB
"""What the router may hold for one connection."""

VPN_BYTES: Final = 256 * MIB
"""What it may hold for all connections of one message VPN."""

RETAINED_MEGABYTES: Final = 30
"""Megabytes of retained messages that the message VPN of the clients may have."""

RETAINED: Final = "vpnrouter_msg_vpn_retained_bytes"

KEPT_BYTES: Final = RETAINED_MEGABYTES * 1_000_000 + limits.ROUTE_CACHE_BYTES
"""What a message VPN keeps for itself, within bounds of its own, when its clients have gone. It is not theirs."""

LEFT_BYTES: Final = 24 * MIB
"""What may be left when all have gone: the pools of the memory allocator, and caches that are not full yet."""

AGAIN_BYTES: Final = 6 * MIB
"""What the same plan may add to that each time that it runs again: pools and caches are filled once, a leak grows."""

RUNS: Final = 5
"""Runs after which a plan that left more behind each time counts as a leak."""

FACTOR: Final = 50
"""Bytes of memory for each byte sent."""

FACTOR_FROM: Final = 16 * MIB
"""Growth from which the factor counts."""

PLAN_BYTES: Final = 200 * MIB
"""Bytes that the clients of one plan send at most."""

PLAN_S: Final = 8.0
"""Seconds that they have."""

RISES_S: Final = 3.0
"""Seconds in which the memory goes up behind them."""

SETTLES_S: Final = 6.0
"""Seconds in which the memory goes down after them."""

PLANS_OF_ROUTER: Final = 40
"""Plans after which a router with an empty spool starts: what durable subscriptions and sessions leave adds up."""

CONFIG: Final = """\
router: {name: fuzzed, data_dir: ./data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: watch}
  - {protocol: ws, bind: "127.0.0.1:0"}
  - {protocol: amqp, bind: "127.0.0.1:0"}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  watch:
    authentication: {basic: {enabled: false}}
    queues: {fill: {}}
  mesh:
    authentication: {basic: {enabled: false}}
    max_msg_spool_usage: 500
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    queues: {many: {}, large: {}}
    bridges: {BRIDGES}
  blue:
    mqtt: {retain_max_memory: {RETAINED}}
    max_msg_spool_usage: 500
    acl_profiles:
      rules:
        client_connect: {default_action: allow}
        publish_topic: {default_action: allow, exceptions: ["secret/>"]}
        subscribe_topic: {default_action: allow, exceptions: ["secret/>"]}
    client_usernames:
      u0: {password: u0}
      u1: {password: u1, acl_profile: rules}
      u2: {password: u2}
      u3: {password: u3, acl_profile: rules}
    queues:
      many: {access_type: non-exclusive}
      large: {access_type: non-exclusive}
      topics: {subscriptions: ["q/>"], access_type: non-exclusive}
    topic_endpoints: {te: {permission: modify-topic}}
"""


DOORS: Final = 4
"""Bridges of the router, each of which dials a socket of the clients."""


def configuration(ports: list[int]) -> str:
    """The router's configuration, with a bridge to each port."""
    bridges = "".join(
        f"""
      b{index}:
        remote_authentication: {{basic: {{client_username: peer, password: secret}}}}
        remote_connection: {{retry_delay: 1}}
        on_reject: {("block", "park", "skip", "block")[index % 4]}
        remote_msg_vpns: [{{name: v{index}, location: "127.0.0.1:{port}", queue_binding: q,
                           compressed_data_enabled: true}}]
        remote_subscriptions: [{{topic: "t/>"}}, {{topic: ">"}}]"""
        for index, port in enumerate(ports)
    )
    return CONFIG.replace("{BRIDGES}", bridges).replace("{RETAINED}", str(RETAINED_MEGABYTES))


def resident(pid: int) -> int:
    """Bytes of anonymous memory of a process: what it holds, without files and code."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


@final
class Meter:
    """Samples the memory of a process in a thread of its own."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self.now = self.most = self.base = resident(pid)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            with contextlib.suppress(OSError):
                self.now = resident(self._pid)
                self.most = max(self.most, self.now)

    def end(self) -> None:
        """Sample no more."""
        self._ended.set()
        self._thread.join()

    def rise(self) -> None:
        """Wait until the memory grows no more, at most for a while: the router may be behind the clients."""
        ends, most, since = time.monotonic() + RISES_S, self.most, time.monotonic()
        while time.monotonic() < min(ends, since + 0.5):
            time.sleep(0.02)
            if self.most > most + 100_000:
                most, since = self.most, time.monotonic()

    def settle(self, good: int) -> int:
        """Wait until the memory is at most `good`, or goes down no more; returns it."""
        least, since = resident(self._pid), time.monotonic()
        ends = since + SETTLES_S
        while least > good and time.monotonic() < min(ends, since + 1.0):
            time.sleep(0.05)
            now = resident(self._pid)
            if now < least - 100_000:
                since = time.monotonic()
            least = min(least, now)
        return least


class Measured(NamedTuple):
    """Bytes that one run of a plan sent, by how many the memory grew meanwhile, and what was left of that.

    `kept` of them were retained messages, which are the message VPN's. `waited` are the seconds that the client of
    another message VPN waited at worst.
    """

    sent: int
    growth: int
    left: int
    waited: float = 0.0
    kept: int = 0

    def text(self) -> str:
        """For people."""
        return (
            f"{self.sent / MIB:.1f} MiB sent, {self.growth / MIB:.0f} MiB held, "
            f"{self.left / MIB:.0f} MiB left, another waited {self.waited:.2f} s"
        )


class Verdict(NamedTuple):
    """What is wrong with a plan (`kind` is empty where nothing is), and its runs."""

    kind: str
    runs: list[Measured]

    def text(self) -> str:
        """For people."""
        return self.kind + "; ".join(("", *[run.text() for run in self.runs]))[1:]


def verdict(plan: Plan, run: Callable[[], Measured]) -> Verdict:
    """Run a plan, and again where that tells a growth of its own from what earlier plans still cause.

    A store that merges what a plan before has written grows by tens of megabytes, once.
    """
    runs = [run()]
    if _excess(plan, runs[0]):
        runs.append(run())
        kind = _excess(plan, runs[1])
        if kind:
            return Verdict(kind, runs)
    while runs[-1].left > LEFT_BYTES:
        if len(runs) >= RUNS:
            return Verdict("gives less back each time", runs)
        runs.append(run())
        if runs[-1].left < runs[-2].left + AGAIN_BYTES:
            break
    return Verdict("", runs)


def _excess(plan: Plan, found: Measured) -> str:
    """Return which bound the growth of one run is beyond, "" for none."""
    bound = CLIENT_BYTES if plan.clients == 1 else VPN_BYTES
    if found.growth - max(found.kept, min(max(found.left, 0), KEPT_BYTES)) > bound:
        return f"holds more than {bound // MIB} MiB"
    if found.growth > max(FACTOR_FROM, FACTOR * found.sent):
        return f"holds more than {FACTOR} times what was sent"
    return ""


@final
class Victim:
    """A client of another message VPN that publishes to itself all the time."""

    def __init__(self, router: WholeRouter) -> None:
        self._router = router
        self._ended = threading.Event()
        self.worst = 0.0
        self.failure: Finding | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        client = HonestClient(self._router, 1)
        try:
            client.served()
            while not self._ended.wait(0.02):
                self.worst = max(self.worst, client.served())
        except Finding as finding:
            self.failure = finding
        except OSError as error:
            self.failure = Finding(f"an honest client was not served: {error!r}")
        finally:
            client.lost()

    def end(self) -> float:
        """The worst time in seconds. Raises Finding where it was not served."""
        self._ended.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        return self.worst


@final
class Bench:
    """Routers one after the other, in which plans are run. `talker` makes the client with this number.

    `program` is what runs in the router's place, as for WholeRouter: no caches are filled then, and nobody else served.
    """

    def __init__(
        self,
        folder: Path,
        talker: Callable[[Plan, Bench, WholeRouter, int, str, Callable[[int], None]], Talker],
        program: str = "",
    ) -> None:
        self._program = program
        self._folder = folder
        self._talker = talker
        self._stack = contextlib.ExitStack()
        self._router: WholeRouter | None = None
        self._doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(DOORS)]
        for door in self._doors:
            door.setblocking(False)
        self._runs = 0
        self._spoiled = False
        self.worst = 0.0
        self.sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for door in self._doors:
            door.close()

    @property
    def doors(self) -> list[socket.socket]:
        """Where the router's bridges dial."""
        return self._doors

    def _ready(self) -> WholeRouter:
        """The router, started anew with an empty spool where that is due."""
        if self._router is not None and self._runs < PLANS_OF_ROUTER and not self._spoiled:
            return self._router
        self._stack.close()
        shutil.rmtree(self._folder / "data", ignore_errors=True)
        ports = [int(door.getsockname()[1]) for door in self._doors]
        text = configuration(ports)
        router = WholeRouter(self._folder, text)
        if self._program:
            router = WholeRouter(self._folder, text, self._program)
        self._stack.enter_context(router)
        self._runs, self._spoiled = 0, False
        self._router = router
        if not self._program:
            warm_up(router)
        return router

    def judge(self, plan: Plan) -> Verdict:
        """Run a plan as often as it takes. Raises Finding where the router does worse than grow."""
        router = self._ready()
        self._runs += 1
        base = resident(router.pid)
        found = verdict(plan, lambda: self._run(router, plan, base))
        if found.kind or found.runs[-1].left > LEFT_BYTES:
            self._spoiled = True
        return found

    def _run(self, router: WholeRouter, plan: Plan, base: int) -> Measured:
        bound = CLIENT_BYTES if plan.clients == 1 else VPN_BYTES
        meter = Meter(router.pid)
        start = meter.base
        victim = None if self._program else Victim(router)
        ends = time.monotonic() + PLAN_S
        sent_before: dict[int, int] = {}

        def watch(sent: int) -> None:
            if time.monotonic() > ends or meter.most - start > bound or sent > PLAN_BYTES:
                raise Enough

        talkers = {
            number: self._talker(plan, self, router, number, f"p{self._runs}c{number}", watch)
            for number in range(plan.clients)
        }
        try:
            for step in plan.steps:
                watch(0)
                with contextlib.suppress(OSError):
                    talkers[step.client].do(step.act, step.values)
                sent_before[step.client] = talkers[step.client].sent
                if sum(sent_before.values()) > PLAN_BYTES:
                    break
            meter.rise()
        except Enough:
            pass
        finally:
            kept = 0 if self._program else router.figure(RETAINED, "blue")
            for talker in talkers.values():
                talker.close()
        growth = meter.most - start
        left = meter.settle(base + LEFT_BYTES // 2) - base
        meter.end()
        router.examine()
        waited = 0.0 if victim is None else victim.end()
        self.worst = max(self.worst, waited)
        sent = sum(talker.sent for talker in talkers.values())
        self.sent += sent
        return Measured(sent, growth, max(left, 0), waited, kept)


def warm_up(router: WholeRouter) -> None:
    """Fill the caches that all message VPNs share, and the queues that plans take from."""
    _publish(router, 1, "watch", "$queue/fill", 1_000_000, 80)
    for vpn in ("blue", "mesh"):
        _publish(router, 0, vpn, "$queue/many", 100, 1_000)
        _publish(router, 0, vpn, "$queue/large", 1_000_000, 10)
    HonestClient(router, 1).served()


def _publish(
    router: WholeRouter, listener: int, vpn: str, topic: str, size: int, count: int
) -> None:
    """Publish persistent messages, and wait until the router has closed behind them."""
    client = HonestClient(router, listener, "warm", topic, f"u0@{vpn}")
    client.publishes(count, b"f" * size)
    client.lost()
