"""A bridge that is paused: nothing crosses, it stays logged in, and goes on in order, whatever happened meanwhile."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from vpnrouter.errors import OperationError

PLACE: Final = ("msgVpns", "yellow", "bridges", ("from-blue", "auto"))
DIRECT: Final = {"remote_subscriptions": ["direct/>"]}


def act(router: Any, action: str) -> None:
    """Do something to the bridge of core."""
    router.api().act(action, *PLACE)


class Numbers:
    """Publishes numbers; `next` is the one that comes next."""

    def __init__(self) -> None:
        self.next = 0

    def some(self, publisher: Any, count: int = 100) -> None:
        """Publish so many, and wait until they are accepted."""
        first, self.next = self.next, self.next + count
        publisher.accepted("orders/a", *range(first, self.next))

    @contextlib.contextmanager
    def all_the_while(self, publisher: Any) -> Iterator[None]:
        """Publish until what is done meanwhile is done."""
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                self.some(publisher, 20)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(120)


def is_paused(router: Any) -> dict[str, Any]:
    """Wait until the bridge is logged in and paused, and bound to its queue."""
    row: dict[str, Any] = router.bridge(
        "from-blue", inboundState="paused", health="paused", paused=True, boundToQueue=True
    )
    return row


@pytest.mark.parametrize("meanwhile", ["nothing", "kill here", "kill there", "cut", "reconnect"])
def test_paused_while_messages_flow(kit: Any, meanwhile: str) -> None:
    """Guaranteed messages wait at the remote, Direct ones are gone; the rest crosses in order, once."""
    one, two, link = kit.both(DIRECT)
    publisher, consumer = kit.publisher(one, "p"), kit.consumer(two, "orders")
    hears = kit.client(two, "hears")
    hears.subscribe("direct/#")
    says = kit.client(one, "says")
    two.bridge("from-blue", inboundState="ready-in-sync")
    says.publish("direct/a", b"0")
    assert hears.next() == ("direct/a", b"0")
    numbers = Numbers()
    with numbers.all_the_while(publisher):
        consumer.until_number(100)
        act(two, "pause")
        act(two, "pause")
        # What the remote had sent before it heard of the pause is held here.
        kit.until(lambda: one.queue("blue", "to-core")["msgCount"] > 0, "messages wait there")
    is_paused(two)
    taken = two.bridge("from-blue")["guaranteedTakenMsgCount"]
    numbers.some(publisher)
    says.publish("direct/a", b"1")
    row = is_paused(two)
    assert row["guaranteedTakenMsgCount"] == taken
    assert row["uptime"] >= 0
    assert (row["failureCount"], row["rxImbalance"]) == (0, 0)
    if meanwhile == "kill here":
        two.kill()
        two = kit.core(link, DIRECT)
        consumer, hears = kit.consumer(two, "orders", "another"), kit.client(two, "hears")
        hears.subscribe("direct/#")
    elif meanwhile == "kill there":
        one.kill()
        one = kit.edge(link)
        publisher, says = kit.publisher(one, "p"), kit.client(one, "says")
    elif meanwhile == "cut":
        link.cut()
        link.heal()
    elif meanwhile == "reconnect":
        two.api().disconnect_bridge("yellow", "from-blue")
    is_paused(two)
    numbers.some(publisher)
    says.publish("direct/a", b"2")
    assert two.bridge("from-blue")["guaranteedTakenMsgCount"] == (
        0 if meanwhile == "kill here" else taken
    )
    act(two, "resume")
    row = two.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    consumer.until_number(numbers.next - 1)
    got = consumer.numbers()
    assert got == list(range(got[0], numbers.next))
    assert meanwhile == "kill here" or got[0] == 0
    says.publish("direct/a", b"3")
    assert hears.next() == ("direct/a", b"3")
    one.holds("blue", "to-core", 0)
    row = two.bridge("from-blue", rxInFlightMsgCount=0)
    assert (row["rxImbalance"], row["paused"], row["health"]) == (0, False, "up")
    events = [each["event"] for each in two.api().events(1_000)]
    assert events.count("VPN_BRIDGING_RESUMED") == 1
    assert events.count("VPN_BRIDGING_PAUSED") == (0 if meanwhile == "kill here" else 1)


def test_a_pause_holds_the_bridge_s_own_way_alone(kit: Any) -> None:
    """What goes out over its connection goes on, and the remote's publishers feel their quota only."""
    link = kit.network.link()
    users = {"client_usernames": {"bridge": {"password": "word"}}}
    login = {"remote_authentication": {"basic": {"client_username": "bridge", "password": "word"}}}
    back = kit.bridge("v:core", "yellow", "to-edge", remote={"router": "core"}, **login)
    small = {"to-core": kit.queue("orders/>", max_msg_spool_usage=1)}
    queues = {"home": kit.queue("back/>"), **small}
    one = kit.edge(link, queues=queues, bridges={"from-yellow": back}, **users)
    there = {"remote": {"router": "edge"}, **login}
    two = kit.core(link, there, queues={"to-edge": kit.queue("back/>")}, **users)
    one.bridge("from-yellow", boundToQueue=True)
    two.bridge("from-blue", boundToQueue=True, inboundState="ready-in-sync")
    act(two, "pause")
    is_paused(two)
    home = kit.consumer(one, "home")
    kit.publisher(two, "p").accepted("back/a", *range(100))
    home.until_number(99)
    publisher = kit.publisher(one, "p")
    for number in range(12):
        publisher.publish("orders/a", number, size=100_000)
    refused = [number for number in range(12) if publisher.answered(number) != [0]]
    assert refused == list(range(refused[0], 12))
    assert refused[0] >= 8
    act(two, "resume")
    consumer = kit.consumer(two, "orders")
    consumer.until_number(refused[0] - 1)
    assert consumer.numbers() == list(range(refused[0]))


def test_disabled_and_removed_while_it_is_paused(kit: Any) -> None:
    """Disabled is what is shown; enabled again it is still paused. What is removed leaves nothing behind."""
    one, two, _ = kit.both()
    act(two, "pause")
    is_paused(two)
    kit.publisher(one, "p").accepted("orders/a", *range(10))
    act(two, "disable")
    two.bridge("from-blue", inboundState="disabled", health="disabled", paused=True)
    act(two, "enable")
    is_paused(two)
    two.api().delete_config("/msgVpns/yellow/bridges/from-blue,auto")
    with pytest.raises(OperationError, match="bridge from-blue,auto in msgVpn yellow"):
        act(two, "resume")
    assert one.queue("blue", "to-core")["msgCount"] == 10
