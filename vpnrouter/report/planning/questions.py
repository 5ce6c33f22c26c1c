"""What a report is asked: which routers and bridges to leave out, and which message VPNs to load more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from vpnrouter.errors import OperationError


class Questions(NamedTuple):
    """`without` are names of routers (`core`) and bridges by their local end (`core/yellow:fares`), which go together;
    `double` are message VPNs (`edge/blue`), each a question of its own.
    """

    without: tuple[str, ...] = ()
    double: tuple[str, ...] = ()


NONE: Final = Questions()


def parse_questions(without: Sequence[str], double: Sequence[str]) -> Questions:
    """Return the questions of a command.

    Raises:
        OperationError: a name is neither a router nor a bridge (`without`), or no message VPN (`double`).
    """
    for name in without:
        router, slash, rest = name.partition("/")
        vpn, colon, bridge = rest.rpartition(":")
        if not router or (slash and not (colon and vpn and bridge)):
            raise OperationError(f"{name!r} is neither ROUTER nor ROUTER/VPN:BRIDGE")
    for name in double:
        router, _, vpn = name.partition("/")
        if not router or not vpn:
            raise OperationError(f"{name!r} is not ROUTER/VPN")
    return Questions(tuple(dict.fromkeys(without)), tuple(dict.fromkeys(double)))
