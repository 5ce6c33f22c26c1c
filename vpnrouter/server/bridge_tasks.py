"""The task that keeps one bridge connected: choose a remote, dial, hand the socket over, wait, again."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.bridges.backoff import SECOND, Backoff
from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.dialer import BridgeTerms, DialedLink, LinkEvent, Owner
from vpnrouter.bridges.remotes import Remote, Remotes
from vpnrouter.bridges.states import Inbound, Input
from vpnrouter.server.flush import flush_ready
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, to_smf
from vpnrouter.wire.link.encode import subscription_flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.config.bridge import RemoteMsgVpn
    from vpnrouter.core.router import Router
    from vpnrouter.server.host import Host

CONNECT_S: Final = 10.0
"""Seconds for looking a name up and for connecting, each: a dead remote holds up nothing but its bridge."""

VERSION_WAIT_S: Final = 60.0
"""Seconds before a remote that speaks another major version is tried again."""

NO_TLS: Final = "TLS is not offered for bridges by this version"
"""Why a bridge stays down that wants TLS, or a client certificate, for all its remotes."""

PRIORITIES: Final = {"da": 0, "p1": 1, "p2": 2, "p3": 3, "p4": 4}


@final
class BridgeRunner(Owner):
    """One bridge of the configuration, its state, and the link it has or is after."""

    def __init__(
        self, router: Router, host: Host, vpn_name: str, name: str, written: BridgeConfig
    ) -> None:
        self._router = router
        self._host = host
        self._vpn = router.vpns[vpn_name]
        self._written = written
        self._name = name
        self._by_key = {
            (remote.name, remote.location): remote for remote in written.remote_msg_vpns
        }
        self._remotes = Remotes(
            [
                Remote(remote.name, remote.location, remote.connect_order, remote.enabled)
                for remote in written.remote_msg_vpns
                if _can_dial(written, remote)
            ],
            written.remote_connection.retry_count,
        )
        delay_ns = written.remote_connection.retry_delay * SECOND
        self._backoff = Backoff(delay_ns, max(30 * SECOND, delay_ns))
        self._ended = trio.Event()
        self._filters = subscriptions(written)
        self.record = Bridge(
            BridgeFacts(
                router.name,
                vpn_name,
                name,
                written.remote_authentication.basic.client_username or "",
                written.max_ttl,
                written.remote_deliver_to_one_priority,
            ),
            time.monotonic_ns(),
        )
        self.link: DialedLink | None = None
        self._was_up = False
        self._refused = False
        self._told = ""

    # -- events from the link --------------------------------------------------------------------

    def link_event(self, event: LinkEvent, reason: str) -> None:
        """See Owner.link_event."""
        now_ns = time.monotonic_ns()
        record = self.record
        if event == LinkEvent.WELCOMED:
            self._backoff.up(now_ns)
            self._was_up = True
            record.remote_router_name = "" if self.link is None else self.link.peer_router
            record.handle(Input.WELCOMED, now_ns)
        elif event == LinkEvent.SUBSCRIBED:
            if reason:
                narrate(record, f"remote subscription refused: {reason}")
            record.handle(Input.SUBSCRIBED, now_ns)
            narrate(record, "up")
        elif event == LinkEvent.REFUSED:
            self._refused = True
            record.handle(Input.REFUSED, now_ns, reason)
            narrate(record, f"rejected: {reason}")
        elif event == LinkEvent.VERSION_MISMATCH:
            record.handle(Input.VERSION_MISMATCH, now_ns, reason)
            narrate(record, f"rejected: {reason}")
        else:
            if record.is_up or record.inbound_state is Inbound.NOT_READY_HANDSHAKING:
                record.handle(Input.LOST, now_ns, reason)
                narrate(record, f"down: {reason}")
            self._ended.set()

    # -- the task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the bridge connected until cancelled."""
        record = self.record
        if not self._written.enabled:
            record.handle(Input.DISABLE, time.monotonic_ns())
            return
        record.handle(Input.ENABLE, time.monotonic_ns())
        while True:
            remote = self._remotes.current
            if remote is None:
                # Better down than a password in the clear: what asks for TLS is not dialled without.
                wanted = any(each.enabled for each in self._written.remote_msg_vpns)
                record.inbound_failure_reason = NO_TLS if wanted else "Remote message-vpns disabled"
                narrate(record, f"stays down: {record.inbound_failure_reason}")
                await trio.sleep_forever()
            delay_ns = self._backoff.delay_ns(
                time.monotonic_ns(),
                random.random(),  # noqa: S311 - jitter, not a secret
            )
            await trio.sleep(delay_ns / SECOND)
            if record.inbound_state in (
                Inbound.NOT_READY_WAIT_NEXT,
                Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH,
            ):
                record.handle(Input.NEXT_REMOTE, time.monotonic_ns())
            await self._attempt(self._by_key[(remote.msg_vpn, remote.location)])

    async def _attempt(self, remote: RemoteMsgVpn) -> None:
        record = self.record
        sock = await self._dial(remote)
        if sock is None:
            # Told once and not at every attempt: a remote may be away for days.
            if record.inbound_failure_reason != self._told:
                self._told = record.inbound_failure_reason
                record.remote_address = remote.location
                narrate(record, f"not connected: {self._told}")
            self._backoff.down(time.monotonic_ns())
            self._remotes.failed()
            return
        self._told = ""
        record.handle(Input.CONNECTED, time.monotonic_ns())
        self._ended = trio.Event()
        self._host.set_clocks()
        link = DialedLink(self._vpn, remote.location, self._terms(remote), self)
        self.link = link
        self._was_up = False
        self._refused = False
        record.remote = self._remotes.current
        record.remote_address = remote.location
        self._host.add(sock, link)
        flush_ready(self._router.plane)
        await self._ended.wait()
        await self._after(record)

    async def _after(self, record: Bridge) -> None:
        """The link is gone: what the bridge does next depends on how far it had come."""
        now_ns = time.monotonic_ns()
        link = self.link
        self.link = None
        if link is not None:
            record.counters.data_rx(link.received_msgs, link.received_bytes, now_ns)
        if record.inbound_state is Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH:
            self._backoff.refused(now_ns)
            self._remotes.failed()
            await trio.sleep(VERSION_WAIT_S)
            return
        record.handle(Input.CLEANED, now_ns)
        if self._was_up:
            self._backoff.down(now_ns)
            self._remotes.lost()
            return
        if self._refused:
            self._backoff.refused(now_ns)
        else:
            self._backoff.down(now_ns)
        self._remotes.failed()

    async def _dial(self, remote: RemoteMsgVpn) -> socket.socket | None:
        record = self.record
        record.handle(Input.DIAL, time.monotonic_ns())
        address = remote.address
        if address is None:
            record.handle(
                Input.FAILED, time.monotonic_ns(), f"no link to router {remote.location[2:]}"
            )
            return None
        try:
            with trio.fail_after(CONNECT_S):
                found = await trio.socket.getaddrinfo(
                    address.host, address.port, type=socket.SOCK_STREAM
                )
        except (OSError, UnicodeError, trio.TooSlowError) as error:
            record.handle(
                Input.FAILED, time.monotonic_ns(), f"cannot look up {address.host}: {_why(error)}"
            )
            return None
        record.handle(Input.RESOLVED, time.monotonic_ns())
        try:
            return await _connect(found)
        except (OSError, trio.TooSlowError) as error:
            record.handle(
                Input.FAILED, time.monotonic_ns(), f"cannot connect to {address}: {_why(error)}"
            )
            return None

    def _terms(self, remote: RemoteMsgVpn) -> BridgeTerms:
        basic = self._written.remote_authentication.basic
        username = basic.client_username or ""
        password = basic.password
        if remote.client_username is not None:
            username = remote.client_username
            password = remote.password
        return BridgeTerms(
            self._name,
            remote.name,
            remote.router or "",
            username,
            "" if password is None else password.reveal(),
            self._filters,
            self._written.max_ttl,
        )


async def _connect(found: Sequence[tuple[int, int, int, str, object]]) -> socket.socket:
    """A connected socket to the first of the addresses that answers; they share CONNECT_S."""
    last: OSError | trio.TooSlowError | None = None
    for family, kind, protocol, _, address in found:
        sock = trio.socket.socket(family, kind, protocol)
        try:
            # One address that swallows everything must not keep the next from being tried.
            with trio.fail_after(CONNECT_S / len(found)):
                await sock.connect(address)
        except (OSError, trio.TooSlowError) as error:
            sock.close()
            last = error
            continue
        except BaseException:
            sock.close()
            raise
        return socket.socket(fileno=sock.detach())
    raise last or OSError("no address")


def _can_dial(written: BridgeConfig, remote: RemoteMsgVpn) -> bool:
    return not remote.tls_enabled and written.remote_authentication.scheme == "basic"


def subscriptions(written: BridgeConfig) -> list[tuple[int, str]]:
    """The remote subscriptions of a bridge as (flags, filter in `*` `>` dialect)."""
    dialect = MQTT if written.topic_syntax == "mqtt" else SMF
    priority = PRIORITIES[written.remote_deliver_to_one_priority]
    wanted: dict[str, int] = {}
    for subscription in written.remote_subscriptions:
        flags = subscription_flags(priority, deliver_always=subscription.deliver_always_enabled)
        for text in to_smf(parse_filter(subscription.topic, dialect)):
            wanted[text] = flags
    return [(flags, text) for text, flags in wanted.items()]


def _why(error: OSError | UnicodeError | trio.TooSlowError) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(error, UnicodeError):
        return "not a host name"
    if error.errno is not None and error.errno > 0:
        # The words of the library name the address once more.
        return os.strerror(error.errno)
    return error.strerror or str(error)


def narrate(record: Bridge, what: str) -> None:
    """Tell the operator on stderr what became of a bridge."""
    facts = record.facts
    where = f"{record.remote_router_name or '?'} at {record.remote_address}"
    print(
        f"vpnrouter: VPN {facts.msg_vpn} bridge {facts.name} from {where}: {what}", file=sys.stderr
    )
