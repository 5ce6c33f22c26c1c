"""How a connector logs in to its provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


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
