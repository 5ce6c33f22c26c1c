"""Joins connections in memory, and lets bridges of the mesh reach each other's listeners."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.link import LinkFactory
from vpnrouter.bridges.link_registry import client_name_of
from vpnrouter.config.mesh.remotes import is_loopback, link_listeners, listener_at
from vpnrouter.core.credentials import PeerCertificate
from vpnrouter.errors import OperationError
from vpnrouter.server.net.tls import certificate_of

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.config.mesh.remotes import ConfiguredRemote, Routers
    from vpnrouter.core.connection import Connection
    from vpnrouter.explain.observed import Observed
    from vpnrouter.explain.router import MemoryRouter
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication


_ALL: Final = 1 << 40


@final
class ConnectionPair:
    """Both ends of one connection; `pump` carries what they have to say."""

    def __init__(self, dialed: Connection, accepted: Connection) -> None:
        self._ends = (dialed, accepted)
        self._over = [False, False]

    @property
    def over(self) -> bool:
        """Whether both ends know that the connection is gone."""
        return all(self._over)

    def pump(self) -> bool:
        """Carry everything to the other side. Return False when neither end had anything."""
        moved = False
        for index, sender in enumerate(self._ends):
            receiver = self._ends[1 - index]
            data = take_all(sender)
            if data:
                moved = True
                if not receiver.closing:
                    receiver.feed(data)
            if sender.closing and not sender.outbox.size and not self._over[index]:
                moved = True
                self._end(index, "closed")
                if not self._over[1 - index]:
                    self._end(1 - index, "closed by peer")
        return moved

    def _end(self, index: int, reason: str) -> None:
        self._over[index] = True
        self._ends[index].lost(reason)


def take_all(connection: Connection) -> bytes:
    """Return all bytes that wait to leave over a connection that has no socket."""
    outbox = connection.outbox
    data = outbox.take(_ALL)
    outbox.dirty = False
    return data


_END: Final = "-----END CERTIFICATE-----"


@final
class Network:
    """The way out of one router: `routers` and `nodes` are the mesh, `wires` takes the connections made.

    `observed` is what running routers tell.
    """

    def __init__(
        self,
        routers: Routers,
        nodes: dict[str, MemoryRouter],
        wires: list[ConnectionPair],
        observed: Observed,
    ) -> None:
        self._observed = observed
        self._routers = routers
        self._nodes = nodes
        self._wires = wires

    def reach(
        self,
        configured: ConfiguredRemote,
        host: str,
        *,
        tls: bool,
        client_cert: ClientCertRemoteAuthentication | None,
    ) -> Link:
        """Return the acceptor's end of a connection to the remote at `configured`, dialled at `host`.

        Raises OperationError that says in one line why the remote cannot be reached.
        """
        peer, unknown = self._routers.resolve(configured)
        if peer is None:
            raise OperationError(unknown)
        node = self._nodes[peer.config.router.name]
        listeners = link_listeners(peer.config)
        if not listeners:
            raise OperationError(f"router {node.name} has no link listener")
        listener = listener_at(peer.config, configured.remote.address) or next(
            # Behind a translated address the files do not tell which it is.
            (one for one in listeners if (one.protocol == "links") == tls),
            listeners[0],
        )
        encrypted = listener.protocol == "links"
        if encrypted != tls:
            spoken = "speaks" if encrypted else "does not speak"
            raise OperationError(f"the listener {listener.bind} of router {node.name} {spoken} TLS")
        link = LinkFactory(node.book, tls=encrypted).connection(
            "127.0.0.1" if is_loopback(host) else ""
        )
        if tls and client_cert is not None:
            if listener.tls is None or listener.tls.client_ca is None:
                raise OperationError(
                    f"the listener {listener.bind} of router {node.name} asks for no client certificate"
                )
            link.certificate = self._shown_by(configured, node, client_cert.certificate or "")
        return link

    def _shown_by(
        self, configured: ConfiguredRemote, peer: MemoryRouter, file: str
    ) -> PeerCertificate:
        """Return the certificate that a bridge shows to `peer`: of a running router one for whom it is logged in as."""
        own = configured.loaded.config.router.name
        if own not in self._observed.routers:
            return _certificate(file)
        bridge = client_name_of(own, configured.msg_vpn, configured.bridge_name)
        username = self._observed.usernames.get((peer.name, configured.remote.name, bridge), "")
        if not username:
            raise OperationError(
                f"its client certificate {file} is not here, and router {peer.name} does not tell whom it names"
            )
        return certificate_for(username, peer.router.context.wall_ns)

    def join(self, dialed: Link, accepted: Link) -> None:
        """Join both ends of a connection by a wire."""
        self._wires.append(ConnectionPair(dialed, accepted))


def certificate_for(username: str, wall_ns: int) -> PeerCertificate:
    """Return a certificate that names a client username, whatever part of it is asked for."""
    return PeerCertificate(username, (username,), username, wall_ns, wall_ns, 0, f"CN={username}")


def _certificate(file: str) -> PeerCertificate:
    """Return what the certificate that a bridge shows says of it; no authority is asked."""
    try:
        text = Path(file).read_text(encoding="ascii")
        begin = text.index("-----BEGIN CERTIFICATE")
        end = text.index(_END, begin) + len(_END)
        der = ssl.PEM_cert_to_DER_cert(text[begin:end])
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no certificate"
        raise OperationError(
            f"cannot read the client certificate {file}: {reason}; nobody can tell whom it names"
        ) from error
    return certificate_of([der])
