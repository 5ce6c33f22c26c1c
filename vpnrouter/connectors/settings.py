"""How a connector logs in to its provider."""

from __future__ import annotations

from typing import NamedTuple


class ProviderSettings(NamedTuple):
    """What a provider is told. `level` is the MQTT version to speak, 0 for the newest that the provider knows.

    A message that is not answered for `answer_timeout_s` ends the connection, 0 for never.
    `receive_maximum` is how many messages of QoS 2 may be unfinished at a provider that cannot say how many it takes.
    `place` is the name of the provider in the paths of messages, whichever address is in use.
    """

    client_id: str
    username: str | None
    password: bytes | None
    keep_alive_s: int
    level: int
    place: str = ""
    answer_timeout_s: int = 0
    receive_maximum: int = 10
