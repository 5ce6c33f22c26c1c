"""Lists the kinds of faults that can be planted, by the names of their findings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vpnrouter.simulation.faults import routers, traffic
from vpnrouter.simulation.faults.placement import Placement

KINDS: Final[Mapping[str, Callable[[Placement], None]]] = {
    "loop": traffic.loop,
    "two_ways": traffic.two_ways,
    "duplicate": traffic.duplicate,
    "black_hole": traffic.black_hole,
    "never_matched": traffic.never_matched,
    "over_broad": traffic.over_broad,
    "skewed_partition": traffic.skewed_partition,
    "full_queue": traffic.full_queue,
    "growing_queue": traffic.growing_queue,
    "flapping_link": routers.flapping_link,
    "refused_bridge": routers.refused_bridge,
    "stalled_bridge": routers.stalled_bridge,
    "hot_bridge": routers.hot_bridge,
    "head_of_line": routers.head_of_line,
    "clock_skew": routers.clock_skew,
    "clock_moved": routers.clock_moved,
}
"""Each plants one fault that the traces show."""

DRIFT_KINDS: Final[Mapping[str, Callable[[Placement], None]]] = {
    "missing_vpn": routers.missing_vpn,
    "missing_bridge": routers.missing_bridge,
    "unknown_bridge": routers.unknown_bridge,
    "missing_subscription": routers.missing_subscription,
    "unknown_subscription": routers.unknown_subscription,
}
"""Each plants one fault that only a report with the configurations can find."""

ALL_KINDS: Final = {**KINDS, **DRIFT_KINDS}
"""Both."""


def plant(placement: Placement, kinds: Sequence[str]) -> None:
    """Plant one fault for each of `kinds`, which may be in there several times.

    Raises:
        OperationError: the mesh is too small for them.
    """
    order = list(ALL_KINDS)
    for kind in sorted(kinds, key=order.index):
        ALL_KINDS[kind](placement)
