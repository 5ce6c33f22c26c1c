"""The kinds of faults that can be planted, by the names of their findings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vpnrouter.simulation.faults import clocks, drift, links, topics, ways
from vpnrouter.simulation.faults.ground import Ground

KINDS: Final[Mapping[str, Callable[[Ground], None]]] = {
    "loop": ways.loop,
    "two_ways": ways.two_ways,
    "duplicate": ways.duplicate,
    "black_hole": topics.black_hole,
    "never_matched": topics.never_matched,
    "over_broad": topics.over_broad,
    "skewed_partition": topics.skewed_partition,
    "flapping_link": links.flapping_link,
    "stalled_bridge": links.stalled_bridge,
    "hot_bridge": links.hot_bridge,
    "head_of_line": links.head_of_line,
    "clock_skew": clocks.clock_skew,
}
"""Each plants one fault that the traces show."""

DRIFT_KINDS: Final[Mapping[str, Callable[[Ground], None]]] = {
    "missing_vpn": drift.missing_vpn,
    "missing_bridge": drift.missing_bridge,
    "unknown_bridge": drift.unknown_bridge,
    "missing_subscription": drift.missing_subscription,
    "unknown_subscription": drift.unknown_subscription,
}
"""Each plants one fault that only a report with the configurations can find."""

ALL_KINDS: Final = {**KINDS, **DRIFT_KINDS}
"""Both."""


def plant(ground: Ground, kinds: Sequence[str]) -> None:
    """Plant one fault for each of `kinds`, which may stand several times.

    Raises:
        OperationError: the mesh is too small for them.
    """
    order = list(ALL_KINDS)
    for kind in sorted(kinds, key=order.index):
        ALL_KINDS[kind](ground)
