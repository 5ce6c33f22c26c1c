"""The settings of a bridge for a remote message VPN, and the test whether two bridges may share a connection.

Two uni-directional bridges between the same two message VPNs are not allowed; a compatible incoming bridge becomes bi-
directional instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.wire.link.frames import BASIC, LANES_TOPIC, ON_REJECT_BLOCK

if TYPE_CHECKING:
    from vpnrouter.topics.mapping import TopicMapping


@final
class FlowSettings:
    """`on_reject` is ON_REJECT_…, `lanes` LANES_… of frames.py, `mapping` renames what comes in.

    A message that is refused is tried again after `retry_ms` at the latest.
    """

    __slots__ = ("lanes", "mapping", "max_ttl", "on_reject", "retry_ms", "selector")

    def __init__(
        self,
        on_reject: int = ON_REJECT_BLOCK,
        lanes: int = LANES_TOPIC,
        retry_ms: int = 1000,
        max_ttl: int = limits.HOPS,
        mapping: TopicMapping | None = None,
        selector: str = "",
    ) -> None:
        self.on_reject = on_reject
        self.lanes = lanes
        self.retry_ms = retry_ms
        self.max_ttl = max_ttl
        self.mapping = mapping
        self.selector = selector


WINDOW: Final = 255
"""Guaranteed messages on the way and not acknowledged, where a bridge does not say."""


@final
class RemoteSettings:
    """The settings of a bridge for one remote message VPN; filters are in `*` `>` dialect with their flags.

    `selectors` holds the selector of each filter that has one. `scheme` is BASIC, SCRAM or CLIENT_CERTIFICATE of
    frames.py. `verified` says that TLS verifies the remote's name. `compress` offers compression. `mapping` renames
    received topics. Guaranteed messages come from `queue`, "" for none, with at most `window` in flight; `flow` says
    how they are handled here. A queue that is refused is bound again after `retry_delay_ms`.
    """

    __slots__ = (
        "bridge",
        "client_username",
        "compress",
        "filters",
        "flow",
        "heartbeat_ms",
        "mapping",
        "max_ttl",
        "password",
        "queue",
        "remote_router",
        "remote_vpn",
        "retry_delay_ms",
        "scheme",
        "selectors",
        "verified",
        "window",
    )

    def __init__(
        self,
        bridge: str,
        remote_vpn: str,
        remote_router: str,
        client_username: str,
        password: str,
        filters: list[tuple[int, str]],
        max_ttl: int = limits.HOPS,
        heartbeat_ms: int = limits.LINK_HEARTBEAT_MS,
        selectors: dict[str, str] | None = None,
        scheme: int = BASIC,
        compress: bool = False,
        mapping: TopicMapping | None = None,
        queue: str = "",
        window: int = WINDOW,
        flow: FlowSettings | None = None,
        retry_delay_ms: int = 0,
        verified: bool = False,
    ) -> None:
        self.verified = verified
        self.bridge = bridge
        self.remote_vpn = remote_vpn
        self.remote_router = remote_router
        self.client_username = client_username
        self.password = password
        self.filters = filters
        self.selectors: dict[str, str] = {} if selectors is None else selectors
        self.max_ttl = max_ttl
        self.heartbeat_ms = heartbeat_ms
        self.scheme = scheme
        self.compress = compress
        self.mapping = mapping
        self.queue = queue
        self.window = window
        self.flow = FlowSettings(max_ttl=max_ttl, mapping=mapping) if flow is None else flow
        self.retry_delay_ms = retry_delay_ms


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
