"""Sends the messages of a link in batches, each one transaction of the provider (AMQP 1.0, part 4).

One transaction is filled while the one before is being committed, so that neither side waits for the other. Where the
provider does not commit one, that and the one behind it go back to the queue, in order, and each of their messages is
sent by itself then: the one that was at fault is refused, and the others cross. So is, once-and-only-once, what may
have been sent before: a provider knows a message again that comes alone, and fails a transaction for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.amqp.link import UNSETTLED, OutgoingLink, said
from vpnrouter.core.amqp.outcomes import is_outcome
from vpnrouter.wire.amqp import performatives, types
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Flow,
    Modified,
    Rejected,
    Source,
    TransactionalState,
)
from vpnrouter.wire.amqp.transfers import cut_transfer, handle_bytes
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.sender import AmqpOutwardFlow, Sender
    from vpnrouter.connectors.provider import Provider

LOCAL: Final = "amqp:local-transactions"
"""What is asked of a coordinator (4.5.6)."""

DEFAULT_SIZE: Final = 100
"""Messages of a batch, where the configuration does not say how many."""

DECLARE: Final = -1
COMMIT: Final = -2
ROLL_BACK: Final = -3
"""What a coordinator was asked for, in place of the spool's id of a message."""

MOST_BYTES: Final = limits.AMQP_TRANSACTION_BYTES // 2
"""Of one batch: one more is committed meanwhile, and both wait in memory."""

OF_TRANSACTIONS: Final = "amqp:transaction:"
"""Begins conditions that say of a transaction, not of a message, that something is wrong."""

TXN_ID_BYTES: Final = 128
"""Bytes that an id of a transaction may have: by 4.5.2 it has 32 at most, and 36 at Artemis."""

ANSWER_WORK: Final = 2
"""What it costs to settle a message of a batch, in parts of a turn (TurnContext.work)."""

_VALUE: Final = b"\x00\x53\x77"
_DISCHARGE_CODE: Final = 0x32


@final
class Control(OutgoingLink):
    """The link to the provider's coordinator, for the transactions of one sender. `granted_to_us`: it is there."""

    __slots__ = ("_batches", "granted_to_us")

    def __init__(self, batches: Batches, handle: int) -> None:
        sender = batches.sender
        super().__init__(sender.session, f"{sender.name}/transactions", handle)
        self._batches = batches
        self.granted_to_us = False

    @override
    def request(self) -> Attach:
        return Attach(
            self.name,
            self.handle,
            False,
            UNSETTLED,
            0,
            Source(self._batches.sender.link.label),
            Coordinator([Symbol(LOCAL)]),
            initial_delivery_count=0,
        )

    @override
    def granted(self, packet: Attach) -> None:
        if self.over:
            return
        if isinstance(packet.target, Coordinator):
            self.granted_to_us = True
            self._batches.sender.controlled()
        else:
            self.drop()
            self._batches.sender.uncontrolled("the provider has no coordinator of transactions")

    def drop(self) -> None:
        """Detach it: what was begun over it is rolled back (4.3)."""
        if not self.over:
            self.over = True
            self.session.forget(self)
            self.session.say(Detach(self.handle, True))

    @override
    def refused(self, why: str) -> None:
        self.session.forget(self)
        self._batches.sender.uncontrolled(f"the coordinator of transactions: {why}")

    @override
    def flow(self, packet: Flow) -> None:
        self.take_credit(packet)
        self._batches.go_on()
        self.answer(packet)

    def ask(self, request: bytes, kind: int) -> None:
        """Send a request to the coordinator. Its answer is `settled`."""
        session = self.session
        number = session.take_id()
        tag = number.to_bytes(4, "big")
        session.unsettled[number] = (self, kind)
        self.use_credit()
        most = session.client.max_frame
        handle = handle_bytes(self.handle)
        session.transmit(cut_transfer(0, handle, number, False, b"", _VALUE + request, most, tag))

    @override
    def settled(self, message_id: int, state: object, *, done: bool) -> bool:
        if not done and not is_outcome(state) and not isinstance(state, Declared):
            return False
        if message_id == DECLARE:
            self._batches.begun(state)
        elif message_id == COMMIT:
            self._batches.ended(state)
        return True

    @override
    def owed(self, message_id: int) -> tuple[str, int]:
        batches = self._batches
        first = batches.first_going if message_id == COMMIT else 0
        return (batches.sender.link.terms.name if first else ""), first


@final
class Batches:
    """The transactions of `sender`, and the link to the provider's coordinator over which they are asked for."""

    __slots__ = (
        "_apart",
        "_bytes",
        "_declares",
        "_due",
        "_given_up",
        "_going",
        "_ids",
        "_refused",
        "_size",
        "_state",
        "_txn",
        "_wait_ns",
        "control",
        "sender",
    )

    def __init__(self, sender: Sender, handle: int) -> None:
        terms = sender.link.terms
        self.sender = sender
        self.control = Control(self, handle)
        self._size = terms.batch_size or DEFAULT_SIZE
        self._wait_ns = terms.batch_wait_ns
        # The transaction that is filled, b"" for none yet, and how transfers say that they belong to it. It is asked
        # for, or due to be committed.
        self._txn = b""
        self._state = b""
        self._declares = False
        self._due = False
        # Its messages, by the spool's id, with their deliveries, and their bytes; those of the one that is committed.
        self._ids: dict[int, int] = {}
        self._bytes = 0
        self._going: dict[int, int] = {}
        # Which of them the provider refuses, and why.
        self._refused: dict[int, str] = {}
        # Transactions that are to be rolled back.
        self._given_up: list[bytes] = []
        # Messages that are sent by themselves.
        self._apart: set[int] = set()

    @property
    def first_going(self) -> int:
        """The first message of the transaction that is being committed, 0 for none."""
        return next(iter(self._going), 0)

    @property
    def starves(self) -> bool:
        """Whether the coordinator takes no request."""
        return self.control.credit <= 0 and not self._txn

    def holds(self, message_id: int) -> bool:
        """Return whether a message is in a transaction."""
        return message_id in self._ids or message_id in self._going

    # -- what is sent ----------------------------------------------------------------------------

    def room(self, flow: AmqpOutwardFlow) -> int:
        """Return how many messages more may be sent; where there is no transaction for them, one is asked for."""
        if self._txn:
            return self._most(flow) - len(self._ids)
        self._declare()
        return 0

    def _most(self, flow: AmqpOutwardFlow) -> int:
        bound = flow.endpoint.settings.max_delivered_unacked_msgs_per_flow
        return min(self._size, flow.window, bound)

    def state_for(self, flow: AmqpOutwardFlow, message_id: int) -> bytes:
        """Return the state that a message is sent with, b"" where it goes by itself."""
        if message_id in self._apart:
            return b""
        endpoint = flow.endpoint
        sent = message_id in endpoint.redeliveries or message_id <= endpoint.marked
        if sent and self.sender.link.terms.qos == 2:
            return b""
        return self._state

    def sent(self, message_id: int, number: int, size: int) -> None:
        """Note that a message was sent in the transaction, as the delivery `number`."""
        self._ids[message_id] = number
        self._bytes += size
        sender = self.sender
        flow = sender.flow_out
        full = flow is None or len(self._ids) >= self._most(flow)
        if full or self._bytes >= MOST_BYTES or sender.credit <= 0:
            self.hurry()
        elif self._wait_ns >= 0 and len(self._ids) == 1:
            sender.session.client.wait_for_batch(sender, self._wait_ns)

    def hurry(self) -> None:
        """Commit what there is as soon as the transaction before is."""
        if self._ids:
            self._due = True
            self.go_on()

    def go_on(self) -> None:
        """Ask the coordinator for what is due, as far as it takes requests."""
        control = self.control
        while self._given_up and control.credit > 0:
            control.ask(_discharge(self._given_up.pop(0), fail=True), ROLL_BACK)
        if self._due and not self._going and control.credit > 0:
            self._commit()

    def _declare(self) -> None:
        control = self.control
        if not self._declares and not control.over and control.credit > 0:
            self._declares = True
            control.ask(performatives.write(Declare()), DECLARE)

    def _commit(self) -> None:
        sender = self.sender
        flow = sender.flow_out
        txn = self._txn
        self._going = self._ids
        self._empty()
        held = len(self._going)
        if flow is not None and flow.endpoint.spooled_count > held and self.control.credit > 1:
            # The next one is there before this one is committed.
            self._declare()
        self.control.ask(_discharge(txn, fail=False), COMMIT)
        if flow is not None:
            flow.endpoint.wake()

    def _empty(self) -> None:
        self._txn = b""
        self._state = b""
        self._due = False
        self._ids = {}
        self._bytes = 0
        self.sender.session.client.waits_no_more(self.sender)

    # -- what the coordinator says ---------------------------------------------------------------

    def begun(self, state: object) -> None:
        """A transaction has begun, or the provider begins none."""
        self._declares = False
        if not isinstance(state, Declared) or not 0 < len(state.txn_id) <= TXN_ID_BYTES:
            told = (
                why_not(state, self.sender.session.client)
                if is_outcome(state)
                else "its answer is none"
            )
            self.control.drop()
            self.sender.uncontrolled(f"no transaction begins: {told}")
            return
        self._txn = state.txn_id
        self._state = performatives.write(TransactionalState(state.txn_id))
        self._wake()

    def ended(self, state: object) -> None:
        """The transaction is committed, or rolled back."""
        if isinstance(state, Accepted):
            self._committed()
            return
        # What is filled goes with it, so that the order stays.
        going = self._take_going()
        self._give_back({**going, **self.abandon()}, why_not(state, self.sender.session.client))

    def _committed(self) -> None:
        sender = self.sender
        link, flow = sender.link, sender.flow_out
        going = self._take_going()
        refused = self._take_refused(going)
        if flow is not None:
            for message_id in going:
                if message_id in refused:
                    link.refused(flow, message_id, refused[message_id])
                else:
                    link.accepted(flow, message_id)
            sender.fault("ack-received")
        self.go_on()
        self._wake()

    def _take_going(self) -> dict[int, int]:
        """Take out the messages of the transaction that was committed, or was not."""
        going, self._going = self._going, {}
        self._settle(going)
        return going

    def _take_refused(self, ids: dict[int, int]) -> dict[int, str]:
        """Take out which of these messages the provider refuses, and why."""
        refused: dict[int, str] = {}
        for message_id in list(self._refused):
            if message_id in ids:
                refused[message_id] = self._refused.pop(message_id)
        return refused

    def _settle(self, ids: dict[int, int]) -> None:
        """Nothing more is said of deliveries, whether or not it was said before."""
        session = self.sender.session
        session.client.vpn.context.work += len(ids) * ANSWER_WORK
        for number in ids.values():
            session.unsettled.pop(number, None)

    def _give_back(self, ids: dict[int, int], why: str) -> None:
        """Return messages that were not committed to their queue, in order: each is sent by itself next.

        `why` is the reason for all, where the provider refuses no message in particular.
        """
        sender = self.sender
        link, flow = sender.link, sender.flow_out
        refused = self._take_refused(ids)
        if not refused and len(ids) == 1:
            refused = dict.fromkeys(ids, why)
        elif not refused:
            link.counters.refused += 1
        if flow is not None:
            kept = [message_id for message_id in self._apart if flow.endpoint.holds(message_id)]
            self._apart = {*kept, *ids}
            for message_id in ids:
                if message_id in refused:
                    link.refused(flow, message_id, refused[message_id])
                else:
                    link.rolled_back(flow, message_id)
        self._wake()

    def answered(self, message_id: int, state: object, *, done: bool) -> bool:
        """Take what the provider says of a message in a transaction, which holds if that is committed."""
        known = state.outcome if isinstance(state, TransactionalState) else state
        if not is_outcome(known):
            return done
        if isinstance(known, Accepted):
            return True
        why = why_not(known, self.sender.session.client)
        if not _is_of_all(known):
            self._refused[message_id] = why
        if message_id in self._ids:
            # The others are not to be committed without it. What is being committed has nothing to do with it.
            self._give_back(self.abandon(), why)
        return True

    def abandon(self) -> dict[int, int]:
        """Roll back the transaction that is filled; its messages, which are still to be returned to their queue."""
        filled = self._ids
        if filled:
            self._settle(filled)
            self._given_up.append(self._txn)
            self._empty()
            if not self.control.over:
                self.go_on()
        return filled

    def end(self) -> None:
        """The link is over, and with it its transactions."""
        self._empty()
        self._going = {}
        self._refused = {}

    def _wake(self) -> None:
        flow = self.sender.flow_out
        if flow is not None:
            flow.endpoint.wake()


def _is_of_all(state: object) -> bool:
    """Return whether a refusal is one of the whole transaction, and not of the message for which it is told."""
    problem = state.error if isinstance(state, Rejected) else None
    return problem is not None and str(problem.condition).startswith(OF_TRANSACTIONS)


def _discharge(txn: bytes, *, fail: bool) -> bytes:
    """Return the request to end a transaction. Artemis wants `fail` to be said."""
    return types.write(Described(Typed(types.ULONG, _DISCHARGE_CODE), [txn, fail]))


def why_not(state: object, provider: Provider) -> str:
    """Return why a provider has not taken a message, for people."""
    if isinstance(state, Rejected):
        return f"the provider rejected it: {said(state.error, provider)}"
    if isinstance(state, Modified):
        where = " here" if state.undeliverable_here else ""
        return f"the provider could not deliver it{where}"
    return "the provider released it"
