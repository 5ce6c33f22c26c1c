"""Local transactions of an AMQP connection (AMQP 1.0, part 4): what is sent and settled in one is done together or not.

Messages wait in memory until the client discharges the transaction. Then the selectors of their receivers are
evaluated, in slices where that is much work, and they and the outcomes are put into one unit of the spool, which is
committed as one: after a crash all of it is there, or nothing. Receivers of Direct messages get them behind that.

A transaction ends with the link to the coordinator over which it was declared (4.3), and not with the links over which
messages came or were settled: what was settled over one that ends is held for it (`Endpoint.enlist`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.amqp.errors import error
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.guaranteed.flow import FAILED
from vpnrouter.core.guaranteed.unit_of_work import UNMATCHED, CompletionCallback
from vpnrouter.core.selection import ANSWER_COST, ANSWERED, NO_ANSWERS, Evaluation, HeldWork
from vpnrouter.core.timers import Job
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.wire.amqp import conditions, performatives
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Declare,
    Declared,
    Discharge,
    Disposition,
    Rejected,
    TransactionalState,
)
from vpnrouter.wire.amqp.sections import VALUE, sections

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.connection import AmqpConnection
    from vpnrouter.core.amqp.receiving_link import ReceivingLink
    from vpnrouter.core.amqp.sending_link import AmqpFlow, SendingLink
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.flow import Flow
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.selection import Answers

MESSAGE_COST: Final = 256
"""Bytes that a message or an outcome counts for besides its own."""

TRANSACTION_COST: Final = 1_024
"""Bytes that a transaction takes in which nothing was done yet."""

ROLL_BACK_WORK: Final = 4
"""What it costs to give back what was settled, in parts of a turn (TurnContext.work)."""

NOTED_SHIFT: Final = 4
"""What a walk over outcomes or transactions costs, by their number: so many bits are shifted out of it."""

TOO_LARGE: Final = (
    f"the transaction is too large: it has at most {limits.AMQP_TRANSACTION_MESSAGES:,} messages and outcomes,"
    f" and {limits.AMQP_TRANSACTION_BYTES:,} bytes"
)

Outcome: TypeAlias = tuple[int, bool]
"""What becomes of a message, and whether the client has settled it."""


@final
class Transaction:
    """What was sent and settled in one transaction, declared over `control`.

    `trouble` says why it can only be rolled back, "" normally. `outcomes` are those of deliveries by link and message,
    `held` of those whose links have ended, by who holds them for the transaction. `answers` are those of the selectors
    of its receivers, by message, which are found at the commit. `kept` says then which messages an endpoint matches.
    """

    __slots__ = (
        "_back",
        "_connection",
        "_gives_back",
        "answers",
        "control",
        "count",
        "held",
        "kept",
        "links",
        "messages",
        "outcomes",
        "size",
        "tags",
        "trouble",
    )

    def __init__(self, connection: AmqpConnection, control: ReceivingLink) -> None:
        self._connection = connection
        self.control = control
        self.messages: list[Message] = []
        self.answers: dict[Message, Answers] = {}
        self.links: list[ReceivingLink] = []
        # Of each message the tag by which it is to be known again, b"" for none.
        self.tags: list[bytes] = []
        self.kept: list[bool] = []
        # What is said of a delivery last holds.
        self.outcomes: dict[SendingLink, dict[int, Outcome]] = {}
        self.held: dict[Flow, dict[int, Outcome]] = {}
        # What is still to be given back, the next one at the end.
        self._back: list[tuple[SendingLink | None, Flow | None, int]] = []
        self._gives_back = False
        self.size = 0
        self.count = 0
        self.trouble = ""

    def has_room(self, size: int) -> bool:
        """Count one more message or outcome; False where the transaction, or all of the client's, become too large."""
        size += MESSAGE_COST
        if (
            self.size + size > limits.AMQP_TRANSACTION_BYTES
            or self.count >= limits.AMQP_TRANSACTION_MESSAGES
        ):
            self.trouble = TOO_LARGE
            return False
        if not self.keep(size):
            return False
        self.count += 1
        return True

    def keep(self, size: int) -> bool:
        """Count bytes in the client's account; False, and there is trouble, where it has no room for them."""
        if not self._connection.take(size):
            self.trouble = "the transactions of the client are too large"
            return False
        self.size += size
        return True

    def add(self, link: SendingLink, message_id: int, outcome: Outcome) -> bool:
        """Take the outcome of a delivery; False where there is no room for it."""
        known = self.outcomes.get(link)
        if known is None:
            known = {}
            self.outcomes[link] = known
        if message_id not in known and not self.has_room(0):
            return False
        known[message_id] = outcome
        link.enlisted = True
        return True

    def outlast(self, link: SendingLink, flow: AmqpFlow) -> None:
        """Hold what was settled over a link that ends; what has left it before spoils the transaction."""
        outcomes = self.outcomes.pop(link, None)
        if not outcomes or flow.browsing:
            return
        there = [number for number in outcomes if number in flow.unacked]
        if len(there) < len(outcomes):
            self.trouble = self.trouble or GONE_BACK
        size = sum([flow.unacked[number].size for number in there])
        if not there or not self.keep(size):
            return
        self._connection.context.work += len(there) >> 2
        self.held[flow.endpoint.enlist(flow, there)] = outcomes

    def settle(self) -> None:
        """Settle all deliveries as the client has said."""
        for link, outcomes in self.outcomes.items():
            for message_id, (outcome, _) in outcomes.items():
                link.settle_as(message_id, outcome)
        for holder, outcomes in self.held.items():
            for message_id, (outcome, _) in outcomes.items():
                holder.endpoint.settle(holder, message_id, outcome)
            holder.endpoint.discharged(holder)
        self.held = {}

    def _note_back(self) -> None:
        """Note what is to be given back: what was settled. What was not settled the client still has."""
        self._gives_back = True
        for holder, outcomes in self.held.items():
            self._back += [(None, holder, number) for number in outcomes]
        for link, outcomes in self.outcomes.items():
            self._back += [(link, None, number) for number, one in outcomes.items() if one[1]]
        self._back.reverse()
        self._connection.context.work += len(self._back) >> NOTED_SHIFT
        self.outcomes = {}

    def roll_back(self) -> bool:
        """Give back until this turn has done enough, in the order in which it was settled; True when all is done."""
        context = self._connection.context
        if not self._gives_back:
            if context.turn_spent:
                return False
            self._note_back()
        back = self._back
        while back:
            if context.turn_spent:
                return False
            context.work += ROLL_BACK_WORK
            link, holder, number = back.pop()
            if link is not None:
                link.settle_as(number, FAILED)
            elif holder is not None:
                holder.endpoint.settle(holder, number, FAILED)
        for holder in self.held:
            holder.endpoint.discharged(holder)
        self.held = {}
        self.end()
        return True

    def end(self) -> None:
        """Give back the memory that it takes. A second call does nothing."""
        self._connection.give_back(self.size)
        self.size = 0
        self.messages = []
        self.answers = {}
        self.outcomes = {}


GONE_BACK: Final = "a message of the transaction has gone back to its queue"


@final
class RollBack(Job):
    """Gives back what was settled in a transaction; the client, where it is `told`, waits for that."""

    __slots__ = ("_link", "_number", "_told", "_transaction")

    def __init__(
        self, transaction: Transaction, link: ReceivingLink, number: int, *, told: bool
    ) -> None:
        super().__init__()
        self._transaction = transaction
        self._link = link
        self._number = number
        self._told = told

    def step(self) -> bool:
        """Give back until this turn has done enough; tell the client then."""
        if not self._transaction.roll_back():
            return False
        link = self._link
        connection = link.session.connection
        connection.transactions.rolled_back(self._transaction)
        if self._told:
            if not link.detached and not connection.closing:
                link.tell(self._number, Accepted())
            connection.worked()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._link.session.connection


@final
class Transactions(CompletionCallback):
    """The transactions of one connection that are open, by id, and those that are being rolled back."""

    __slots__ = ("_connection", "_discharges", "_next", "_open", "_passing", "_rolling")

    def __init__(self, connection: AmqpConnection) -> None:
        self._connection = connection
        self._open: dict[bytes, Transaction] = {}
        self._rolling: dict[Transaction, None] = {}
        self._next = 1
        # One that is committed, whose messages not all receivers have yet.
        self._passing: Transaction | None = None
        # Discharges that wait for the spool: link and delivery, by token.
        self._discharges: dict[int, tuple[ReceivingLink, int]] = {}

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._connection

    def on_delay(self, why: str) -> None:
        """End the connection with the reason: a discharge is open, and the client need not wait for its answer."""
        self._connection.fail(conditions.RESOURCE_LIMIT_EXCEEDED, why)

    # -- declare and discharge -------------------------------------------------------------------

    def control(self, link: ReceivingLink, number: int, payload: bytes) -> None:
        """Take a message to the coordinator (4.5)."""
        try:
            request = _request(payload)
        except ProtocolError as problem:
            link.detach(problem.reason_code, str(problem))
            return
        if isinstance(request, Declare):
            self._declare(link, number, request)
        else:
            self._discharge(link, number, request)

    def _declare(self, link: ReceivingLink, number: int, request: Declare) -> None:
        if request.global_id is not None:
            why = error(
                conditions.NOT_IMPLEMENTED, "4.5.1: distributed transactions are not offered"
            )
            link.tell(number, Rejected(why))
            return
        if len(self._open) >= limits.AMQP_TRANSACTIONS:
            text = f"a connection has at most {limits.AMQP_TRANSACTIONS:,} open transactions"
            link.tell(number, Rejected(error(conditions.RESOURCE_LIMIT_EXCEEDED, text)))
            return
        transaction = Transaction(self._connection, link)
        if not transaction.keep(TRANSACTION_COST):
            link.tell(
                number, Rejected(error(conditions.RESOURCE_LIMIT_EXCEEDED, transaction.trouble))
            )
            return
        txn_id = self._next.to_bytes(8, "big")
        self._next += 1
        self._open[txn_id] = transaction
        link.tell(number, Declared(txn_id))

    def _discharge(self, link: ReceivingLink, number: int, request: Discharge) -> None:
        transaction = self._open.get(request.txn_id)
        if transaction is None:
            link.tell(number, Rejected(_unknown(request.txn_id)))
        elif request.fail:
            del self._open[request.txn_id]
            self._rolling[transaction] = None
            self._connection.work_on(RollBack(transaction, link, number, told=True))
        else:
            # It stays open till then: where its client ends meanwhile, it ends as others do.
            SelectedCommit(self._connection, link, number, request.txn_id, transaction).begin()

    def commit(self, txn_id: bytes, link: ReceivingLink, number: int) -> bool:
        """Commit a transaction whose answers are at hand, or roll it back and tell the client; whether it is committed.

        It counts for the client until `passed_on`.
        """
        transaction = self._open.pop(txn_id, None)
        if transaction is None:
            # The link to the coordinator has ended meanwhile.
            return False
        trouble = transaction.trouble or self._commit(transaction, link, number)
        if trouble:
            self._roll_back(transaction)
            link.tell(number, Rejected(error(conditions.TRANSACTION_ROLLBACK, trouble)))
            return False
        self._passing = transaction
        return True

    def passed_on(self) -> None:
        """Give back what a committed transaction held: all receivers have its messages, or its client has gone."""
        if self._passing is not None:
            self._passing.end()
            self._passing = None

    def _commit(self, transaction: Transaction, link: ReceivingLink, number: int) -> str:
        """Put a transaction into the unit that is being built; "" or why that cannot be, and then nothing of it is."""
        client = self._connection.client
        publisher = self._connection.publisher
        spool = None if client is None else client.spool
        if client is None or publisher is None or spool is None:
            return "the connection has ended"
        for sending, outcomes in transaction.outcomes.items():
            flow = sending.consumer
            if flow is None:
                return GONE_BACK
            for message_id in outcomes:
                if message_id not in flow.unacked:
                    return GONE_BACK
        ANSWERED.by_message = transaction.answers
        try:
            reason, transaction.kept = spool.keep_together(client.vpn, transaction.messages)
        finally:
            ANSWERED.by_message = {}
        if reason:
            publisher.refused += len(transaction.messages)
            return reason
        for link_of, tag in zip(transaction.links, transaction.tags, strict=True):
            if tag and link_of.known is not None:
                link_of.known.remember(tag)
        if spool.fault is not None:
            spool.fault("transaction-half")
        transaction.settle()
        token = self._next
        self._next += 1
        self._discharges[token] = (link, number)
        self._connection.guaranteed = True
        spool.when_synced(self, token)
        return ""

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Tell the client that its transaction is committed."""
        link, number = self._discharges.pop(token)
        if not self._connection.closing and not link.detached:
            link.tell(number, Accepted())

    def _roll_back(self, transaction: Transaction) -> None:
        """Give back what was settled in the transaction, in slices, for which the client does not wait."""
        self._rolling[transaction] = None
        job = RollBack(transaction, transaction.control, 0, told=False)
        if not job.step():
            self._connection.context.jobs.add(job)

    def rolled_back(self, transaction: Transaction) -> None:
        """All that was settled in a transaction has been given back."""
        self._rolling.pop(transaction, None)

    def control_ended(self, link: ReceivingLink) -> None:
        """Roll back what was declared over a link to the coordinator that has ended (4.3)."""
        self._connection.context.work += len(self._open) >> NOTED_SHIFT
        ended = [txn_id for txn_id, one in self._open.items() if one.control is link]
        for txn_id in ended:
            self._roll_back(self._open.pop(txn_id))

    def outlast(self, link: SendingLink, flow: AmqpFlow) -> None:
        """Hold what was settled in transactions over a link that ends."""
        self._connection.context.work += len(self._open) >> NOTED_SHIFT
        for transaction in self._open.values():
            transaction.outlast(link, flow)

    def judge(self) -> None:
        """Let those fail that hold a message which the client may not publish any more."""
        client, publisher = self._connection.client, self._connection.publisher
        if client is None or publisher is None:
            return
        for transaction in self._open.values():
            for message in transaction.messages:
                if transaction.trouble:
                    break
                try:
                    route = client.vpn.route(message.topic)
                except TopicError:
                    transaction.trouble = "a topic is not taken any more"
                    break
                transaction.trouble = publisher.refusal(
                    route, message.topic, 1, len(message.payload), client.sends
                )

    def roll_back_one(self) -> bool:
        """Roll back one transaction, or some of it; False where none is left: the connection has ended, with its links.

        What these held has gone back to the queues.
        """
        self.passed_on()
        if not self._rolling:
            if not self._open:
                return False
            self._rolling[self._open.popitem()[1]] = None
        transaction = next(iter(self._rolling))
        self._connection.context.work += 1
        if transaction.roll_back():
            del self._rolling[transaction]
        return True

    # -- what is done in a transaction -----------------------------------------------------------

    def publish(
        self,
        link: ReceivingLink,
        number: int | None,
        message: Message,
        state: TransactionalState,
    ) -> None:
        """Take a message into a transaction; the client is told that it is accepted provisionally (4.4.2).

        `number` is its delivery, None for one that was sent settled.
        """
        transaction = self._open.get(state.txn_id)
        tag = b"" if number is None else link.take_mark(number)
        if transaction is None:
            if number is not None:
                link.tell(number, Rejected(_unknown(state.txn_id)))
            return
        message.persistent = True
        message.qos = 1
        if transaction.trouble or not transaction.has_room(message.size):
            if number is not None:
                why = error(conditions.RESOURCE_LIMIT_EXCEEDED, transaction.trouble)
                link.tell(number, Rejected(why))
            return
        transaction.messages.append(message)
        transaction.links.append(link)
        transaction.tags.append(tag)
        if number is not None:
            link.tell(number, TransactionalState(state.txn_id, Accepted()))

    def leave_out(self, link: ReceivingLink, number: int, state: TransactionalState) -> None:
        """Answer a message that was taken before as one of the transaction, which goes without it."""
        if state.txn_id in self._open:
            link.tell(number, TransactionalState(state.txn_id, Accepted()))
        else:
            link.tell(number, Rejected(_unknown(state.txn_id)))

    def refused(self, state: TransactionalState, why: str) -> None:
        """Note that a message of a transaction may not be published: the rest is not published without it."""
        transaction = self._open.get(state.txn_id)
        if transaction is not None:
            transaction.trouble = transaction.trouble or why

    def take_outcomes(
        self, session: AmqpSession, numbers: list[int], settled: bool, state: TransactionalState
    ) -> None:
        """Take the outcome of deliveries into a transaction (4.4.3)."""
        transaction = self._open.get(state.txn_id)
        if transaction is None:
            self._connection.fail(
                conditions.UNKNOWN_ID, f"4.5.8: no transaction {state.txn_id.hex()} is open"
            )
            return
        for number in numbers:
            found = session.unsettled.get(number)
            if found is None:
                # Its link has ended just now.
                continue
            link, message_id = found
            if settled:
                del session.unsettled[number]
            if not transaction.add(link, message_id, (link.outcome_of(state.outcome), settled)):
                # The transaction can only be rolled back; the client would not hear of it otherwise.
                if settled:
                    link.settle_as(message_id, FAILED)
                link.detach(conditions.RESOURCE_LIMIT_EXCEEDED, transaction.trouble)
            elif not settled:
                session.say(Disposition(False, number, number, False, state))


@final
class SelectedCommit(HeldWork):
    """A commit, with the work in slices that need not be done in one turn with it.

    Before it the selectors of the receivers of its messages are evaluated: who subscribes with a selector meanwhile is
    too late for all of them. Behind it the messages go to those who take them as Direct ones, also where their
    publisher has gone by then.
    """

    __slots__ = (
        "_answers",
        "_at",
        "_evaluation",
        "_kept",
        "_link",
        "_links",
        "_messages",
        "_number",
        "_passing",
        "_transaction",
        "_txn_id",
        "_waited",
    )

    def __init__(
        self,
        connection: AmqpConnection,
        link: ReceivingLink,
        number: int,
        txn_id: bytes,
        transaction: Transaction,
    ) -> None:
        super().__init__(connection)
        self._link = link
        self._number = number
        self._txn_id = txn_id
        self._transaction = transaction
        self._at = 0
        self._evaluation: Evaluation | None = None
        self._waited = False
        self._passing = False
        # The transaction's own are given back when its client ends.
        self._messages: list[Message] = []
        self._links: list[ReceivingLink] = []
        self._kept: list[bool] = []
        self._answers: dict[Message, Answers] = {}

    @property
    def _transactions(self) -> Transactions:
        return self._link.session.connection.transactions

    @override
    def go_on(self) -> bool:
        if not self._passing:
            if not self._evaluated():
                return False
            if self.connection.closing or not self._committed():
                return True
            self._passing = True
            self._at = 0
        ANSWERED.by_message = self._answers
        try:
            return self._passed_on()
        finally:
            ANSWERED.by_message = {}

    def _evaluated(self) -> bool:
        transaction = self._transaction
        messages = transaction.messages
        # It has none where the client has ended, and no use for answers where it can only be rolled back.
        while self._at < len(messages) and not transaction.trouble:
            message = messages[self._at]
            evaluation = self._evaluation or self._begun(message)
            self._evaluation = evaluation
            if evaluation is not None and not evaluation.go_on():
                self._waited = True
                return False
            self._evaluation = None
            self._at += 1
            if evaluation is not None:
                self._found(message, evaluation.answers)
        return True

    def _begun(self, message: Message) -> Evaluation | None:
        """Begin with a message, None where no receiver has a selector."""
        try:
            route = self._link.client.vpn.route(message.topic)
        except TopicError:
            # A limit of the message VPN was lowered: told when it is published.
            return None
        return Evaluation(self.context, route, message) if route.selector_cost else None

    def _found(self, message: Message, answers: Answers) -> None:
        transaction = self._transaction
        transaction.answers[message] = answers or NO_ANSWERS
        if answers:
            transaction.keep(ANSWER_COST * len(answers))
        # Those of ten thousand messages would take much more memory than the messages.
        message.forget_properties()

    def _committed(self) -> bool:
        transaction = self._transaction
        self._messages = transaction.messages
        self._links = transaction.links
        self._answers = transaction.answers
        if self._waited:
            self._close()
        committed = self._transactions.commit(self._txn_id, self._link, self._number)
        self._kept = transaction.kept
        return committed

    def _close(self) -> None:
        """Have whoever subscribes with a selector from now on come too late."""
        for message in self._messages:
            self._answers.setdefault(message, NO_ANSWERS)

    def _passed_on(self) -> bool:
        client = self._link.client
        spool = client.spool
        while self._at < len(self._messages) and spool is not None:
            if self.context.turn_spent:
                if not self._waited:
                    self._waited = True
                    self._close()
                return False
            self._pass_on(client, spool, self._at)
            self._at += 1
        return True

    def _pass_on(self, client: AmqpClient, spool: Spool, at: int) -> None:
        message = self._messages[at]
        self.context.work += 1
        if message.resting:
            # An endpoint has it already. No-local delivery asks who published it.
            message.source = client
        try:
            route = client.vpn.route(message.topic)
            outcome = spool.pass_on(client.vpn, route, message, self._kept[at])
        except TopicError:
            # A limit of the message VPN was lowered behind the commit.
            outcome = UNMATCHED
        finally:
            if message.resting:
                message.rest()
        self.context.work += MEASURE.work()
        if client.publisher is not None:
            self._links[at].counted(client.publisher, outcome)

    @override
    def finish(self) -> None:
        if self._passing:
            self._transactions.passed_on()


def _request(payload: bytes) -> Declare | Discharge:
    for section in sections(payload):
        if section.code == VALUE:
            request, _ = performatives.read(payload, section.value, section.end)
            if isinstance(request, (Declare, Discharge)):
                return request
    raise ProtocolError(
        conditions.NOT_IMPLEMENTED, "4.3: the coordinator takes declare and discharge"
    )


def _unknown(txn_id: bytes) -> performatives.Error:
    return error(conditions.UNKNOWN_ID, f"4.5.8: no transaction {txn_id.hex()} is open")
