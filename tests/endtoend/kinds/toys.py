"""Two kinds of objects that the router does not have: toys, which run, and games, which are only configured.

Whatever shows, checks or changes them does so from what is declared here.
"""

from dataclasses import dataclass
from typing import Any, Literal

from vpnrouter.server.objects.running import RunningObjects
from vpnrouter.settings.kinds import KINDS, MSG_VPN, KeyPart, Kind
from vpnrouter.settings.schema import Effect, Secret, Settings, Text, attribute, group
from vpnrouter.settings.shown import counter, gauge, label, read

NAME = Text(1, 20)


class Engine(Settings):
    """What drives it."""

    power: int = attribute(3, least=1, most=9)
    """Watts."""


class Toy(Settings, effect=Effect.IN_PLACE):
    """A toy of a message VPN."""

    colour: Literal["red", "blue"] = attribute("red")
    """Its colour."""

    password: Secret | None = attribute(None, text=Text(0, 20))
    """What winds it up."""

    engine: Engine = group(Engine)
    """What drives it."""


class Game(Settings, effect=Effect.RESTART):
    """A game of a message VPN."""

    fair: bool = attribute(True)
    """Whether it is."""

    players: int = attribute(2, least=1, most=8)
    """How many may play."""

    motto: str | None = attribute(None, text=Text(1, 40), examples=("win",))
    """What is written on the box."""


class RunningToy:
    """A toy; it counts how often it was changed."""

    def __init__(self, msg_vpn: str, name: str, configured: Any) -> None:
        self.msg_vpn = msg_vpn
        self.name = name
        self.configured = configured
        self.changed = 0


class ToyObjects(RunningObjects):
    """The toys of a router."""

    def __init__(self, kind: Kind, services: Any) -> None:
        super().__init__(kind, services)
        self._toys: dict[tuple[str, str], RunningToy] = {}

    @property
    def running(self) -> list[RunningToy]:
        return list(self._toys.values())

    def items(self) -> list[tuple[str, str, Any]]:
        return [(*key, toy) for key, toy in self._toys.items()]

    def begin(self, config: Any) -> None:
        for vpn, each in config.msg_vpns.items():
            for name, configured in self.kind.of(each).items():
                self._toys[vpn, name] = RunningToy(vpn, name, configured)

    def change(self, before: Any, after: Any, found: Any) -> None:
        known, self._toys = self._toys, {}
        self.begin(after)
        for key, toy in self._toys.items():
            if key in known:
                toy.changed = known[key].changed + (known[key].configured != toy.configured)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyStatus:
    """One toy as monitoring shows it."""

    msg_vpn_name: str = read(lambda one: one.msg_vpn, "", label("msg_vpn"))
    toy_name: str = read(lambda one: one.name, "", label("toy"))
    colour: str = read(lambda one: one.configured.colour, "")
    power: int = read(
        lambda one: one.configured.engine.power, metric=gauge("vpnrouter_toy_watts", "Its power.")
    )
    changed_count: int = read(
        lambda one: one.changed, metric=counter("vpnrouter_toy_changes_total", "Its changes.")
    )
    """How often it was changed."""


def check_toys(problems: Any, config: Any, msg_vpn: str) -> None:
    """A toy has a colour that no other one has."""
    seen: dict[str, str] = {}
    for name, toy in TOY.of(config.msg_vpns[msg_vpn]).items():
        if toy.colour in seen:
            path = ("msg_vpns", msg_vpn, "toys", name, "colour")
            problems.error(path, f"toy {seen[toy.colour]} is {toy.colour} as well")
        seen[toy.colour] = name


TOY = Kind(
    one="toy",
    key="toys",
    parent=MSG_VPN,
    settings=Toy,
    named=NAME,
    example="car",
    doc="Toys by name.",
    check="toys:check_toys",
    identity=(KeyPart("toyName", "Name of the toy.", 20),),
    ours=True,
    running="toys:ToyObjects",
    status="toys:ToyStatus",
)

GAME = Kind(
    one="game",
    key="games",
    parent=MSG_VPN,
    settings=Game,
    named=NAME,
    example="chess",
    doc="Games by name.",
    identity=(KeyPart("gameName", "Name of the game.", 20),),
    ours=True,
)

KINDS += [TOY, GAME]
