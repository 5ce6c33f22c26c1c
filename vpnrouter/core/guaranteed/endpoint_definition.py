"""Reads and writes the definitions of endpoints in the store: message VPN, kind, name and number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, final

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.spool.store import Store


@final
class EndpointDefinition:
    """The stored definition of an endpoint; its messages are kept under `number`.

    `subscription` is the one of a topic endpoint, in MQTT's dialect as its consumer gave it, or of a subscription of
    AMQP, in SMF's. `attracts_for` is the client username and client id of that consumer, or "". `selector`, `no_local`
    and `shared` are for subscriptions of AMQP alone. `bridges` are names of bridges that ever consumed from a queue
    (end_to_end.py).
    """

    __slots__ = (
        "attracts_for",
        "bridges",
        "durable",
        "kind",
        "name",
        "no_local",
        "number",
        "selector",
        "shared",
        "subscription",
        "vpn",
    )

    def __init__(
        self,
        number: int,
        vpn: str,
        kind: int,
        name: str,
        durable: bool,
        subscription: str = "",
        attracts_for: tuple[str, str] = ("", ""),
    ) -> None:
        self.number = number
        self.vpn = vpn
        self.kind = kind
        self.name = name
        self.durable = durable
        self.subscription = subscription
        self.attracts_for = attracts_for
        self.bridges: list[str] = []
        self.selector = ""
        self.no_local = False
        self.shared = False

    def encode(self) -> bytes:
        """The value to store under `keys.endpoint(number)`."""
        said: dict[str, object] = {"vpn": self.vpn, "kind": self.kind, "name": self.name}
        said["durable"] = self.durable
        if self.subscription:
            said["subscription"] = self.subscription
            said["client_username"], said["client_id"] = self.attracts_for
        if self.selector:
            said["selector"] = self.selector
        if self.no_local:
            said["no_local"] = True
        if self.shared:
            said["shared"] = True
        if self.bridges:
            said["bridges"] = self.bridges
        return json.dumps(said).encode()


def decode_definition(number: int, value: bytes) -> EndpointDefinition:
    """The endpoint that `value` was made of. Raises SpoolError when it is no definition."""
    try:
        said = json.loads(value)
        found = EndpointDefinition(
            number,
            str(said["vpn"]),
            int(said["kind"]),
            str(said["name"]),
            bool(said["durable"]),
            str(said.get("subscription", "")),
            (str(said.get("client_username", "")), str(said.get("client_id", ""))),
        )
        found.selector = str(said.get("selector", ""))
        found.no_local = bool(said.get("no_local", False))
        found.shared = bool(said.get("shared", False))
        found.bridges = [str(name) for name in said.get("bridges", [])]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpoolError(f"the definition of endpoint {number} is damaged", "corrupt") from error
    return found


def read_definitions(store: Store) -> tuple[list[EndpointDefinition], int]:
    """All endpoints that the store knows, and the number of the next new one. Raises SpoolError."""
    found: list[EndpointDefinition] = []
    following = 1
    for key, value in store.scan(keys.ENDPOINT):
        number = keys.endpoint_of(key)
        if number == 0:
            following = max(following, int.from_bytes(value, "big"))
        else:
            found.append(decode_definition(number, value))
            following = max(following, number + 1)
    return found, following
