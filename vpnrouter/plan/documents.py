"""Makes the documents of each step from a router's present configuration to the planned one.

Bridges have two ends, so a change is made in three steps, each at all routers before the next one begins:

grow    what is new is there before anything asks for it: message VPNs, profiles, client usernames,
        queues, listeners
bridge  bridges and connectors as they shall be
trim    what nobody asks for any more goes
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Final, NamedTuple

from vpnrouter.config.parse import Plain
from vpnrouter.settings.kinds import KINDS

MSG_VPNS: Final = "msg_vpns"
LINKS: Final = tuple(kind.key for kind in KINDS if kind.is_of_vpn and kind.leads_out)
"""What of a message VPN leads out of it."""

LISTENERS: Final = "listeners"

OBJECTS: Final = tuple(kind.key for kind in KINDS if kind.is_of_vpn and not kind.leads_out)
"""What of a message VPN are objects by name, what leads out of it left out."""


class Step(NamedTuple):
    """One change of one router: its name in the order above, and the document after it."""

    name: str
    document: Plain


def wanted(current: Plain, planned: Plain, *, prune: bool, kept: Iterable[str] = ()) -> Plain:
    """Return the configuration that a router is to have: `planned` over `current`, whole blocks at the top.

    Blocks that `planned` does not have, and those in `kept`, stay as they are. So do message VPNs that it does
    not name, unless `prune`.
    """
    stay = set(kept)
    document = deepcopy(current)
    for key, value in planned.items():
        if key in stay:
            continue
        if key == MSG_VPNS and not prune:
            document[key] = {**(document.get(key) or {}), **deepcopy(value or {})}
        else:
            document[key] = deepcopy(value)
    return document


def unnamed(current: Plain, planned: Plain) -> list[str]:
    """Return the message VPNs of a router that a mesh file leaves out."""
    named = planned.get(MSG_VPNS) or {}
    return [name for name in current.get(MSG_VPNS) or {} if name not in named]


def steps(current: Plain, goal: Plain) -> list[Step]:
    """Return the documents on the way from `current` to `goal`; those that change nothing are left out."""
    if current == goal:
        return []
    grown = _grown(current, goal)
    documents = []
    before = current
    for step in (
        Step("grow", grown),
        Step("bridge", _bridged(grown, goal)),
        Step("trim", goal),
    ):
        if step.document != before:
            documents.append(step)
            before = step.document
    return documents


def _grown(current: Plain, goal: Plain) -> Plain:
    document = deepcopy(current)
    for key, value in goal.items():
        if key not in {MSG_VPNS, LISTENERS}:
            document[key] = deepcopy(value)
    if LISTENERS in current or LISTENERS in goal:
        document[LISTENERS] = _union(_listed(current), _listed(goal))
    if MSG_VPNS in current or MSG_VPNS in goal:
        have, want = current.get(MSG_VPNS) or {}, goal.get(MSG_VPNS) or {}
        document[MSG_VPNS] = {
            name: _grown_vpn(have.get(name), want[name]) if name in want else deepcopy(have[name])
            for name in {**have, **want}
        }
    return document


def _grown_vpn(have: Plain, want: Plain) -> Plain:
    """Return a message VPN with its old bridges and connectors and all its other objects, old and new."""
    have, want = have or {}, want or {}
    grown = {**deepcopy(have), **deepcopy({k: v for k, v in want.items() if k not in LINKS})}
    for key in OBJECTS:
        if key in have or key in want:
            grown[key] = deepcopy({**(have.get(key) or {}), **(want.get(key) or {})})
    return grown


def _bridged(grown: Plain, goal: Plain) -> Plain:
    document = deepcopy(grown)
    if LISTENERS in document:
        document[LISTENERS] = _union(_listed(goal), _listed(grown))
    want = goal.get(MSG_VPNS) or {}
    for name, vpn in (document.get(MSG_VPNS) or {}).items():
        shall = want.get(name) or {}
        for key in LINKS:
            if key in shall:
                vpn[key] = deepcopy(shall[key])
            elif vpn is not None:
                vpn.pop(key, None)
    return document


def _listed(document: Plain) -> list[Mapping[str, Plain]]:
    return list(document.get(LISTENERS) or [])


def _union(first: list[Mapping[str, Plain]], second: list[Mapping[str, Plain]]) -> Plain:
    """Return the listeners of `first`, then those of `second` at other addresses."""
    addresses = {_address(listener) for listener in first}
    return deepcopy([*first, *(each for each in second if _address(each) not in addresses)])


def _address(listener: Mapping[str, Plain]) -> tuple[object, object]:
    return listener.get("protocol"), listener.get("bind")
