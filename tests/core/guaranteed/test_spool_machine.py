"""Promises COMMIT, ALLORNONE and BALANCE: a spool against a simple model, with crashes at every boundary."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vpnrouter import limits
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, REJECTED, RELEASED
from vpnrouter.core.guaranteed.unit_of_work import REJECTED as NACK
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import Sink, SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.spool.store import Batch

PLACE = Path(__file__).parent / "spool_world.py"
SPEC = importlib.util.spec_from_file_location("spool_world_of_machine", PLACE)
assert SPEC is not None
assert SPEC.loader is not None
KIT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(KIT)

NAMES = ("p", "q", "r", "dead")
TOPICS = {"one": ("p",), "two": ("p", "q"), "three": ("q", "r"), "all": ("p", "q", "r")}


class SpoolMachine(RuleBasedStateMachine):
    """Payloads are numbers that rise. The model knows of each where it must be, and where it may be.

    `must[name]` are messages whose publisher was told that they are safe, and that nothing has taken away
    from there since; `gone[name]` those whose leaving was synced. In between lies what is on its way.
    """

    @initialize(partitions=st.booleans())
    def begin(self, *, partitions: bool) -> None:
        """Four queues; one is small and rejects, one has priorities or partitions."""
        self.world: SpoolWorld = KIT.SpoolWorld()
        world = self.world
        world.endpoint("p", "one", "two", "all", max_redelivery_count=2, dead_msg_queue="dead")
        world.endpoint("q", "two", "three", "all", max_spooled_msg_count=6, reject_behavior=ALWAYS)
        if partitions:
            world.endpoint("r", "three", "all", exclusive=False, partition_count=3)
        else:
            world.endpoint("r", "three", "all", exclusive=False)
        world.endpoint("dead")
        self.flying: Batch | None = None
        self.number = 0
        self.must: dict[str, set[bytes]] = {name: set() for name in NAMES}
        self.gone: dict[str, set[bytes]] = {name: set() for name in NAMES}
        # Publishes and leavings by the unit that they are in: the one built, and the one in flight.
        self.asked: list[list[tuple[str, bytes]]] = [[], []]
        self.left: list[list[tuple[str, bytes]]] = [[], []]
        # What ever left an endpoint, for whatever reason, and from where to the dead message queue.
        self.ever_left: dict[str, set[bytes]] = {name: set() for name in NAMES}
        self.moves: set[tuple[str, bytes]] = set()
        self.topics: dict[bytes, str] = {}
        self.tokens: dict[int, tuple[str, bytes]] = {}
        self.flows: dict[str, list[Sink]] = {name: [] for name in NAMES}
        self.bind_all()

    def bind_all(self) -> None:
        """A consumer for each but the dead message queue."""
        for name in NAMES[:3]:
            self.flows[name].append(self.world.bind(self.queue(name), window=3))

    # -- helpers ---------------------------------------------------------------------------------

    def queue(self, name: str) -> Endpoint:
        """The living endpoint of this name."""
        endpoint = self.world.vpn.queue(name)
        assert endpoint is not None
        return endpoint

    def leaves(self, name: str, payload: bytes) -> None:
        """From now on the message need not be there; when the unit is synced it must not."""
        self.must[name].discard(payload)
        self.ever_left[name].add(payload)
        self.left[0].append((name, payload))

    def hear(self) -> None:
        """What publishers were told becomes true for the model."""
        for token, outcome, _ in self.world.told.heard:
            topic, payload = self.tokens.pop(token)
            if outcome == SPOOLED:
                for name in TOPICS[topic]:
                    if (name, payload) not in self.left[0] + self.left[1] and (
                        payload not in self.gone[name]
                    ):
                        self.must[name].add(payload)
            else:
                assert outcome == NACK
        self.world.told.heard.clear()

    def synced(self) -> None:
        """The unit in flight is in the store."""
        for name, payload in self.left[1]:
            self.gone[name].add(payload)
        self.left[1] = []

    def contents(self, name: str) -> dict[bytes, int]:
        """What an endpoint holds, by payload, but for what is on its way."""
        endpoint = self.queue(name)
        found: dict[bytes, int] = {}
        for pool in endpoint.waiting + endpoint.order.unsorted:
            for message_id in pool.after(0, 10_000):
                found[self.world.spool.message(message_id).payload] = message_id
        for flow in endpoint.holders():
            for message_id, message in flow.unacked.items():
                found[message.payload] = message_id
        return found

    # -- what happens ----------------------------------------------------------------------------

    @rule(topic=st.sampled_from(sorted(TOPICS)), count=st.integers(1, 4), key=st.integers(0, 5))
    def publish(self, topic: str, count: int, key: int) -> None:
        """A publisher sends some messages."""
        for _ in range(count):
            self.number += 1
            payload = b"%06d" % self.number
            full = self.queue("q").spooled_count >= 6 and "q" in TOPICS[topic]
            outcome = self.world.publish(topic, payload, JMSXGroupID=f"k{key}")
            assert outcome == (NACK if full else SPOOLED)
            self.tokens[self.world.token] = (topic, payload)
            if not full:
                self.topics[payload] = topic

    @rule(name=st.sampled_from(NAMES), window=st.integers(1, 4))
    def bind(self, name: str, window: int) -> None:
        """A consumer comes."""
        if len(self.flows[name]) < 3:
            self.flows[name].append(self.world.bind(self.queue(name), window=window))

    @rule(name=st.sampled_from(NAMES), counts=st.booleans(), spent=st.booleans())
    def unbind(self, name: str, *, counts: bool, spent: bool) -> None:
        """The consumer that came first goes; what it held goes back in slices where the turn is spent."""
        if self.flows[name]:
            flow = self.flows[name].pop(0)
            self.world.context.work = limits.TURN_WORK + 1 if spent else 0
            self.watch(name, lambda: self.queue(name).unbind(flow, counts=counts))

    @rule(name=st.sampled_from(NAMES), allowance=st.integers(0, 4))
    def go_on(self, name: str, allowance: int) -> None:
        """What goes back to a queue goes on in a short turn."""
        for returning in self.queue(name).returning[:1]:
            context = self.world.context
            context.work = 0
            context.allowance = allowance
            self.watch(name, returning.step)
            context.allowance = limits.TURN_WORK

    @rule(
        words=st.lists(
            st.tuples(
                st.integers(0, 11),
                st.sampled_from((ACCEPTED, FAILED, REJECTED, RELEASED)),
                st.booleans(),
            ),
            min_size=1,
            max_size=6,
        ),
        synced=st.booleans(),
    )
    def settle(self, words: list[tuple[int, int, bool]], *, synced: bool) -> None:
        """Consumers say something about some of their messages."""
        if synced:
            self.rounds()
        for which, outcome, newest in words:
            flows = [flow for name in NAMES for flow in self.flows[name] if flow.unacked]
            if flows:
                flow = flows[which % len(flows)]
                ids = list(flow.unacked)
                self._settle_one(flow, ids[-1] if newest else ids[0], outcome)

    def _settle_one(self, flow: Sink, message_id: int, outcome: int) -> None:
        name = flow.endpoint.name
        self.watch(name, lambda: self.queue(name).settle(flow, message_id, outcome))

    def watch(self, name: str, do: Any) -> None:
        """Do something in an endpoint; what it no longer holds then has left it."""
        before = self.contents(name)
        moved_before = self.queue(name).counters.moved
        do()
        lost = set(before) - set(self.contents(name))
        for payload in lost:
            self.leaves(name, payload)
        if lost and self.queue(name).counters.moved - moved_before == len(lost):
            self.moves |= {(name, payload) for payload in lost}
            # It may come there from several endpoints, one after the other.
            again = {("dead", payload) for payload in lost}
            self.gone["dead"] -= lost
            self.left = [[pair for pair in unit if pair not in again] for unit in self.left]

    @rule(name=st.sampled_from(NAMES), oldest=st.booleans())
    def delete_one(self, name: str, *, oldest: bool) -> None:
        """Management deletes a message."""
        waiting = sorted(self.contents(name).items())
        if waiting:
            _, message_id = waiting[0 if oldest else -1]
            self.watch(name, lambda: self.queue(name).delete_message(message_id))

    @rule(name=st.sampled_from(NAMES[:3]))
    def move_one(self, name: str) -> None:
        """Management moves a message to the dead message queue."""
        waiting = sorted(self.contents(name).items())
        if waiting:
            self.watch(
                name, lambda: self.queue(name).move_message(waiting[0][1], self.queue("dead"))
            )

    @rule(name=st.sampled_from(NAMES))
    def purge_all(self, name: str) -> None:
        """Management purges an endpoint."""
        before = set(self.contents(name))
        self.queue(name).purge()
        for payload in before - set(self.contents(name)):
            # It leaves the store with the rounds to come: until then a crash may bring it back.
            self.must[name].discard(payload)
            self.ever_left[name].add(payload)

    # -- commits and crashes ---------------------------------------------------------------------

    @precondition(lambda self: self.flying is None)
    @rule()
    def seal(self) -> None:
        """A round ends."""
        self.flying = self.world.seal()
        if self.flying is not None:
            assert not self.left[1]
            self.left = [[], self.left[0]]
        self.hear()

    @precondition(lambda self: self.flying is not None)
    @rule()
    def commit(self) -> None:
        """The unit in flight is synced, and the core is told."""
        assert self.flying is not None
        self.world.store.commit(self.flying)
        self.flying = None
        self.synced()
        self.world.spool.committed()
        self.hear()

    @rule()
    def rounds(self) -> None:
        """Time for everything to be synced."""
        for _ in range(3):
            if self.flying is not None:
                self.commit()
            self.seal()
        if self.flying is not None:
            self.commit()

    @rule(kept=st.booleans(), consumers=st.booleans())
    def crash(self, *, kept: bool, consumers: bool) -> None:
        """The router dies; the unit in flight may be in the store or not, and nobody is told."""
        if self.flying is not None and kept:
            self.world.store.commit(self.flying)
            self.synced()
        self.flying = None
        self.left = [[], []]
        self.tokens.clear()
        self.world.told.heard.clear()
        self.flows = {name: [] for name in NAMES}
        self.world.restart()
        for name in NAMES:
            found = self.contents(name)
            assert self.must[name] <= set(found), "what was acknowledged is lost"
            assert not self.gone[name] & set(found), "what was settled and synced is back"
            # What is there is safe from now on.
            self.must[name] = set(found)
        self.all_or_none()
        if consumers:
            self.bind_all()

    def all_or_none(self) -> None:
        """A message is in all of its endpoints, or in none; what moved is at one end, or was taken there."""
        there = {name: set(self.contents(name)) for name in NAMES}
        for payload, topic in self.topics.items():
            names = [name for name in TOPICS[topic] if payload not in self.ever_left[name]]
            found = [name for name in names if payload in there[name]]
            assert found in ([], names), (payload, found, names)
        for name, payload in list(self.moves):
            if payload in there[name]:
                self.moves.discard((name, payload))
            else:
                assert payload in there["dead"] | self.ever_left["dead"], payload

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def balanced(self) -> None:
        """Nothing is unaccounted for, and everything that must be there is."""
        if hasattr(self, "world"):
            self.world.check()

    @invariant()
    def ordered(self) -> None:
        """A consumer holds rising ids of each key, and what waits for it is newer than what it got fresh."""
        if not hasattr(self, "world"):
            return
        for flow in self.flows["p"]:
            fresh = [message_id for message_id, _, count in flow.sent if count == 0]
            assert fresh == sorted(fresh)

    def teardown(self) -> None:
        """In the end everything can be had, once, in order."""
        if not hasattr(self, "world"):
            return
        if self.flying is not None:
            self.world.store.commit(self.flying)
            self.world.spool.committed()
        for name in NAMES:
            for flow in self.flows[name]:
                self.queue(name).unbind(flow, counts=False)
            # One queue after the other: what is given up for good moves to another one.
            while self.queue(name).returning:
                self.go_on(name, 4)
        self.world.commit()
        self.hear()
        for name in NAMES:
            endpoint = self.queue(name)
            expected = self.contents(name)
            assert self.must[name] <= set(expected)
            flow = self.world.bind(endpoint)
            self.world.commit()
            got: list[Message] = list(flow.unacked.values())
            assert {message.payload for message in got} == set(expected)
            assert len(got) == len(expected) or name == "dead"
            if name in {"p", "q"}:
                payloads = [message.payload for message in got]
                assert payloads == sorted(payloads), "first in, first out"
            flow.settle_all()
        self.world.commit()
        self.world.check()
        assert self.world.spool.usage == 0
        assert len(self.world.spool.ledger) == 0


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
