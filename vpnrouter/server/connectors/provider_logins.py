"""The sessions of connections to providers that are not configured any more, and who goes on with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.config.configured_connector import login_of, session_name

if TYPE_CHECKING:
    from vpnrouter.config.connector import Connector
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.server.connectors.connection_runner import ConnectionRunner

Login = tuple[str, str]
"""The name of a provider, and the client id there."""


@final
class ProviderLogins:
    """`stored` are the sessions that the store has, by message VPN and name of the session. `wanted` are the logins of
    all connections that are configured: what a connection with one of them leaves is kept for the next one.
    """

    def __init__(self, stored: dict[tuple[str, str], ProviderSession]) -> None:
        self.stored = stored
        self.wanted: set[Login] = set()
        # Connections that were removed, until they have logged out for good.
        self._leaving: list[ConnectionRunner] = []

    def leave(self, connection: ConnectionRunner) -> None:
        """Remove a connection."""
        connection.remove(bequeaths=connection.login in self.wanted)
        self._leaving[:] = [each for each in self._leaving if not each.ended.is_set()]
        self._leaving.append(connection)

    def inherit(
        self, place: tuple[str, str, str], connector: Connector, link: str
    ) -> tuple[ProviderSession | None, ConnectionRunner | None]:
        """Return the session with which a new connection goes on, and who has to have logged out before; None for none.

        `place` is router, message VPN and connector.
        """
        _, vpn_name, name = place
        client_name = session_name(name, link)
        session = self.stored.pop((vpn_name, client_name), None)
        login = login_of(*place, connector, link)
        before = next((each for each in reversed(self._leaving) if each.login == login), None)
        bequest = None if before is None else before.bequest()
        if bequest is not None:
            session = bequest
            session.move(vpn_name, client_name)
        return session, before

    def erase(self) -> None:
        """Delete the stored sessions that nobody has taken."""
        for session in self.stored.values():
            session.erase()
        self.stored.clear()
