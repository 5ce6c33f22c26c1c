"""May an incoming bridge and the local one share a connection? Five tests, all must pass.

Two uni-directional bridges between the same two message VPNs are not allowed; a compatible incoming
bridge becomes bi-directional instead.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Half:
    """One side's bridge: where it is and what it is configured to reach.

    `remote_router` is the name configured, or learned from an earlier WELCOME; "" while unknown.
    """

    router: str
    vpn: str
    remote_router: str
    remote_vpn: str
    tls: bool


def incompatible(local: Half, peer: Half) -> tuple[str, ...]:
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
