"""How a connector logs in to its provider."""

from __future__ import annotations

from typing import NamedTuple


class ProviderSettings(NamedTuple):
    """What a provider is told. `level` is the MQTT version to speak, 0 for the newest that the provider knows."""

    client_id: str
    username: str | None
    password: bytes | None
    keep_alive_s: int
    level: int
