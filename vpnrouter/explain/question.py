"""What is asked: who publishes what, where, and who else subscribes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from vpnrouter import limits
from vpnrouter.errors import VpnrouterError
from vpnrouter.topics.grammar import MQTT, parse_filter

DIRECT: Final = "direct"
PERSISTENT: Final = "persistent"
MODES: Final = (DIRECT, PERSISTENT)

_TEXT_BYTES: Final = 65_535
"""Of a string of MQTT."""

_QOS: Final = re.compile(r"@([012])\Z")


class UsageError(VpnrouterError):
    """The question itself is wrong: an unknown router, a number out of bounds."""


@final
@dataclass(frozen=True, slots=True)
class Subscriber:
    """A client with subscriptions in MQTT's dialect, each with its QoS, at a message VPN.

    `name` is the client's name, "" for one that is made up; `client_username` "" for one that may log in.
    Of one that is not `connected` only the session is there.
    """

    router: str
    msg_vpn: str
    filters: tuple[tuple[str, int], ...]
    name: str = ""
    client_username: str = ""
    connected: bool = True


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A message of `size` bytes on `topic`, published into message VPN `msg_vpn` of `router`.

    `mode` is one of MODES. `client_username` "" is one that may publish it, or nobody's where everybody may
    log in. `client_address` is where the client comes from, "" for an address that no rule names.
    `properties` are MQTT 5 user properties. `subscribers` are clients beside what the configurations have.
    """

    router: str
    msg_vpn: str
    topic: str
    mode: str = DIRECT
    client_username: str = ""
    client_address: str = ""
    size: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    subscribers: tuple[Subscriber, ...] = ()
    all_misses: bool = False

    def check(self) -> None:
        """Raises UsageError for what no router could be asked."""
        if self.mode not in MODES:
            raise UsageError(f"the mode is one of {', '.join(MODES)}, not {self.mode}")
        if not 0 <= self.size <= limits.EXPLAIN_PAYLOAD_BYTES:
            raise UsageError(
                f"a size is from 0 to {limits.EXPLAIN_PAYLOAD_BYTES:,}, not {self.size}"
            )
        if len(self.properties) > limits.EXPLAIN_PROPERTIES:
            raise UsageError(f"at most {limits.EXPLAIN_PROPERTIES} properties")
        texts = [self.client_username, *(text for pair in self.properties for text in pair)]
        for text in texts:
            _check_text(text)


def _check_text(text: str) -> None:
    """Raises UsageError for what MQTT cannot say (1.5.4)."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError("a name or property is not UTF-8") from None
    if size > _TEXT_BYTES or "\0" in text:
        raise UsageError(f"a name or property has at most {_TEXT_BYTES:,} bytes and no NUL")


def parse_place(text: str) -> tuple[str, str]:
    """Router and message VPN of "ROUTER/VPN". Raises UsageError."""
    router, slash, msg_vpn = text.partition("/")
    if not (router and slash and msg_vpn):
        raise UsageError(f"{text} is not of the form ROUTER/VPN")
    return router, msg_vpn


def parse_subscriber(text: str) -> Subscriber:
    """The client of "ROUTER/VPN=FILTER" or "ROUTER/VPN=FILTER@QOS", the filter in MQTT's dialect.

    Raises UsageError, and TopicError for a bad filter.
    """
    place, equals, filter_ = text.partition("=")
    if not equals or not filter_:
        raise UsageError(f"{text} is not of the form ROUTER/VPN=FILTER or ROUTER/VPN=FILTER@QOS")
    router, msg_vpn = parse_place(place)
    qos = 0
    found = _QOS.search(filter_)
    if found is not None:
        qos = int(found[1])
        filter_ = filter_[: found.start()]
    parse_filter(filter_, MQTT)
    return Subscriber(router, msg_vpn, ((filter_, qos),))


def parse_property(text: str) -> tuple[str, str]:
    """Name and value of "NAME=VALUE". Raises UsageError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text} is not of the form NAME=VALUE")
    return name, value
