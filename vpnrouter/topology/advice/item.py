"""One piece of advice before it has its rank."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from vpnrouter.topology.findings import ERROR, INFO, WARNING, Finding, Severity

Action = Literal[
    "break_loop",
    "repair_link",
    "relieve_endpoint",
    "relieve_bridge",
    "apply_configuration",
    "add_subscription",
    "narrow_subscription",
    "drop_way",
    "set_clock",
    "spread_partitions",
    "drop_subscription",
    "write_down",
    "add_link",
    "move_vpn",
]

_SEVERITIES: Final = {ERROR: 200.0, WARNING: 100.0, INFO: 0.0}
_A_DECADE: Final = 10.0
"""Points for each tenfold of messages, so that severity goes before gain, and gain before names."""

_MOST: Final = 99.0


@dataclass(frozen=True, kw_only=True)
class Item:
    """`severity` is that of the worst finding behind it, `gain` the messages that it helps, as traced."""

    action: Action
    severity: Severity
    advice: str
    evidence: str
    effect: str
    gain: int = 0
    router: str | None = None
    vpn: str | None = None
    peer_router: str | None = None
    peer_vpn: str | None = None
    bridge: str | None = None
    client: str | None = None
    endpoint: str | None = None
    topic: str | None = None

    @property
    def score(self) -> float:
        """200, 100 or 0 by severity, and up to 99 by gain."""
        points = _A_DECADE * math.log10(1 + max(0, self.gain))
        return round(_SEVERITIES[self.severity] + min(points, _MOST), 1)

    def row(self, rank: int) -> dict[str, Any]:
        """As a row of ADVICE."""
        fields = asdict(self)
        del fields["severity"], fields["gain"]
        return {**fields, "rank": rank, "score": self.score}


def worst_of(findings: Sequence[Finding]) -> Severity:
    """The worst severity among findings."""
    return max((one.severity for one in findings), key=lambda one: _SEVERITIES[one])


def place_of(finding: Finding, *names: str) -> dict[str, str | None]:
    """Fields of a finding for an Item; by default those of a bridge."""
    fields = names or ("router", "vpn", "peer_router", "peer_vpn", "bridge")
    return {name: getattr(finding, name) for name in fields}


def messages_of(findings: Sequence[Finding]) -> int:
    """Messages of all together."""
    return sum(one.messages or 0 for one in findings)


def bytes_of(findings: Sequence[Finding]) -> int:
    """Bytes of all together."""
    return sum(one.bytes or 0 for one in findings)
