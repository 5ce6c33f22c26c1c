"""How a connector logs in to a provider of AMQP: it chooses a mechanism of SASL and answers for it (AMQP 1.0, 5.3).

EXTERNAL where a certificate is shown and no username is given, SCRAM-SHA-256 or else PLAIN for a username, ANONYMOUS
for nobody.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.scram import Derivation, Deriver, proof_of, verifier_of
from vpnrouter.errors import OperationError
from vpnrouter.wire.amqp import sasl
from vpnrouter.wire.amqp.performatives import SaslInit, SaslResponse

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.connection import AmqpProviderConnection
    from vpnrouter.connectors.settings import ProviderSettings

REFUSED: Final[dict[int, str]] = {
    1: "username or password is wrong, or nobody of this name may log in",
    2: "its system has an error",
    3: "its system has an error that will last",
    4: "its system has an error that may pass",
}
"""What the codes of an outcome mean (5.3.3.6)."""


@final
class SaslLogin(Deriver):
    """The login over one connection; `nonce` is known to nobody before. `derivations` are computed by the edge."""

    __slots__ = (
        "_bare",
        "_connection",
        "_derivations",
        "_first",
        "_mechanism",
        "_nonce",
        "_settings",
        "_signature",
        "_unproven",
        "_waits",
    )

    def __init__(
        self,
        connection: AmqpProviderConnection,
        settings: ProviderSettings,
        nonce: str,
        derivations: list[Derivation],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._nonce = nonce
        self._derivations = derivations
        self._mechanism = ""
        # Of SCRAM: what the client and the server have said first, what is proved, and what proves the server.
        self._bare = ""
        self._first = b""
        self._unproven = ""
        self._signature = b""
        self._waits = False

    def begin(self, offered: list[str]) -> None:
        """Choose a mechanism of those that are `offered`, and begin. Raises OperationError where none of them does."""
        settings = self._settings
        response = b""
        wanted: list[str] = [sasl.ANONYMOUS]
        if settings.username:
            wanted = [sasl.SCRAM, sasl.PLAIN]
        elif settings.shows_certificate:
            wanted = [sasl.EXTERNAL, sasl.ANONYMOUS]
        found = [each for each in wanted if each in offered]
        if not found:
            shown = ", ".join(offered) or "none"
            whom = "a username" if settings.username else "nobody"
            raise OperationError(
                f"the provider offers no login for {whom}: its mechanisms are {shown}"
            )
        self._mechanism = found[0]
        if self._mechanism == sasl.PLAIN:
            response = b"\0" + settings.username.encode() + b"\0" + (settings.password or b"")
        elif self._mechanism == sasl.SCRAM:
            self._bare = sasl.client_first_bare(settings.username, self._nonce)
            response = f"{sasl.NO_BINDING}{self._bare}".encode()
        elif self._mechanism == sasl.ANONYMOUS:
            response = settings.client_id.encode()
        self._connection.say_login(
            SaslInit(self._mechanism, response, settings.virtual_host or None)
        )

    def challenged(self, challenge: bytes) -> None:
        """Answer a challenge. Raises ProtocolError for what breaks RFC 5802, and OperationError."""
        if self._mechanism != sasl.SCRAM or self._waits:
            raise OperationError("the provider asks on, though its mechanism has no more to ask")
        if self._signature:
            self._prove(challenge)
            self._connection.say_login(SaslResponse(b""))
            return
        said = sasl.read_server_first(challenge, self._nonce)
        if not limits.SCRAM_ITERATIONS_LEAST <= said.iterations <= limits.SCRAM_ITERATIONS_MOST:
            raise OperationError(
                f"the provider wants {said.iterations:,} iterations of SCRAM-SHA-256, not"
                f" {limits.SCRAM_ITERATIONS_LEAST:,} to {limits.SCRAM_ITERATIONS_MOST:,}"
            )
        self._first = challenge
        header = base64.b64encode(sasl.NO_BINDING.encode()).decode()
        self._unproven = f"c={header},r={said.nonce}"
        self._waits = True
        password = self._settings.password or b""
        self._derivations.append(
            Derivation(self, self._connection, password, said.salt, said.iterations, "")
        )

    @override
    def waits(self) -> bool:
        return self._waits and not self._connection.closing

    @override
    def derived(self, salted: bytes) -> None:
        self._waits = False
        message = b",".join([self._bare.encode(), self._first, self._unproven.encode()])
        self._signature = verifier_of(salted, b"", 1).signature(message)
        proof = base64.b64encode(proof_of(salted, message)).decode()
        self._connection.say_login(SaslResponse(f"{self._unproven},p={proof}".encode()))

    @override
    def underivable(self, why: str) -> None:
        self._connection.client.end(why)

    def accepted(self, data: bytes) -> None:
        """The provider has accepted the login, and said this. Raises OperationError where it has not proved itself."""
        if self._mechanism == sasl.SCRAM and self._signature != _PROVED:
            self._prove(data)

    def _prove(self, data: bytes) -> None:
        """Check that the provider knows the password too (RFC 5802, 3: ServerSignature)."""
        if not self._signature or not hmac.compare_digest(data, sasl.server_final(self._signature)):
            raise OperationError("the provider has not proved that it knows the password")
        self._signature = _PROVED


_PROVED: Final = b"\0"
"""In the place of a signature: the provider has given it."""
