"""The settings of a bridge for a remote message VPN, and the test whether two bridges may share a connection.

Two uni-directional bridges between the same two message VPNs are not allowed; a compatible incoming bridge becomes bi-
directional instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.failure_policy import FailurePolicy
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link.frames import BASIC, LANES_TOPIC, ON_REJECT_BLOCK

if TYPE_CHECKING:
    from vpnrouter.topics.mapping import TopicMapping


def _never() -> FailurePolicy:
    """Return the policy of a bridge that gives nothing up."""
    return FailurePolicy(reject_attempts=0)


@final
@dataclass(slots=True, eq=False, repr=False)
class FlowSettings:
    """How a bridge handles guaranteed messages, from whichever remote they come.

    `on_reject` is ON_REJECT_…, `lanes` LANES_… of frames.py, `mapping` renames what comes in. A message that is refused
    is tried again after `retry_ms` at the latest, and `failures` says what becomes of it if it is refused for good.
    While it is `paused` none enters.
    """

    on_reject: int = ON_REJECT_BLOCK
    lanes: int = LANES_TOPIC
    retry_ms: int = 1000
    max_ttl: int = limits.HOPS
    mapping: TopicMapping | None = None
    selector: str = ""
    failures: FailurePolicy = field(default_factory=_never)
    paused: bool = False


WINDOW: Final = 255
"""Guaranteed messages on the way and not acknowledged, where a bridge does not say."""


@final
@dataclass(slots=True, eq=False, repr=False)
class RemoteSettings:
    """The settings of a bridge for one remote message VPN; filters are in `*` `>` dialect with their flags.

    `selectors` holds the selector of each filter that has one. `scheme` is BASIC, SCRAM or CLIENT_CERTIFICATE of
    frames.py. `verified` says that TLS verifies the remote's name. `compress` offers compression. `mapping` renames
    received topics. Guaranteed messages come from `queue`, "" for none, with at most `window` in flight; `flow` says
    how they are handled here. A queue that is refused is bound again after `retry_delay_ns`.
    """

    bridge: str = ""
    remote_vpn: str = ""
    remote_router: str = ""
    client_username: str = ""
    password: str = ""
    scheme: int = BASIC
    verified: bool = False
    filters: list[tuple[int, str]] = field(default_factory=list)
    selectors: dict[str, str] = field(default_factory=dict)
    mapping: TopicMapping | None = None
    max_ttl: int = limits.HOPS
    heartbeat_ms: int = limits.LINK_HEARTBEAT_MS
    compress: bool = False
    queue: str = ""
    window: int = WINDOW
    flow: FlowSettings = field(default_factory=FlowSettings)
    retry_delay_ns: int = 3 * SECOND_NS


@dataclass(frozen=True, slots=True)
class BridgeEnds:
    """One side's bridge: where it is and what it is configured to reach.

    `remote_router` is the name configured, or learned from an earlier WELCOME; "" while unknown.
    """

    router: str
    vpn: str
    remote_router: str
    remote_vpn: str
    tls: bool


def incompatible(local: BridgeEnds, peer: BridgeEnds) -> tuple[str, ...]:
    """The tests that fail, as texts for people; empty when the peer's connection can be used.

    A router name that is not known matches nothing: reusing the connection of some other router
    would attract that router's messages.
    """
    failed: list[str] = []
    if not peer.remote_router or peer.remote_router != local.router:
        failed.append(
            f"the peer's bridge is for router {peer.remote_router!r}, not {local.router!r}"
        )
    if not local.remote_router or local.remote_router != peer.router:
        failed.append(f"the peer is router {peer.router!r}, not {local.remote_router!r}")
    if peer.remote_vpn != local.vpn:
        failed.append(
            f"the peer's bridge is for message VPN {peer.remote_vpn!r}, not {local.vpn!r}"
        )
    if local.remote_vpn != peer.vpn:
        failed.append(f"the peer's bridge is in message VPN {peer.vpn!r}, not {local.remote_vpn!r}")
    if local.tls != peer.tls:
        failed.append("TLS is configured on one side only")
    return tuple(failed)
