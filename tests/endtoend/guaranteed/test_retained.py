"""Retained messages over bridges, Direct and guaranteed, each in both directions and over reconnects.

What was retained before a bridge subscribed is sent only to one that asks for it (`retained: replay`, LINK-26 of
docs/link-protocol.md), what was retained before a queue attracted the topic never. See docs/bridges.md.
"""

from typing import Any, Final

import pytest

MANY: Final = 2_000
WAYS: Final = {"edge": ("blue", "core", "yellow"), "core": ("yellow", "edge", "blue")}
"""By router: its message VPN, the other router, and that one's message VPN."""


class Pair:
    """Routers edge and core, each with a bridge from the other one for `out/>`, of QoS 0 or 1."""

    def __init__(self, kit: Any, qos: int) -> None:
        self.kit = kit
        self.qos = qos
        self.links = {name: kit.network.link() for name in WAYS}
        self.routers = {name: self._up(name) for name in WAYS}
        for name, router in self.routers.items():
            router.bridge(
                f"from-{WAYS[name][2]}", inboundState="ready-in-sync", boundToQueue=qos > 0
            )
        self.publishers = {name: kit.publisher(self.routers[name], f"p-{name}") for name in WAYS}
        self.count = 0

    def _up(self, name: str) -> Any:
        own, other, there = WAYS[name]
        kit = self.kit
        location = self.links[other].address
        if self.qos:
            bridge = kit.bridge(location, there, f"to-{name}")
        else:
            bridge = kit.bridge(location, there, remote_subscriptions=["out/>"])
        # What came from the other side is attracted by this queue too, and must not go back.
        queues = {f"to-{other}": kit.queue("out/>")} if self.qos else {}
        written = kit.vpn(queues=queues, bridges={f"from-{there}": bridge})
        return kit.up(name, own, written, self.links[name])

    def publish(self, name: str, topic: str, payload: bytes) -> None:
        """Publish a retained message at a router, and wait for its answer."""
        self.count += 1
        self.publishers[name].send(topic, payload, self.count, qos=self.qos, retain=True)

    def reconnect(self) -> None:
        """Cut both bridges, and wait until they are up and bound again."""
        before = {name: self._row(name)["failureCount"] for name in WAYS}
        for link in self.links.values():
            link.cut()
        self.kit.until(
            lambda: all(self._row(name)["failureCount"] > before[name] for name in WAYS),
            "both bridges are down",
        )
        for name in WAYS:
            self._row(name, inboundState="ready-in-sync", boundToQueue=self.qos > 0)

    def _row(self, name: str, **attributes: Any) -> dict[str, Any]:
        row: dict[str, Any] = self.routers[name].bridge(f"from-{WAYS[name][2]}", **attributes)
        return row

    def kept(self, name: str) -> dict[str, bytes]:
        """What a client gets that subscribes now, all of it with the flag."""
        self.count += 1
        client = self.kit.client(self.routers[name], f"look-{self.count}")
        found: dict[str, bytes] = {}
        flags: list[bool] = []

        def look(_client: Any, _data: Any, message: Any) -> None:
            flags.append(message.retain)
            found[message.topic] = bytes(message.payload)
            client.arrived.put(message.topic)

        client.client.on_message = look
        client.subscribe("out/#")
        client.subscribe("looked")
        client.publish("looked")
        while client.arrived.get(timeout=20) != "looked":
            pass
        client.stop()
        assert found.pop("looked") == b""
        assert flags == [True] * len(found) + [False]
        return found


@pytest.fixture(params=[0, 1], ids=["Direct", "guaranteed"])
def pair(kit: Any, request: pytest.FixtureRequest) -> Pair:
    """Both routers, with both bridges up."""
    return Pair(kit, request.param)


@pytest.mark.parametrize("here", ["edge", "core"])
def test_flag_clearing_reconnect_echo(pair: Pair, here: str) -> None:
    """The flag crosses and so does the empty message that clears; nothing is repeated and nothing comes back."""
    there = WAYS[here][1]
    live = {name: pair.kit.client(pair.routers[name], f"live-{name}") for name in WAYS}
    for client in live.values():
        client.client.subscribe("out/#", pair.qos)
        client.subscribe("end")
    published = [("out/kept", b"1"), ("out/gone", b"2"), ("out/kept", b"3")]
    for topic, payload in published:
        pair.publish(here, topic, payload)
    for client in live.values():
        assert [client.next() for _ in published] == published
    for name in WAYS:
        assert pair.kept(name) == {"out/kept": b"3", "out/gone": b"2"}
    for _ in range(3):
        pair.reconnect()
    pair.publish(here, "out/gone", b"")
    for client in live.values():
        assert client.next() == ("out/gone", b"")
    for name in WAYS:
        assert pair.kept(name) == {"out/kept": b"3"}
    # And the other way, over the bridges that were cut.
    pair.publish(there, "out/kept", b"")
    for client in live.values():
        assert client.next() == ("out/kept", b"")
    for name in WAYS:
        assert pair.kept(name) == {}
    if pair.qos:
        for name in WAYS:
            own, other, _ = WAYS[name]
            pair.routers[name].holds(own, f"to-{other}", 0)
    for name, client in live.items():
        pair.kit.client(pair.routers[name], f"end-{name}").publish("end")
        assert client.next() == ("end", b"")
        assert client.arrived.empty()


def test_not_replayed_to_a_bridge(kit: Any) -> None:
    """As documented: a bridge that subscribes brings what comes from then on, not what is retained already.

    With a queue it brings what the queue attracted, so also what was retained while the bridge was away.
    """
    link = kit.network.link()
    queues = {"to-core": kit.queue("sure/>")}
    one = kit.up("edge", "blue", kit.vpn(queues=queues), link)
    publisher = kit.publisher(one, "p")
    publisher.send("out/early", b"1", 1, qos=1, retain=True)
    publisher.send("sure/early", b"1", 2, qos=1, retain=True)
    bridge = kit.bridge(link.address, "blue", "to-core", remote_subscriptions=["out/>"])
    two = kit.up("core", "yellow", kit.vpn(bridges={"from-blue": bridge}))
    two.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    live = kit.client(two, "live")
    live.subscribe("out/#")
    # Published again it crosses, and is retained there as well.
    publisher.send("out/early", b"2", 3, qos=1, retain=True)
    assert live.next() == ("out/early", b"2")
    late = kit.client(two, "late")
    late.subscribe("#")
    assert sorted([late.next(), late.next()]) == [("out/early", b"2"), ("sure/early", b"1")]


@pytest.mark.parametrize("choice", ["ignore", "replay"])
def test_what_was_retained_before(kit: Any, choice: str) -> None:
    """A bridge that asks for it gets what was retained before, once over all reconnects, and sends none of it back."""
    links = {name: kit.network.link() for name in WAYS}

    def up(name: str) -> Any:
        own, other, there = WAYS[name]
        bridge = kit.bridge(
            links[other].address,
            there,
            remote_subscriptions=["out/>", "!out/secret/>"],
            retained=choice,
        )
        return kit.up(name, own, kit.vpn(bridges={f"from-{there}": bridge}), links[name])

    edge = up("edge")
    before = kit.publisher(edge, "before")
    for number in range(MANY):
        before.publish(f"out/{number}", number, retain=True)
    before.publish("out/secret/1", MANY, retain=True)
    before.publish("other/1", MANY + 1, retain=True)
    assert before.answered(*range(MANY + 2)) == [0] * (MANY + 2)
    core = up("core")
    edge.bridge("from-yellow", inboundState="ready-in-sync")
    core.bridge("from-blue", inboundState="ready-in-sync")
    came = MANY if choice == "replay" else 0

    def again(least: int) -> int:
        """How many came in all, once that is enough: both may have dialled, and one of them again."""
        kit.until(lambda: core.bridge("from-blue")["dataRxMsgCount"] >= least, f"{least} came")
        row = core.bridge("from-blue", rxImbalance=0)
        assert row["discardedRx"].get("duplicate", 0) == max(0, row["dataRxMsgCount"] - came)
        return int(row["dataRxMsgCount"])

    first = again(came)
    look = kit.client(core, "look")
    look.client.subscribe("#")
    if came:
        assert sorted(int(look.next()[1]) for _ in range(MANY)) == list(range(MANY))
    failures = core.bridge("from-blue")["failureCount"]
    for link in links.values():
        link.cut()
    kit.until(lambda: core.bridge("from-blue")["failureCount"] > failures, "the bridge is down")
    core.bridge("from-blue", inboundState="ready-in-sync")
    edge.bridge("from-yellow", inboundState="ready-in-sync")
    assert again(first + came) >= first + came
    assert edge.bridge("from-yellow")["dataRxMsgCount"] == 0
    before.publish("out/1", 7, retain=True)
    assert look.next() == ("out/1", b"7")
    assert look.arrived.empty()


@pytest.mark.parametrize("signalled", ["kill", "stop"])
def test_wills_of_a_router_that_ends(kit: Any, signalled: str) -> None:
    """Killed or stopped, the wills of all who were connected come once, retained ones to those who come later."""
    written = kit.vpn(queues={"wills": kit.queue("status/>")})
    one = kit.up("edge", "blue", written)
    publisher = kit.publisher(one, "p")
    for number, qos in enumerate((0, 1, 2)):
        kit.client(
            one,
            f"lasts{qos}",
            level=4,
            clean_session=False,
            will=(f"status/{number}", f"{number}", qos, True),
        )
        kit.client(
            one,
            f"brief{qos}",
            level=4,
            clean_session=True,
            will=(f"status/{number}", f"{number}", qos, False),
        )
    goodbye = kit.client(one, "goodbye", will=("status/9", "9", 1, True))
    goodbye.stop()
    publisher.accepted("status/8", 8)
    if signalled == "kill":
        one.kill()
    else:
        assert one.stop() == 0
    for _ in range(2):
        one = kit.up("edge", "blue", written)
        one.holds("blue", "wills", 7)
        late = kit.client(one)
        late.client.subscribe("status/#")
        assert sorted(late.next() for _ in range(3)) == [
            (f"status/{n}", b"%d" % n) for n in range(3)
        ]
        one.kill()
    one = kit.up("edge", "blue", written)
    reader = kit.consumer(one, "wills")
    kit.until(lambda: reader.arrived.qsize() == 7, "7 messages")
    assert sorted(reader.numbers()) == [0, 0, 1, 1, 2, 2, 8]
