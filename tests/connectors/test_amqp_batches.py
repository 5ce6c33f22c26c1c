"""Links of a connector that send in transactions: what a provider may answer, and what becomes of the messages."""

from __future__ import annotations

from typing import Any

import pytest

from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    Error,
    Flow,
    Modified,
    Rejected,
    Released,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.sections import VALUE, sections

ARTEMIS = "apache-activemq-artemis"
CONTROL = "out/transactions"
ROLLED_BACK = Rejected(Error("amqp:transaction:rollback", "no room"))
NOT_ALLOWED = Rejected(Error("amqp:not-allowed", "no"))
ONCE = {"quality_of_service": "once-and-only-once"}


def link(size: int = 3, wait: int = -1, **more: Any) -> dict[str, Any]:
    """A link with transactions of `size` messages."""
    terms = {"transacted": True, "batch": {"max_size": size, "max_time": wait}, **more}
    return {"out": {"source": {"queue": "work"}, "target": {"address": "queue://far"}, **terms}}


class Broker:
    """The provider of a connector, with transactions: what it was sent, as words, in order.

    `silent` are words that it does not answer; `answers` has others than the good ones. `arrived` are the texts of
    messages that have entered its queue.
    """

    def __init__(self, there: Any, kit: Any) -> None:
        self.there = there
        self.kit = kit
        self.silent: set[str] = set()
        self.answers: dict[str, Any] = {}
        self.arrived: list[str] = []
        self.states: list[TransactionalState] = []
        self._count = 0
        self._open: dict[bytes, list[str]] = {}

    def join(self, **more: Any) -> None:
        """Let the connector in."""
        self._open.clear()
        self.there.join(**more)

    def said(self) -> list[str]:
        """What the connector has sent, until it waits for something: each of it answered."""
        words: list[str] = []
        while found := self._transfers():
            for transfer, payload in found:
                words.append(self._take(transfer, payload))
        return words

    def _transfers(self) -> list[tuple[Transfer, bytes]]:
        early, self.there.early = self.there.early, []
        return early + [each for each in self.there.got() if type(each) is tuple]

    def _take(self, transfer: Transfer, payload: bytes) -> str:
        attached = self.there.attached
        if CONTROL in attached and transfer.handle == attached[CONTROL].handle:
            return self._control(transfer, payload)
        text = str(self.kit.body_of(payload))
        state = transfer.state
        if state is None:
            answer = self.answers.get(text, Accepted())
            if isinstance(answer, Accepted):
                self.arrived.append(text)
            self._answer(text, transfer, answer)
            return text
        self.states.append(state)
        answer = self.answers.get(text, TransactionalState(state.txn_id, Accepted()))
        if isinstance(answer, TransactionalState) and isinstance(answer.outcome, Accepted):
            self._open[state.txn_id].append(text)
        self._answer(text, transfer, answer)
        return f"{text} in {state.txn_id.decode()}"

    def _control(self, transfer: Transfer, payload: bytes) -> str:
        (value,) = [each for each in sections(payload) if each.code == VALUE]
        request = performatives.read(payload, value.value, value.end)[0]
        if isinstance(request, Declare):
            self._count += 1
            txn_id = b"t%d" % self._count
            self._open[txn_id] = []
            self._answer("declare", transfer, self.answers.get("declare", Declared(txn_id)))
            return "declare"
        assert isinstance(request, Discharge)
        done = self._open.pop(request.txn_id)
        word = "roll back" if request.fail else "commit"
        answer = self.answers.get(word, Accepted())
        if word == "commit" and isinstance(answer, Accepted):
            self.arrived += done
        self._answer(word, transfer, answer)
        return f"{word} {request.txn_id.decode()}"

    def _answer(self, word: str, transfer: Transfer, state: Any) -> None:
        if word not in self.silent:
            self.there.answer(transfer, state)

    def late(self, number: int, state: Any) -> None:
        """Answer a delivery that was not answered."""
        self.there.send(Disposition(True, number, number, True, state))


@pytest.fixture
def provide(amqp_connected: Any, amqp_kit: Any) -> Any:
    """`provide(links, …)`: a connector with a queue `work`, and its provider, which has let it in."""

    def make(links: dict[str, Any], *, joins: bool = True, **provider: Any) -> Broker:
        there = amqp_connected(links, **provider)
        there.world.queue("work", "out/#")
        broker = Broker(there, amqp_kit)
        if joins:
            broker.join()
        return broker

    return make


def publish(broker: Broker, *texts: str) -> None:
    """Let a client of the router publish."""
    client = broker.there.world.join(f"p-{texts[0][:8]}")
    for number, text in enumerate(texts, 1):
        client.pub("out/a", text.encode(), 1, number)
        client.got()
    client.disconnect()


def test_a_batch_is_one_transaction(provide: Any) -> None:
    """Its messages leave the queue when it is committed, and not before."""
    broker = provide(link())
    broker.silent = {"commit"}
    publish(broker, "1", "2", "3")
    assert broker.said() == ["declare", "1 in t1", "2 in t1", "3 in t1", "commit t1"]
    assert len(broker.there.held("work")) == 3
    broker.late(4, Accepted())
    assert broker.there.held("work") == []
    assert broker.there.balanced()
    assert broker.there.links.all["out"].counters.delivered == 3


@pytest.mark.parametrize("wait", [-1, 0, 500])
def test_how_long_a_batch_waits(provide: Any, wait: int) -> None:
    """For ever, not at all, or for milliseconds from its first message on."""
    broker = provide(link(10, wait))
    publish(broker, "1", "2")
    begun = ["declare", "1 in t1", "2 in t1"]
    first = broker.said()
    assert first[:3] == begun
    world = broker.there.world
    world.advance(0.4)
    early = first[3:] + broker.said()
    assert early == (["commit t1"] if wait == 0 else [])
    publish(broker, "3")
    world.advance(0.2)
    later = broker.said()
    world.advance(3600 if wait < 0 else 1)
    later += broker.said()
    assert (
        later
        == {
            -1: ["3 in t1"],
            0: ["declare", "3 in t2", "commit t2"],
            500: ["3 in t1", "commit t1"],
        }[wait]
    )


def test_one_is_filled_while_another_is_committed(provide: Any) -> None:
    """It is committed when the one before it is: the order stays."""
    broker = provide(link(2))
    broker.silent = {"commit"}
    publish(broker, *"12345")
    begun = ["declare", "1 in t1", "2 in t1", "declare", "commit t1", "3 in t2", "4 in t2"]
    assert broker.said() == begun
    broker.late(4, Accepted())
    assert broker.said() == ["declare", "commit t2", "5 in t3"]
    assert broker.arrived == ["1", "2", "3", "4"]
    assert len(broker.there.held("work")) == 3


NO_COORDINATOR = (
    "the coordinator of transactions: the provider refused it: amqp:not-implemented: no"
)


@pytest.mark.parametrize("answer", ["refusal", "node", "detach"])
def test_a_provider_without_a_coordinator(provide: Any, answer: str) -> None:
    """The link is refused and says why; others go on, and it is asked for again."""
    plain = {"plain": {"source": {"queue": "work"}, "target": {"address": "queue://far"}}}
    broker = provide({**link(), **plain}, joins=False)
    there = broker.there
    there.join(grants=False)
    for name in ("out", "plain"):
        there.grant(there.attached[name])
    asked = there.attached[CONTROL]
    if answer == "node":
        there.grant(asked, target=Target("coordinator"))
        told = "the provider has no coordinator of transactions"
    else:
        if answer == "refusal":
            there.grant(asked, target=None)
        else:
            there.grant(asked)
            there.got()
            assert there.state("out")[0] == "up"
        error = Error("amqp:not-implemented", "no")
        there.send(Detach(asked.handle + 100, True, error))
        told = NO_COORDINATOR.replace("refused", "refused" if answer == "refusal" else "detached")
    assert there.state("out") == ("refused", told)
    assert there.state("plain")[0] == "up"
    ended = [each.handle for each in there.got() if isinstance(each, Detach)]
    assert sorted(ended) == sorted(there.attached[name].handle for name in ("out", CONTROL))
    there.world.advance(10.1)
    again = [each for each in there.got() if isinstance(each, Attach)]
    assert [each.name for each in again] == ["out", CONTROL]
    assert isinstance(again[1].target, Coordinator)
    for each in again:
        there.grant(each._replace(handle=each.handle + 10))
    assert there.state("out") == ("up", "")


@pytest.mark.parametrize("product", ["RabbitMQ", ARTEMIS])
def test_a_provider_that_is_not_even_asked(provide: Any, product: str) -> None:
    """RabbitMQ ends the whole session for the question."""
    broker = provide(link(), joins=False)
    broker.join(product=product)
    if product == ARTEMIS:
        assert broker.there.state("out")[0] == "up"
    else:
        assert broker.there.state("out") == ("refused", "rabbitmq has no transactions")
        assert CONTROL not in broker.there.attached


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Accepted(), "its answer is none"),
        (Declared(b""), "its answer is none"),
        (Declared(b"x" * 129), "its answer is none"),
        (NOT_ALLOWED, "the provider rejected it: amqp:not-allowed: no"),
        (Released(), "the provider released it"),
    ],
)
def test_what_is_no_transaction(provide: Any, answer: Any, told: str) -> None:
    """The link is refused, and its messages stay in the queue until there is one."""
    broker = provide(link())
    broker.answers["declare"] = answer
    publish(broker, "1", "2", "3")
    assert broker.said() == ["declare"]
    state, reason = broker.there.state("out")
    assert state == "refused"
    assert reason.startswith("no transaction begins: ")
    if not isinstance(answer, Accepted):
        assert told in reason
    assert len(broker.there.held("work")) == 3
    broker.answers.clear()
    broker.there.world.advance(10.1)
    for each in broker.there.got():
        if isinstance(each, Attach):
            broker.there.attached[each.name] = each
            broker.there.grant(each)
    assert broker.said()[-1] == "commit t2"
    assert broker.there.held("work") == []
    assert broker.there.balanced()


@pytest.mark.parametrize("when", ["filled", "committed"])
@pytest.mark.parametrize("which", ["out", CONTROL])
def test_a_link_that_ends_in_the_middle(provide: Any, when: str, which: str) -> None:
    """Nothing that was not committed is lost, and the other link of the two ends as well."""
    broker = provide(link())
    broker.silent = {"commit"}
    publish(broker, "1", "2", *(["3"] if when == "committed" else []))
    assert broker.said()[-1] == ("commit t1" if when == "committed" else "2 in t1")
    there = broker.there
    there.send(Detach(there.attached[which].handle + 100, True, Error("amqp:resource-deleted")))
    assert there.state("out")[0] == "refused"
    assert "amqp:resource-deleted" in there.state("out")[1]
    assert len([each for each in there.got() if isinstance(each, Detach)]) == 2
    broker.silent.clear()
    there.world.advance(10.1)
    for each in there.got():
        if isinstance(each, Attach):
            there.attached[each.name] = each
            there.grant(each)
    if when == "filled":
        publish(broker, "3")
    assert broker.said() == ["declare", "1 in t2", "2 in t2", "3 in t2", "commit t2"]
    assert there.held("work") == []
    assert there.balanced()


def test_a_commit_that_is_never_answered(provide: Any) -> None:
    """The connection is made anew; the first message of the batch is suspected, and sent alone."""
    broker = provide(link(), answer_timeout=10)
    broker.silent = {"commit"}
    publish(broker, "1", "2", "3")
    assert broker.said()[-1] == "commit t1"
    there = broker.there
    for _ in range(8):
        there.world.advance(2)
        if there.losses:
            break
        there.raw(b"\x00\x00\x00\x08\x02\x00\x00\x00")
    (loss,) = there.losses
    assert "has not answered a message for" in loss.why
    assert loss.link == "out"
    assert loss.message_id > 0
    broker.silent.clear()
    broker.join()
    # What is suspected goes without a transaction, until enough has been answered.
    assert broker.said() == ["1", "2", "3"]
    assert there.held("work") == []


AGAIN = ["1 in t3", "2 in t3", "3 in t3", "commit t3", "4 in t4"]


@pytest.mark.parametrize(
    ("quality", "dies", "again"),
    [
        ("duplicates-ok", "link", AGAIN),
        ("duplicates-ok", "router", AGAIN),
        ("once-and-only-once", "link", ["1", "2", "3", "4"]),
        ("once-and-only-once", "router", ["1", "2", "3", "4"]),
        # The message that had to be answered next is suspected.
        ("duplicates-ok", "connection", ["1", "2", "3", "4"]),
    ],
)
def test_what_may_have_been_committed(
    provide: Any, quality: str, dies: str, again: list[str]
) -> None:
    """It is sent again. Artemis knows it again where it comes alone, and would not commit a transaction with it."""
    broker = provide(link(quality_of_service=quality), joins=False)
    broker.silent = {"commit"}
    broker.join(product=ARTEMIS)
    publish(broker, "1", "2", "3", "4")
    assert broker.said()[-1] == "4 in t2"
    broker.silent.clear()
    there = broker.there
    if dies == "link":
        there.client.end("the connector is disabled")
        there.world.settle()
    else:
        there.cut()
    if dies == "router":
        there.lose_router(there.world.restart())
    broker.join(product=ARTEMIS)
    assert [each for each in broker.said() if each != "declare"] == again


def test_one_bad_message_does_not_block_the_others(provide: Any) -> None:
    """The batch is rolled back, and each of its messages goes by itself: only that one is given up."""
    broker = provide(link(reject_attempts=2, then="skip"))
    broker.silent = {"commit"}
    broker.answers["commit"] = ROLLED_BACK
    publish(broker, "1", "bad", "3")
    assert broker.said() == ["declare", "1 in t1", "bad in t1", "3 in t1", "commit t1"]
    broker.silent.clear()
    broker.answers = {"bad": NOT_ALLOWED}
    broker.late(4, ROLLED_BACK)
    assert broker.said() == ["declare", "1", "bad", "3", "bad"]
    assert broker.arrived == ["1", "3"]
    (told,) = broker.there.told
    assert "amqp:not-allowed: no" in told
    publish(broker, "4", "5", "6")
    assert broker.said() == ["4 in t2", "5 in t2", "6 in t2", "commit t2"]
    assert broker.arrived == ["1", "3", "4", "5", "6"]
    assert broker.there.held("work") == []
    assert broker.there.balanced()


def test_the_one_behind_a_batch_that_is_rolled_back(provide: Any) -> None:
    """It is rolled back as well, so that the order stays."""
    broker = provide(link(2))
    broker.silent = {"commit"}
    broker.answers["commit"] = ROLLED_BACK
    publish(broker, *"1234")
    assert broker.said()[-1] == "4 in t2"
    broker.late(4, ROLLED_BACK)
    assert broker.said() == ["roll back t2", "declare", "1", "2", "3", "4"]
    assert broker.arrived == ["1", "2", "3", "4"]
    assert broker.there.held("work") == []
    assert broker.there.links.all["out"].counters.returned == 4
    assert broker.there.balanced()


def test_a_provider_that_commits_without_a_message_that_it_refuses(provide: Any) -> None:
    """Only that one comes again."""
    broker = provide(link(2, then="skip", reject_attempts=2))
    broker.silent = {"commit", "bad"}
    publish(broker, "bad", "2")
    assert broker.said() == ["declare", "bad in t1", "2 in t1", "commit t1"]
    broker.late(1, TransactionalState(b"t1", NOT_ALLOWED))
    assert len(broker.there.held("work")) == 2
    broker.late(3, Accepted())
    assert broker.there.held("work") == [b"bad"]
    assert broker.there.links.all["out"].counters.delivered == 1


def test_a_transaction_of_one_message_that_fails(provide: Any) -> None:
    """It is that message that is refused."""
    broker = provide(link(1, then="skip", reject_attempts=1))
    broker.answers["commit"] = ROLLED_BACK
    publish(broker, "bad")
    assert broker.said() == ["declare", "bad in t1", "commit t1"]
    assert broker.there.held("work") == []
    (told,) = broker.there.told
    assert "amqp:transaction:rollback: no room" in told


def test_what_is_wrong_with_a_transaction_is_no_messages_fault(provide: Any) -> None:
    """A provider that has forgotten it says so of the first message that comes for it."""
    broker = provide(link(2, then="skip", reject_attempts=1))
    broker.answers["1"] = Rejected(Error("amqp:transaction:timeout"))
    broker.silent = {"1"}
    publish(broker, "1", "2")
    assert broker.said()[-1] == "commit t1"
    broker.late(1, Rejected(Error("amqp:transaction:unknown-id")))
    del broker.answers["1"]
    broker.silent.clear()
    broker.late(3, ROLLED_BACK) if len(broker.there.held("work")) else None
    assert broker.there.told == []


@pytest.mark.parametrize("state", [Released(), Modified(True, True), NOT_ALLOWED])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_message_that_is_refused_in_a_transaction(
    provide: Any, state: Any, wrapped: bool
) -> None:
    """Whether the provider says it of the transaction or not: the rest is not committed, and goes by itself."""
    broker = provide(link(3, then="skip", reject_attempts=1))
    broker.answers["2"] = TransactionalState(b"t1", state) if wrapped else state
    publish(broker, "1", "2")
    assert broker.said() == ["declare", "1 in t1", "2 in t1", "roll back t1", "declare", "1"]
    assert broker.arrived == ["1"]
    assert len(broker.there.told) == 1
    assert broker.there.held("work") == []
    assert broker.there.balanced()


def test_credit(provide: Any) -> None:
    """A batch is committed early where the provider takes no more messages; without credit at the coordinator the link
    is held.
    """
    broker = provide(link(5), answer_timeout=10, joins=False)
    there = broker.there
    there.join(grants=False)
    there.grant(there.attached["out"], credit=2)
    there.grant(there.attached[CONTROL], credit=0)
    publish(broker, "1", "2", "3")
    assert broker.said() == []
    for _ in range(3):
        there.world.advance(2.1)
    assert there.state("out")[0] == "held"
    control = there.attached[CONTROL].handle + 100
    there.send(Flow(0, 1_000, 0, 1_000, control, 0, 1))
    assert broker.said() == ["declare", "1 in t1", "2 in t1"]
    there.send(Flow(3, 1_000, 0, 1_000, control, 1, 10))
    assert broker.said() == ["declare", "commit t1"]
    assert there.held("work") == [b"3"]


def test_a_queue_that_is_shut_down(provide: Any) -> None:
    """What is in a transaction goes back, and the provider is told."""
    broker = provide(link())
    publish(broker, "1", "2")
    broker.said()
    broker.there.world.vpn().queue("work").unbind_all("shutdown")
    assert broker.said() == ["roll back t1"]
    assert len(broker.there.held("work")) == 2
    assert broker.there.balanced()


def test_a_large_message_says_its_transaction_in_each_frame(provide: Any) -> None:
    """A provider with small frames knows it all the same."""
    broker = provide(link(1), joins=False)
    there = broker.there
    there.join(max_frame_size=512)
    publish(broker, "x" * 2_000)
    (declare,) = broker._transfers()
    broker._take(*declare)
    parts = broker._transfers()
    assert len(parts) == 6
    for transfer, _ in parts[:-1]:
        assert transfer.state == TransactionalState(b"t1")
    assert [transfer.more for transfer, _ in parts] == [True] * 4 + [False] * 2


def test_a_batch_without_transactions(provide: Any) -> None:
    """So many messages are under way and not answered."""
    terms = {"batch": {"max_size": 2}, "source": {"queue": "work"}}
    broker = provide({"out": {**terms, "target": {"address": "queue://far"}}})
    broker.silent = {"1", "2"}
    publish(broker, "1", "2", "3")
    assert broker.said() == ["1", "2"]
    broker.late(0, Accepted())
    assert broker.said() == ["3"]


def test_a_provider_that_ends_for_a_message_of_a_batch(provide: Any) -> None:
    """It is found, and given up; the others cross."""
    broker = provide(link(3, reject_attempts=2, then="skip"))
    there = broker.there
    publish(broker, "1", "poison", "3")
    for _ in range(8):
        for transfer, payload in broker._transfers():
            if broker.kit.body_of(payload) == "poison" and transfer.handle == 0:
                there.send(Close(Error("amqp:internal-error")))
                break
            broker._take(transfer, payload)
        if there.losses:
            there.losses.clear()
            broker.join()
    assert there.held("work") == []
    assert len(there.told) == 1
    assert broker.arrived[-2:] == ["1", "3"]
    assert there.balanced()
