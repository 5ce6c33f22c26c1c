"""The running objects of each kind: begun with the router, changed by a reload, told goodbye at the end.

A kind of the registry names the class that runs its objects (`Kind.running`). The objects of a kind that names none
have nothing to do by themselves: what runs is what is configured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

from typing_extensions import override

from vpnrouter.config.objects import objects_in
from vpnrouter.settings.kinds import KINDS, Form, Kind, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.effects import Change
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.server.net.dial import Dialler
    from vpnrouter.server.spool.spool_service import SpoolService


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What running objects need of the router. `nursery` runs their tasks; the router has no spool without guaranteed
    messaging.
    """

    book: LinkRegistry
    dialler: Dialler
    nursery: trio.Nursery
    spool_service: SpoolService | None = None


class Configured(NamedTuple):
    """An object that is its configuration: its path in that, and its model."""

    path: tuple[str | int, ...]
    settings: Any


class RunningObjects(ABC):
    """The running objects of one kind. All is called in the router's thread; nothing waits."""

    def __init__(self, kind: Kind, services: Services) -> None:
        self.kind = kind
        self.services = services

    @property
    @abstractmethod
    def running(self) -> Sequence[Any]:
        """The objects, in the order of the configuration."""

    def items(self) -> list[tuple[str, str, Any]]:
        """Return the message VPN and the name of each object, and the object."""
        return [(one.vpn.name, one.name, one) for one in self.running]

    def look(self, one: Any) -> Any:  # noqa: ANN401 - what the status class of the kind reads
        """Return an object as its status class reads it."""
        return one

    def sample(self, now_ns: int) -> None:  # noqa: B027 - few have to
        """Note the counts that rates are made from, at `now_ns` (monotonic)."""

    @abstractmethod
    def begin(self, config: RouterConfig) -> None:
        """Start all objects of a configuration, the first one of the router."""

    @abstractmethod
    def change(self, before: RouterConfig, after: RouterConfig, found: Sequence[Change]) -> None:
        """Bring the objects from one configuration to another, which differs by `found`."""

    def settle(self) -> None:  # noqa: B027 - few have to
        """Do what has to wait until all objects of all kinds are changed."""

    def goodbye(self, why: str) -> None:  # noqa: B027 - the same
        """Log out: the router stops."""


@final
class ConfiguredObjects(RunningObjects):
    """Objects that are their configuration."""

    _config: RouterConfig | None = None

    @property
    @override
    def running(self) -> Sequence[Configured]:
        if self._config is None:
            return ()
        return [Configured(*each) for each in objects_in(self._config, self.kind)]

    @override
    def items(self) -> list[tuple[str, str, Any]]:
        return [(str(one.path[1]), str(one.path[-1]), one) for one in self.running]

    @override
    def begin(self, config: RouterConfig) -> None:
        self._config = config

    @override
    def change(self, before: RouterConfig, after: RouterConfig, found: Sequence[Change]) -> None:
        self._config = after


def running_objects(services: Services) -> dict[Kind, RunningObjects]:
    """Return the running objects of each kind that has objects by name, in the order of the registry."""
    return {
        kind: (loaded(kind.running) if kind.running else ConfiguredObjects)(kind, services)
        for kind in KINDS
        if kind.form is Form.NAMED
    }
