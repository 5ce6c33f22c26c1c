"""Logs AMQP clients in: SASL (AMQP 1.0, 5.3) with ANONYMOUS, PLAIN, EXTERNAL and SCRAM-SHA-256, or no SASL at all.

The message VPN is the listener's. On a listener for all of them it is named behind the last `@` of the username, or
as `hostname`, in `sasl-init` or, where SASL says nothing of it, in `open`; a login by password is then verified when
`open` has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.core.credentials import BAD_CREDENTIALS, BAD_PASSWORD, NOT_AUTHORIZED
from vpnrouter.core.guaranteed.refusals import QUOTA_EXCEEDED
from vpnrouter.core.login import (
    BASIC,
    CLIENT_CERTIFICATE,
    NO_SUCH_VPN,
    Admission,
    admit,
    admit_proof,
    begin_verifying,
    check_verified,
    choose_vpn,
    named_vpn,
)
from vpnrouter.core.login_throttle import REFUSE, TOO_MANY_FAILURES
from vpnrouter.core.pre_login_limits import THROTTLED
from vpnrouter.core.scram import Derivation, Deriver, Verifier, verifier_of
from vpnrouter.errors import Refused
from vpnrouter.wire.amqp import sasl
from vpnrouter.wire.amqp.performatives import SaslChallenge, SaslInit

if TYPE_CHECKING:
    from vpnrouter.core.credentials import Credentials
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.amqp.sasl import ClientFirst

UNSUPPORTED: Final = "403 Forbidden: the SASL mechanism is not offered"
OTHER_IDENTITY: Final = "403 Forbidden: nobody acts for another user here"


def mechanisms(router: Router, listener_vpn: str, has_certificate: bool) -> list[str]:
    """Return the mechanisms to offer, the best first.

    SCRAM-SHA-256 is offered where every stored password can be proved by it: clients choose it before PLAIN.
    """
    vpns = [vpn for vpn in router.vpns.values() if not listener_vpn or vpn.name == listener_vpn]
    provable = [vpn for vpn in vpns if vpn.credentials.provable]
    found = [sasl.EXTERNAL] if has_certificate else []
    if provable and len(provable) == len(vpns):
        found.append(sasl.SCRAM)
    return [*found, sasl.PLAIN, sasl.ANONYMOUS]


@mypyc_attr(allow_interpreted_subclasses=True)
class SaslConnection(ClientConnection):
    """What a login asks of its connection."""

    __slots__ = ()

    def challenge(self, challenge: SaslChallenge) -> None:
        """Send a challenge of SASL: its response is due next."""
        raise AssertionError(challenge)

    def logged_in(self) -> None:
        """Go on after a verification that ended well."""
        raise AssertionError(self)

    def refused(self, refusal: Refused) -> None:
        """Refuse the login, as the state allows."""
        raise AssertionError(refusal)


@final
class Login(Deriver):
    """The login of one connection.

    `done`: nothing is left to verify. While `waiting` for `open` the message VPN is not known yet.
    """

    __slots__ = (
        "_answer",
        "_connection",
        "_final",
        "_first",
        "_nonce",
        "_password",
        "_proven",
        "_scheme",
        "_username",
        "_wanted",
        "done",
        "waiting",
    )

    def __init__(self, connection: SaslConnection) -> None:
        self._connection = connection
        self._username: str | None = None
        self._password: bytes | None = None
        self._scheme = ""
        self._wanted: Admission | None = None
        # Of SCRAM: the client's first message, the server's answer, the nonce of both, and what is proved.
        self._first: ClientFirst | None = None
        self._answer = b""
        self._nonce = ""
        self._final: sasl.ClientFinal | None = None
        self._proven = b""
        self.done = False
        self.waiting = False

    def begin(self, init: SaslInit) -> None:
        """Take what the client chose. Raises ProtocolError for a response that breaks its mechanism, and Refused."""
        response = init.initial_response or b""
        host = init.hostname or ""
        if init.mechanism == sasl.PLAIN:
            plain = sasl.read_plain(response)
            _check_identity(plain.authorization, plain.username)
            self._username, self._password = plain.username, plain.password
            self._scheme = BASIC
        elif init.mechanism == sasl.EXTERNAL:
            self._scheme = CLIENT_CERTIFICATE
        elif init.mechanism == sasl.SCRAM:
            self._ask(sasl.read_client_first(response), host)
            return
        elif init.mechanism != sasl.ANONYMOUS:
            raise Refused(UNSUPPORTED, NOT_AUTHORIZED)
        self._identify(host, at_open=False)

    def opened(self, host: str) -> None:
        """Go on with the hostname in `open`. Raises Refused."""
        self._identify(host, at_open=True)

    def _identify(self, host: str, *, at_open: bool) -> None:
        connection = self._connection
        try:
            vpn, username = self._choose(self._username, host)
        except Refused:
            if at_open:
                raise
            self.waiting = True
            return
        self.waiting = False
        admission = admit(
            vpn,
            username,
            self._password,
            connection.peer,
            None,
            connection.certificate,
            self._scheme if self._scheme == CLIENT_CERTIFICATE else "",
            hides=not connection.listener_vpn,
        )
        connection.admission = admission
        if admission.needs_password:
            begin_verifying(connection, admission, connection.router.pre_login_limits)
        else:
            self.done = True

    def _choose(self, username: str | None, host: str) -> tuple[MessageVpn, str | None]:
        connection = self._connection
        named = username is not None and "@" in username
        if connection.listener_vpn or named:
            return choose_vpn(connection.router, connection.listener_vpn, username)
        if not host:
            raise Refused(NO_SUCH_VPN, NOT_AUTHORIZED)
        return named_vpn(connection.router, host), username

    def verified(self, good: bool) -> None:
        """Take the verdict on the password. Raises Refused."""
        admission = self._connection.admission
        if admission is None:
            return
        if not good:
            raise Refused(BAD_PASSWORD, BAD_CREDENTIALS, admission.why or BAD_PASSWORD)
        check_verified(admission, self._connection.peer, None)
        self.done = True

    # -- SCRAM-SHA-256 ---------------------------------------------------------------------------

    def _ask(self, first: ClientFirst, host: str) -> None:
        """Answer the client's first message with a challenge."""
        connection = self._connection
        _check_identity(first.authorization, first.username)
        vpn, username = self._choose(first.username, host)
        admission = admit_proof(vpn, username)
        self._wanted = admission
        self._first = first
        salt, iterations, _ = _terms(vpn.credentials, admission)
        self._nonce = first.nonce + vpn.credentials.assigned_client_id(
            connection.context.ids.next()
        )
        self._answer = sasl.server_first(self._nonce, salt, iterations)
        connection.challenge(SaslChallenge(self._answer))

    def respond(self, response: bytes) -> None:
        """Check the client's last message. Raises ProtocolError for none, and Refused."""
        first, admission = self._first, self._wanted
        connection = self._connection
        if first is None or admission is None:
            raise Refused(UNSUPPORTED, NOT_AUTHORIZED)
        final = sasl.read_client_final(response, first.header)
        if final.nonce != self._nonce:
            raise Refused(BAD_PASSWORD, BAD_CREDENTIALS)
        entrance = connection.router.pre_login_limits
        credentials = admission.vpn.credentials
        name = admission.username.name
        known = credentials.usernames.get(name) is admission.username
        verdict = entrance.throttle.begin(
            connection.origin,
            admission.vpn.name,
            name,
            known=known,
            now_ns=connection.context.now_ns,
        )
        if verdict == REFUSE:
            entrance.turned_away(THROTTLED, connection.peer)
            raise Refused(TOO_MANY_FAILURES, NOT_AUTHORIZED)
        self._final = final
        connection.admission = admission
        salt, iterations, verifier = _terms(credentials, admission)
        if verifier is not None:
            self._judge(verifier)
            return
        stored = (admission.username.password or "").encode()
        connection.router.derivations.append(
            Derivation(self, connection, stored, salt, iterations, connection.peer or "?")
        )

    def waits(self) -> bool:
        """Return whether the salted password is still needed."""
        return not self._connection.closing and not self.done

    def derived(self, salted: bytes) -> None:
        """Judge the proof by a password that is stored as text."""
        admission = self._wanted
        if admission is None:
            return
        salt, iterations, _ = _terms(admission.vpn.credentials, admission)
        connection = self._connection
        try:
            self._judge(verifier_of(salted, salt, iterations))
        except Refused as refusal:
            connection.refused(refusal)
            return
        connection.logged_in()

    def underivable(self, why: str) -> None:
        """Refuse the login: too many wait for theirs."""
        self._connection.refused(Refused(why, QUOTA_EXCEEDED))

    def _judge(self, verifier: Verifier) -> None:
        first, final, admission = self._first, self._final, self._wanted
        if first is None or final is None or admission is None:
            return
        message = sasl.scram_message(first, self._answer, final)
        if not verifier.accepts(final.proof, message):
            raise Refused(BAD_PASSWORD, BAD_CREDENTIALS, admission.why or BAD_PASSWORD)
        connection = self._connection
        connection.router.pre_login_limits.throttle.take_back(
            connection.origin, admission.vpn.name, admission.username.name
        )
        check_verified(admission, connection.peer, None)
        self._proven = sasl.server_final(verifier.signature(message))
        self.done = True

    @property
    def outcome_data(self) -> bytes | None:
        """What a successful outcome carries: the proof of the server, of SCRAM alone."""
        return self._proven or None


def _check_identity(authorization: str, username: str) -> None:
    if authorization not in ("", username):
        raise Refused(OTHER_IDENTITY, NOT_AUTHORIZED)


def _terms(credentials: Credentials, admission: Admission) -> tuple[bytes, int, Verifier | None]:
    """Return salt, iterations, and the stored verifier if it is not a password in plain text that is stored."""
    verifier = credentials.verifier(admission.username)
    if verifier is not None:
        return verifier.salt, verifier.iterations, verifier
    return credentials.salt_of(admission.username), limits.SCRAM_ITERATIONS_PLAIN, None
