"""Names of things, each with the length and the characters that the field allows.

Lengths count characters. Control characters are refused everywhere: a name stands in log lines.
"""

from __future__ import annotations

import re
from typing import Final

from vpnrouter import limits
from vpnrouter.settings.schema import Text

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _name(what: str, longest: int, forbidden: str = "", pattern: str = "", says: str = "") -> Text:
    """One kind of name: 1..`longest` characters, none `forbidden`, all of `pattern`."""
    allowed = re.compile(pattern) if pattern else None

    def check(text: str) -> str:
        if not text:
            raise ValueError(f"{what} must not be empty")
        if len(text) > longest:
            raise ValueError(f"{what} has {len(text)} characters, at most {longest} are allowed")
        if _CONTROL.search(text):
            raise ValueError(f"{what} must not contain control characters")
        found = [character for character in forbidden if character in text]
        if found:
            raise ValueError(f"{what} must not contain {' '.join(found)}")
        if allowed is not None and not allowed.fullmatch(text):
            raise ValueError(f"{what} may only contain {says}")
        return text

    return Text(1, longest, check)


ROUTER: Final = _name(
    "a router name",
    limits.ROUTER_NAME_LENGTH,
    pattern=r"[A-Za-z0-9._-]+",
    says="A-Z a-z 0-9 . _ -",
)
"""Also a directory name (`router=NAME`) and a word of the ready line, hence the few characters."""

MSG_VPN: Final = _name("a message VPN name", limits.MSG_VPN_NAME_LENGTH, "*?")

BRIDGE: Final = _name(
    "a bridge name",
    limits.BRIDGE_NAME_LENGTH,
    pattern=r'[A-Za-z0-9"~`!\\@$%|^()_+={}:,.#\-;\[\]]+',
    says='letters, digits and " ~ ` ! \\ @ $ % | ^ ( ) _ + = { } : , . # - ; [ ]',
)

_IN_PATHS: Final = r"(?!\.{1,2}$)[A-Za-z0-9._-]+"
"""In a path of the API, `.` and `..` are steps, which clients take before they send it (RFC 3986, 5.2.4)."""

VIRTUAL_HOST: Final = _name("a virtual host", limits.PATH_LENGTH)

CONNECTOR: Final = _name(
    "a connector name",
    limits.BRIDGE_NAME_LENGTH,
    pattern=_IN_PATHS,
    says="A-Z a-z 0-9 . _ - and not be . or ..",
)
"""Also a part of client names and of default client ids, hence the few characters."""

CONNECTOR_LINK: Final = _name(
    "a link name",
    limits.BRIDGE_NAME_LENGTH,
    pattern=_IN_PATHS,
    says="A-Z a-z 0-9 . _ - and not be . or ..",
)

PROVIDER: Final = _name(
    "a provider name",
    limits.BRIDGE_NAME_LENGTH,
    pattern=r"[A-Za-z0-9._-]+",
    says="A-Z a-z 0-9 . _ -",
)

SERVER_NAME: Final = _name(
    "a server name",
    limits.SERVER_NAME_LENGTH,
    pattern=r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*",
    says="A-Z a-z 0-9 -, in parts between dots",
)
"""What TLS calls a host name: no address (RFC 6066, 3)."""

ALPN: Final = _name(
    "a protocol name",
    limits.ALPN_NAME_LENGTH,
    pattern=r"[!-~]+",
    says="printable ASCII without spaces",
)

INTERFACE: Final = _name(
    "an interface",
    limits.INTERFACE_LENGTH,
    pattern=r"[A-Za-z0-9._:@-]+",
    says="A-Z a-z 0-9 . _ : @ -",
)

QUEUE: Final = _name("a queue name", limits.QUEUE_NAME_LENGTH, "*?'<>&;")

SUBSCRIPTION: Final = _name("a subscription name", limits.QUEUE_NAME_LENGTH, "|*?")

TOPIC_ENDPOINT: Final = _name("a topic endpoint name", limits.QUEUE_NAME_LENGTH, "*?'<>&;")

REPLAY_LOG: Final = _name("a replay log name", limits.REPLAY_LOG_NAME_LENGTH, "*?'<>&;")

CLIENT_USERNAME: Final = _name("a client username", limits.CLIENT_USERNAME_LENGTH, "*?")

CLIENT_PROFILE: Final = _name(
    "a client profile name",
    limits.PROFILE_NAME_LENGTH,
    pattern=r"#?[A-Za-z0-9_-]+",
    says="A-Z a-z 0-9 _ - after an optional leading #",
)

ACL_PROFILE: Final = _name("an ACL profile name", limits.PROFILE_NAME_LENGTH)

TRACE_FILTER: Final = _name("a trace filter name", limits.TRACE_FILTER_NAME_LENGTH)

USER: Final = _name("a user name", limits.CLIENT_USERNAME_LENGTH, ":")
"""A colon would end the name in HTTP basic authentication (RFC 7617, 2)."""

PATH: Final = _name("a path", limits.PATH_LENGTH)
"""A path as written. A relative one starts at the directory that the command was started in."""
