"""How a connector logs in to its provider."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.connectors.http.templates import HeaderTemplate, PathTemplate


@final
@dataclass(slots=True, eq=False, repr=False)
class ProviderSettings:
    """What a provider is told; `username` is "" for none.

    A message that is not answered for `answer_timeout_s` ends the connection, 0 for never.
    `receive_maximum` is how many messages of QoS 2 may be unfinished at a provider that cannot say how many it takes.
    `place` is the name of the provider in the paths of messages, whichever address is in use. Of AMQP: `broker` is
    the name of its row in the table of brokers, `auto` where it says itself what it is; `virtual_host` the name under
    which it is asked for; `window` how many messages each link may be sent that are not answered; `shows_certificate`:
    a certificate is shown over TLS.

    To an HTTP server at most `max_connections` are made at a time, with the bearer `token`, None for none.
    """

    place: str = ""
    client_id: str = ""
    username: str = ""
    password: bytes | None = None
    keep_alive_s: int = 30
    answer_timeout_s: int = 30
    receive_maximum: int = 10
    broker: str = "auto"
    virtual_host: str = ""
    window: int = 1_000
    shows_certificate: bool = False
    token: str | None = None
    max_connections: int = 16

    @property
    def basic(self) -> str:
        """The login in the basic scheme (RFC 7617, 2)."""
        login = self.username.encode() + b":" + (self.password or b"")
        return base64.b64encode(login).decode()

    @property
    def secrets(self) -> list[str]:
        """What nobody is shown, also where the provider repeats it."""
        if self.token is not None:
            return [self.token]
        if not self.username:
            return []
        return [self.basic, (self.password or b"").decode("utf-8", "replace")]


@final
@dataclass(slots=True, eq=False, repr=False)
class RequestSettings:
    """How a link sends messages to an HTTP server: `method`, `path`, and its own headers by name.

    `order` is one of those of settings/connector.py. With `reply`, what is answered goes to the Response Topic of the
    message. `first_ns` and `most_ns` bound the pauses between tries.
    """

    path: PathTemplate
    method: str = "POST"
    headers: list[tuple[str, HeaderTemplate]] = field(default_factory=list)
    order: str = "key"
    reply: bool = False
    first_ns: int = SECOND_NS
    most_ns: int = 60 * SECOND_NS
