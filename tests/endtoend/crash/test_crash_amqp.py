"""One router with AMQP clients, killed at named points and at random moments.

What was accepted is there, what is settled does not come again, and a transaction happened as a whole or not at all
(COMMIT, ALLORNONE). The short form runs always; `VPNROUTER_LONG=1` kills 100 times at random moments.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any, Final

import pytest

from vpnrouter.server.crash_points import environment_for
from vpnrouter.testing.amqp_clients import AmqpClient, AmqpConsumer, AmqpMover, AmqpProducer
from vpnrouter.testing.history import HistoryEventKind, check, describe

KILLS: Final = 100 if os.environ.get("VPNROUTER_LONG") else 6

POINTS: Final[dict[str, int]] = {
    "publish-accepted": 50,
    "commit-before-write": 30,
    "commit-after-sync": 30,
    "answered": 30,
    "deliver-before-flush": 50,
    "endpoint-settled": 50,
    "transaction-half": 10,
    "recover-during": 1,
}
"""Points that AMQP clients pass, and the passing at which the router dies at the latest."""

CUT: Final = 0.003


class AmqpTraffic:
    """A producer to queue work, a mover from there to queue done in transactions, and a consumer of that."""

    def __init__(self, traffic: Any, alone: Any, stack: ExitStack) -> None:
        self._traffic = traffic
        self.history = traffic.history
        self.producer = AmqpProducer("p", self.history, "queue://work", "work")
        self.mover = AmqpMover("mover", self.history, "work", "done")
        self.consumer = AmqpConsumer("reader", self.history, "done")
        self.clients = []
        for session in (self.producer, self.mover, self.consumer):
            draws = random.Random(traffic.draws.getrandbits(32))
            client = AmqpClient(session, alone.amqp_port, self.history, draws, CUT)
            self.clients.append(stack.enter_context(client))

    def judge(self) -> None:
        """Fail with everything that is wrong."""
        # What the mover takes is judged by what it makes of it.
        found = [each for each in check(self.history) if each.endpoint != "work"]
        seed = f"seed {self._traffic.seed}"
        assert not found, f"{seed}: {describe(found, self.history)}"
        moved = Counter(text.partition("/")[0] for text in self.consumer.delivered)
        twice = [text for text, count in moved.items() if count > 1]
        assert not twice, f"{seed}: moved twice: {twice}"
        accepted = {
            event.message
            for event in self.history.events
            if event.kind is HistoryEventKind.ACKNOWLEDGED and "/" not in event.message
        }
        lost = sorted(accepted - moved.keys())
        assert not lost, f"{seed}: accepted, and not moved: {lost}"
        assert len(accepted) > 100, seed
        assert self.mover.transactions > 20, seed
        assert self.consumer.idle, seed


@pytest.fixture
def document(alone_document: dict[str, Any]) -> dict[str, Any]:
    """A router with an AMQP listener and two queues."""
    blue = alone_document["msg_vpns"]["blue"]
    listeners = [
        *alone_document["listeners"],
        {"protocol": "amqp", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
    ]
    queues = {"work": {}, "done": {}}
    return {"listeners": listeners, "msg_vpns": {"blue": {**blue, "queues": queues}}}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["points", "random"])
def test_kills(
    traffic: Any, place: Any, patiently: Any, document: dict[str, Any], where: str
) -> None:
    """No accepted transfer is lost, no settled delivery comes twice, and no transaction is there by half."""
    alone = place("edge", document)
    alone.start()
    with ExitStack() as stack:
        amqp = AmqpTraffic(traffic, alone, stack)
        patiently(lambda: amqp.mover.transactions > 3, "transactions")
        alone.kill()
        if where == "points":
            for point, most in POINTS.items():
                amqp.history.noted(f"dies at {point}")
                alone.start(environment_for(point, traffic.draws.randint(1, most)))
                alone.dies(point)
        for _ in range(KILLS if where == "random" else 0):
            before = amqp.mover.transactions
            alone.start()
            if traffic.draws.random() < 0.8:
                patiently(lambda: amqp.mover.transactions > before, "a transaction")  # noqa: B023
            time.sleep(traffic.draws.uniform(0.0, 0.4))
            alone.kill()
        alone.start()
        amqp.producer.stopping = True
        patiently(lambda: amqp.producer.done, "all is answered")
        patiently(
            lambda: (
                all(alone.router.queue("blue", one)["msgCount"] == 0 for one in ("work", "done"))
                and amqp.mover.idle
                and amqp.consumer.idle
            ),
            "all is moved and consumed",
        )
        told = [line for client in amqp.clients for line in client.told]
        amqp.judge()
    assert not told
