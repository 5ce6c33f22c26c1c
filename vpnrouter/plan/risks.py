"""Lists what a change would cost: bridges that reconnect or are paused, clients cut off, messages that are lost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from vpnrouter.bridges.look import LOGGED_IN
from vpnrouter.connectors.machine import PAUSED, State
from vpnrouter.management.answers.rows import Row
from vpnrouter.settings.schema import Effect

CONNECTOR_UP: Final = frozenset({State.UP.value, PAUSED})
"""States of a connector that its provider has let in."""

Kind = Literal["flaps", "disconnects", "loses", "pauses"]


@dataclass(frozen=True, slots=True)
class Risk:
    """One thing that a change costs."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class RouterState:
    """How a router stands: rows of the management API."""

    msg_vpns: Sequence[Row] = ()
    bridges: Sequence[Row] = ()
    queues: Sequence[Row] = ()
    connectors: Sequence[Row] = ()

    def connections(self, msg_vpn: str) -> int:
        """Return clients that are connected to a message VPN."""
        return sum(
            row["msgVpnConnections"] for row in self.msg_vpns if row["msgVpnName"] == msg_vpn
        )

    def spooled(self, msg_vpn: str, queue: str | None = None) -> int:
        """Return messages in a queue, or in all of a message VPN."""
        return sum(
            row["msgCount"]
            for row in self.queues
            if row["msgVpnName"] == msg_vpn and queue in {None, row["queueName"]}
        )

    def is_up(self, msg_vpn: str, bridge: str) -> bool:
        """Return whether a bridge is up."""
        return any(
            is_up(row)
            for row in self.bridges
            if row["msgVpnName"] == msg_vpn and row["bridgeName"] == bridge
        )

    def connector_is_up(self, msg_vpn: str, connector: str) -> bool:
        """Return whether the provider of a connector has let it in."""
        return any(row["state"] in CONNECTOR_UP for row in self._connectors(msg_vpn, connector))

    def kept(self, msg_vpn: str, connector: str, link: str | None = None) -> int:
        """Return messages that are kept for the links of a connector, or for one; not those of queues."""
        return sum(
            each["parkedMsgCount"]
            + (each["waitingMsgCount"] if each["sourceType"] == "topic" else 0)
            for row in self._connectors(msg_vpn, connector)
            for each in row["links"]
            if link in {None, each["linkName"]}
        )

    def _connectors(self, msg_vpn: str, connector: str) -> list[Row]:
        return [
            row
            for row in self.connectors
            if row["msgVpnName"] == msg_vpn and row["connectorName"] == connector
        ]


def is_up(row: Row) -> bool:
    """Return whether the bridge of a row is logged in. A stalled one is, and has as much to lose."""
    return row["health"] in LOGGED_IN


def effect_name(effect: Effect) -> str:
    """Return an effect as rows have it: `next-login`."""
    return effect.name.lower().replace("_", "-")


_MSG_VPNS: Final = "msg_vpns"
_PAUSED: Final = "paused"
_SWITCHED_ON: Final = "-> true"
"""In the text of a change."""

_VPN: Final = 2
_MEMBER: Final = 4
_LINK: Final = 6
"""Lengths of the paths `msg_vpns.NAME`, `msg_vpns.NAME.queues.NAME` and `msg_vpns.NAME.connectors.NAME.links.NAME`."""


def risks_of(changes: Iterable[Row], current: RouterState) -> list[Risk]:
    """Return the risks of `changes` (rows `path`, a list, `text` and `effect` of the examine call), each once."""
    risks = [risk for change in changes for risk in _risks(change, current)]
    return list(dict.fromkeys(risks))


def _risks(change: Row, current: RouterState) -> list[Risk]:
    path, effect = [str(step) for step in change["path"]], change["effect"]
    if effect == effect_name(Effect.REMOVED):
        return _removed(path, current)
    if path[-1] == _PAUSED and path[0] == _MSG_VPNS:
        return _paused(path) if _SWITCHED_ON in change["text"] else []
    if effect == effect_name(Effect.DISCONNECT):
        return [Risk("disconnects", _shut_out(path, current))]
    if effect in {effect_name(Effect.RECONNECT), effect_name(Effect.RECONNECT_IF_USED)}:
        return _flaps(path, effect, current)
    if effect == effect_name(Effect.REBIND):
        return [Risk("flaps", f"listener {path[1]} is bound anew")]
    return []


def _removed(path: list[str], current: RouterState) -> list[Risk]:
    risks = []
    if path[0] == "listeners":
        return [Risk("flaps", f"listener {path[1]} takes no more connections")]
    if len(path) == _VPN:
        clients = current.connections(path[1])
        if clients:
            risks.append(
                Risk("disconnects", f"{_many(clients, 'client')} of message VPN {path[1]}")
            )
        spooled = current.spooled(path[1])
        if spooled:
            risks.append(
                Risk("loses", f"{_many(spooled, 'message')} in the queues of message VPN {path[1]}")
            )
    elif len(path) == _MEMBER:
        _, vpn, kind, name = path
        spooled = current.spooled(vpn, name) if kind in {"queues", "topic_endpoints"} else 0
        if spooled:
            risks.append(Risk("loses", f"{_many(spooled, 'message')} in {vpn}/{name}"))
        if kind == "client_usernames":
            risks.append(Risk("disconnects", f"whoever is logged in to {vpn} as {name}"))
        if kind == "bridges" and current.is_up(vpn, name):
            risks.append(Risk("flaps", f"bridge {vpn}/{name} is up and goes"))
        if kind == "connectors":
            risks += _connector_removed(vpn, name, current)
    elif path[2] == "connectors" and len(path) == _LINK and path[_MEMBER] == "links":
        kept = current.kept(vpn := path[1], path[3], path[5])
        if kept:
            what = f"{_many(kept, 'message')} kept for link {path[5]} of connector {vpn}/{path[3]}"
            risks.append(Risk("loses", what))
        return [*risks, *_flaps(path, effect_name(Effect.RECONNECT), current)]
    elif len(path) > _MEMBER and path[2] == "bridges" and path[_MEMBER] == "remote_msg_vpns":
        return _flaps(path, effect_name(Effect.RECONNECT_IF_USED), current)
    return risks


def _paused(path: list[str]) -> list[Risk]:
    """Return what is not carried, and where it is meanwhile."""
    _, vpn, kind, name, *more = path
    if kind == "bridges":
        what = f"bridge {vpn}/{name}: guaranteed messages wait in the remote queue, Direct ones are not asked for"
    else:
        which = f"link {more[1]} of connector" if len(more) > 1 else "connector"
        what = f"{which} {vpn}/{name}: nothing crosses, and guaranteed messages are kept"
    return [Risk("pauses", what)]


def _connector_removed(vpn: str, name: str, current: RouterState) -> list[Risk]:
    risks = []
    kept = current.kept(vpn, name)
    if kept:
        risks.append(Risk("loses", f"{_many(kept, 'message')} kept for connector {vpn}/{name}"))
    if current.connector_is_up(vpn, name):
        text = f"connector {vpn}/{name} is up and goes, with its session at the provider"
        risks.append(Risk("flaps", text))
    return risks


def _shut_out(path: list[str], current: RouterState) -> str:
    vpn = path[1]
    if len(path) >= _MEMBER:
        return f"whoever is logged in to {vpn} as {path[3]}"
    return f"{_many(current.connections(vpn), 'client')} of message VPN {vpn}"


def _flaps(path: list[str], effect: str, current: RouterState) -> list[Risk]:
    vpn = path[1]
    if len(path) >= _MEMBER and path[2] == "bridges":
        if not current.is_up(vpn, path[3]):
            return []
        how = " if it uses this remote" if effect == effect_name(Effect.RECONNECT_IF_USED) else ""
        return [Risk("flaps", f"bridge {vpn}/{path[3]} reconnects{how}")]
    if len(path) >= _MEMBER and path[2] == "connectors":
        if not current.connector_is_up(vpn, path[3]):
            return []
        return [Risk("flaps", f"connector {vpn}/{path[3]} reconnects")]
    return [Risk("flaps", f"the TLS bridges and the connectors of message VPN {vpn} reconnect")]


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
