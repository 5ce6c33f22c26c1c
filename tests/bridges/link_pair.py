"""A connection that carries two bridges, one in each direction; loaded by conftest.py."""

from typing import Any

from vpnrouter.core.credentials import ClientUsername, Credentials


class Pair:
    """A connection dialled by yellow on core that carries blue's bridge on edge as well.

    `compress` is what both wish, `locked` wants a password of the second half, and `beyond` is what that
    one asks differently.
    """

    def __init__(
        self,
        world: Any,
        *,
        compress: bool = False,
        locked: bool = False,
        yellow: dict[str, Any] | None = None,
        blue: dict[str, Any] | None = None,
        beyond: dict[str, Any] | None = None,
    ) -> None:
        self.world = world
        self.yellow = world.vpn("yellow", "core", **(yellow or {}))
        self.blue = world.vpn("blue", "edge", **(blue or {}))
        self.here = world.client(self.yellow, "y")
        self.there = world.client(self.blue, "b")
        if locked:
            # Who is in stays in.
            edge = ClientUsername("edge", password="right")
            self.yellow.credentials = Credentials(True, [edge], b"secret")
        self.link = world.link(self.yellow, "edge", "blue", terms={"compress": compress})
        self.back, self.told = world.bridge(
            self.blue, self.link.accepted, "yellow", **(beyond or {})
        )
        for client in (self.here, self.there):
            client.subscribe("#", as_published=True)

    def crossed(self, client: Any, to: Any, count: int = 3) -> list[bytes]:
        """What of `count` messages of a client comes to the other one, all at once in the end."""
        self.took()
        for number in range(count):
            client.publish(f"t/{number}", b"%d" % number)
        own = client.payloads()
        assert own == [b"%d" % number for number in range(count)], "an echo, or none to itself"
        return to.payloads()

    def took(self) -> None:
        """Forget what the clients got."""
        self.here.take()
        self.there.take()

    def both_ways(self) -> tuple[int, int]:
        """How many of three messages cross into yellow, and into blue."""
        into_yellow = len(self.crossed(self.there, self.here))
        return into_yellow, len(self.crossed(self.here, self.there))

    def balance(self) -> None:
        """Every message received or offered is accounted for, at both ends, in both halves."""
        for end in (self.link.dialed, self.link.accepted):
            end.tally()
        records = [self.link.half.record, self.back.record]
        for book in self.world.books.values():
            records += book.records.values()
        for record in records:
            assert record.counters.tx_imbalance(record.tx_in_flight) == 0
            assert record.counters.rx_imbalance(0) == 0
